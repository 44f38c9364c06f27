"""Tensors whose header is known and whose values are read when they are asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...families import Recreated, recreate
from ...formats.errors import fault
from ...formats.tensor import Tensor
from ...rules import Rule, Step, assign_rules, inverse
from ...spec import Leaves
from ...spec.checks.sizes import Shape
from ...tensors.bits import TensorSpec, contiguous
from ...tensors.cast import cast_values, target_code
from ...tensors.dtypes import numpy_dtype

BUFFER_PREFIX = "buffers."
"""Before the source name of a buffer that travels beside the leaves."""

FLOATING = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")


@dataclass(frozen=True)
class LazyTensor:
    """One tensor, not yet read.

    Attributes:
        dtype: Code of ``diptych.tensors.dtypes``.
        shape: Its shape as torch stores it.
        read: Returns the values, in any strides.
    """

    dtype: str
    shape: Shape
    read: Callable[[], np.ndarray]

    @property
    def spec(self) -> TensorSpec:
        """Return its header."""
        return TensorSpec(self.dtype, self.shape)


def read_leaves(
    tensors: Mapping[str, Tensor], rules: Sequence[Rule], expected: Leaves
) -> tuple[dict[str, LazyTensor], list[str]]:
    """Return the leaves that stored tensors give through rules, from headers only.

    Args:
        tensors: Stored tensors by source name.
        rules: From source names to canonical names.
        expected: The component's leaves; each must be given once, in its shape.

    Returns:
        Leaves by canonical name, in the order of ``expected``, and all faults as ``NAME: CAUSE``,
        in the source's spelling.
    """
    sources = source_names(rules, expected)
    steps, faults = assign_rules(
        tensors, rules, known=[name for names in sources.values() for name in names]
    )
    leaves: dict[str, LazyTensor] = {}
    applied = _Applied(tensors)
    for step in steps:
        names = ", ".join(step.sources)
        try:
            specs = step.transform.outputs([tensors[name].spec for name in step.sources])
        except ValueError as error:
            faults.append(f"{names}: {error}")
            continue
        for place, (target, spec) in enumerate(zip(step.targets, specs, strict=True)):
            if target not in expected:
                faults.append(f"{names}: the configuration has no such tensor")
            elif spec.shape != expected[target].shape:
                faults.append(f"{names}: shape {spec.shape}, expected {expected[target].shape}")
            elif spec.dtype not in FLOATING:
                faults.append(f"{names}: a parameter of dtype {spec.dtype}: dequantise first")
            leaves[target] = LazyTensor(*spec, partial(applied.output, step, place))
    faults += [
        f"{', '.join(sources.get(name, (name,)))}: missing"
        for name in expected
        if name not in leaves
    ]
    return {name: leaves[name] for name in expected if name in leaves}, faults


def source_names(rules: Sequence[Rule], leaves: Leaves) -> dict[str, tuple[str, ...]]:
    """Return, by canonical name, the source names that the rules take it from."""
    steps, _ = assign_rules(leaves, inverse(rules))
    return {name: step.targets for step in steps for name in step.sources}


def stored_tensor(tensor: Tensor) -> LazyTensor:
    """Return a stored tensor as it is."""
    return LazyTensor(tensor.dtype, tensor.shape, tensor.read)


def cast_tensor(tensor: LazyTensor, code: str) -> LazyTensor:
    """Return a tensor that is cast when it is read, if its dtype is one that a cast takes."""
    target = target_code(tensor.dtype, code)
    return LazyTensor(
        target, tensor.shape, lambda: cast_values(contiguous(tensor.read()), target)[0]
    )


def made_tensor(entry: Recreated) -> LazyTensor:
    """Return a buffer that a recipe gives."""

    def make() -> np.ndarray:
        made = recreate(entry.recipe, numpy_dtype(entry.dtype), entry.shape)
        assert made is not None
        return made

    return LazyTensor(entry.dtype, entry.shape, make)


def split_buffers(
    tensors: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, LazyTensor]]:
    """Return the parameters, and by source name the buffers that travel beside them."""
    parameters = {n: tensor for n, tensor in tensors.items() if not n.startswith(BUFFER_PREFIX)}
    buffers = {
        name.removeprefix(BUFFER_PREFIX): stored_tensor(tensor)
        for name, tensor in tensors.items()
        if name.startswith(BUFFER_PREFIX)
    }
    return parameters, buffers


class _Applied:
    """What the last step that gives several tensors gave, so that its sources are read once.

    Each output is handed out once; at most one step's are held.
    """

    def __init__(self, tensors: Mapping[str, Tensor]):
        self._tensors = tensors
        self._step: Step | None = None
        self._outputs: dict[int, np.ndarray] = {}

    def output(self, step: Step, place: int) -> np.ndarray:
        if step is not self._step or place not in self._outputs:
            self._outputs.clear()
            self._outputs.update(enumerate(self._apply(step)))
            self._step = step
        return self._outputs.pop(place)

    def _apply(self, step: Step) -> list[np.ndarray]:
        arrays = [self._tensors[name].read() for name in step.sources]
        try:
            return step.transform.apply(arrays)
        except ValueError as error:
            first = self._tensors[step.sources[0]]
            raise fault(first.path, str(error), ", ".join(step.sources)) from None
