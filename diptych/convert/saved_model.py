"""What the panels' ``load_model`` and ``save_model`` stand on: a checkpoint in memory and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..formats import FORMATS
from ..rules import rule
from ..spec import Config
from ..spec.checks.sizes import check_names_and_shapes
from ..tensors.cast import cast_code
from ..tensors.dtypes import code_of
from .checkpoint import Checkpoint
from .layouts.layout import LAYOUTS, PANEL_LAYOUTS, PanelLayout
from .layouts.lazy_tensors import BUFFER_PREFIX, LazyTensor
from .manifest import VERSION
from .plan import Plan, make_plan, plan_steps
from .reading import open_checkpoint
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
        ValueError: If the layout, a name, a shape or the destination is refused.
        OutputError: If the destination cannot be written.
    """
    if component != config.component:
        raise ValueError(f"component={component!r} is not that of {type(config).__name__}")
    panel = LAYOUTS.get(layout)
    if not isinstance(panel, PanelLayout):
        names = ", ".join(repr(each.name) for each in PANEL_LAYOUTS)
        raise ValueError(f"layout={layout!r} must be one of {names}")
    expected = panel.shapes(config)
    given = {name: tuple(values.shape) for name, values in tensors.items()}
    check_names_and_shapes(expected, given, what=f"tensors of {component}")
    leaves = {name: _in_memory(values) for name, values in tensors.items()}
    keep = tuple(rule(name, name) for name in tensors)
    plan = Plan(
        layout=layout,
        container=panel.usual_format,
        file_name=FORMATS[panel.usual_format].name_in(layout),
        steps=plan_steps(leaves, keep, {}, None, where=str(path)),
        dtype=None,
        files=panel.files_of(config, None),
        companions={},
        body={"version": VERSION, "layout": layout, "component": component},
    )
    write_plan(plan, path, overwrite=overwrite)


def _in_memory(values: np.ndarray) -> LazyTensor:
    return LazyTensor(code_of(values.dtype), values.shape, lambda: values)
