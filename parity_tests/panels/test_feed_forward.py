"""The feed-forward network and the linear map under every projection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.spec import FeedForwardConfig
from parity_tests.components.modules import PANELS, build, random_weights, run
from parity_tests.components.room import X
from parity_tests.components.rooms import component
from parity_tests.support.sizes import D, F

IN, OUT = 512, 300


def linear_state(panel: str, *, bias: bool = True) -> dict[str, np.ndarray]:
    """Return the parameters of a new linear map, weight as torch stores it."""
    if panel == "torch":
        torch.manual_seed(0)
        return torch_impl.export_state(torch_impl.linear(IN, OUT, bias=bias))
    state = jax_impl.export_state(jax_impl.linear(IN, OUT, bias=bias, rngs=nnx.Rngs(0)))
    return {"weight": state.pop("kernel").T, **state}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "tanh"])
def test_up_activation_down(panel: str, activation: str) -> None:
    config = FeedForwardConfig(d_model=D, d_ff=F, activation=activation)
    weights = {name: array.astype(np.float64) for name, array in random_weights(config).items()}
    right = component(config, weights, X.astype(np.float64))
    np.testing.assert_allclose(run(panel, config, X)[0], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("panel", PANELS)
def test_initial_weights_are_uniform(panel: str) -> None:
    """pytorch/pytorch#166378: one bound for weight and bias, 1 / sqrt(in), in both panels."""
    bound = IN**-0.5
    for array in linear_state(panel).values():
        assert np.abs(array).max() <= bound
        assert np.abs(array).max() > 0.95 * bound
        assert abs(array.std() / (bound / 3**0.5) - 1) < 0.08
        assert abs(array.mean()) < 0.15 * bound
    weight = linear_state(panel)["weight"]
    assert weight.shape == (OUT, IN)
    assert abs(weight.std() / (bound / 3**0.5) - 1) < 0.005


@pytest.mark.parametrize("panel", PANELS)
def test_without_bias(panel: str) -> None:
    assert linear_state(panel, bias=False).keys() == {"weight"}


def test_the_frameworks_own_layers() -> None:
    """Quantisation looks for the exact type."""
    config = FeedForwardConfig(d_model=3, d_ff=2)
    assert type(build("torch", config).up_proj) is torch.nn.Linear
    assert type(build("jax", config).up_proj) is nnx.Linear


def test_a_square_kernel_is_transposed() -> None:
    """google/flax#963: x = e0 gives e3, not e1."""
    W = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], np.float32)
    config = FeedForwardConfig(d_model=4, d_ff=4)
    weights = {
        "up_proj.weight": W,
        "up_proj.bias": np.zeros(4, np.float32),
        "down_proj.weight": np.eye(4, dtype=np.float32),
        "down_proj.bias": np.zeros(4, np.float32),
    }
    e = np.eye(4, dtype=np.float32)
    assert build("torch", config, weights)(torch.from_numpy(e[0])).tolist() == e[3].tolist()
    assert build("jax", config, weights)(jnp.asarray(e[0])).tolist() == e[3].tolist()


def test_mixed_dtypes_are_refused() -> None:
    config = FeedForwardConfig(d_model=D, d_ff=F)
    with pytest.raises(RuntimeError, match="dtype"):
        build("torch", config)(torch.ones(2, D, dtype=torch.bfloat16))
    for dtype in (np.float16, np.float64, np.int32):
        with pytest.raises(TypeError, match="must have one dtype, not"):
            build("jax", config)(np.ones((2, D), dtype))


def test_jax_products_are_precise_unless_the_user_says_otherwise() -> None:
    """Resolved at the call: a scope entered after the module was made counts."""
    module = build("jax", FeedForwardConfig(d_model=D, d_ff=F))

    def precisions() -> list[str]:
        jaxpr = jax.make_jaxpr(lambda module, x: module(x))(module, jnp.asarray(X))
        products = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "dot_general"]
        return [str(eqn.params["precision"]) for eqn in products]

    assert len(precisions()) == 2
    assert all("HIGHEST" in precision for precision in precisions())
    with jax.default_matmul_precision("bfloat16"):
        assert not any("HIGHEST" in precision for precision in precisions())


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(D,), (0, D), (2, 0, D), (2, 3, 4, D)])
def test_any_leading_dimensions(panel: str, shape: tuple[int, ...]) -> None:
    config = FeedForwardConfig(d_model=D, d_ff=F)
    assert run(panel, config, np.ones(shape, np.float32))[0].shape == shape
