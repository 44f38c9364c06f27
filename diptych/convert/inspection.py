"""What a checkpoint holds and what is understood of it, also where that is not all of it."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..families import Family
from ..spec.errors import CheckpointError
from .checkpoint import ReadOptions
from .reading import open_container, read_checkpoint


@dataclass(frozen=True)
class StoredTensor:
    """One tensor as its file says it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    file: str


@dataclass(frozen=True)
class Inspection:
    """What a checkpoint holds.

    Attributes:
        path: What was read.
        container: The kind of container.
        files: The files that were opened.
        tensors: Every stored tensor, in the file's order.
        nbytes: Bytes of all tensors.
        tree: Dictionaries of a training file, by path, with the number of tensors in each.
        layout: "hf", "hf-flax", "torch" or "flax"; None where the checkpoint is not understood.
        family: Name of the family.
        component: Name of the component's class.
        config: The component's config.
        variants: Spellings of the family that were found.
        buffers: Source names of tensors that are no parameters and must travel.
        recreated: Source names of buffers that a recipe gives.
        companions: Files that would travel along.
        notes: Lines for the user.
        faults: Why it is not understood, one line each, tensors that no rule covers among them.
    """

    path: str
    container: str
    files: tuple[str, ...]
    tensors: tuple[StoredTensor, ...]
    nbytes: int
    tree: Mapping[str, int]
    layout: str | None = None
    family: str | None = None
    component: str | None = None
    config: Mapping[str, Any] | None = None
    variants: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the inspection as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        width = max((len(tensor.name) for tensor in self.tensors), default=0)
        lines = [
            f"{t.name:<{width}}  {t.dtype:<5} {'x'.join(map(str, t.shape)) or 'scalar'}"
            for t in self.tensors
        ]
        lines.append(f"{len(self.tensors)} tensors, {self.nbytes / 1e6:.1f} MB, {self.container}")
        for path, count in self.tree.items():
            lines.append(f"dictionary {path or '(top)'}: {count} tensors")
        if self.layout is not None:
            of_family = f", family {self.family}" if self.family else ""
            lines.append(f"{self.component} in layout {self.layout}{of_family}")
        for name, value in _without_none(self.config or {}).items():
            lines.append(f"  {name}: {value}")
        for title, names in (
            ("travels beside the parameters", self.buffers),
            ("recreatable", self.recreated),
            ("spellings found", self.variants),
            ("companions", self.companions),
        ):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        lines += [f"not understood: {fault}" for fault in self.faults]
        return "\n".join([*lines, *self.notes])


def inspect_checkpoint(
    src: str | Path,
    *,
    family: str | Family | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    key: str | None = None,
    ignore_settings: Collection[str] = (),
) -> Inspection:
    """Return what a checkpoint holds, from headers; the arguments are ``open_checkpoint``'s.

    Raises:
        CheckpointError: If the files themselves cannot be read; what is not understood of them
            stands in ``faults``.
    """
    options = ReadOptions(family, config, settings or {}, key, ignore_settings)
    container = open_container(src, options)
    understood: dict[str, Any]
    try:
        checkpoint = read_checkpoint(src, options)
        container = checkpoint.container
        understood = {
            "layout": checkpoint.layout,
            "family": checkpoint.family.name if checkpoint.family else None,
            "component": checkpoint.component,
            "config": checkpoint.config.to_dict(),
            "variants": checkpoint.variants,
            "buffers": tuple(checkpoint.buffers),
            "recreated": tuple(checkpoint.recreated),
            "companions": tuple(checkpoint.companions),
            "notes": checkpoint.notes,
        }
    except CheckpointError as error:
        understood = {"notes": container.notes, "faults": error.faults}
    stored = tuple(
        StoredTensor(t.name, t.dtype, t.shape, t.nbytes, t.path.name)
        for t in container.tensors.values()
    )
    return Inspection(
        path=str(src),
        container=container.kind,
        files=tuple(str(path) for path in container.files),
        tensors=stored,
        nbytes=sum(tensor.nbytes for tensor in stored),
        tree={path: len(branch.tensors) for path, branch in container.tree.items()},
        **understood,
    )


def _without_none(value: Any) -> Any:
    """Return a config's values without the parts that it leaves out."""
    if not isinstance(value, Mapping):
        return value
    return {name: _without_none(part) for name, part in value.items() if part is not None}
