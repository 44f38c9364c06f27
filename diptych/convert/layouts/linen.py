"""The layout "hf-flax": the Linen names under which ``transformers`` up to 4.57 saved Flax models.

They are those of the same model in torch but for the last part of a name: ``kernel``, ``scale``
and ``embedding`` stand for ``weight``. A kernel's axes are ``(in, out)``, ``(width, in, out)`` or
``(height, width, in, out)``, where a torch weight has ``(out, in)`` first.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...formats.tensor import Tensor
from ...rules import Chain, Each, Rule, Transform, Transpose, assign_rules, inverse
from ...spec import Leaves
from ...tensors.bits import TensorSpec, check_one, row_major_strides, specs_of

_WEIGHTS = ("kernel", "scale", "embedding")
_SIGNS = ("kernel", "embedding")  # every model has one of them; "scale" is a name in torch too
_KERNEL_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (2, 3, 1, 0)}
_KERNEL_KINDS = ("proj", "conv", "conv1d")


@dataclass(frozen=True)
class Kernel:
    """Reorder the axes of a torch weight, 2, 3 or 4, to those of Linen's kernel, or back."""

    backward: bool = False

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self._transpose(specs_of(arrays)).apply(arrays)

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        return self._transpose(specs).outputs(specs)

    @property
    def inverse(self) -> "Kernel":
        return Kernel(not self.backward)

    def _transpose(self, specs: Sequence[TensorSpec]) -> Transpose:
        check_one(specs)
        forward = Transpose(_kernel_axes(specs[0].shape))
        return forward.inverse if self.backward else forward


def is_linen(names: Collection[str]) -> bool:
    """Return whether a family's tensors have the names of Linen."""
    return any(name.rpartition(".")[2] in _SIGNS for name in names)


def torch_name(name: str) -> str:
    """Return the name that a Linen parameter has in torch."""
    path, dot, last = name.rpartition(".")
    return f"{path}{dot}weight" if last in _WEIGHTS else name


def as_torch(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Return Linen tensors as the same model has them in torch, and faults as ``NAME: CAUSE``.

    A kernel is given other strides; nothing is read or copied.
    """
    found: dict[str, Tensor] = {}
    faults = []
    for name, tensor in tensors.items():
        plain = torch_name(name)
        if plain in found:
            faults.append(f"{name}: stands beside {found[plain].name}")
        try:
            is_kernel = name.rpartition(".")[2] == "kernel"
            found[plain] = _transposed(tensor) if is_kernel else tensor
        except ValueError as error:
            faults.append(f"{name}: {error}")
    return found, faults


def linen_rules(rules: Iterable[Rule], norm: str) -> tuple[Rule, ...]:
    """Return rules from canonical names to those of Linen, given those to a family's own in torch.

    Args:
        rules: From canonical names to the family's own.
        norm: What a norm's weight is called in Linen, "scale" or "weight".
    """
    return tuple(_linen_rule(rule, norm) for rule in rules)


def linen_names(rules: Iterable[Rule], leaves: Leaves, norm: str) -> dict[str, str]:
    """Return, by its name in torch, the Linen name of every tensor that gives a leaf.

    Args:
        rules: From a family's own names in torch to canonical names.
        leaves: The component's leaves.
        norm: What a norm's weight is called in Linen.
    """
    to_torch = inverse(rules)
    in_torch, _ = assign_rules(leaves, to_torch)
    in_linen, _ = assign_rules(leaves, linen_rules(to_torch, norm))
    return {
        name: new
        for step, linen in zip(in_torch, in_linen, strict=True)
        for name, new in zip(step.targets, linen.targets, strict=True)
    }


def respell(faults: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """Return faults with the names in them replaced; shapes stay those of torch and say so."""
    respelled = [re.sub(r"[^\s,:()]+", lambda m: names.get(m[0], m[0]), each) for each in faults]
    return [f"{each} in torch" if ": shape (" in each else each for each in respelled]


def _linen_rule(rule: Rule, norm: str) -> Rule:
    kinds = {_kind(name) for name in rule.source}
    if len(kinds) > 1:
        raise ValueError(f"{', '.join(rule.source)}: leaves of several kinds in one rule")
    (kind,) = kinds
    new = {"embed": "embedding", "norm": norm, **dict.fromkeys(_KERNEL_KINDS, "kernel")}.get(kind)
    if new is None or not all(name.endswith(".weight") for name in rule.target):
        return rule
    target = tuple(f"{name.removesuffix('weight')}{new}" for name in rule.target)
    transform: Transform = rule.transform
    if new == "kernel":
        transform = Chain((transform, Each((Kernel(),) * len(target))))
    return Rule(rule.source, target, transform)


def _kind(name: str) -> str:
    """Return the kind of a canonical leaf that is a weight, "" for any other."""
    path, _, last = name.rpartition(".")
    return path.rpartition("_")[2] if last == "weight" else ""


def _transposed(kernel: Tensor) -> Tensor:
    axes = Transpose(_kernel_axes(kernel.shape)).inverse.axes
    strides = kernel.strides or row_major_strides(kernel.shape)
    return replace(
        kernel,
        shape=tuple(kernel.shape[axis] for axis in axes),
        strides=tuple(strides[axis] for axis in axes),
    )


def _kernel_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in _KERNEL_AXES:
        raise ValueError(f"shape {shape} is that of no kernel, which has 2, 3 or 4 axes")
    return _KERNEL_AXES[len(shape)]
