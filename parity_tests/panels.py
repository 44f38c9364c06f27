"""The two panels behind one face, so that a test of what a call means is written once.

Arrays go in and come out as numpy. JAX runs with 64 bits on, so that float64 is float64 in both.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
import torch

import jax_impl.attention
import jax_impl.functional
import torch_impl.attention
import torch_impl.functional
from parity_tests.harness import Arrays, Run, from_torch, run_jax, run_torch, to_jax, to_torch


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        name: Of the package.
        functional: Its functions.
        attention: Its attention modules.
        array: From numpy arrays, also inside tuples, to its own; other values stay.
        compile: Its compiler.
        differentiate: ``run_torch`` or ``run_jax`` of the harness.
        wide: Makes the context in which float64 stays float64.
    """

    name: str
    functional: ModuleType
    attention: ModuleType
    array: Callable[[Any], Any]
    compile: Callable[[Callable[..., Any]], Callable[..., Any]]
    differentiate: Callable[..., Run]
    wide: Callable[[], AbstractContextManager]

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of this panel with numpy arrays; its arrays come back as numpy."""
        with self.wide():
            return to_numpy(function(*map(self.array, args), **self.array(options)))

    def attend(self, *args: Any, **options: Any) -> Any:
        """Run ``scaled_dot_product_attention``."""
        return self.run(self.functional.scaled_dot_product_attention, *args, **options)

    def attend_gradients(self, inputs: Arrays, loss_weights: Arrays, **options: Any) -> Arrays:
        """Return the gradients of ``sum(loss_weights * outputs)`` for every named input."""

        def call(arrays: dict[str, Any]) -> dict[str, Any]:
            attend = self.functional.scaled_dot_product_attention
            output, weights = attend(**arrays, **self.array(options))
            return {"output": output, "weights": weights}

        return self.differentiate(call, inputs, loss_weights).gradients


def to_numpy(value: Any) -> Any:
    """Turn the arrays of either framework in a value, or in its tuples, into numpy arrays."""
    if isinstance(value, tuple):
        return tuple(map(to_numpy, value))
    if isinstance(value, torch.Tensor):
        return from_torch(value)
    return np.asarray(value) if isinstance(value, jax.Array) else value


def _compile_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _run_jax_eagerly(*args: Any) -> Run:
    return run_jax(*args, jit=False)


TORCH = Panel(
    "torch_impl",
    torch_impl.functional,
    torch_impl.attention,
    to_torch,
    _compile_torch,
    run_torch,
    nullcontext,
)
JAX = Panel(
    "jax_impl",
    jax_impl.functional,
    jax_impl.attention,
    to_jax,
    jax.jit,
    _run_jax_eagerly,
    lambda: jax.enable_x64(True),
)

both_panels = pytest.mark.parametrize("panel", [TORCH, JAX], ids=lambda panel: panel.name)
"""Runs a test that takes ``panel`` once in each panel."""
