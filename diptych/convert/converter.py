"""Converting a checkpoint from one layout, container or dtype to another."""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..families import Family
from ..formats import WRITTEN
from ..tensors.cast import CastCounts, cast_code
from .checkpoint import Checkpoint, ReadOptions
from .layouts.layout import LAYOUTS
from .plan import Plan, make_plan
from .reading import read_checkpoint
from .run import Progress, write_plan

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class Report:
    """What a conversion did, or with ``dry_run`` would do.

    Attributes:
        source: What was read.
        destination: What was written.
        layouts: Of the source and of the destination.
        containers: Of the source and of the destination.
        family: Name of the family, None where there is none.
        component: Name of the component's class.
        read: Number of stored tensors that were read.
        written: Number of tensors that were written.
        nbytes: Bytes of the tensors that were written.
        buffers: Source names of tensors that travel beside the parameters.
        recreated: Source names of buffers that are left out, or written anew, by a recipe.
        variants: Spellings of the family that were found.
        ignored_settings: Settings accepted unread.
        companions: Files that were copied.
        dtype: Code that floating tensors were cast to, None without a cast.
        cast: What the cast did.
        notes: Lines for the user.
        dry_run: Whether nothing was written.
    """

    source: str
    destination: str
    layouts: tuple[str, str]
    containers: tuple[str, str]
    family: str | None
    component: str
    read: int
    written: int
    nbytes: int
    buffers: tuple[str, ...]
    recreated: tuple[str, ...]
    variants: tuple[str, ...]
    ignored_settings: Mapping[str, Any]
    companions: tuple[str, ...]
    dtype: str | None
    cast: CastCounts
    notes: tuple[str, ...]
    dry_run: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{'would write' if self.dry_run else 'wrote'} {self.destination}: {self.component}, "
            f"{self._side(0)} -> {self._side(1)}",
            f"{self.read} tensors read, {self.written} written, {self.nbytes / 1e6:.1f} MB",
        ]
        if self.dtype is not None:
            lines.append(
                f"cast to {self.dtype}: {self.cast.values} values, {self.cast.changed} changed, "
                f"{self.cast.became_inf} became inf, {self.cast.became_zero} became 0"
            )
        is_original = LAYOUTS[self.layouts[1]].is_original
        for title, names in (
            ("made anew" if is_original else "left out, made anew on the way back", self.recreated),
            ("travels beside the parameters", self.buffers),
            ("spellings found", self.variants),
            ("settings ignored", tuple(self.ignored_settings)),
            ("copied along", self.companions),
        ):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        return "\n".join([*lines, *self.notes])

    def _side(self, side: int) -> str:
        layout = self.layouts[side]
        of_family = f" ({self.family})" if LAYOUTS[layout].is_of_family else ""
        return f"{layout}{of_family} {self.containers[side]}"


def convert_checkpoint(
    src: str | Path,
    dst: str | Path,
    *,
    to: str,
    family: str | Family | None = None,
    format: str | None = None,
    dtype: str | None = None,
    max_shard_size: int | str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    key: str | None = None,
    ignore_settings: Collection[str] = (),
    dry_run: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write a checkpoint in another layout, container or dtype, bit for bit unless cast.

    Args:
        src: A folder or file.
        dst: The folder to write; it appears whole or not at all.
        to: "hf" (a family's own names), "hf-flax" (the same as ``transformers`` had them in
            Flax), "torch" (torch_impl) or "flax" (jax_impl).
        family: The family, where neither config nor names tell.
        format: "safetensors", "pt", "msgpack" or "orbax"; None is msgpack for "hf-flax", else
            safetensors.
        dtype: "float64", "float32", "float16" or "bfloat16", for floating parameters.
        max_shard_size: The most bytes of tensors in a file, such as ``5_000_000_000`` or "5GB".
        config: A config.json, or its content, used in place of the folder's own.
        settings: Single settings that complete or replace those of the configuration.
        key: Path of the dictionary to read inside a training file.
        ignore_settings: Settings to accept although they are not understood.
        dry_run: Plan only.
        overwrite: Whether a checkpoint folder at ``dst`` may be replaced.
        progress: Called with the bytes written so far, and in all.

    Returns:
        What was done.

    Raises:
        CheckpointError: If the source is damaged, ambiguous, or not wholly understood.
        ValueError: If an argument or the destination is refused.
        OutputError: If the destination cannot be written.
    """
    for name, value, choices in (("to", to, LAYOUTS), ("format", format, WRITTEN)):
        if value is not None and value not in choices:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}")
    code, shard_size = cast_code(dtype), _parse_size(max_shard_size)
    options = ReadOptions(family, config, settings or {}, key, ignore_settings)
    checkpoint = read_checkpoint(src, options)
    plan = make_plan(checkpoint, to=to, container=format, dtype=code)
    counts = CastCounts()
    if not dry_run:
        counts = write_plan(
            plan,
            dst,
            sources=(Path(src), *checkpoint.container.files),
            overwrite=overwrite,
            max_shard_size=shard_size,
            progress=progress,
        )
    return _report(checkpoint, plan, dst, counts, dry_run)


def _report(
    checkpoint: Checkpoint, plan: Plan, dst: str | Path, counts: CastCounts, dry_run: bool
) -> Report:
    return Report(
        source=str(checkpoint.path),
        destination=str(dst),
        layouts=(checkpoint.layout, plan.layout),
        containers=(checkpoint.container.kind, plan.container),
        family=plan.body.get("family"),
        component=checkpoint.component,
        read=len(checkpoint.container.tensors),
        written=len(plan.tensors),
        nbytes=plan.nbytes,
        buffers=tuple(checkpoint.buffers),
        recreated=tuple(plan.body.get("recreated", ())),
        variants=tuple(plan.body.get("variants", ())),
        ignored_settings=checkpoint.ignored,
        companions=tuple(plan.companions),
        dtype=plan.dtype,
        cast=counts,
        notes=checkpoint.notes,
        dry_run=dry_run,
    )


def _parse_size(size: int | str | None) -> int | None:
    match = re.fullmatch(r"([0-9]+) *([KMG]I?B|)", str(size).upper())
    if size is not None and (match is None or int(match[1]) == 0):
        raise ValueError(f"max_shard_size={size!r} must be a positive size such as 500MB or 5GB")
    return None if match is None else int(match[1]) * _UNITS[match[2]]
