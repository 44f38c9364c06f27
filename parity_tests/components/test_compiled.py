"""Every component compiled, differentiated, vectorised and in 16 bits."""

import copy
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch
from flax import nnx

import jax_impl
import torch_impl
from parity_tests.components.modules import arrays, build, flat
from parity_tests.components.rooms import EXAMPLES as ALL_EXAMPLES
from parity_tests.components.rooms import marked_components
from parity_tests.components.rooms.encoder import ENCODER
from parity_tests.support.harness import to_jax, to_torch

SHALLOW = dataclasses.replace(ENCODER, num_layers=1)  # compiling a layer takes seconds
EXAMPLES = ALL_EXAMPLES | {
    "Encoder": ALL_EXAMPLES["Encoder"]._replace(config=SHALLOW),
    "EncoderWithHeads": ALL_EXAMPLES["EncoderWithHeads"]._replace(
        config=dataclasses.replace(ALL_EXAMPLES["EncoderWithHeads"].config, encoder=SHALLOW)
    ),
}


def torch_example(component: str) -> tuple[Any, tuple[Any, ...], list[np.ndarray]]:
    """Return a torch module, the arguments of a call, and its result."""
    module = build("torch", EXAMPLES[component].config)
    arguments = arrays("torch", EXAMPLES[component].arguments)
    return module, arguments, flat(module(*arguments))


def jax_example(component: str) -> tuple[Any, tuple[Any, ...], list[np.ndarray]]:
    """Return a JAX module, the arguments of a call, and its result."""
    module = build("jax", EXAMPLES[component].config)
    arguments = arrays("jax", EXAMPLES[component].arguments)
    return module, arguments, flat(module(*arguments))


def call(module: Any, *arguments: Any) -> Any:
    """Call a module; it is an argument, and so a pytree."""
    return module(*arguments)


def close(found: Any, right: list[np.ndarray]) -> None:
    """Assert that a result is another's but for rounding."""
    results = flat(found)
    assert len(results) == len(right)
    for ours, theirs in zip(results, right, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def total(result: Any) -> Any:
    """Return one number of a result."""
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(result))


@pytest.mark.parametrize("component", marked_components(EXAMPLES))
def test_torch_compile(component: str) -> None:
    module, arguments, right = torch_example(component)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    close(compiled(*arguments), right)
    torch.manual_seed(0)
    trained = torch.compile(module.train(), backend="aot_eager", fullgraph=True)(*arguments)
    if any(True for _ in module.parameters()):
        total(trained).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("component", marked_components(EXAMPLES))
def test_jax_jit_and_grad(component: str) -> None:
    module, arguments, right = jax_example(component)
    if not EXAMPLES[component].config.leaves():
        close(jax.jit(call)(module, *arguments), right)
        return

    def loss(module: Any, *given: Any) -> Any:
        result = module(*given)
        return total(result), result

    gradients, result = jax.jit(jax.grad(loss, has_aux=True))(module, *arguments)
    close(result, right)
    assert jax.tree.structure(gradients) == jax.tree.structure(module)
    assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(gradients))
    assert len(jax.tree.leaves(gradients)) == len(EXAMPLES[component].config.leaves())


@pytest.mark.parametrize("component", EXAMPLES)
def test_torch_vmap(component: str) -> None:
    """One sample at a time, vectorised, is the batch."""
    module, (first, *rest), right = torch_example(component)
    batched = [argument for argument in rest if isinstance(argument, torch.Tensor)]
    others = [argument for argument in rest if not isinstance(argument, torch.Tensor)]

    def one(*given: Any) -> Any:
        return jax.tree.leaves(module(*given, *others))  # torch.vmap returns no None

    close(torch.vmap(one)(first, *batched), right)


@pytest.mark.parametrize("component", marked_components(EXAMPLES))
def test_jax_vmap(component: str) -> None:
    """One sample at a time, vectorised, is the batch."""
    module, (first, *rest), right = jax_example(component)
    batched = [argument for argument in rest if isinstance(argument, jax.Array)]
    others = [argument for argument in rest if not isinstance(argument, jax.Array)]
    close(jax.vmap(lambda *given: module(*given, *others))(first, *batched), right)


@pytest.mark.parametrize("component", EXAMPLES)
def test_torch_function_transforms(component: str) -> None:
    """torch.func.grad of functional_call, and per-sample gradients by vmap over it."""
    module, (first, *rest), _ = torch_example(component)
    params = {name: p.detach() for name, p in module.named_parameters()}
    if not params:
        return
    others = [r for r in rest if not isinstance(r, torch.Tensor)]
    batched = [r for r in rest if isinstance(r, torch.Tensor)]

    def loss(params: Any, *given: Any) -> Any:
        return total(torch_impl.functional_call(module, params, *given, *others))

    whole = torch.func.grad(loss)(params, first, *batched)
    every = (None, *[0] * (1 + len(batched)))
    single = torch.vmap(torch.func.grad(loss), every)(params, first, *batched)
    for name, gradient in whole.items():
        (right,) = flat(gradient)
        scale = max(np.abs(right).max(), 1.0)
        np.testing.assert_allclose(
            flat(single[name].sum(0))[0], right, rtol=1e-3, atol=1e-4 * scale
        )


@pytest.mark.parametrize("component", marked_components(EXAMPLES))
def test_16_bits(component: str) -> None:
    """Moved as the frameworks move a module; 16 bits in, 16 bits out, in both panels alike."""
    in_torch, _, right = torch_example(component)
    in_torch.to(torch.bfloat16)
    in_jax = jax.tree.map(
        lambda a: a.astype(jnp.bfloat16), build("jax", EXAMPLES[component].config)
    )
    assert type(in_jax) is getattr(jax_impl, component)
    halves = [half(argument) for argument in EXAMPLES[component].arguments]
    for panel, module, convert in (("torch", in_torch, to_torch), ("jax", in_jax, to_jax)):
        arguments = [
            moved(panel, argument) if hasattr(argument, "component") else convert(argument)
            for argument in halves
        ]
        for ours, theirs in zip(flat(module(*arguments)), right, strict=True):
            assert ours.dtype == ml_dtypes.bfloat16
            bound = 0.1 * max(1.0, np.abs(theirs).max())
            np.testing.assert_allclose(ours.astype(np.float32), theirs, atol=bound)


def half(argument: Any) -> Any:
    """Return floating arrays in bfloat16, and anything else as it is."""
    is_floating = isinstance(argument, np.ndarray) and argument.dtype.kind == "f"
    return argument.astype(ml_dtypes.bfloat16) if is_floating else argument


def moved(panel: str, config: Any) -> Any:
    """Build a component in bfloat16."""
    module = build(panel, config)
    if panel == "torch":
        return module.to(torch.bfloat16)
    return jax.tree.map(lambda a: a.astype(jnp.bfloat16), module)


def test_a_mode_is_part_of_the_compiled_function() -> None:
    """A module is retraced when its mode changes; a stale trace would go on dropping."""
    module, arguments, right = jax_example("TransformerEncoderLayer")
    compiled = jax.jit(lambda module, x, key: module(x, rng_key=key))
    trained = compiled(module.train(), *arguments, jax.random.key(0))
    close(compiled(module.eval(), *arguments, jax.random.key(0)), right)
    assert not np.allclose(flat(trained)[0], right[0])


def test_equal_modules_share_one_trace() -> None:
    """Configs and tables are compared by value, so that a rebuilt module compiles nothing."""
    traces = []

    def count(module: Any, x: Any) -> Any:
        traces.append(1)
        return module(x)

    compiled = jax.jit(count)
    for component in ("PositionalEncoding", "FeedForward"):
        for _ in range(2):
            module, arguments, _ = jax_example(component)
            compiled(module, *arguments)
    assert len(traces) == 2


def test_split_and_merge() -> None:
    """The functional form of Flax users."""
    module, arguments, right = jax_example("TransformerEncoderLayer")
    graphdef, state = nnx.split(module)
    close(
        jax.jit(lambda state, *given: nnx.merge(graphdef, state)(*given))(state, *arguments), right
    )


def test_autocast_follows_torch() -> None:
    module, arguments, right = torch_example("TransformerEncoderLayer")
    with torch.autocast("cpu", torch.bfloat16):
        (result,) = flat(copy.deepcopy(module)(*arguments))
    np.testing.assert_allclose(result.astype(np.float32), right[0], atol=0.1)
