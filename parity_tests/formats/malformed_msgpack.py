"""Damaged and hostile Flax msgpack files: what each is, its bytes, words that the error has."""

from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

from .malformed_safetensors import VALID as SAFETENSORS
from .malformed_safetensors import Case

CHUNKED = "__msgpack_chunked_array__"
DATA = np.array([1.5, -2.0], "<f4").tobytes()


def array(shape: Any = (2,), dtype: Any = "float32", data: Any = DATA, code: int = 1) -> Any:
    """An array as Flax packs it, whatever it may say."""
    return msgpack.ExtType(code, msgpack.packb([shape, dtype, data]))


def msgpack_file(tree: Any) -> bytes:
    """A file with this tree; a dictionary's keys may be anything."""
    return msgpack.packb(tree)


def pairs(*entries: bytes) -> bytes:
    """A map of packed keys and values, in turn, also where a key stands twice."""
    return bytes([0x80 | len(entries) // 2]) + b"".join(entries)


VALID = msgpack_file({"a": {"w": array()}, "n": 300, "w": array((), "int8", b"\7")})
KEY = msgpack.packb("w")
ARRAY = msgpack.packb(array())


def malformed_files() -> Iterator[Case]:
    """Every case."""
    yield from _other_files()
    yield from _sizes()
    yield from _trees()
    yield from _names()
    yield from _arrays()
    yield from _chunks()


def bombs() -> Iterator[Case]:
    """Small or middling files that make a careless reader allocate or loop."""
    megabyte = 1 << 20
    yield "a map of 4 billion", b"\xdf\xff\xff\xff\xff" + KEY + ARRAY, "truncated"
    yield "a list of 4 billion", pairs(KEY, b"\xdd\xff\xff\xff\xff"), "truncated"
    yield "a text of 4 GiB", pairs(KEY, b"\xdb\xff\xff\xff\xff" + b"a"), "over 65536"
    yield "a key of 4 GiB", b"\x81\xdb\xff\xff\xff\xff" + bytes(9), "over 65536"
    yield "bytes of 4 GiB", pairs(KEY, b"\xc6\xff\xff\xff\xff" + b"a"), "truncated"
    yield "an array of 4 GiB", pairs(KEY, b"\xc9\xff\xff\xff\xff\1" + b"\x93"), "truncated"
    yield "100,000 maps deep", b"\x81\xa1w" * 100_000, "nested deeper than 64"
    yield "100,000 lists deep", pairs(KEY, b"\x91" * 100_000), "nested deeper than 64"
    yield "4 million nothings", pairs(KEY, b"\xdd\0\x40\0\0" + b"\xc0" * 4 * megabyte), "more than"
    yield "a million empty maps", pairs(KEY, b"\xdd\0\x10\0\0" + b"\x80" * megabyte), "more than"
    yield "a key of 4 MiB", b"\x81\xdb\0\x40\0\0" + b"a" * 4 * megabyte + ARRAY, "over 65536"
    huge = array((1 << 40,), data=b"")
    yield "4 TiB promised", msgpack_file({"w": huge}), "0 bytes for F32"
    axes = msgpack_file({"w": array((1,) * megabyte)})
    yield "a million axes", axes, "a list of 1048576 as a shape"
    empty = msgpack_file({"w": array((0,) + (1 << 62,) * 3, data=b"")})
    yield "nothing times all", empty, "does not fit into memory"


def _other_files() -> Iterator[Case]:
    yield "empty file", b"", "an empty file"
    yield "web page", b"<!DOCTYPE html><html><body>Not found</body></html>", "a web page"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    yield "git-lfs pointer", pointer, "git lfs pull"
    yield "gzip", b"\x1f\x8b\x08\x00" + bytes(40), "a gzip file"
    yield "zip", b"PK\x03\x04" + bytes(40), "a zip archive"
    yield "pickle", b"\x80\x04\x95\x05" + bytes(20), "a Python pickle"
    yield "HDF5", b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"
    yield "safetensors", SAFETENSORS, "name it .safetensors"
    yield "zeros", bytes(4096), "filled with zeros"
    yield "text", b"hello", "the integer 104, not a map"
    yield "JSON", b'{"w": 1}', "the integer 123, not a map"


def _sizes() -> Iterator[Case]:
    yield "one byte short", VALID[:-1], "truncated"
    yield "half", VALID[: len(VALID) // 2], "truncated"
    yield "two bytes more", VALID + b"ab", "corrupt: 2 bytes behind its end"
    yield "two trees", VALID + VALID, "behind its end"
    longer = msgpack.packb(array()).replace(b"\xc7\x15", b"\xc7\x16")
    yield "an array too long", pairs(KEY, longer + b"a"), "corrupt: an array of 22 bytes ends -1"
    shorter = msgpack.packb(array()).replace(b"\xc7\x15", b"\xc7\x14")
    yield "an array too short", pairs(KEY, shorter), "corrupt: an array of 20 bytes ends +1"


def _trees() -> Iterator[Case]:
    for kind, value, words in (
        ("a list as root", [array()], "holds a list of 1, not a map of names"),
        ("a number as root", 3, "holds the integer 3, not a map"),
        ("nothing as root", None, "holds None, not a map"),
        ("a text as root", "w", "holds a text of 1 bytes, not a map"),
        ("an array as root", array(), "holds an extension of 21, not a map"),
        ("integer keys", {"layers": {0: array()}}, "layers: the integer 0 as a key"),
        ("a negative key", {-1: array()}, "the integer -1 as a key"),
        ("a float key", {1.5: array()}, "the float 1.5 as a key"),
        ("nothing as a key", {None: array()}, "None as a key"),
        ("true as a key", {True: array()}, "True as a key"),
        ("bytes as a key", {b"w": array()}, "1 bytes as a key"),
        ("a complex number", {"w": msgpack.ExtType(2, b"\x92\1\2")}, "w: a complex Python number"),
        ("an extension 99", {"w": msgpack.ExtType(99, b"abc")}, "w: an extension of kind 99"),
        ("a time", {"w": msgpack.Timestamp(1)}, "w: an extension of kind -1"),
        ("a deep tree", _nested(65), "nested deeper than 64"),
    ):
        yield kind, msgpack_file(value), words
    yield "the byte that begins nothing", pairs(KEY, b"\xc1"), "w: corrupt: the byte 0xc1"
    yield "a key twice", pairs(KEY, ARRAY, KEY, ARRAY), "key 'w' stands twice"
    inner = pairs(KEY, ARRAY, KEY, b"\1")
    yield "a key twice inside", pairs(msgpack.packb("a"), inner), "a: key 'w' stands twice"


def _names() -> Iterator[Case]:
    for kind, tree, words in (
        ("an empty name", {"": array()}, "the name is empty"),
        ("a name with a control character", {"w\n": array()}, "control character"),
        ("a terminal's escape", {"\x1b[31mw": array()}, "control character"),
        ("dots beside folders", {"a": {"w": array()}, "a.w": array()}, "a.w: two entries have"),
        ("slashes beside folders", {"a": {"w": array()}, "a/w": array()}, "a.w: two entries have"),
        ("two spellings", {"caf\u00e9": array(), "cafe\u0301": array()}, "in another spelling"),
    ):
        yield kind, msgpack_file(tree), words
    yield "bad UTF-8 in a key", pairs(b"\xa1\xff", ARRAY), "utf-8"
    yield "bad UTF-8 in a text", pairs(KEY, b"\xa1\xff"), "w: 'utf-8"


def _arrays() -> Iterator[Case]:
    for kind, value, words in (
        ("no list", msgpack.ExtType(1, b"\1"), "the integer 1 as an array"),
        ("nothing in it", msgpack.ExtType(1, b""), "truncated"),
        ("two parts", msgpack.ExtType(1, msgpack.packb([[2], "float32"])), "a list of 2 as an"),
        ("four parts", msgpack.ExtType(1, msgpack.packb([[2], "int8", b"", 1])), "a list of 4 as"),
        ("a shape that is a number", array(2), "the integer 2 as a shape"),
        ("a shape that is nothing", array(None), "None as a shape"),
        ("a negative size", array((-1,)), "shape [-1] has a negative"),
        ("a negative size among two", array((-2, -1)), "shape [-2, -1] has a negative"),
        ("a size that is a float", array((2.0,)), "the float 2.0 as a size"),
        ("a size that is a text", array(("2",)), "a text of 1 bytes as a size"),
        ("a size that is true", array((True, 2)), "True as a size"),
        ("33 axes", array((1,) * 32 + (2,)), "a list of 33 as a shape"),
        ("a size too large", array((3,)), "8 bytes for F32 [3]"),
        ("a size too small", array((1,)), "8 bytes for F32 [1]"),
        ("a shape that overflows", array((1 << 40, 1 << 40)), "shape [1099511627776, 1099"),
        ("a dtype that is a number", array(dtype=1), "the integer 1 as a dtype"),
        ("a long dtype", array(dtype="f" * 33), "a text of 33 bytes as a dtype"),
        ("objects", array(dtype="object"), "dtype 'object' is not read"),
        ("texts", array(dtype="|S1000000"), "dtype '|S1000000' is not read"),
        ("a structure", array(dtype="f4,i4"), "dtype 'f4,i4' is not read"),
        ("times", array(dtype="datetime64[s]"), "dtype 'datetime64[s]' is not read"),
        ("numpy's short name", array(dtype="<f4"), "dtype '<f4' is not read"),
        ("four bits", array(dtype="int4"), "dtype 'int4' is not read"),
        ("extended floats", array(dtype="float128"), "dtype 'float128' is not read"),
        ("values that are a text", array(data="abcdefgh"), "a text of 8 bytes as values"),
        ("values that are a list", array(data=[1, 2]), "a list of 2 as values"),
        ("values that are nothing", array(data=None), "None as values"),
        ("a scalar of two", array(code=3), "a scalar of shape [2]"),
    ):
        yield f"an array: {kind}", msgpack_file({"w": value}), f"w: {words}"
    body = b"\x93\x91\2" + msgpack.packb("float32") + b"\xc6\xff\xff\xff\xff" + DATA
    lie = bytes([0xC7, len(body), 1]) + body
    yield "an array: values of 4 GiB", pairs(KEY, lie), "4294967295 bytes for F32"


def _chunks() -> Iterator[Case]:
    def chunked(**changes: Any) -> bytes:
        parts = {CHUNKED: True, "shape": {"0": 2, "1": 2}, "chunks": {"0": array(), "1": array()}}
        return msgpack_file({"w": {k: v for k, v in {**parts, **changes}.items() if v is not None}})

    flat = "whose chunks are no flat arrays"
    for kind, changes, words in (
        ("no shape", {"shape": None}, "chunks of 16 bytes for F32 []"),
        ("no chunks", {"chunks": None}, flat),
        ("chunks of nothing", {"chunks": {}}, flat),
        ("a chunk missing", {"chunks": {"0": array()}}, "chunks of 8 bytes for F32 [2, 2]"),
        ("a chunk left out", {"chunks": {"0": array(), "2": array()}}, "with 'chunks.2' in it"),
        ("a chunk too many", {"chunks": dict.fromkeys("012", array())}, "chunks of 24 bytes"),
        ("a chunk of two axes", {"chunks": dict.fromkeys("01", array((2, 1)))}, flat),
        ("a chunk that is a number", {"chunks": {"0": array(), "1": 3}}, flat),
        (
            "two dtypes",
            {"chunks": {"0": array(), "1": array(dtype="int32")}},
            "of several dtypes: F32, I32",
        ),
        ("a wildcard", {"shape": {"0": 2, "1": -1}}, "a negative size"),
        ("a size that is an array", {"shape": {"0": array()}}, "no list of integers"),
        ("a size that is a text", {"shape": {"0": "2"}}, "no list of integers"),
        ("an array beside", {"more": array()}, "with 'more' in it"),
    ):
        yield f"chunked: {kind}", chunked(**changes), f"w: {words}" if kind == "no shape" else words
    yield "chunked: the root", msgpack_file({CHUNKED: True, "chunks": {"0": array()}}), ""


def _nested(depth: int) -> Any:
    tree: Any = array()
    for _ in range(depth):
        tree = {"w": tree}
    return tree
