"""State in and out: copies, bits, refusals, pure calls."""

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
from diptych.spec import FeedForwardConfig
from parity_tests.components.modules import (
    PANELS,
    arrays,
    build,
    flat,
    in_layout,
    new,
    random_weights,
)
from parity_tests.components.room import IDS, X
from parity_tests.components.rooms import EXAMPLES, marked_pairs
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.sizes import D, F

CONFIG = FeedForwardConfig(d_model=D, d_ff=F)
DTYPES = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float32"]


def state(panel: str, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """Return parameters of a feed-forward network in a panel's layout."""
    layout = in_layout(panel, CONFIG, random_weights(CONFIG))
    return {name: array.astype(dtype) for name, array in layout.items()}


def patterns(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return arbitrary bytes as numbers: NaN payloads, infinities, denormals, -0.0."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.random.default_rng(0).integers(0, 256, count, np.uint8).view(dtype).reshape(shape)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_goes_in_and_comes_out(panel: str, dtype: str) -> None:
    numpy_dtype = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    given = {name: patterns(numpy_dtype, array.shape) for name, array in state(panel).items()}
    module = new(panel, CONFIG)
    PANELS[panel].load_state(module, given)
    back = PANELS[panel].export_state(module)
    assert back.keys() == given.keys()
    for name, array in given.items():
        assert back[name].dtype == array.dtype == numpy_dtype
        assert back[name].tobytes() == array.tobytes()


def test_float64_in_torch_and_in_jax_with_64_bits() -> None:
    given = state("torch", np.float64)
    module = new("torch", CONFIG)
    torch_impl.load_state(module, given)
    assert torch_impl.export_state(module)["up_proj.weight"].dtype == np.float64
    with jax.enable_x64(True):
        in_jax = new("jax", CONFIG)
        jax_impl.load_state(in_jax, state("jax", np.float64))
        assert jax_impl.export_state(in_jax)["up_proj.kernel"].dtype == np.float64


def test_jax_never_narrows() -> None:
    """After jax-ml/jax#1333."""
    module, before = build("jax", CONFIG), jax_impl.export_state(build("jax", CONFIG))
    given = state("jax") | {"down_proj.bias": np.ones(D)}
    words = "down_proj.bias is float64, which JAX would narrow to float32: set jax_enable_x64"
    with pytest.raises(TypeError, match=words):
        jax_impl.load_state(module, given)
    with pytest.raises(TypeError, match=words):
        jax_impl.functional_call(module, given, jnp.asarray(X))
    after = jax_impl.export_state(module)
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


@pytest.mark.parametrize("panel", PANELS)
def test_nothing_is_shared(panel: str) -> None:
    """pytorch/pytorch#33615: neither what comes out nor what went in is the module's own memory."""
    given = state(panel)
    module = new(panel, CONFIG)
    before = {name: array.copy() for name, array in given.items()}
    PANELS[panel].load_state(module, given)
    for array in given.values():
        array += 100
    exported = PANELS[panel].export_state(module)
    for array in exported.values():
        array += 100
    after = PANELS[panel].export_state(module)
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


def test_jax_takes_its_copy_before_it_returns() -> None:
    """``jnp.array`` alone read what the caller wrote next in about one of ten."""
    module = jax_impl.FeedForward(300, 400, rngs=nnx.Rngs(0))
    given = {name: np.zeros_like(array) for name, array in jax_impl.export_state(module).items()}
    for _ in range(100):
        for array in given.values():
            array[:] = 0
        jax_impl.load_state(module, given)
        for array in given.values():
            array += 100
        assert not any(array.any() for array in jax_impl.export_state(module).values())


@pytest.mark.parametrize("panel", PANELS)
def test_views_go_in_as_they_read(panel: str) -> None:
    """safetensors/safetensors#829: transposed, reversed, broadcast and read-only arrays."""
    given = {
        name: np.broadcast_to(array[..., :1], array.shape) for name, array in state(panel).items()
    }
    square = np.arange(D * F, dtype=np.float32)
    name = "down_proj.weight" if panel == "torch" else "down_proj.kernel"
    given[name] = square.reshape(tuple(reversed(given[name].shape))).T[::-1]
    module = new(panel, CONFIG)
    PANELS[panel].load_state(module, given)
    for key, array in PANELS[panel].export_state(module).items():
        np.testing.assert_array_equal(array, given[key])
        assert array.flags.c_contiguous


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"up_proj.bias": None}, "up_proj.bias: missing"),
    "unexpected": (
        {"up_proj.bia": np.ones(F)},
        r"up_proj.bia: unexpected \(nearest: up_proj.bias\)",
    ),
    "shape": ({"up_proj.bias": np.ones(1)}, r"up_proj.bias: shape \(1,\), expected \(11,\)"),
    "all of them": (
        {"up_proj.bias": None, "down_proj.bias": np.ones((D, 1)), "x": np.ones(1)},
        r"down_proj.bias: shape \(15, 1\), expected \(15,\); up_proj.bias: missing; x: unexpected",
    ),
}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("changes", "words"), FAULTS.values(), ids=FAULTS)
def test_names_and_shapes_are_checked(panel: str, changes: dict[str, Any], words: str) -> None:
    """pytorch/examples#1029, google/flax#2436: nothing is ignored, nothing half-loaded."""
    given = {n: a for n, a in (state(panel) | changes).items() if a is not None}
    module = build(panel, CONFIG)
    before = PANELS[panel].export_state(module)
    with pytest.raises(ValueError, match=words):
        PANELS[panel].load_state(module, given)
    with pytest.raises(ValueError, match=words):
        PANELS[panel].functional_call(module, given, *arrays(panel, (X,)))
    after = PANELS[panel].export_state(module)
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("dtype", [">f4", "longdouble", "object", "int32", "int64", "bool"])
def test_what_no_parameter_can_be_is_refused_whole(panel: str, dtype: str) -> None:
    """The last array is the wrong one: none before it may have been taken in."""
    given = {name: array + 1 for name, array in state(panel).items()}
    last = list(given)[-1]
    given[last] = given[last].astype(dtype)
    module = build(panel, CONFIG)
    before = PANELS[panel].export_state(module)
    with pytest.raises((TypeError, ValueError)):
        PANELS[panel].load_state(module, given)
    after = PANELS[panel].export_state(module)
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


@pytest.mark.parametrize("panel", PANELS)
def test_a_prefix_on_every_name_is_refused(panel: str) -> None:
    """pytorch/examples#1029: with a wrong prefix nothing matches, and that is said."""
    with pytest.raises(ValueError, match="unexpected") as caught:
        PANELS[panel].load_state(new(panel, CONFIG), {f"m.{n}": a for n, a in state(panel).items()})
    assert str(caught.value).count("missing") == 4


@pytest.mark.parametrize("panel", PANELS)
def test_a_module_takes_the_dtype_that_it_is_given(panel: str) -> None:
    module = new(panel, CONFIG)
    PANELS[panel].load_state(module, state(panel, ml_dtypes.bfloat16))
    (x,) = arrays(panel, (X.astype(ml_dtypes.bfloat16),))
    assert flat(module(x))[0].dtype == ml_dtypes.bfloat16


def test_load_state_works_in_place() -> None:
    in_torch = new("torch", CONFIG)
    parameter = in_torch.up_proj.weight
    torch_impl.load_state(in_torch, state("torch"))
    assert in_torch.up_proj.weight is parameter
    assert parameter.requires_grad
    in_jax = new("jax", CONFIG)
    variable = in_jax.up_proj.kernel
    jax_impl.load_state(in_jax, state("jax"))
    assert in_jax.up_proj.kernel is variable
    assert isinstance(variable, nnx.Param)


@pytest.mark.parametrize(("panel", "component"), marked_pairs(EXAMPLES))
def test_functional_call_is_the_call(panel: str, component: str) -> None:
    """google/flax#1262 too: numpy parameters compute as the framework's own do."""
    config, arguments = EXAMPLES[component]
    module = build(panel, config)
    if panel == "torch":  # it sums in another order where a weight wants a gradient
        module.requires_grad_(False)
    converted = arrays(panel, arguments)
    right = flat(module(*converted))
    weights = in_layout(panel, config, random_weights(config))
    other = new(panel, config).eval()
    before = PANELS[panel].export_state(other)
    found = flat(PANELS[panel].functional_call(other, weights, *converted))
    for ours, theirs in zip(found, right, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    after = PANELS[panel].export_state(other)
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


def test_gradients_of_functional_call() -> None:
    """Through autograd, torch.func.grad and jax.grad inside jit: the same numbers."""
    in_torch, in_jax = build("torch", CONFIG), build("jax", CONFIG)
    x = np.abs(X)

    def loss(params: Any) -> Any:
        return (torch_impl.functional_call(in_torch, params, to_torch(x)) ** 2).sum()

    def jax_loss(params: Any) -> Any:
        return (jax_impl.functional_call(in_jax, params, to_jax(x)) ** 2).sum()

    params = {name: torch.from_numpy(a).requires_grad_() for name, a in state("torch").items()}
    by_autograd = torch.autograd.grad(loss(params), list(params.values()))
    by_function = torch.func.grad(loss)({n: p.detach() for n, p in params.items()})
    by_jax = jax.jit(jax.grad(jax_loss))(to_jax(state("jax")))
    (in_torch(to_torch(x)) ** 2).sum().backward()
    for (name, gradient), own in zip(by_function.items(), by_autograd, strict=True):
        np.testing.assert_array_equal(gradient, own)
        np.testing.assert_array_equal(own, in_torch.get_parameter(name).grad)
        kernel = by_jax[name.replace("weight", "kernel")]
        theirs = np.asarray(kernel).T if name.endswith("weight") else np.asarray(kernel)
        np.testing.assert_allclose(theirs, gradient.numpy(), rtol=2e-5, atol=1e-4)


def test_jax_parameters_may_be_numpy_for_good() -> None:
    """google/flax#1262: a module whose table is plain numpy, eager and compiled."""
    example = EXAMPLES["Embedding"]
    module = build("jax", example.config)
    right = flat(module(jnp.asarray(IDS)))[0]
    numpy_module = jax.tree.map(np.asarray, module)
    np.testing.assert_array_equal(flat(numpy_module(jnp.asarray(IDS)))[0], right)
    compiled = jax.jit(lambda ids: numpy_module(ids))
    np.testing.assert_array_equal(flat(compiled(jnp.asarray(IDS)))[0], right)
