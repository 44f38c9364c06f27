"""Sizes and numbers of layers that the shapes of a bare state dict show."""

from collections.abc import Mapping
from typing import Any

from ..spec.checks.sizes import Shape


def axis_sizes(shapes: Mapping[str, Shape], name: str, rank: int) -> tuple[int | None, ...]:
    """Return a tensor's sizes, None for each where there is no such tensor.

    Raises:
        ValueError: If it has another rank.
    """
    shape = shapes.get(name)
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise ValueError(f"{name}: shape {shape} must have rank {rank}")
    return shape


def axis_size(shapes: Mapping[str, Shape], name: str, axis: int) -> int | None:
    """Return a tensor's size along an axis, None where there is no such tensor.

    Raises:
        ValueError: If it has no such axis.
    """
    shape = shapes.get(name)
    if shape is not None and len(shape) <= axis:
        raise ValueError(f"{name}: shape {shape} has no axis {axis}")
    return None if shape is None else shape[axis]


def fill_sizes(
    values: dict[str, Any],
    sizes: Mapping[str, tuple[str, int]],
    shapes: Mapping[str, Shape],
    prefix: str = "",
) -> None:
    """Set every size that is not given, None or -1, to that of a tensor.

    Args:
        values: Settings by name.
        sizes: By setting, a tensor's name without the prefix, and its axis.
        shapes: Shapes by name.
        prefix: Before the tensors' names.

    Raises:
        ValueError: If a tensor has no such axis.
    """
    for key, (name, axis) in sizes.items():
        if values[key] in (None, -1):
            found = axis_size(shapes, f"{prefix}{name}", axis)
            values[key] = values[key] if found is None else found


def layer_count(shapes: Mapping[str, Shape], prefix: str) -> int | None:
    """Return how many layers, ``prefix`` and an index from 0 on, there are; None for none.

    Raises:
        ValueError: If an index is left out.
    """
    heads = {name[len(prefix) :].partition(".")[0] for name in shapes if name.startswith(prefix)}
    indices = {int(head) for head in heads if head.isdecimal()}
    if indices and max(indices) >= len(indices):
        raise ValueError(f"{prefix}{max(indices)}: there are only {len(indices)} layers")
    return len(indices) or None


def check_layer_count(num_layers: Any, shapes: Mapping[str, Shape], key: str) -> None:
    """Raise ValueError if there are more layers than tensors, before anything is made for each."""
    if isinstance(num_layers, int) and num_layers > len(shapes):
        raise ValueError(f"{key}: {num_layers} given, but there are only {len(shapes)} tensors")
