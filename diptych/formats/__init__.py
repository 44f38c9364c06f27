"""Containers: the files that checkpoints are stored in, read and written without a framework."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from .container import Branch, Container
from .containment import contained
from .fault import fault, printable
from .folder import Format, read_folder
from .output import Planned
from .parameters import pick_parameters
from .recognise import is_msgpack, is_safetensors, recognise
from .safetensors import read_safetensors, write_safetensors
from .shards import INDEX_SUFFIX, write_sharded
from .source import FileSource
from .tensor import Tensor


def _read_torch_pickle(path: Path) -> Container:
    from .torch_pickle.reader import read_torch_pickle

    return read_torch_pickle(path)


def _read_msgpack(path: Path) -> Container:
    from .msgpack.reader import read_msgpack

    return read_msgpack(path)


def _read_orbax(path: Path) -> Container:
    from .orbax.reader import read_orbax

    return read_orbax(path)


def _read_orbax_steps(folder: Path) -> Container | None:
    from .orbax.steps import read_steps

    return read_steps(folder)


_FORMATS = (
    Format(
        kind="safetensors",
        suffixes=(".safetensors",),
        preferred=("model.safetensors",),
        bookkeeping=frozenset(),
        read=read_safetensors,
    ),
    Format(
        kind="pt",
        suffixes=(".bin", ".pt", ".pth", ".ckpt"),
        preferred=("pytorch_model.bin", "model.pt"),
        bookkeeping=frozenset(
            ("optimizer.bin", "optimizer.pt", "rng_state.pth", "scheduler.pt", "training_args.bin")
        ),
        read=_read_torch_pickle,
    ),
    Format(
        kind="msgpack",
        suffixes=(".msgpack",),
        preferred=("flax_model.msgpack",),
        bookkeeping=frozenset(("opt_state.msgpack", "optimizer_state.msgpack")),
        read=_read_msgpack,
        separator="/",
        pick=pick_parameters,
    ),
    Format(
        kind="orbax",
        suffixes=("_METADATA", "manifest.ocdbt"),
        preferred=("_METADATA", "manifest.ocdbt"),
        bookkeeping=frozenset(("_CHECKPOINT_METADATA",)),
        read=_read_orbax,
    ),
)


class Writer(Protocol):
    """Writes tensors as files of one kind."""

    def __call__(
        self,
        folder: Path,
        plan: Sequence[Planned],
        arrays: Iterable[tuple[str, np.ndarray]],
        *,
        file_name: str,
        max_shard_size: int | None = None,
        metadata: Mapping[str, str],
    ) -> tuple[str, ...]:
        """Writes one file, or several and their index, one tensor in memory at a time.

        Every file is new; nothing is synced, renamed or deleted.

        Args:
            folder: Where to write.
            plan: Name, dtype and shape of every tensor.
            arrays: Name and values of every tensor, in the order of ``plan``.
            file_name: The name of a single file; shards and index are named after it.
            max_shard_size: The most bytes of tensors in a file; None writes a single file.
            metadata: Texts for the header of safetensors, "format" among them; Orbax wraps every
                array as an ``nnx.State`` does where it is "flax".

        Returns:
            The names of the files written.

        Raises:
            ValueError: The arrays are not as planned, or the container lacks a dtype.
            OSError: The disk.
        """


def _write_safetensors(
    folder: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    file_name: str,
    max_shard_size: int | None = None,
    metadata: Mapping[str, str],
) -> tuple[str, ...]:
    write_file = partial(write_safetensors, metadata=metadata)
    return write_sharded(folder, file_name, plan, arrays, max_shard_size, write_file)


def _write_torch_pickle(
    folder: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    file_name: str,
    max_shard_size: int | None = None,
    metadata: Mapping[str, str],
) -> tuple[str, ...]:
    from .torch_pickle.writer import write_torch_pickle

    return write_sharded(folder, file_name, plan, arrays, max_shard_size, write_torch_pickle)


def _write_msgpack(
    folder: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    file_name: str,
    max_shard_size: int | None = None,
    metadata: Mapping[str, str],
) -> tuple[str, ...]:
    from .msgpack.writer import write_msgpack

    return write_sharded(folder, file_name, plan, arrays, max_shard_size, write_msgpack, "/")


def _write_orbax(
    folder: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    file_name: str,
    max_shard_size: int | None = None,
    metadata: Mapping[str, str],
) -> tuple[str, ...]:
    from .orbax.writer import write_orbax

    if max_shard_size is not None:
        raise ValueError("max_shard_size: Orbax has files of their own for each tensor")
    return write_orbax(folder, plan, arrays, is_state=metadata["format"] == "flax")


WRITERS: Mapping[str, Writer] = MappingProxyType(
    {
        "safetensors": _write_safetensors,
        "pt": _write_torch_pickle,
        "msgpack": _write_msgpack,
        "orbax": _write_orbax,
    }
)
"""The writer of each kind of container."""


def find_container(path: Path) -> Container:
    """The tensors of a checkpoint, from headers only.

    Args:
        path: A file, an index of shards, or a folder, of which safetensors are read, else pickles,
            else msgpack, else what Orbax saved.

    Raises:
        CheckpointError: There is no checkpoint, it is damaged, or it is ambiguous.
    """
    path = Path(path)
    if os.path.isdir(path):
        return read_folder(path, _FORMATS, _read_orbax_steps)
    name = path.name.removesuffix(INDEX_SUFFIX)
    for form in _FORMATS:
        if name.endswith(form.suffixes):
            return form.open(path)
    source = FileSource(path)
    start = source.read(0, 512)
    if is_safetensors(start, source.size):
        return read_safetensors(path)
    if start.startswith((b"PK\x03\x04", b"\x80")):
        return _read_torch_pickle(path)
    if is_msgpack(start):
        return pick_parameters(_read_msgpack(path))
    kind = recognise(start, source.size)
    raise fault(path, f"is {kind}" if kind else "is no checkpoint that is read")


__all__ = [
    "WRITERS",
    "Branch",
    "Container",
    "FileSource",
    "Planned",
    "Tensor",
    "Writer",
    "contained",
    "fault",
    "find_container",
    "printable",
]
