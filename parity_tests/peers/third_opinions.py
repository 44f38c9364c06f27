"""What the attention functions of the frameworks are given, and ours beside them.

B batch   N query heads   K key/value heads   H head width   V value width
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parity_tests.support.harness import (
    Arrays,
    Run,
    cotangents_of,
    judge_exact,
    random_arrays,
    run_torch,
)
from parity_tests.support.panels import JAX, TORCH

B, N, K, H, V = 2, 6, 3, 5, 7
LENGTHS = {"T<S": (7, 11), "T>S": (11, 7), "T=1": (1, 11), "T=S": (7, 7)}
RANDOM = np.random.default_rng(31)

every_length = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)


def inputs_of(T: int, S: int, *, kv_heads: int = N, value_width: int = V) -> Arrays:
    shapes = {
        "query": (B, N, T, H),
        "key": (B, kv_heads, S, H),
        "value": (B, kv_heads, S, value_width),
    }
    return random_arrays(3, shapes)


def coins(*shape: int) -> np.ndarray:
    """Return a mask of which every row sees a key."""
    mask = RANDOM.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def ours(panel: Any, inputs: Arrays, options: dict[str, Any], run: Any = None) -> Run:
    """Run our attention, differentiated at its output."""

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        given = {name: arrays[name] for name in arrays} | panel.array(options)
        return {"output": panel.functional.scaled_dot_product_attention(**given)[0]}

    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    return (run or panel.differentiate)(call, inputs, cotangents(shape, inputs))


def cotangents(shape: tuple[int, ...], inputs: Arrays) -> Arrays:
    found = cotangents_of({"output": np.empty(shape)})
    return {name: array.astype(inputs["query"].dtype) for name, array in found.items()}


def judge_in_float64(tally, inputs: Arrays, options: dict[str, Any], peer: Callable) -> None:
    """Hold both panels to a peer of torch."""
    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    theirs = run_torch(lambda a: {"output": peer(**a)}, inputs, cotangents(shape, inputs))
    for panel in (TORCH, JAX):
        found = ours(panel, inputs, options)
        judge_exact(tally, panel.name, found, theirs, float32_bits=False)
