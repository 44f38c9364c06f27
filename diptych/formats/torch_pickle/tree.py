"""The dictionaries of a pickle, as branches of tensors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...tensors.bits import row_major_strides
from ...tensors.dtypes import item_size
from ..container import Branch
from ..errors import fault, printable
from ..limits import check_name, check_shape, check_twins
from ..source import MemorySource, Source
from ..tensor import Tensor
from .values import Dictionary, Global, NumpyArray, NumpyScalar, Opaque, Storage, View

_DEEPEST = 32
_NUMPY_DTYPES = {
    **{"b1": "BOOL", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": "C128"},
    **{f"{kind}{size}": f"{kind.upper()}{size * 8}" for kind in "iu" for size in (1, 2, 4, 8)},
}


class PickleTree:
    """Make branches of what a pickle holds: the root, and what has tensors below it.

    Args:
        path: The file, for messages.
        find_data: The source of a storage, its first byte there, and whether it is big-endian.
        most_visits: How many values are looked at; a pickle may hold one list in many places.
    """

    def __init__(
        self,
        path: Path,
        find_data: Callable[[Storage], tuple[Source, int, bool]],
        most_visits: int,
    ):
        self._path, self._find_data, self._visits_left = path, find_data, most_visits
        self._branches: dict[str, Branch] = {}

    def read(self, root: object) -> dict[str, Branch]:
        """Return the branches by path, the root's path being "".

        Raises:
            CheckpointError: If the root is no dictionary, or what it holds damaged or ambiguous.
        """
        if isinstance(root, Opaque):
            raise fault(self._path, f"holds {root.what}: save its state_dict() instead")
        if not isinstance(root, Dictionary):
            raise fault(self._path, f"holds {_describe(root)}, not a dictionary of tensors")
        self._add("", root, 0)
        return self._branches

    def _add(self, path: str, pairs: list[tuple[object, object]], depth: int) -> None:
        if depth > _DEEPEST:
            raise fault(self._path, f"nested deeper than {_DEEPEST}", path)
        tensors: dict[str, Tensor] = {}
        others: dict[str, str] = {}
        refused: dict[str, str] = {}
        keys: dict[str, object] = {}
        model_args: dict[str, Any] = {}
        for index, (key, value) in enumerate(pairs):
            name = _name_of(key, index)
            shown = printable(name)
            if name in keys:
                cause = f"two entries, {keys[name]!a} and {key!a}"
                raise fault(self._path, cause, _join(path, name))
            keys[name] = key
            self._count_visit(1)
            if isinstance(value, View | NumpyArray):
                result = self._tensor(_join(path, name), name, value)
                if isinstance(result, Tensor):
                    tensors[name] = result
                else:
                    refused[shown] = result
            elif isinstance(value, Opaque):
                refused[shown] = f"is {value.what}"
            elif name == "model_args" and (settings := _plain(value)):
                model_args = settings
            elif isinstance(value, NumpyScalar):
                others[shown] = self._describe_scalar(_join(path, name), value)
            else:
                others[shown] = _describe(value)
                inner = self._inner_pairs(value)
                if inner is not None:
                    self._add(_join(path, shown), inner, depth + 1)
        if not tensors and not refused and not model_args and path:
            return
        if path in self._branches:
            raise fault(self._path, "two dictionaries have this path", path)
        self._branches[path] = Branch(tensors, others, refused, model_args)
        check_twins(self._path, tensors, path)

    def _inner_pairs(self, value: object) -> list[tuple[object, object]] | None:
        """Return the pairs of a dictionary, or of a sequence that has more in it than numbers."""
        if isinstance(value, Dictionary):
            return value
        if isinstance(value, list | tuple):
            self._count_visit(len(value) // 64)
            kinds = (Dictionary, list, tuple, View, NumpyArray, Opaque)
            if any(isinstance(item, kinds) for item in value):
                return list(enumerate(value))
        return None

    def _count_visit(self, count: int) -> None:
        self._visits_left -= count
        if self._visits_left < 0:
            raise fault(self._path, "its pickle unfolds into too many values")

    def _tensor(self, full_name: str, name: str, value: View | NumpyArray) -> Tensor | str:
        """Return the tensor, or why it cannot be read."""
        try:
            check_name(name)
        except ValueError as error:
            return str(error)
        try:
            if isinstance(value, NumpyArray):
                return self._numpy_tensor(name, value)
            return self._torch_tensor(name, value)
        except ValueError as error:
            raise fault(self._path, str(error), full_name) from error

    def _torch_tensor(self, name: str, view: View) -> Tensor:
        storage, width = view.storage, item_size(view.dtype)
        check_shape(view.dtype, view.shape)
        negative = view.offset < 0 or any(step < 0 for step in view.strides)
        if negative or len(view.strides) != len(view.shape):
            raise ValueError("strides or an offset that no tensor has")
        if 0 in view.shape:
            return Tensor(name, view.dtype, view.shape, MemorySource(self._path, b""), 0)
        span = 1
        for step, size in sorted(zip(view.strides, view.shape, strict=True)):
            if size > 1 and step < span:
                raise ValueError("an expanded or overlapping view: save its clone()")
            span += step * (size - 1)
        if (view.offset + span) * width > storage.nbytes:
            reach = f"{(view.offset + span) * width} bytes of a storage of {storage.nbytes}"
            raise ValueError(f"reaches over {reach}")
        source, position, big_endian = self._find_data(storage)
        strides = None if _is_c_order(view) else view.strides
        position += view.offset * width
        return Tensor(name, view.dtype, view.shape, source, position, strides, big_endian)

    def _describe_scalar(self, full_name: str, scalar: NumpyScalar) -> str:
        array = NumpyArray(scalar.dtype, (), scalar.data)
        tensor = self._tensor(full_name, "scalar", array)
        return f"numpy {tensor.dtype} {tensor.read()}" if isinstance(tensor, Tensor) else tensor

    def _numpy_tensor(self, name: str, array: NumpyArray) -> Tensor | str:
        dtype = _NUMPY_DTYPES.get(array.dtype.text) if array.dtype is not None else None
        if array.dtype is None or dtype is None:
            return "is a numpy array of a dtype that is not carried"
        if any(type(size) is not int for size in array.shape):
            raise ValueError("a numpy array whose shape is no list of integers")
        if check_shape(dtype, array.shape) != len(array.data):
            raise ValueError(f"{len(array.data)} bytes for {dtype} {list(array.shape)}")
        strides = row_major_strides(array.shape[::-1])[::-1] if array.fortran_order else None
        source = MemorySource(self._path, array.data)
        big_endian = array.dtype.big_endian
        return Tensor(name, dtype, array.shape, source, 0, strides or None, big_endian)


def _plain(value: object) -> dict[str, Any] | None:
    """Return a dictionary of numbers and texts, each under a name of its own; None for others."""
    found: dict[str, Any] = {}
    for key, item in value if isinstance(value, Dictionary) else ():
        if isinstance(key, str) and isinstance(item, bool | int | float | str | None):
            found[key] = item
    return found if isinstance(value, Dictionary) and len(found) == len(value) else None


def _is_c_order(view: View) -> bool:
    expected = 1
    for size, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and step != expected:
            return False
        expected *= size
    return True


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _name_of(key: object, index: int) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and key.bit_length() < 128:
        return str(key)
    return f"{_describe(key)} (entry {index})"


def _describe(value: object) -> str:
    match value:
        case None | bool():
            return str(value)
        case int():
            return f"integer {value}" if value.bit_length() < 128 else "a large integer"
        case float():
            return f"float {value!r}"
        case str():
            return f"text {printable(value)!r}"
        case bytes():
            return f"{len(value)} bytes"
        case Dictionary():
            return f"a dictionary of {len(value)}"
        case list() | tuple():
            return f"a {type(value).__name__} of {len(value)}"
        case Global():
            return str(value)
        case View():
            return "a single tensor"
    return "a bare storage" if isinstance(value, Storage) else "an object"
