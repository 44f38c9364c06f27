"""Damaged and hostile safetensors files: what each is, its bytes, words that the error has."""

import json
from collections.abc import Iterator

Case = tuple[str, bytes, str]

ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DATA = bytes(8)


def safetensors_file(header: object, data: bytes = DATA, length: int | None = None) -> bytes:
    """A file with this header (bytes as they are, else as JSON), whatever it may say."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + data


VALID = safetensors_file({"__metadata__": {"format": "pt"}, "w": ENTRY})


def malformed_files() -> Iterator[Case]:
    """Every case."""
    yield from _other_files()
    yield from _sizes()
    yield from _texts()
    yield from _entries()
    yield from _names()
    yield from _layouts()


def bombs() -> Iterator[Case]:
    """Small or middling files that make a careless reader allocate or loop."""
    megabyte = 1 << 20
    lists = b'{"w":{"dtype":"F32","shape":[' + b"[]," * megabyte + b"[]]}}"
    yield "a list of lists as shape", safetensors_file(lists), "integer expected"
    numbers = b'{"w":{"dtype":"F32","shape":[' + b"1," * megabyte + b"1]}}"
    yield "a million axes", safetensors_file(numbers), "more than 32 numbers"
    yield "100,000 deep", safetensors_file(b'{"w":' + b"[" * 100_000), "'{' expected"
    deep = b'{"w":' * 100_000
    yield "100,000 objects deep", safetensors_file(deep), "unknown field"
    metadata = b'{"__metadata__":{"a":' + b"[" * megabyte
    yield "a list as metadata", safetensors_file(metadata), "string expected"
    digits = b'{"w":{"dtype":"F32","shape":[' + b"9" * megabyte + b"]}}"
    yield "a number of a million digits", safetensors_file(digits), "integer expected"
    name = b'{"' + b"a" * 4 * megabyte + b'":1}'
    yield "a name of 4 MiB", safetensors_file(name), "'{' expected"
    huge = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
    yield "4 TiB promised", safetensors_file({"w": huge}), "truncated"


def _other_files() -> Iterator[Case]:
    yield "empty file", b"", "an empty file"
    yield "web page", b"<!DOCTYPE html><html><body>Not found</body></html>", "a web page"
    yield "web page after a line", b"\n<html lang=en>" + bytes(20), "a web page"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    yield "git-lfs pointer", pointer, "git lfs pull"
    yield "gzip", b"\x1f\x8b\x08\x00" + bytes(40), "a gzip file"
    yield "zip", b"PK\x03\x04" + bytes(40), "name it .pt"
    yield "pickle", b"\x80\x02}q\x00." + bytes(20), "a Python pickle"
    yield "bzip2", b"BZh91AY&SY" + bytes(20), "a bzip2 file"
    yield "xz", b"\xfd7zXZ\0" + bytes(20), "an xz file"
    yield "zstandard", b"\x28\xb5\x2f\xfd" + bytes(20), "a zstandard file"
    yield "HDF5", b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"
    yield "GGUF", b"GGUF\x03\0\0\0" + bytes(20), "a GGUF file"
    yield "npy", b"\x93NUMPY\x01\0" + bytes(20), "a numpy .npy file"
    yield "tar", b"data.pkl".ljust(257, b"\0") + b"ustar\0" + bytes(300), "a tar archive"
    yield "zeros", bytes(4096), "filled with zeros"


def _sizes() -> Iterator[Case]:
    yield "7 bytes", VALID[:7], "truncated"
    yield "length only", VALID[:8], "truncated"
    yield "half a header", VALID[:40], "truncated"
    yield "header only", VALID[:-8], "truncated"
    yield "one byte short", VALID[:-1], "truncated"
    yield "four bytes short", VALID[:-4], "truncated"
    yield "two bytes more", VALID + b"ab", "corrupt: 2 bytes behind"
    yield "no header", safetensors_file(b"", b""), "filled with zeros"
    for length in (2**63, 2**64 - 1, 100_000_001):
        yield f"header of {length}", safetensors_file({"w": ENTRY}, length=length), "over 100000000"
    size = len(VALID) - 8 - len(DATA)
    yield "header too short", (size - 1).to_bytes(8, "little") + VALID[8:], "'}' expected"
    yield "header too long", (size + 4).to_bytes(8, "little") + VALID[8:], "the end expected"


def _texts() -> Iterator[Case]:
    entry = json.dumps(ENTRY)
    for kind, text, words in (
        ("a list", b"[]", "does not begin with '{'"),
        ("a number", b"12345678", "does not begin with '{'"),
        ("spaces first", b"   {}", "does not begin with '{'"),
        ("a byte order mark", b"\xef\xbb\xbf{}", "does not begin with '{'"),
        ("bad UTF-8", b'{"w\xff":1}', "utf-8"),
        ("NUL padding", b"{}\0\0\0\0", "the end expected"),
        ("two objects", b"{}{}", "the end expected"),
        ("no end", b'{"w":' + entry.encode(), "'}' expected"),
        ("a comma too many", b'{"w":' + entry.encode() + b",}", "a string expected"),
        ("no comma", f'{{"a":{entry}"b":{entry}}}'.encode(), "'}' expected"),
        ("single quotes", b"{'w':1}", "a string expected"),
        ("a comment", b'{/**/"w":1}', "a string expected"),
        ("a broken escape", b'{"w\\q":1}', "escape"),
        ("a line feed in a name", b'{"w\n":1}', "control character"),
        ("a key twice", f'{{"w":{entry},"w":{entry}}}'.encode(), "key 'w' stands twice"),
        ("metadata twice", b'{"__metadata__":{},"__metadata__":{}}', "twice"),
        ("a metadata key twice", b'{"__metadata__":{"a":"1","a":"2"}}', "key 'a' stands twice"),
        ("metadata of numbers", b'{"__metadata__":{"a":1}}', "a string expected"),
        ("metadata as text", b'{"__metadata__":"pt"}', "'{' expected"),
        ("half a surrogate in metadata", b'{"__metadata__":{"a":"\\ud800"}}', "surrogates"),
    ):
        yield kind, safetensors_file(text, b""), words


def _entries() -> Iterator[Case]:
    for dtype in ("NaN", "f32", "F8_E4M3FN", "F4", "F6_E2M3", "I128", "", "C128"):
        entry = {**ENTRY, "dtype": dtype}
        yield f"dtype {dtype!r}", safetensors_file({"w": entry}), f"w: {'' if dtype else 'dtype'}"
    for field, value, words in (
        ("dtype", None, "a string expected"),
        ("dtype", 3, "a string expected"),
        ("shape", None, "'[' expected"),
        ("shape", 2, "'[' expected"),
        ("shape", ["2"], "an integer expected"),
        ("shape", [2.0], "an integer expected"),
        ("shape", [True], "an integer expected"),
        ("shape", [[2]], "an integer expected"),
        ("shape", [-2], "a negative size"),
        ("shape", [3], "takes 12 bytes"),
        ("shape", [2**62, 2**62], "does not fit"),
        ("shape", [2**63 - 1, 0], "does not fit"),
        ("shape", [2**32, 2**32, 0], "does not fit"),
        ("shape", [2**64 + 2], "an integer expected"),
        ("shape", [1] * 33 + [2], "more than 32"),
        ("shape", [1] * 20_000, "more than 32"),
        ("data_offsets", [0], "two data_offsets"),
        ("data_offsets", [0, 8, 8], "more than 2"),
        ("data_offsets", [8, 0], "takes 8 bytes"),
        ("data_offsets", [-8, 0], "takes 8 bytes"),
        ("data_offsets", [0, 8.0], "an integer expected"),
        ("data_offsets", {"begin": 0}, "'[' expected"),
        ("data_offsets", [2**63, 2**63 + 8], ""),
        ("extra", 1, "unknown field 'extra'"),
    ):
        entry = {**ENTRY, field: value}
        yield (
            f"{field} {str(value)[:30]} ({len(str(value))})",
            safetensors_file({"w": entry}),
            words,
        )
    for field in ENTRY:
        entry = {key: value for key, value in ENTRY.items() if key != field}
        yield f"no {field}", safetensors_file({"w": entry}), "needs dtype, shape"
    yield "NaN", safetensors_file(b'{"w":{"dtype":"F32","shape":[NaN]}}'), "integer expected"
    twice = b'{"w":{"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]}}'
    yield "a field twice", safetensors_file(twice), "key 'dtype' stands twice"
    yield "an entry as text", safetensors_file({"w": "F32"}), "'{' expected"
    yield "no entry", safetensors_file({"w": None}), "'{' expected"


def _names() -> Iterator[Case]:
    for name, words in (
        ("", "the name is empty"),
        ("a\0b", "control character"),
        ("\x1b[31mred", "control character"),
        ("a\nb", "control character"),
        ("a\u202eb", "unprintable"),
        ("a\x7fb", "control character"),
        ("\ud800", "unprintable"),
        ("../../x", "leaves its folder"),
        ("/etc/passwd", "leaves its folder"),
        ("..\\x", "leaves its folder"),
    ):
        yield f"name {name!a}", safetensors_file({name: ENTRY}), words
    empty = {**ENTRY, "shape": [0], "data_offsets": [0, 0]}
    twins = {"caf\u00e9": empty, "cafe\u0301": {**empty, "data_offsets": [0, 0]}}
    yield "two spellings of a name", safetensors_file(twins, b""), "in another spelling"


def _layouts() -> Iterator[Case]:
    def at(begin: int, end: int) -> dict:
        return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}

    for kind, places, words in (
        ("an overlap", [(0, 5), (4, 8)], "b: corrupt: its data overlaps"),
        ("one place for two", [(0, 8), (0, 8)], "overlaps"),
        ("a tensor in a tensor", [(0, 8), (2, 4)], "overlaps"),
        ("a hole", [(0, 3), (4, 8)], "b: corrupt: its data leaves a hole"),
        ("a hole first", [(1, 4), (4, 8)], "a: corrupt: its data leaves a hole"),
        ("a hole last", [(0, 3), (3, 7)], "corrupt: 1 bytes behind"),
        ("beyond the end", [(0, 4), (4, 9)], "truncated"),
        ("far beyond the end", [(0, 4), (2**40, 2**40 + 4)], "a hole"),
        ("an empty tensor inside another", [(0, 8), (4, 4)], "overlaps"),
        ("an empty tensor behind the end", [(0, 8), (9, 9)], "a hole"),
    ):
        header = {name: at(*place) for name, place in zip("ab", places, strict=True)}
        yield kind, safetensors_file(header), words
