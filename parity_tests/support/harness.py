"""Running one call in both panels and judging what comes back: the suite's one comparing helper.

A call is a function from named floating arrays to named arrays, written once per panel; a run of it
gives outputs and, for a random cotangent on every output, the gradient of every named input.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch

from diptych.parity.compare import Comparison, compare_exact, compare_working

Arrays = dict[str, np.ndarray]
Call = Callable[[dict[str, Any]], dict[str, Any]]

DTYPES = {
    "float64": np.dtype(np.float64),
    "float32": np.dtype(np.float32),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float16": np.dtype(np.float16),
}


@dataclass(frozen=True)
class Run:
    """What one side computed: outputs, and gradients of the inputs, by name."""

    outputs: Arrays
    gradients: Arrays


@dataclass
class Tally:
    """Every exact comparison of a test run; the claim about float32 bits is made over all."""

    outputs: list[Comparison] = field(default_factory=list)
    gradients: list[Comparison] = field(default_factory=list)


def run_torch(call: Call, inputs: Arrays, cotangents: Arrays) -> Run:
    """Run a call of the torch panel forward and backward.

    Args:
        call: From torch tensors to torch tensors.
        inputs: Floating arrays; each is differentiated.
        cotangents: One array per output that is differentiated; without any, forward only.
    """
    tensors = {name: to_torch(array).requires_grad_() for name, array in inputs.items()}
    outputs = call(tensors)
    if not cotangents:
        return Run({name: from_torch(tensor) for name, tensor in outputs.items()}, {})
    loss = sum((outputs[name] * to_torch(array)).sum() for name, array in cotangents.items())
    found = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True)
    gradients = {
        name: np.zeros_like(inputs[name]) if gradient is None else from_torch(gradient)
        for name, gradient in zip(tensors, found, strict=True)
    }
    return Run({name: from_torch(tensor) for name, tensor in outputs.items()}, gradients)


def run_jax(
    call: Call, inputs: Arrays, cotangents: Arrays, *, jit: bool = True, x64: bool = True
) -> Run:
    """Run a call of the JAX panel forward and backward.

    Args:
        call: From JAX arrays to JAX arrays.
        inputs: Floating arrays; each is differentiated.
        cotangents: One array per output that is differentiated; without any, forward only.
        jit: Whether to compile the whole.
        x64: Whether 64-bit types are on, for this call alone.
    """

    def loss(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        outputs = call(arrays)
        products = [(outputs[name] * jnp.asarray(c)).sum() for name, c in cotangents.items()]
        return sum(products), outputs

    def forward(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return (None, call(arrays)), {}

    with jax.enable_x64(x64):
        run = jax.value_and_grad(loss, has_aux=True) if cotangents else forward
        (_, outputs), gradients = (jax.jit(run) if jit else run)(to_jax(inputs))
        return Run(
            {name: np.asarray(array) for name, array in outputs.items()},
            {name: np.asarray(array) for name, array in gradients.items()},
        )


def judge_exact(
    tally: Tally,
    name: str,
    ours: Run,
    theirs: Run,
    *,
    noise: Mapping[str, float] | None = None,
    float32_bits: bool = True,
    allow_nan: bool = False,
) -> None:
    """Assert that two float64 runs of one call are one computation, and count their ties.

    Args:
        tally: Takes every comparison.
        name: Of the call.
        ours: Of one panel.
        theirs: Of the other panel, or of the oracle.
        noise: Rounding noise of each output and gradient, for deep or saturated calls.
        float32_bits: Whether the float32 bits of the outputs are judged too.
        allow_nan: Whether NaN at the same places is right.
    """
    rows = compare_runs(
        name, ours, theirs, noise=noise, float32_bits=float32_bits, allow_nan=allow_nan
    )
    faults = [str(row) for row in [*rows.outputs, *rows.gradients] if not row.ok]
    assert not faults, "\n".join(faults)
    if float32_bits:
        tally.outputs += rows.outputs
    tally.gradients += rows.gradients


def judge_working(
    name: str,
    found: Run,
    truth: Run,
    yardstick: Run,
    noise: Callable[[], dict[str, float]] = dict,
) -> None:
    """Judge every output; the gradients of a call as one vector, in which noise counts as noise.

    Args:
        name: Of the call.
        found: What is judged.
        truth: In float64.
        yardstick: Of plain code.
        noise: Gives what random rounding errors change of every output, and of "gradients"; asked
            where plain code was too lucky to be the only measure.
    """
    rows = _working_rows(name, found, truth, yardstick, {})
    if not all(row.ok for row in rows):
        rows = _working_rows(name, found, truth, yardstick, noise())
    faults = [str(row) for row in rows if not row.ok]
    assert not faults, "\n".join(faults)


def compare_runs(
    name: str,
    ours: Run,
    theirs: Run,
    *,
    noise: Mapping[str, float] | None = None,
    float32_bits: bool = True,
    allow_nan: bool = False,
) -> Tally:
    """Compare every output and gradient of two float64 runs; arguments as in ``judge_exact``."""
    assert ours.outputs.keys() == theirs.outputs.keys()
    assert ours.gradients.keys() == theirs.gradients.keys()
    noise = noise or {}
    every = [*ours.gradients.values(), *theirs.gradients.values()]
    scale = max((float(np.abs(g[np.isfinite(g)]).max(initial=0)) for g in every), default=0.0)
    outputs = [
        compare_exact(
            array,
            theirs.outputs[output],
            name=f"{name}: {output}",
            noise=noise.get(output, 0.0),
            float32_bits=float32_bits,
            allow_nan=allow_nan,
        )
        for output, array in ours.outputs.items()
    ]
    gradients = [
        compare_exact(
            array,
            theirs.gradients[argument],
            name=f"{name}: gradient of {argument}",
            scale=scale,
            noise=noise.get(argument, 0.0),
            float32_bits=False,
            allow_nan=allow_nan,
        )
        for argument, array in ours.gradients.items()
    ]
    return Tally(outputs, gradients)


def random_arrays(seed: int, shapes: Mapping[str, tuple[int, ...]], size: float = 1.0) -> Arrays:
    """Return a normal float64 array for every shape."""
    random = np.random.default_rng(seed)
    return {name: np.asarray(size * random.normal(size=shape)) for name, shape in shapes.items()}


def cotangents_of(outputs: Mapping[str, np.ndarray], seed: int = 99) -> Arrays:
    """Return a random array in the shape of every output."""
    return random_arrays(seed, {name: np.shape(array) for name, array in outputs.items()})


def to_torch(value: Any) -> Any:
    """Turn every numpy array in a value, or in its dicts and tuples, into a torch tensor."""
    if isinstance(value, dict):
        return {name: to_torch(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(to_torch, value))
    if isinstance(value, np.floating):  # what arithmetic makes of an array without axes
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(value.copy())


def from_torch(tensor: torch.Tensor) -> np.ndarray:
    """Turn a torch tensor into a numpy array of the same dtype."""
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def to_jax(value: Any) -> Any:
    """Turn every numpy array in a value, or in its dicts and tuples, into a JAX array."""
    if isinstance(value, dict):
        return {name: to_jax(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(to_jax, value))
    return jnp.asarray(value) if isinstance(value, np.ndarray | np.floating) else value


def _working_rows(
    name: str, found: Run, truth: Run, yardstick: Run, noise: dict[str, float]
) -> list[Comparison]:
    runs = [
        run.outputs | ({"gradients": _flat(run, truth.gradients)} if truth.gradients else {})
        for run in (found, truth, yardstick)
    ]
    return [
        compare_working(
            *(run[key] for run in runs), name=f"{name}: {key}", noise=noise.get(key, 0.0)
        )
        for key in runs[1]
    ]


def _flat(run: Run, names: Iterable[str]) -> np.ndarray:
    return np.concatenate([run.gradients[name].reshape(-1) for name in names])
