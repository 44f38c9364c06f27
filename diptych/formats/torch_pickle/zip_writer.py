"""Writing an uncompressed zip archive member by member, the same bytes for the same members.

Every member gets 64-bit sizes, as in torch's own writer, so that a large file is no special case.
"""

import struct
import zlib

from ..output import OutputFile

_ALIGNMENT = 64
_FULL_16, _FULL_32 = 0xFFFF, 0xFFFFFFFF
_VERSION = 45
_NAME_IS_UTF8 = 1 << 11
_FIRST_OF_JANUARY_1980 = 0x21
_EXTRA_64 = struct.Struct("<2H2Q")
_EXTRA_64_CENTRAL = struct.Struct("<2H3Q")
_PADDING_KIND = 0x4246


class ZipWriter:
    """An archive in the making.

    Args:
        file: The file, empty.
    """

    def __init__(self, file: OutputFile):
        self._file = file
        self._position = 0
        self._directory: list[bytes] = []

    def add(self, name: str, data: bytes | memoryview) -> None:
        """Write a member; its first byte is aligned to 64 bytes, so that it can be mapped."""
        encoded, size, checksum = name.encode(), len(data), zlib.crc32(data)
        extra = _EXTRA_64.pack(1, 16, size, size)
        fixed = (_VERSION, _NAME_IS_UTF8, 0, 0, _FIRST_OF_JANUARY_1980, checksum)
        start = self._position + 30 + len(encoded) + len(extra) + 4
        padding = -start % _ALIGNMENT
        extra += struct.pack("<2H", _PADDING_KIND, padding) + bytes(padding)
        header = struct.pack(
            "<4s5H3L2H", b"PK\x03\x04", *fixed, _FULL_32, _FULL_32, len(encoded), len(extra)
        )
        central_extra = _EXTRA_64_CENTRAL.pack(1, 24, size, size, self._position)
        lengths = (len(encoded), len(central_extra), 0, 0, 0, 0)
        self._directory.append(
            struct.pack(
                *("<4s6H3L5H2L", b"PK\x01\x02", _VERSION, *fixed, _FULL_32, _FULL_32),
                *(*lengths, _FULL_32),
            )
            + encoded
            + central_extra
        )
        self._write(header + encoded + extra)
        self._write(data)

    def finish(self) -> None:
        """Write the directory of all members."""
        start, count = self._position, len(self._directory)
        directory = b"".join(self._directory)
        self._write(directory)
        end = self._position
        totals = (count, count, len(directory), start)
        self._write(struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, _VERSION, _VERSION, 0, 0, *totals))
        self._write(struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1))
        self._write(
            struct.pack(
                *("<4s4H2LH", b"PK\x05\x06", 0, 0, _FULL_16, _FULL_16, _FULL_32, _FULL_32, 0)
            )
        )

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data, self._position)
        self._position += len(data)
