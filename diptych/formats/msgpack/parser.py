"""Walking the msgpack bytes that ``flax.serialization`` writes, without reading a tensor's values.

The format: https://github.com/msgpack/msgpack/blob/master/spec.md. Of it the closed part is read
that Flax uses: maps with text keys, lists, plain values, and arrays as extensions 1 and 3, each of
which holds a msgpack list of its own: shape, dtype name, values in C order.
"""

import struct
from collections.abc import Iterator
from io import FileIO
from typing import NamedTuple

from ...tensors.dtypes import code_of_name
from ..errors import printable
from ..limits import MOST_AXES, MOST_TENSORS, check_shape
from ..source import FileSource

ARRAY, _COMPLEX, _SCALAR = 1, 2, 3
_DEEPEST = 64
_LONGEST_TEXT = 1 << 16
_LONGEST_DTYPE = 32
_MOST_VALUES = 100_000  # beside tensors: numbers, texts, None
_WINDOW = 1 << 12  # an array's header follows the values of the one before
_SIZED = {
    # first byte: kind, bytes of the length that follows
    **{0xC4 + place: ("bytes", 1 << place) for place in range(3)},
    **{0xC7 + place: ("extension", 1 << place) for place in range(3)},
    **{0xD9 + place: ("text", 1 << place) for place in range(3)},
    **{0xDC + place: ("list", 2 << place) for place in range(2)},
    **{0xDE + place: ("map", 2 << place) for place in range(2)},
}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    **{0xCC + place: f">{code}" for place, code in enumerate("BHIQbhiq")},
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class Stored(NamedTuple):
    """An array in the file: its header, and where its values begin."""

    dtype: str
    shape: tuple[int, ...]
    position: int


class Head(NamedTuple):
    """The start of a value: its kind, and its size, its number of entries, or the value itself."""

    kind: str
    value: int | float | bool | None


Leaf = Stored | Head
Event = tuple[tuple[str, ...], Leaf]
"""A leaf with its path of keys."""


def described(head: Head) -> str:
    """Return what a value is, in a few words."""
    if head.kind in ("integer", "float"):
        return f"the {head.kind} {head.value}"
    if head.kind == "constant":
        return str(head.value)
    if head.kind in ("text", "bytes"):
        return f"{'a text of ' if head.kind == 'text' else ''}{head.value} bytes"
    article = "an" if head.kind == "extension" else "a"
    return f"{article} {head.kind} of {head.value}"


class MsgpackParser:
    """One value of a file, the outermost.

    Args:
        source: The file.
        file: The same file, opened.
    """

    def __init__(self, source: FileSource, file: FileIO):
        self._source, self._file = source, file
        self._position = 0
        self._window, self._window_start = b"", 0
        self._path: list[str] = []
        self._arrays = self._values = 0

    @property
    def path(self) -> str:
        """Return the keys that lead to the value being read, joined with dots."""
        return ".".join(self._path)

    def leaves(self) -> Iterator[Event]:
        """Yield every leaf of the outermost map, in the file's order, each path once.

        Raises:
            ValueError: If the file is damaged, or holds what Flax does not write; ``path`` says
                where.
        """
        head = self._head()
        if head.kind != "map":
            raise ValueError(f"holds {described(head)}, not a map of names")
        yield from self._entries(head)
        rest = self._source.size - self._position
        if rest:
            raise ValueError(f"corrupt: {rest} bytes behind its end")

    def _value(self) -> Iterator[Event]:
        head = self._head()
        if head.kind in ("map", "list"):
            yield from self._entries(head)
        elif head.kind == "extension":
            yield tuple(self._path), self._extension(head)
        else:
            self._count_value()
            if head.kind == "text":
                self._text(head)
            elif head.kind == "bytes":
                self._skip(_size(head))
            yield tuple(self._path), head

    def _entries(self, head: Head) -> Iterator[Event]:
        if len(self._path) == _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST}")
        count, is_map = _size(head), head.kind == "map"
        if not count and self._path:
            self._count_value()
            yield tuple(self._path), head
        seen: set[str] = set()
        for index in range(count):
            key = self._key() if is_map else str(index)
            if is_map and key in seen:
                raise ValueError(f"key {printable(key)!r} stands twice")
            seen.add(key)
            self._path.append(key)
            yield from self._value()
            self._path.pop()

    def _key(self) -> str:
        head = self._head()
        if head.kind == "integer":
            cause = "save flax.serialization.to_bytes(...), which makes texts of all keys"
            raise ValueError(f"the integer {head.value} as a key: {cause}")
        if head.kind != "text":
            raise ValueError(f"{described(head)} as a key")
        return self._text(head)

    def _extension(self, head: Head) -> Stored:
        size = _size(head)
        (code,) = struct.unpack("b", self._take(1))
        end = self._position + size
        if code == _COMPLEX:
            raise ValueError("a complex Python number, which is not read")
        if code not in (ARRAY, _SCALAR):
            raise ValueError(f"an extension of kind {code}, which Flax does not write")
        self._check_room(size)
        stored = self._array()
        if self._position != end:
            raise ValueError(f"corrupt: an array of {size} bytes ends {self._position - end:+d}")
        if code == _SCALAR and stored.shape:
            raise ValueError(f"a scalar of shape {list(stored.shape)}")
        self._arrays += 1
        if self._arrays > MOST_TENSORS:
            raise ValueError(f"more than {MOST_TENSORS} tensors")
        return stored

    def _array(self) -> Stored:
        self._expect("list", "an array", 3)
        shape = tuple(self._axis() for _ in range(self._expect("list", "a shape", None)))
        name_head = self._head()
        if name_head.kind not in ("text", "bytes") or _size(name_head) > _LONGEST_DTYPE:
            raise ValueError(f"{described(name_head)} as a dtype")
        name = self._take(_size(name_head)).decode()
        try:
            dtype = code_of_name(name)
        except ValueError:
            raise ValueError(f"dtype {printable(name)!r} is not read") from None
        nbytes = self._expect("bytes", "values", None)
        if check_shape(dtype, shape) != nbytes:
            raise ValueError(f"{nbytes} bytes for {dtype} {list(shape)}")
        position = self._position
        self._skip(nbytes)
        return Stored(dtype, shape, position)

    def _axis(self) -> int:
        head = self._head()
        if head.kind != "integer" or not isinstance(head.value, int):
            raise ValueError(f"{described(head)} as a size in a shape")
        return head.value

    def _expect(self, kind: str, what: str, count: int | None) -> int:
        head = self._head()
        most = MOST_AXES if kind == "list" else 1 << 32
        if head.kind != kind or (count is not None and head.value != count) or _size(head) > most:
            raise ValueError(f"{described(head)} as {what}")
        return _size(head)

    def _head(self) -> Head:
        (first,) = self._take(1)
        if first < 0x80:
            return Head("integer", first)
        if first >= 0xE0:
            return Head("integer", first - 256)
        if first < 0xC0:
            kind, mask = {8: ("map", 15), 9: ("list", 15)}.get(first >> 4, ("text", 31))
            return Head(kind, first & mask)
        if first in _CONSTANTS:
            return Head("constant", _CONSTANTS[first])
        if first in _NUMBERS:
            form = _NUMBERS[first]
            (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
            return Head("float" if form in (">f", ">d") else "integer", number)
        if 0xD4 <= first <= 0xD8:
            return Head("extension", 1 << (first - 0xD4))
        if first not in _SIZED:
            raise ValueError(f"corrupt: the byte {first:#x}, which begins no value")
        kind, width = _SIZED[first]
        return Head(kind, int.from_bytes(self._take(width), "big"))

    def _text(self, head: Head) -> str:
        if _size(head) > _LONGEST_TEXT:
            raise ValueError(f"a text of {head.value} bytes, over {_LONGEST_TEXT}")
        return self._take(_size(head)).decode()

    def _take(self, count: int) -> bytes:
        self._check_room(count)
        start = self._position - self._window_start
        if not 0 <= start <= start + count <= len(self._window):
            self._window_start, start = self._position, 0
            length = max(count, _WINDOW)
            self._window = self._source.read_from(self._file, self._position, length)
        self._position += count
        return self._window[start : start + count]

    def _skip(self, count: int) -> None:
        self._check_room(count)
        self._position += count

    def _check_room(self, count: int) -> None:
        rest = self._source.size - self._position
        if count > rest:
            raise ValueError(f"truncated: {count} bytes promised, {rest} there")

    def _count_value(self) -> None:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ValueError(f"more than {_MOST_VALUES} values that are no tensors")


def _size(head: Head) -> int:
    assert isinstance(head.value, int)
    return head.value
