"""Writing what ``flax.serialization.msgpack_serialize`` writes, byte for byte, without Flax."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ...tensors.dtypes import item_size, numpy_dtype
from ..output import OutputFile, Planned, planned_arrays, to_bytes
from .parser import ARRAY
from .reader import CHUNKED

MOST_CHUNK_BYTES = 1 << 30
"""Flax cuts larger arrays into chunks of at most so many bytes."""

_Tree = dict[str, "Planned | _Tree"]


def write_msgpack(
    path: Path, plan: Sequence[Planned], arrays: Iterable[tuple[str, np.ndarray]]
) -> None:
    """Write a tree of arrays, one tensor in memory at a time.

    Names are cut at their dots into paths; the keys of every map are sorted, as Flax sorts them.

    Args:
        path: The file, which must not exist.
        plan: Name, dtype and shape of every tensor.
        arrays: Name and values of every tensor, in the order of ``plan``.

    Raises:
        ValueError: If a name is a tensor and a folder of names, or the arrays are not as planned.
        OSError: If the disk fails.
    """
    layout = _Layout()
    layout.add_tree(_tree(plan))
    with OutputFile(path) as file:
        for position, head in layout.heads:
            file.write(head, position)
        for planned, values in planned_arrays(plan, arrays):
            data = to_bytes(values)
            for position, start, stop in layout.places[planned.name]:
                file.write(data[start:stop], position)


class _Layout:
    """Where everything lies: the bytes between the values, and the places of the values.

    Attributes:
        heads: Position and bytes of what lies between values.
        places: By name, each piece of the values: its position, its first byte and its end.
    """

    def __init__(self) -> None:
        self.heads = [(0, bytearray())]
        self.places: dict[str, list[tuple[int, int, int]]] = {}
        self._position = 0

    def add_tree(self, tree: _Tree) -> None:
        self._add(_map(len(tree)))
        for key, value in sorted(tree.items()):
            self._add(_text(key))
            if isinstance(value, dict):
                self.add_tree(value)
            else:
                self._add_tensor(value)

    def _add_tensor(self, planned: Planned) -> None:
        nbytes = planned.nbytes
        self.places[planned.name] = []
        if nbytes <= MOST_CHUNK_BYTES:
            self._add_array(planned, planned.shape, 0, nbytes)
            return
        width = item_size(planned.dtype)
        step = max(1, MOST_CHUNK_BYTES // width) * width
        starts = range(0, nbytes, step)
        self._add(_map(3) + _text(CHUNKED) + b"\xc3" + _text("shape") + _map(len(planned.shape)))
        self._add(b"".join(_text(str(i)) + _integer(n) for i, n in enumerate(planned.shape)))
        self._add(_text("chunks") + _map(len(starts)))
        for index, start in enumerate(starts):
            stop = min(start + step, nbytes)
            self._add(_text(str(index)))
            self._add_array(planned, ((stop - start) // width,), start, stop)

    def _add_array(self, planned: Planned, shape: tuple[int, ...], start: int, stop: int) -> None:
        sizes = bytes([0x90 | len(shape)]) if len(shape) < 16 else _head(0xDC, 2, len(shape))
        sizes += b"".join(map(_integer, shape))
        body = b"\x93" + sizes + _text(numpy_dtype(planned.dtype).name) + _bytes(stop - start)
        self._add(_extension(len(body) + stop - start) + body)
        self.places[planned.name].append((self._position, start, stop))
        self._position += stop - start

    def _add(self, data: bytes) -> None:
        start, head = self.heads[-1]
        if start + len(head) == self._position:
            head.extend(data)
        else:
            self.heads.append((self._position, bytearray(data)))
        self._position += len(data)


def _tree(plan: Sequence[Planned]) -> _Tree:
    tree: _Tree = {}
    for planned in plan:
        if "/" in planned.name:
            raise ValueError(f"{planned.name}: a slash, which a Flax file has between folders")
        *folders, last = planned.name.split(".")
        branch = tree
        for folder in folders:
            inner = branch.setdefault(folder, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{planned.name}: {inner.name} is a tensor and a folder of names")
            branch = inner
        if last in branch:
            raise ValueError(f"{planned.name}: is a tensor and a folder of names, or stands twice")
        branch[last] = planned
    return tree


def _map(count: int) -> bytes:
    return bytes([0x80 | count]) if count < 16 else _head(0xDE, 2, count)


def _text(text: str) -> bytes:
    data = text.encode()
    start = bytes([0xA0 | len(data)]) if len(data) < 32 else _head(0xD9, 1, len(data))
    return start + data


def _bytes(count: int) -> bytes:
    return _head(0xC4, 1, count)


def _extension(size: int) -> bytes:
    fixed = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}
    return (bytes([fixed[size]]) if size in fixed else _head(0xC7, 1, size)) + bytes([ARRAY])


def _integer(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else _head(0xCC, 1, value)


def _head(first: int, width: int, value: int) -> bytes:
    """Return a first byte and a number, in the fewest bytes of ``width``, twice it, ..."""
    while value >> (8 * width):
        first, width = first + 1, 2 * width
    return bytes([first]) + value.to_bytes(width, "big")
