"""What a zarr array's metadata says of it: dtype, shape, and how its chunks are stored."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ...tensors.dtypes import CODES, item_size
from ..json import parse_json
from ..limits import check_shape

BEST_RATIO = 1 << 15
"""What compression can reach: a block of zstd, of 128 KiB, takes four bytes at least."""

_ROOM = 1 << 17
_MOST_CHUNKS = 1_000_000
_BY_NAME = {dtype.name: code for code, dtype in CODES.items()}
_OF_NUMPY = {code: dtype for code, dtype in CODES.items() if dtype.isbuiltin == 1}
_BY_KIND = {f"{dtype.kind}{dtype.itemsize}": code for code, dtype in _OF_NUMPY.items()}
_COMPRESSORS = ("zstd", "gzip", "zlib", "blosc")
_CODECS = ("bytes", "transpose", "zstd", "gzip", "blosc", "crc32c", "sharding_indexed")


class UncarriedDtypeError(ValueError):
    """An array of a dtype that we do not carry."""


@dataclass(frozen=True)
class ZarrLayout:
    """How an array is stored.

    Attributes:
        dtype: A code of ``diptych.tensors.dtypes``.
        shape: Its shape.
        chunk_shape: The shape of every chunk; those at an edge are stored whole.
        is_plain: Whether a chunk's bytes are its values, little-endian and in C order.
        driver: "zarr" or "zarr3".
        metadata: For TensorStore, in our own words: only what was understood, and a dtype of
            unsigned integers, so that bits are moved and never read as numbers.
        separator: Between the indices in a chunk's key.
        fills: Whether a chunk that is not stored is one of zeros.
    """

    dtype: str
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    is_plain: bool
    driver: str
    metadata: Mapping[str, Any] = field(repr=False)
    separator: str
    fills: bool

    @property
    def nbytes(self) -> int:
        """Return the bytes of the array."""
        return math.prod(self.shape) * item_size(self.dtype)

    @property
    def chunk_nbytes(self) -> int:
        """Return the bytes of one chunk."""
        return math.prod(self.chunk_shape) * item_size(self.dtype)

    @property
    def grid(self) -> tuple[int, ...]:
        """Return the number of chunks along each axis."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunk_shape, strict=True))

    def chunks(self) -> "list[tuple[str, tuple[slice, ...]]]":
        """Return the key of every chunk, behind the array's own, and what it covers."""
        return [
            (self._key(place), tuple(map(self._slice, place, self.chunk_shape, self.shape)))
            for place in product(*map(range, self.grid))
        ]

    def check_chunk(self, size: int) -> None:
        """Refuse a chunk of ``size`` stored bytes that could not hold a chunk's values.

        Raises:
            ValueError: If it could not.
        """
        wanted = self.chunk_nbytes
        if size != wanted if self.is_plain else wanted > size * BEST_RATIO + _ROOM:
            raise ValueError(f"truncated or corrupt: a chunk of {wanted} bytes is stored in {size}")

    @staticmethod
    def _slice(index: int, step: int, size: int) -> slice:
        return slice(index * step, min((index + 1) * step, size))

    def _key(self, place: tuple[int, ...]) -> str:
        indices = [str(index) for index in place]
        if self.driver == "zarr3":
            return self.separator.join(["c", *indices])
        return self.separator.join(indices) or "0"


def parse_zarr2(text: bytes, *, fills: bool) -> ZarrLayout:
    """Return the layout that a ``.zarray`` describes.

    Args:
        text: The file's bytes.
        fills: Whether chunks of nothing but zeros were left out.

    Raises:
        ValueError: If it is damaged, or describes what is not read.
    """
    given = _parse(text)
    _expect(given, "zarr_format", (2,))
    dtype, order = _dtype2(given.get("dtype"))
    shape, chunk_shape = _shapes(dtype, given.get("shape"), given.get("chunks"))
    _expect(given, "filters", (None, []))
    _expect(given, "order", ("C", "F"))
    separator = given.get("dimension_separator", ".")
    _expect({"dimension_separator": separator}, "dimension_separator", (".", "/"))
    compressor = given.get("compressor")
    if compressor is not None:
        if not isinstance(compressor, dict) or compressor.get("id") not in _COMPRESSORS:
            raise ValueError(f"compressor {_shown(compressor)} is not read")
        compressor = {"id": compressor["id"]}  # the rest concerns writing alone
    metadata = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunk_shape),
        "dtype": order + word_dtype(dtype).str[1:],
        "compressor": compressor,
        "fill_value": None,
        "filters": None,
        "order": given["order"],
        "dimension_separator": separator,
    }
    # Plain chunks are read here, without TensorStore: bytes at a position, like any other file's.
    is_plain = compressor is None and given["order"] == "C" and order != ">"
    fills = fills and _is_zero(given.get("fill_value"))
    return ZarrLayout(dtype, shape, chunk_shape, is_plain, "zarr", metadata, separator, fills)


def parse_zarr3(text: bytes, *, fills: bool) -> ZarrLayout:
    """Return the layout that a ``zarr.json`` describes; as ``parse_zarr2``."""
    given = _parse(text)
    _expect(given, "zarr_format", (3,))
    _expect(given, "node_type", ("array",))
    dtype = _BY_NAME.get(given["data_type"]) if isinstance(given.get("data_type"), str) else None
    if dtype is None:
        raise UncarriedDtypeError(f"dtype {_shown(given.get('data_type'))} is not carried")
    grid = _named(given.get("chunk_grid"), ("regular",))
    shape, chunk_shape = _shapes(dtype, given.get("shape"), grid.get("chunk_shape"))
    keys = _named(given.get("chunk_key_encoding"), ("default",))
    separator = keys.get("separator", "/")
    _expect({"separator": separator}, "separator", (".", "/"))
    _check_codecs(given.get("codecs"))
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": separator}},
        "data_type": word_dtype(dtype).name,
        "codecs": given["codecs"],
        "fill_value": [0, 0] if dtype.startswith("C") else 0,
    }
    fills = fills and _is_zero(given.get("fill_value"))
    return ZarrLayout(dtype, shape, chunk_shape, False, "zarr3", metadata, separator, fills)


def word_dtype(dtype: str) -> np.dtype:
    """Return the dtype that values are moved as: unsigned integers, so that no NaN is touched."""
    return CODES[dtype] if dtype.startswith("C") else np.dtype(f"u{item_size(dtype)}")


def render_zarr2(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the ``.zarray`` of an array in one chunk that is its bytes."""
    of_numpy = _OF_NUMPY.get(dtype)
    metadata = {
        "chunks": [max(1, size) for size in shape],
        "compressor": None,
        "dimension_separator": ".",
        "dtype": of_numpy.newbyteorder("<").str if of_numpy else CODES[dtype].name,
        "fill_value": None,
        "filters": None,
        "order": "C",
        "shape": list(shape),
        "zarr_format": 2,
    }
    return json.dumps(metadata, separators=(",", ":")).encode()


def _parse(text: bytes) -> dict[str, Any]:
    try:
        given = parse_json(text)
    except ValueError:
        raise ValueError("corrupt: its metadata is no JSON") from None
    if not isinstance(given, dict):
        raise ValueError("corrupt: its metadata is no JSON object")
    return given


def _expect(given: Mapping[str, Any], key: str, allowed: tuple[Any, ...]) -> None:
    if not any(
        type(given.get(key)) is type(value) and given.get(key) == value for value in allowed
    ):
        raise ValueError(f"{key} {_shown(given.get(key))} is not read")


def _dtype2(text: object) -> tuple[str, str]:
    """Return the code of a zarr dtype, and its byte order."""
    if isinstance(text, str):
        if text in _BY_NAME and _BY_NAME[text] not in _OF_NUMPY:
            return _BY_NAME[text], "<"
        if text[:1] in ("<", ">", "|") and text[1:] in _BY_KIND:
            return _BY_KIND[text[1:]], text[0]
    raise UncarriedDtypeError(f"dtype {_shown(text)} is not carried")


def _shapes(
    dtype: str, shape: object, chunk_shape: object
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    for sizes in (shape, chunk_shape):
        if not isinstance(sizes, list) or any(type(size) is not int for size in sizes):
            raise ValueError(f"{_shown(sizes)} is no list of sizes")
    assert isinstance(shape, list)
    assert isinstance(chunk_shape, list)
    check_shape(dtype, tuple(shape))
    check_shape(dtype, tuple(chunk_shape))
    if len(shape) != len(chunk_shape) or 0 in chunk_shape:
        raise ValueError(f"chunks {_shown(chunk_shape)} do not divide shape {_shown(shape)}")
    count = math.prod(-(-n // c) for n, c in zip(shape, chunk_shape, strict=True))
    if count > _MOST_CHUNKS:
        raise ValueError(f"{count} chunks are more than {_MOST_CHUNKS}")
    return tuple(shape), tuple(chunk_shape)


def _named(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the configuration of a zarr3 extension of one of the names."""
    if not isinstance(value, dict) or value.get("name") not in names:
        raise ValueError(f"{_shown(value)} is not read")
    configuration = value.get("configuration", {})
    if not isinstance(configuration, dict):
        raise ValueError(f"{_shown(value)} is not read")
    return configuration


def _check_codecs(codecs: object, depth: int = 0) -> None:
    if not isinstance(codecs, list) or depth > 2:
        raise ValueError(f"codecs {_shown(codecs)} are not read")
    for codec in codecs:
        configuration = _named(codec, _CODECS)
        if codec["name"] == "sharding_indexed":
            _check_codecs(configuration.get("codecs"), depth + 1)
            _check_codecs(configuration.get("index_codecs"), depth + 1)


def _is_zero(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and value == 0)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
