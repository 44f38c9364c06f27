"""What ``torch.save`` writes: a pickle and the storages that it names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..format import Format

if TYPE_CHECKING:
    import numpy as np

    from ..container import Container
    from ..output import Planned


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

    def read(self, path: Path) -> "Container":
        from .reader import read_torch_pickle

        return read_torch_pickle(path)

    def write_file(
        self,
        path: Path,
        plan: "Sequence[Planned]",
        arrays: "Iterable[tuple[str, np.ndarray]]",
        *,
        metadata: Mapping[str, str],
    ) -> None:
        from .writer import write_torch_pickle

        write_torch_pickle(path, plan, arrays)


FORMAT = TorchPickle()
