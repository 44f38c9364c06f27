"""Running one checkpoint in one panel: arrays in, arrays by name out."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..convert import Checkpoint
from .inputs import Batch
from .rounding import rounding_noise

Outputs = dict[str, np.ndarray]


def missing_frameworks() -> list[str]:
    """Return which of torch, jax and flax are not installed."""
    return [name for name in ("torch", "jax", "flax") if find_spec(name) is None]


def run_torch(checkpoint: Checkpoint, batches: tuple[Batch, ...], dtype: str) -> list[Outputs]:
    """Load a checkpoint into the PyTorch panel and return the outputs of every batch.

    Args:
        checkpoint: An open checkpoint in any layout.
        batches: Inputs.
        dtype: Of the parameters and of floating inputs, "float32" or "float64".

    Returns:
        One dictionary a batch, of float arrays by name: ``output``, ``hidden_states[0]``, ...
    """
    import torch_impl

    model = torch_impl.load_model(checkpoint, dtype=dtype)
    return [
        {name: x.numpy() for name, x in _run_torch(model, batch, dtype).items()}
        for batch in batches
    ]


def torch_noise(checkpoint: Checkpoint, batch: Batch, unit: float) -> dict[str, float]:
    """Return how far rounding errors move every output of the PyTorch panel.

    Args:
        checkpoint: An open checkpoint in any layout.
        batch: One input.
        unit: Size of the errors, ``FLOAT64`` or ``FLOAT32`` of ``diptych.parity.rounding``.
    """
    import torch_impl

    model = torch_impl.load_model(checkpoint, dtype="float64")
    return rounding_noise(lambda: _run_torch(model, batch, "float64"), unit=unit)


def run_jax(checkpoint: Checkpoint, batches: tuple[Batch, ...], dtype: str) -> list[Outputs]:
    """Load a checkpoint into the JAX panel and return the outputs of every batch, compiled.

    Args:
        checkpoint: An open checkpoint in any layout.
        batches: Inputs.
        dtype: Of the parameters and of floating inputs, "float32" or "float64".

    Returns:
        One dictionary a batch, of float arrays by name: ``output``, ``hidden_states[0]``, ...
    """
    import jax

    import jax_impl

    results = []
    with jax.enable_x64(dtype == "float64"):
        model = jax_impl.load_model(checkpoint, dtype=dtype)
        for batch in batches:
            args, arrays, flags = _arguments(batch, dtype)
            output = jax.jit(lambda m, args, arrays, f=flags: m(*args, **arrays, **f))(
                model, args, arrays
            )
            results.append({name: np.asarray(x) for name, x in outputs_by_name(output)})
    return results


def outputs_by_name(output: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every array of a component's return value with its name.

    A lone array is ``output``, a plain tuple ``output``, ``attention_weights`` and, after those,
    ``cross_attention_weights``; a named tuple gives its fields' names, one inside another with its
    own before them: ``encoded.output``; and what a field holds several of is numbered:
    ``hidden_states[0]``.
    """
    if hasattr(output, "dtype"):
        yield name or "output", output
    elif hasattr(output, "_fields"):
        for field in output._fields:
            yield from outputs_by_name(getattr(output, field), f"{name}.{field}".lstrip("."))
    elif isinstance(output, tuple):
        for i, part in enumerate(output):
            yield from outputs_by_name(part, f"{name}[{i}]" if name else _PLAIN[i])


_PLAIN = ("output", "attention_weights", "cross_attention_weights")


def _run_torch(model: Any, batch: Batch, dtype: str) -> dict[str, Any]:
    import torch

    args, arrays, flags = _arguments(batch, dtype)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with torch.inference_mode():
        output = model(*(torch.from_numpy(array) for array in args), **tensors, **flags)
    return dict(outputs_by_name(output))


def _arguments(
    batch: Batch, dtype: str
) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray], dict[str, Any]]:
    def cast(array: np.ndarray) -> np.ndarray:
        return array.astype(dtype) if array.dtype == np.float64 else array

    arrays = {k: cast(v) for k, v in batch.kwargs.items() if isinstance(v, np.ndarray)}
    flags = {k: v for k, v in batch.kwargs.items() if not isinstance(v, np.ndarray)}
    return tuple(cast(array) for array in batch.args), arrays, flags
