"""An array's bytes, put together from the chunks that they are stored in."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import fault
from ..source import MemorySource
from .store import KeyStore, import_tensorstore, store_errors
from .zarr import ZarrLayout, word_dtype

Place = tuple[slice, ...]


class ChunkedSource:
    """A zarr array of a store; it is decoded whole, chunk by chunk, since chunks are compressed.

    Args:
        store: What holds the chunks.
        key: The array's key in it.
        layout: How it is stored.
        stored: The keys, behind the array's own, that are there.

    Raises:
        CheckpointError: If a chunk is missing.
    """

    def __init__(self, store: KeyStore, key: str, layout: ZarrLayout, stored: frozenset[str]):
        self.path: Path = store.path
        self._store, self._key, self._layout, self._stored = store, key, layout, stored
        if not layout.fills:
            missing = math.prod(layout.grid) - len(stored)
            if missing <= 0:
                missing = sum(name not in stored for name, _ in layout.chunks())
            if missing:
                raise fault(self.path, f"truncated: {missing} of its chunks are missing", key)

    def read_into(self, buffer: memoryview, position: int) -> None:
        layout = self._layout
        if position or len(buffer) != layout.nbytes:
            self.for_parts().read_into(buffer, position)
            return
        values = np.frombuffer(buffer, word_dtype(layout.dtype)).reshape(layout.shape)
        decode = self._decode_plain if layout.is_plain else self._make_decoder()
        for name, place in layout.chunks():
            if name in self._stored:
                index: tuple[Any, ...] = (*place, ...)
                decode(name, place, values[index])  # a view, also of a scalar
            else:
                values[place] = 0

    def for_parts(self) -> MemorySource:
        data = bytearray(self._layout.nbytes)
        self.read_into(memoryview(data), 0)
        return MemorySource(self.path, data)

    def check(self) -> None:
        """Refuse chunks of a size that could not hold their values.

        Raises:
            CheckpointError: If there is one.
        """
        for name, _ in self._layout.chunks():
            if name in self._stored:
                self._check_size(name, self._store.size(f"{self._key}/{name}"))

    def _read(self, name: str) -> bytes:
        data = self._store.read(f"{self._key}/{name}")
        self._check_size(name, len(data))
        return data

    def _check_size(self, name: str, size: int) -> None:
        try:
            self._layout.check_chunk(size)
        except ValueError as error:
            raise fault(self.path, str(error), f"{self._key}/{name}") from error

    def _decode_plain(self, name: str, place: Place, out: np.ndarray) -> None:
        little = word_dtype(self._layout.dtype).newbyteorder("<")
        chunk = np.frombuffer(self._read(name), little).reshape(self._layout.chunk_shape)
        out[...] = chunk[tuple(slice(size) for size in out.shape)]

    def _make_decoder(self) -> Callable[[str, Place, np.ndarray], None]:
        """Return TensorStore's decoder, which sees one checked chunk at a time, in memory."""
        tensorstore = import_tensorstore(self.path)
        context = tensorstore.Context()
        layout = self._layout
        with store_errors(self.path, self._key):
            memory = tensorstore.KvStore.open({"driver": "memory"}, context=context).result()
            metadata = ".zarray" if layout.driver == "zarr" else "zarr.json"
            memory.write(f"array/{metadata}", json.dumps(layout.metadata).encode()).result()
            spec = {
                "driver": layout.driver,
                "kvstore": {"driver": "memory", "path": "array/"},
                "fill_missing_data_reads": False,
            }
            array = tensorstore.open(spec, context=context, open=True).result()

        def decode(name: str, place: Place, out: np.ndarray) -> None:
            with store_errors(self.path, f"{self._key}/{name}"):
                memory.write(f"array/{name}", self._read(name)).result()
                tensorstore.array(out).write(array[place]).result()
                memory.write(f"array/{name}", None).result()

        return decode
