"""Reading what ``flax.serialization`` writes, without Flax and without a msgpack library.

Such a file is a tree of maps with an array at each leaf; names here are paths joined with dots. An
array over 1 GiB is stored as a map of flat chunks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...spec import CheckpointError
from ..container import Branch, Container
from ..errors import fault, printable
from ..limits import check_name, check_shape, check_twins
from ..signatures import identify
from ..source import FileSource, JoinedSource
from ..tensor import Tensor
from .parser import Head, Leaf, MsgpackParser, Stored, described

CHUNKED = "__msgpack_chunked_array__"

_EMPTY = b"\x80"  # a tree without entries, which alone is no pickle

Keys = tuple[str, ...]


def read_msgpack(path: Path) -> Container:
    """Return the tensors of one file, from the headers between their values.

    Raises:
        CheckpointError: If the file is damaged, is something else, or holds what is not read.
    """
    source = FileSource(path)
    start = source.read(0, 512)
    kind = identify(start, source.size)
    if kind is not None and start != _EMPTY:
        raise fault(path, f"is {kind}")
    leaves = _read_leaves(source)
    chunked = {keys[:-1] for keys in leaves if keys[-1] == CHUNKED}
    parts: dict[Keys, dict[Keys, Leaf]] = {keys: {} for keys in chunked}
    tensors: dict[str, Tensor] = {}
    others: dict[str, str] = {}
    for keys, leaf in leaves.items():
        array = next((keys[:-depth] for depth in (1, 2) if keys[:-depth] in chunked), None)
        if array is not None:
            parts[array][keys[len(array) :]] = leaf
        elif isinstance(leaf, Stored):
            _add(tensors, source, keys, leaf.dtype, leaf.shape, source, leaf.position)
        else:
            others[printable(_name(keys))] = described(leaf)
    for keys, pieces in parts.items():
        try:
            dtype, shape, joined = _join(source, pieces)
        except ValueError as error:
            raise fault(path, str(error), _name(keys)) from error
        _add(tensors, source, keys, dtype, shape, joined, 0)
    check_twins(path, tensors)
    return Container("msgpack", (path,), tensors, tree={"": Branch(tensors, others)})


def _read_leaves(source: FileSource) -> dict[Keys, Leaf]:
    with source.opened() as file:
        parser = MsgpackParser(source, file)
        try:
            return dict(parser.leaves())
        except CheckpointError:
            raise
        except ValueError as error:
            raise fault(source.path, str(error), parser.path or None) from error


def _add(
    tensors: dict[str, Tensor],
    file: FileSource,
    keys: Keys,
    dtype: str,
    shape: tuple[int, ...],
    source: FileSource | JoinedSource,
    position: int,
) -> None:
    name = _name(keys)
    try:
        check_name(name)
        if name in tensors:
            raise ValueError("two entries have this name")
    except ValueError as error:
        raise fault(file.path, str(error), name) from error
    tensors[name] = Tensor(name, dtype, shape, source, position)


def _name(keys: Keys) -> str:
    # A tree that was flattened before it was saved has its slashes or dots inside the keys.
    return ".".join(keys).replace("/", ".")


def _join(
    file: FileSource, pieces: Mapping[Keys, Leaf]
) -> tuple[str, tuple[int, ...], JoinedSource]:
    """Return the dtype, shape and values of an array that is stored in chunks."""
    pieces = dict(pieces)
    pieces.pop((CHUNKED,))
    sizes = _numbered(pieces, "shape")
    chunks = _numbered(pieces, "chunks")
    if pieces:
        raise ValueError(f"a chunked array with {printable('.'.join(next(iter(pieces))))!r} in it")
    shape = []
    for size in sizes:
        if not isinstance(size, Head) or size.kind != "integer" or not isinstance(size.value, int):
            raise ValueError("a chunked array whose shape is no list of integers")
        shape.append(size.value)
    stored = [chunk for chunk in chunks if isinstance(chunk, Stored)]
    if not stored or len(stored) < len(chunks) or any(len(chunk.shape) != 1 for chunk in stored):
        raise ValueError("a chunked array whose chunks are no flat arrays")
    dtypes = {chunk.dtype for chunk in stored}
    if len(dtypes) > 1:
        raise ValueError(f"a chunked array of several dtypes: {', '.join(sorted(dtypes))}")
    dtype = stored[0].dtype
    ranges = [(chunk.position, check_shape(dtype, chunk.shape)) for chunk in stored]
    nbytes, expected = sum(length for _, length in ranges), check_shape(dtype, tuple(shape))
    if nbytes != expected:
        raise ValueError(f"chunks of {nbytes} bytes for {dtype} {shape}")
    return dtype, tuple(shape), JoinedSource(file, ranges)


def _numbered(pieces: dict[Keys, Leaf], key: str) -> Sequence[Leaf]:
    """Return what stands under ``key`` and 0, 1, 2, ..., taken out of ``pieces``."""
    if isinstance(pieces.get((key,)), Head):  # a map without entries
        pieces.pop((key,))
        return []
    found: list[Leaf] = []
    while (key, str(len(found))) in pieces:
        found.append(pieces.pop((key, str(len(found)))))
    return found
