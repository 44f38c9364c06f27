"""Carrying out a plan: one tensor in memory at a time, hashed as written, read back, compared."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..formats import FORMATS
from ..formats.output import Planned
from ..spec.errors import OutputError
from ..tensors.bits import contiguous
from ..tensors.cast import CastCounts, cast_values
from .commit import copy_file, staged_folder, synced, write_file
from .layouts.layout import LAYOUTS
from .manifest import (
    MANIFEST,
    file_digest,
    render_manifest,
    tensor_digest,
    tensor_entry,
    written_digests,
)
from .plan import Plan, PlannedStep

Progress = Callable[[int, int], None]
"""Called with the bytes of tensors written so far, and in all."""

_ROOM = 1 << 20  # for headers, configs and the manifest
_REUSED = 31 << 20  # glibc maps and unmaps every larger array, whatever it has learnt


_WORTH_A_THREAD = 1 << 18  # on a busy machine a thread waits longer than a small digest takes


@dataclass
class _Tally:
    """What is learnt of each tensor while it is written."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: CastCounts = field(default_factory=CastCounts)
    written: int = 0

    def add(self, target: Planned, values: np.ndarray) -> None:
        """Note a tensor's line of the manifest."""
        digest = tensor_digest(target.name, target.dtype, target.shape, values)
        self.entries[target.name] = tensor_entry(target.dtype, target.shape, digest)


def write_plan(
    plan: Plan,
    dst: str | Path,
    *,
    sources: Iterable[Path] = (),
    overwrite: bool = False,
    max_shard_size: int | None = None,
    progress: Progress | None = None,
) -> CastCounts:
    """Write a plan to a folder, which appears whole or not at all.

    Args:
        plan: What to write.
        dst: The folder.
        sources: What is being read, which ``dst`` must not touch.
        overwrite: Whether a checkpoint folder that is there may be replaced.
        max_shard_size: The most bytes of tensors in a file; None writes one file.
        progress: Called after every tensor.

    Returns:
        What the cast did, all zero without one.

    Raises:
        CheckpointError: If a source is damaged or changes.
        OutputError: If the destination cannot be written, or what is read back differs.
        ValueError: If the destination is refused.
    """
    companions = sum(path.stat().st_size for path in plan.companions.values())
    room = plan.nbytes + companions + _ROOM
    tally = _Tally()
    # From an array that is freed, glibc learns to use the memory of up to its size once more. New
    # pages for every tensor would cost as much time as all reading and writing (tried).
    np.empty(_REUSED, np.uint8)
    with staged_folder(dst, overwrite=overwrite, sources=sources, needed_bytes=room) as folder:
        arrays = _arrays(plan, tally, progress)
        names = FORMATS[plan.container].write(
            folder,
            plan.tensors,
            arrays,
            file_name=plan.file_name,
            max_shard_size=max_shard_size,
            metadata={"format": LAYOUTS[plan.layout].framework},
        )
        # The writer takes no more than it needs: what follows the last tensor runs here.
        assert next(arrays, None) is None
        with synced([folder / name for name in names]):
            for name, data in plan.files.items():
                write_file(folder / name, data)
            for name, path in plan.companions.items():
                copy_file(path, folder / name)
            tensors, files = written_digests(folder)
            _check_written(plan, dst, tally.entries == tensors, files)
        body = {**plan.body, "files": files, "tensors": tensors}
        write_file(folder / MANIFEST, render_manifest(body))
    return tally.counts


def run_steps(plan: Plan) -> dict[str, np.ndarray]:
    """Return all tensors of a plan in memory, by target name."""
    return {target.name: values for step in plan.steps for target, values, _ in _run_step(step)}


def _arrays(
    plan: Plan, tally: _Tally, progress: Progress | None
) -> Iterator[tuple[str, np.ndarray]]:
    total = plan.nbytes
    for step in plan.steps:
        for target, values, counts in _run_step(step):
            tally.counts += counts
            # The digest is computed beside the write; the next tensor is read after both.
            if values.nbytes < _WORTH_A_THREAD:
                tally.add(target, values)
                yield target.name, values
            else:
                worker = threading.Thread(target=tally.add, args=(target, values))
                worker.start()
                yield target.name, values
                worker.join()
            tally.written += target.nbytes
            if progress:
                progress(tally.written, total)


def _run_step(step: PlannedStep) -> Iterator[tuple[Planned, np.ndarray, CastCounts]]:
    outputs = step.step.transform.apply([source.read() for source in step.sources])
    for target in step.targets:
        values, counts = cast_values(contiguous(outputs.pop(0)), target.dtype)
        yield target, values, counts


def _check_written(
    plan: Plan, dst: str | Path, tensors_agree: bool, files: Mapping[str, str]
) -> None:
    """Raise OutputError unless what was read back is what was written."""
    expected = {name: hashlib.sha256(data).hexdigest() for name, data in plan.files.items()}
    expected |= {name: file_digest(path) for name, path in plan.companions.items()}
    if not tensors_agree or any(files.get(name) != d for name, d in expected.items()):
        raise OutputError(f"{dst}: what was read back is not what was written")
