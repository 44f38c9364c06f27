"""What a conversion will write, from headers only; every tensor and file is accounted for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..families import FAMILIES, Family, Recreated, Variants, recreate
from ..formats import Planned
from ..rules.rules import Rule, Step, assign_rules, inverse, raise_faults, rule
from ..spec import Config
from ..spec.errors import CheckpointError
from ..tensors.bits import TensorSpec
from ..tensors.cast import CAST_DTYPES, target_code
from ..tensors.dtypes import item_size, numpy_dtype
from .checkpoint import Checkpoint
from .layouts.leaf import LeafTensor
from .layouts.linen import linen_rules
from .layouts.panels import BUFFER_PREFIX, LAYOUTS, layout_rules
from .manifest import VERSION

FILE_NAMES = {
    ("safetensors", "hf"): "model.safetensors",
    ("safetensors", "torch"): "model.safetensors",
    ("safetensors", "flax"): "model.safetensors",
    ("pt", "hf"): "pytorch_model.bin",
    ("pt", "torch"): "model.pt",
    ("pt", "flax"): "model.pt",
    ("pt", "hf-flax"): "model.pt",
    ("safetensors", "hf-flax"): "model.safetensors",
    **{("msgpack", layout): "flax_model.msgpack" for layout in LAYOUTS},
    **{("orbax", layout): "_METADATA" for layout in LAYOUTS},
}
"""The name of a single file of weights, by container and layout."""


@dataclass(frozen=True)
class PlannedStep:
    """Tensors that are written together.

    Attributes:
        sources: What is read, in the order that the step's transform takes.
        step: From them to the targets.
        targets: What is written, as it will be.
    """

    sources: tuple[LeafTensor, ...]
    step: Step
    targets: tuple[Planned, ...]


@dataclass(frozen=True)
class Plan:
    """What will be written, and what a manifest says of it.

    Attributes:
        layout: "hf", "hf-flax", "torch" or "flax".
        container: "safetensors", "pt", "msgpack" or "orbax".
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
        return sum(planned_bytes(planned) for planned in self.tensors)


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
        to: "hf", "hf-flax", "torch" or "flax".
        container: "safetensors", "pt", "msgpack" or "orbax"; None is the layout's usual.
        dtype: Code that floating tensors are cast to.

    Raises:
        CheckpointError: If the family cannot hold the component, or names collide; lists all.
    """
    family = checkpoint.family
    container = container or usual_container(to)
    variants, recreated = checkpoint.variants, checkpoint.recreated
    buffers = {f"{BUFFER_PREFIX}{name}": b for name, b in checkpoint.buffers.items()}
    if to in ("hf", "hf-flax"):
        family = family or _only_family(checkpoint)
        files = {"config.json": render_json(_foreign_settings(checkpoint, family, dtype))}
        variants, recreated = _spelling(checkpoint, family)
        rules = _foreign_rules(checkpoint, family, to, variants)
        if to == "hf":
            buffers = {**checkpoint.buffers, **_made(recreated)}
    else:
        rules = _native_rules(checkpoint.config, to)
        files = native_files(checkpoint.config, checkpoint.source_config)
    steps = plan_steps(checkpoint.leaves, rules, buffers, dtype, where=str(checkpoint.path))
    body = {
        "version": VERSION,
        "layout": to,
        "component": checkpoint.component,
        "family": family.name if family else None,
        "family_version": family.version if family else None,
        "variants": list(variants),
        "spelling": checkpoint.spelling if to != "hf" and checkpoint.spelling != "hf" else None,
        "recreated": {name: entry._asdict() for name, entry in sorted(recreated.items())},
        "buffers": sorted(checkpoint.buffers),
        "ignored_settings": dict(checkpoint.ignored),
        "dtype": dtype,
    }
    return Plan(
        layout=to,
        container=container,
        file_name=FILE_NAMES[container, to],
        steps=steps,
        dtype=dtype,
        files=files,
        companions=checkpoint.companions,
        body={name: value for name, value in body.items() if value not in (None, [], {})},
    )


def plan_steps(
    leaves: Mapping[str, LeafTensor],
    rules: tuple[Rule, ...],
    buffers: Mapping[str, LeafTensor],
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
            specs = step.transform.outputs([TensorSpec(s.dtype, s.shape) for s in sources])
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


def native_files(config: Config, source: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """Return ``config.json`` of a panel's layout, and the source's own configuration beside it."""
    own = {"component": config.component, "config": config.to_dict()}
    files = {"config.json": render_json(own)}
    return files | ({"source_config.json": render_json(source)} if source else {})


def render_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON file's bytes, as ``transformers`` writes them."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def planned_bytes(planned: Planned) -> int:
    """Return the bytes that a planned tensor takes."""
    return int(np.prod(planned.shape, dtype=object)) * item_size(planned.dtype)


def usual_container(layout: str) -> str:
    """Return the container that a layout is written in unless another is asked for."""
    return "msgpack" if layout == "hf-flax" else "safetensors"


def _foreign_rules(
    checkpoint: Checkpoint, family: Family, to: str, variants: Variants
) -> tuple[Rule, ...]:
    if to == "hf":
        return inverse(family.rules(checkpoint.config, variants))
    if checkpoint.family is not family or checkpoint.spelling != "hf-flax":
        # Flax never had the spellings of old torch files, nor copies of tied weights.
        variants = family.usual_variants(checkpoint.config)
    return linen_rules(inverse(family.rules(checkpoint.config, variants)), family.linen_norm)


def _native_rules(config: Config, to: str) -> tuple[Rule, ...]:
    if to == "flax":
        return layout_rules(config)
    return tuple(rule(name, name) for name in config.leaves())


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


def _spelling(
    checkpoint: Checkpoint, family: Family
) -> tuple[tuple[str, ...], Mapping[str, Recreated]]:
    """Return the variants and buffers that were found, or the family's usual ones."""
    if checkpoint.family is family:
        return checkpoint.variants, checkpoint.recreated
    config = checkpoint.config
    return family.usual_variants(config), family.usual_buffers(config)


def _made(recreated: Mapping[str, Recreated]) -> dict[str, LeafTensor]:
    return {name: LeafTensor(e.dtype, e.shape, _maker(e)) for name, e in recreated.items()}


def _maker(entry: Recreated) -> Callable[[], np.ndarray]:
    def make() -> np.ndarray:
        made = recreate(entry.recipe, numpy_dtype(entry.dtype), entry.shape)
        assert made is not None
        return made

    return make


def _foreign_settings(checkpoint: Checkpoint, family: Family, dtype: str | None) -> dict[str, Any]:
    try:
        settings = family.write_config(checkpoint.config, checkpoint.source_config)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from None
    names = {code: name for name, code in CAST_DTYPES.items()}
    cast = dtype or checkpoint.dtype
    for key in ("dtype", "torch_dtype"):
        if cast is not None and key in settings:
            settings[key] = names[cast]
    return settings
