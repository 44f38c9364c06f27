"""The closed table of what a pickle may call: each global has its meaning here, none is imported.

Any other global, and any object made in another way, is an ``Opaque`` that is never built.
"""

from collections.abc import Callable

from ...tensors.dtypes import item_size
from .values import Dictionary, Global, NumpyArray, NumpyDtype, NumpyScalar, Opaque, Storage, View

STORAGE_DTYPES = {
    "BFloat16Storage": "BF16",
    "BoolStorage": "BOOL",
    "ByteStorage": "U8",
    "CharStorage": "I8",
    "ComplexDoubleStorage": "C128",
    "ComplexFloatStorage": "C64",
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "IntStorage": "I32",
    "LongStorage": "I64",
    "ShortStorage": "I16",
}
"""The dtype of each of torch's storage classes (``torch.FloatStorage``)."""

TORCH_DTYPES = {
    "bfloat16": "BF16",
    "bool": "BOOL",
    "complex128": "C128",
    "complex64": "C64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "int8": "I8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "uint8": "U8",
}
"""The code of each of torch's dtypes (``torch.float32``)."""


def reduce(callee: object, arguments: object) -> object:
    """Return what calling a global would give.

    Args:
        callee: A ``Global``, or anything else that a pickle tries to call.
        arguments: The tuple of arguments; None when an object is made without a call.

    Raises:
        ValueError: If a known global has impossible arguments.
    """
    if not isinstance(callee, Global):
        return callee if isinstance(callee, Opaque) else Opaque("an object of no class")
    if isinstance(arguments, tuple) and callee in _MEANINGS:
        return _MEANINGS[callee](arguments)
    return Opaque(f"an object of {callee}, which is never built")


def build(target: object, state: object) -> None:
    """Give an object its state, as the last step of making it.

    Raises:
        ValueError: If the object has no state, or an impossible one.
    """
    match target, state:
        case NumpyDtype(), (_, str(byte_order), *_):
            # The fields behind the byte order matter for structured dtypes only.
            target.big_endian = byte_order == ">"
        case NumpyArray(), (_, tuple(shape), NumpyDtype() as dtype, bool(order), bytes(data)):
            target.shape, target.dtype, target.data = shape, dtype, data
            target.fortran_order = order
        case (NumpyArray(), tuple()) | (Dictionary() | Opaque(), _):
            # An array of objects keeps no dtype and is refused; a dictionary's state is no weight.
            pass
        case _:
            raise ValueError("an object with an impossible state")


def storage_of(persistent_id: object) -> Storage | Opaque:
    """Return the storage that a persistent id of torch names.

    Args:
        persistent_id: ("storage", class, key, device, number of elements), or ("module", class,
            ...), by which old files name the class of a whole module.

    Raises:
        ValueError: If it is no such tuple.
    """
    match persistent_id:
        case ("storage", Global() as storage_class, str(key), _, int(count)) if count >= 0:
            if storage_class == Global("torch.storage", "UntypedStorage"):
                return Storage(key, None, 1, count)
            dtype = STORAGE_DTYPES.get(storage_class.name)
            if dtype is None or storage_class.module != "torch":
                return Opaque(f"a tensor of {storage_class}, which is not carried")
            return Storage(key, dtype, item_size(dtype), count * item_size(dtype))
        case ("module", Global() as module_class, *_):
            return Opaque(f"an object of {module_class}, which is never built")
    raise ValueError("a storage that torch would not name so")


def _rebuild_tensor(arguments: tuple) -> View | Opaque:
    """torch._utils._rebuild_tensor and _v2: (..., requires_grad, backward_hooks, metadata)."""
    match arguments:
        case (Storage() as storage, offset, tuple(shape), tuple(strides), *rest):
            return _view(storage, storage.dtype, offset, shape, strides, rest[2:])
        case (Opaque() as storage, *_):
            return storage
    raise ValueError("a tensor without a storage, shape or strides")


def _rebuild_tensor_v3(arguments: tuple) -> View | Opaque:
    """torch._utils._rebuild_tensor_v3: (..., requires_grad, backward_hooks, dtype, metadata)."""
    match arguments:
        case (Storage() as storage, offset, tuple(shape), tuple(strides), _, _, dtype, *rest):
            known = isinstance(dtype, Global) and dtype.module == "torch"
            code = TORCH_DTYPES.get(dtype.name) if known else None
            return _view(storage, code, offset, shape, strides, rest)
        case (Opaque() as storage, *_):
            return storage
    raise ValueError("a tensor without a storage, shape, strides or dtype")


def _view(
    storage: Storage,
    dtype: str | None,
    offset: object,
    shape: tuple,
    strides: tuple,
    metadata: list,
) -> View | Opaque:
    if dtype is None:
        return Opaque("a tensor of a dtype that is not carried")
    if metadata and metadata[0]:
        return Opaque("a conjugate or negative view: save its resolve_conj().resolve_neg()")
    if type(offset) is not int or any(type(size) is not int for size in shape + strides):
        raise ValueError("a tensor whose offset, shape or strides are no integers")
    return View(storage, dtype, offset, shape, strides)


def _rebuild_parameter(arguments: tuple) -> object:
    """torch._utils._rebuild_parameter: (tensor, requires_grad, backward_hooks)."""
    if not arguments:
        raise ValueError("a parameter without a tensor")
    return arguments[0]


def _ordered_dictionary(arguments: tuple) -> object:
    """collections.OrderedDict, empty, or with its pairs as Python 2 stored them."""
    match arguments:
        case ():
            return Dictionary()
        case (list(pairs),) if all(isinstance(each, list) and len(each) == 2 for each in pairs):
            return Dictionary((key, value) for key, value in pairs)
    raise ValueError("an ordered dictionary whose items are no pairs")


def _numpy_dtype(arguments: tuple) -> NumpyDtype:
    return NumpyDtype(arguments[0] if arguments and isinstance(arguments[0], str) else "")


def _numpy_scalar(arguments: tuple) -> NumpyScalar | Opaque:
    match arguments:
        case (NumpyDtype() as dtype, bytes(data)):
            return NumpyScalar(dtype, data)
    return Opaque("a numpy scalar of an object dtype")


def _encode(arguments: tuple) -> bytes:
    """_codecs.encode, by which protocol 2 stores bytes."""
    match arguments:
        case (str(text), "latin1"):
            return text.encode("latin1")
    raise ValueError("bytes in an unknown encoding")


def _refused(what: str) -> Callable[[tuple], Opaque]:
    return lambda _: Opaque(what)


_MEANINGS: dict[Global, Callable[[tuple], object]] = {
    Global("collections", "OrderedDict"): _ordered_dictionary,
    Global("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    Global("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    Global("torch._utils", "_rebuild_tensor_v3"): _rebuild_tensor_v3,
    Global("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    Global("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
    Global("torch._utils", "_rebuild_qtensor"): _refused("a quantised tensor: dequantise it first"),
    Global("torch._utils", "_rebuild_sparse_tensor"): _refused(
        "a sparse tensor: save its to_dense()"
    ),
    Global("torch._utils", "_rebuild_nested_tensor"): _refused(
        "a nested tensor: save its parts one by one"
    ),
    Global("torch._utils", "_rebuild_meta_tensor_no_storage"): _refused(
        "a meta tensor, which has no values"
    ),
    Global("numpy", "dtype"): _numpy_dtype,
    Global("numpy.core.multiarray", "_reconstruct"): lambda _: NumpyArray(),
    Global("numpy._core.multiarray", "_reconstruct"): lambda _: NumpyArray(),
    Global("numpy.core.multiarray", "scalar"): _numpy_scalar,
    Global("numpy._core.multiarray", "scalar"): _numpy_scalar,
    Global("_codecs", "encode"): _encode,
    Global("builtins", "bytes"): lambda _: b"",
    Global("__builtin__", "bytes"): lambda _: b"",
}
