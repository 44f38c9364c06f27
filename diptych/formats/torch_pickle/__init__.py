"""What ``torch.save`` writes: a pickle and the storages that it names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..format import Format, WriteFile

if TYPE_CHECKING:
    from ..container import Container


class TorchPickle(Format):
    """A zip archive, or since before torch 1.6 several pickles in one file; never unpickled."""

    kind = "pt"
    suffixes = (".bin", ".pt", ".pth", ".ckpt")
    preferred = ("pytorch_model.bin", "model.pt")
    bookkeeping = frozenset(
        ("optimizer.bin", "optimizer.pt", "rng_state.pth", "scheduler.pt", "training_args.bin")
    )
    file_name = "model.pt"
    file_names = MappingProxyType({"hf": "pytorch_model.bin"})

    def sniff(self, start: bytes, size: int) -> bool:
        return start.startswith((b"PK\x03\x04", b"\x80"))

    def reader(self) -> Callable[[Path], "Container"]:
        from .reader import read_torch_pickle

        return read_torch_pickle

    def writer(self, metadata: Mapping[str, str]) -> WriteFile:
        from .writer import write_torch_pickle

        return write_torch_pickle


FORMAT = TorchPickle()
