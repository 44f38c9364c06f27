"""What a conversion will write, from headers only; every tensor and file is accounted for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..families import FAMILIES, Family
from ..formats import FORMATS
from ..formats.output import Planned
from ..rules import Rule, Step, assign_rules, raise_faults, rule
from ..spec.errors import CheckpointError
from ..tensors.cast import target_code
from .checkpoint import Checkpoint
from .layouts.layout import HF, LAYOUTS
from .layouts.lazy_tensors import LazyTensor
from .layouts.origin import usual_origin
from .manifest import VERSION


@dataclass(frozen=True)
class PlannedStep:
    """Tensors that are written together.

    Attributes:
        sources: What is read, in the order that the step's transform takes.
        step: From them to the targets.
        targets: What is written, as it will be.
    """

    sources: tuple[LazyTensor, ...]
    step: Step
    targets: tuple[Planned, ...]


@dataclass(frozen=True)
class Plan:
    """What will be written, and what a manifest says of it.

    Attributes:
        layout: A key of ``LAYOUTS``.
        container: A key of ``FORMATS``.
        file_name: Of a single file of weights; shards are named after it.
        steps: All tensors, in the order of their first target's name.
        dtype: Code that floating tensors are cast to, None for no cast.
        files: Small files by name, with their bytes.
        companions: Files to copy, by path in the folder.
        body: The manifest without its digests.
    """

    layout: str
    container: str
    file_name: str
    steps: tuple[PlannedStep, ...]
    dtype: str | None
    files: Mapping[str, bytes]
    companions: Mapping[str, Path]
    body: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[Planned, ...]:
        """Return every tensor that is written, in order."""
        return tuple(target for step in self.steps for target in step.targets)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tensors."""
        return sum(planned.nbytes for planned in self.tensors)


def make_plan(
    checkpoint: Checkpoint,
    *,
    to: str,
    container: str | None = None,
    dtype: str | None = None,
) -> Plan:
    """Return the plan that carries a checkpoint into a layout.

    Args:
        checkpoint: What is read.
        to: A key of ``LAYOUTS``.
        container: One of ``WRITTEN``; None is the layout's usual.
        dtype: Code that floating tensors are cast to.

    Raises:
        CheckpointError: If the family cannot hold the component, or names collide; lists all.
    """
    layout = LAYOUTS[to]
    form = FORMATS[container or layout.usual_format]
    if layout.is_of_family and checkpoint.family is None:
        origin = usual_origin(_only_family(checkpoint), checkpoint.config)
        checkpoint = replace(checkpoint, **origin._asdict())
    family, recreated = checkpoint.family, checkpoint.recreated
    files, buffers = layout.files(checkpoint, dtype), layout.buffers(checkpoint)
    rules, where = layout.rules(checkpoint), str(checkpoint.path)
    steps = plan_steps(checkpoint.leaves, rules, buffers, dtype, where=where)
    tells_spelling = layout.is_original or checkpoint.spelling == HF.name
    body = {
        "version": VERSION,
        "layout": to,
        "component": checkpoint.component,
        "family": family.name if family else None,
        "family_version": family.version if family else None,
        "variants": list(checkpoint.variants),
        "spelling": None if tells_spelling else checkpoint.spelling,
        "recreated": {name: entry._asdict() for name, entry in sorted(recreated.items())},
        "buffers": sorted(checkpoint.buffers),
        "ignored_settings": dict(checkpoint.ignored),
        "dtype": dtype,
    }
    return Plan(
        layout=to,
        container=form.kind,
        file_name=form.name_in(to),
        steps=steps,
        dtype=dtype,
        files=files,
        companions=checkpoint.companions,
        body={name: value for name, value in body.items() if value not in (None, [], {})},
    )


def plan_steps(
    leaves: Mapping[str, LazyTensor],
    rules: tuple[Rule, ...],
    buffers: Mapping[str, LazyTensor],
    dtype: str | None,
    *,
    where: str,
) -> tuple[PlannedStep, ...]:
    """Return the steps that write leaves through rules, and buffers under the names given.

    Raises:
        CheckpointError: If a leaf is taken by no rule or by two, or names collide.
    """
    steps, faults = assign_rules(leaves, rules)
    planned = []
    for step in steps:
        sources = tuple(leaves[name] for name in step.sources)
        try:
            specs = step.transform.outputs([source.spec for source in sources])
        except ValueError as error:
            faults.append(f"{', '.join(step.sources)}: {error}")
            continue
        targets = tuple(
            Planned(name, target_code(spec.dtype, dtype), spec.shape)
            for name, spec in zip(step.targets, specs, strict=True)
        )
        planned.append(PlannedStep(sources, step, targets))
    for name, buffer in buffers.items():
        # A buffer is no parameter: a cast leaves it alone.
        keep = rule(name, name)
        target = Planned(name, buffer.dtype, buffer.shape)
        planned.append(PlannedStep((buffer,), Step((name,), (name,), keep.transform), (target,)))
    raise_faults(faults, where=where)
    return tuple(sorted(planned, key=lambda each: each.targets[0].name))


def _only_family(checkpoint: Checkpoint) -> Family:
    fitting, causes = [], []
    for family in FAMILIES.values():
        try:
            family.write_config(checkpoint.config, None)
            fitting.append(family)
        except ValueError as error:
            causes.append(str(error))
    if len(fitting) == 1:
        return fitting[0]
    cause = ", ".join(f.name for f in fitting) if fitting else "; ".join(causes)
    problem = "several families could hold it, give --family" if fitting else "no family holds it"
    raise CheckpointError(f"{checkpoint.path}: {checkpoint.component}: {problem}: {cause}")
