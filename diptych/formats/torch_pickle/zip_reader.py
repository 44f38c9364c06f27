"""The records of an uncompressed zip archive, as ``torch.save`` writes them.

Layout: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3 and 4.5.3. Only
what torch writes is taken: stored members, one disk, no comment. The central directory and the
local headers must agree, since loaders differ in which of the two they believe.
"""

import struct
from collections.abc import Iterator
from io import FileIO
from typing import NamedTuple

from ..source import FileSource

_END = struct.Struct("<4s4H2LH")
_END_64_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA_64 = 1
_FULL_32 = 0xFFFFFFFF
_LONGEST_DIRECTORY = 1 << 26
_ENCRYPTED = 1


class Record(NamedTuple):
    """Where a member's bytes are.

    Attributes:
        position: Its first byte in the file.
        size: Its bytes.
    """

    position: int
    size: int


def read_records(source: FileSource) -> dict[str, Record]:
    """Return the members of an archive by name.

    Raises:
        ValueError: If the archive is damaged or is not as ``torch.save`` writes it.
    """
    with source.opened() as file:
        try:
            start, size, count = _find_directory(source, file)
            if size > _LONGEST_DIRECTORY:
                raise ValueError(f"a zip directory of {size} bytes, over {_LONGEST_DIRECTORY}")
            directory = source.read_from(file, start, size)
            records: dict[str, Record] = {}
            end = 0
            for name, header, length in sorted(
                _entries(directory, count), key=lambda each: each[1]
            ):
                if name in records:
                    raise ValueError(f"zip member {name!r} twice")
                if header < end:
                    raise ValueError(f"zip member {name!r} overlaps the one before it")
                position = _find_data(source, file, name, header)
                end = position + length
                if end > start:
                    raise ValueError(f"zip member {name!r} is truncated or reaches beyond the data")
                records[name] = Record(position, length)
        except struct.error as error:
            raise ValueError("a zip archive with a truncated directory") from error
    return records


def _find_directory(source: FileSource, file: FileIO) -> tuple[int, int, int]:
    """Return position, size and number of entries of the central directory."""
    end = source.size - _END.size
    fields = _END.unpack(source.read_from(file, max(end, 0), _END.size))
    if fields[0] != b"PK\x05\x06":
        raise ValueError("a zip archive without its end: truncated, or with bytes behind it")
    count, size, start = fields[4:7]
    behind = end
    locator_start = max(end - _END_64_LOCATOR.size, 0)
    locator = source.read_from(file, locator_start, _END_64_LOCATOR.size)
    if locator.startswith(b"PK\x06\x07"):
        behind = _END_64_LOCATOR.unpack(locator)[2]
        fields = _END_64.unpack(source.read_from(file, behind, _END_64.size))
        if fields[0] != b"PK\x06\x06" or behind + _END_64.size != locator_start:
            raise ValueError("a zip archive with a damaged end")
        count, size, start = fields[7:10]
    if start + size != behind:
        raise ValueError("a zip archive whose directory is not where it says")
    return start, size, count


def _entries(directory: bytes, count: int) -> Iterator[tuple[str, int, int]]:
    """Yield name, position of the local header and size of every member."""
    at = 0
    for _ in range(count):
        fields = _CENTRAL.unpack_from(directory, at)
        signature, flags, method, packed, size = *fields[:1], *fields[3:5], *fields[8:10]
        name_size, extra_size, comment_size, header = *fields[10:13], fields[16]
        at += _CENTRAL.size
        name_bytes = directory[at : at + name_size]
        extra = directory[at + name_size : at + name_size + extra_size]
        at += name_size + extra_size + comment_size
        if signature != b"PK\x01\x02" or at > len(directory):
            raise ValueError("a zip archive with a damaged directory")
        name = name_bytes.decode("utf-8")
        if method != 0 or flags & _ENCRYPTED:
            raise ValueError(f"zip member {name!r} is compressed or encrypted")
        if _FULL_32 in (packed, size, header):
            size, packed, header = _wide_fields(extra, size, packed, header)
        if packed != size:
            raise ValueError(f"zip member {name!r} has two sizes, {packed} and {size}")
        yield name, header, size
    if at != len(directory):
        raise ValueError("a zip archive whose directory has more than it says")


def _wide_fields(extra: bytes, *narrow: int) -> Iterator[int]:
    """Yield the 64-bit values, in order, of those fields that did not fit into 32 bits."""
    at = 0
    while at < len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        at += 4
        if kind == _EXTRA_64:
            for value in narrow:
                if value == _FULL_32:
                    (value,) = struct.unpack_from("<Q", extra, at)
                    at += 8
                yield value
            return
        at += size
    raise ValueError("a zip archive whose large member has no size")


def _find_data(source: FileSource, file: FileIO, name: str, header: int) -> int:
    """Return the position of a member's bytes, behind its local header."""
    fields = _LOCAL.unpack(source.read_from(file, header, _LOCAL.size))
    signature, method, name_size, extra_size = fields[0], fields[3], *fields[9:11]
    if signature != b"PK\x03\x04" or method != 0:
        raise ValueError(f"zip member {name!r} has a damaged header")
    local_name = source.read_from(file, header + _LOCAL.size, name_size)
    if local_name != name.encode():
        raise ValueError(f"zip member {name!r} has another name in its own header")
    return header + _LOCAL.size + name_size + extra_size
