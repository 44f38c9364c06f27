"""What the panels' ``load_model`` and ``save_model`` stand on: a checkpoint in memory and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..rules.rules import assign_rules, rule
from ..spec import Config
from ..spec.checks.sizes import Shape, check_names_and_shapes
from ..tensors.bits import TensorSpec
from ..tensors.cast import cast_code
from ..tensors.dtypes import code_of
from .checkpoint import Checkpoint, open_checkpoint
from .layouts.leaf import LeafTensor
from .layouts.panels import BUFFER_PREFIX, layout_rules
from .manifest import VERSION
from .plan import FILE_NAMES, Plan, make_plan, native_files, plan_steps
from .run import run_steps, write_plan


@dataclass(frozen=True)
class LoadedModel:
    """A checkpoint in memory, in a panel's layout.

    Attributes:
        component: Name of the component's class.
        config: Its config.
        tensors: Parameters by the panel's names, in its shapes.
        unused: Source names of stored buffers that the component does not use.
    """

    component: str
    config: Config
    tensors: dict[str, np.ndarray]
    unused: tuple[str, ...]


def read_model(
    path: str | Path | Checkpoint, *, layout: str, dtype: str | None = None
) -> LoadedModel:
    """Return a checkpoint of any layout in a panel's layout.

    Args:
        path: A folder or file, or what ``open_checkpoint`` made of one.
        layout: "torch" or "flax".
        dtype: "float64", "float32", "float16" or "bfloat16", for floating parameters.

    Raises:
        CheckpointError: If the checkpoint is damaged, ambiguous, or not wholly understood.
    """
    checkpoint = path if isinstance(path, Checkpoint) else open_checkpoint(path)
    tensors = run_steps(make_plan(checkpoint, to=layout, dtype=cast_code(dtype)))
    parameters = {n: values for n, values in tensors.items() if not n.startswith(BUFFER_PREFIX)}
    unused = tuple(checkpoint.buffers)
    return LoadedModel(checkpoint.component, checkpoint.config, parameters, unused)


def write_model(
    path: str | Path,
    *,
    component: str,
    config: Config,
    tensors: Mapping[str, np.ndarray],
    layout: str,
    overwrite: bool = False,
) -> None:
    """Write a component's parameters as a folder in a panel's layout.

    Args:
        path: The folder; it appears whole or not at all.
        component: Name of the component's class; that of ``config``.
        config: The component's config.
        tensors: Parameters by the panel's names, in its shapes.
        layout: "torch" or "flax".
        overwrite: Whether a checkpoint folder that is there may be replaced.

    Raises:
        ValueError: If a name, shape or the destination is refused.
        OutputError: If the destination cannot be written.
    """
    if component != config.component:
        raise ValueError(f"component={component!r} is not that of {type(config).__name__}")
    expected = layout_shapes(config, layout)
    given = {name: tuple(values.shape) for name, values in tensors.items()}
    check_names_and_shapes(expected, given, what=f"tensors of {component}")
    leaves = {name: _leaf(values) for name, values in tensors.items()}
    keep = tuple(rule(name, name) for name in tensors)
    plan = Plan(
        layout=layout,
        container="safetensors",
        file_name=FILE_NAMES["safetensors", layout],
        steps=plan_steps(leaves, keep, {}, None, where=str(path)),
        dtype=None,
        files=native_files(config),
        companions={},
        body={"version": VERSION, "layout": layout, "component": component},
    )
    write_plan(plan, path, overwrite=overwrite)


def layout_shapes(config: Config, layout: str) -> dict[str, Shape]:
    """Return the name and shape of every parameter of a component in a panel's layout."""
    specs = {name: TensorSpec("F32", leaf.shape) for name, leaf in config.leaves().items()}
    if layout == "torch":
        return {name: spec.shape for name, spec in specs.items()}
    steps, _ = assign_rules(specs, layout_rules(config))
    return {
        step.targets[0]: step.transform.outputs([specs[step.sources[0]]])[0].shape for step in steps
    }


def _leaf(values: np.ndarray) -> LeafTensor:
    return LeafTensor(code_of(values.dtype), values.shape, lambda: values)
