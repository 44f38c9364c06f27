"""The two panels behind one face, so that a test of what a call means is written once.

Arrays go in and come out as numpy. JAX runs with 64 bits on, so that float64 is float64 in both.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from inspect import signature
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import nnx

import jax_impl
import torch_impl
from parity_tests.support.harness import (
    Arrays,
    Run,
    from_torch,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        package: ``torch_impl`` or ``jax_impl``.
        array: From numpy arrays, also inside tuples, to its own; other values stay.
        compile: Its compiler.
        jit: The same in JAX, where every operation is compiled anyway; nothing in torch.
        differentiate: ``run_torch`` or ``run_jax`` of the harness.
        wide: Makes the context in which float64 stays float64.
    """

    package: ModuleType
    array: Callable[[Any], Any]
    compile: Callable[[Callable[..., Any]], Callable[..., Any]]
    jit: Callable[[Callable[..., Any]], Callable[..., Any]]
    differentiate: Callable[..., Run]
    wide: Callable[[], AbstractContextManager]

    @property
    def name(self) -> str:
        """Return the package's name."""
        return self.package.__name__

    @property
    def functional(self) -> ModuleType:
        """Return the package's functions."""
        return self.package.functional

    def build(self, name: str, *args: Any, **options: Any) -> Any:
        """Build a module with float64 parameters, drawn anew by each panel."""
        component = getattr(self.package, name)
        if "rngs" in signature(component.__init__).parameters:
            options["rngs"] = nnx.Rngs(0)
        module = component(*args, **options)
        state = self.package.export_state(module)
        wide = {name: array.astype(np.float64) for name, array in state.items()}
        with self.wide():
            self.package.load_state(module, wide)
        return module

    def project(self, module: Any, name: str, x: np.ndarray) -> np.ndarray:
        """Apply a linear map of the module in numpy."""
        state = self.package.export_state(module)
        is_torch = self.package is torch_impl
        kernel = state[f"{name}.weight"].T if is_torch else state[f"{name}.kernel"]
        return x @ kernel + state.get(f"{name}.bias", 0.0)

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


def assert_close(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    """Assert that two tuples of float64 arrays of size 1 or so agree to rounding."""
    for a, b in zip(to_numpy(ours), to_numpy(theirs), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax over the last axis, in numpy."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def to_numpy(value: Any) -> Any:
    """Turn the arrays of either framework in a value, or in its tuples, into numpy arrays."""
    if isinstance(value, tuple):
        parts = tuple(map(to_numpy, value))
        return type(value)(*parts) if hasattr(value, "_fields") else parts
    if isinstance(value, torch.Tensor):
        return from_torch(value)
    return np.asarray(value) if isinstance(value, jax.Array) else value


def _compile_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _run_jax_eagerly(*args: Any) -> Run:
    return run_jax(*args, jit=False)


TORCH = Panel(torch_impl, to_torch, _compile_torch, lambda f: f, run_torch, nullcontext)
JAX = Panel(jax_impl, to_jax, jax.jit, jax.jit, _run_jax_eagerly, lambda: jax.enable_x64(True))

both_panels = pytest.mark.parametrize("panel", [TORCH, JAX], ids=lambda panel: panel.name)
"""Runs a test that takes ``panel`` once in each panel."""

both_panels_slow_in_jax = pytest.mark.parametrize(
    "panel",
    [TORCH, pytest.param(JAX, marks=pytest.mark.slow)],
    ids=lambda panel: panel.name,
)
"""The same; eager JAX, which compiles every operation of every new shape, is slow."""


def in_both_panels(
    argument: str, cases: Mapping[str, Any], *, quick_in_jax: Collection[str] = ()
) -> pytest.MarkDecorator:
    """Run a test with every case in each panel; in JAX the cases that are not quick are slow.

    Eager JAX compiles every operation of every new shape.

    Args:
        argument: What the test calls a case.
        cases: By name.
        quick_in_jax: Names of the cases that JAX runs in every run.
    """
    assert set(quick_in_jax) <= cases.keys()
    rows = [
        pytest.param(
            panel,
            case,
            id=f"{name}-{panel.name}",
            marks=pytest.mark.slow if panel is JAX and name not in quick_in_jax else (),
        )
        for name, case in cases.items()
        for panel in (TORCH, JAX)
    ]
    return pytest.mark.parametrize(("panel", argument), rows)
