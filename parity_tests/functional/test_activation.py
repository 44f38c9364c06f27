"""Activations: values, names, dtypes."""

import numpy as np
import pytest

from diptych.spec import FeedForwardConfig
from diptych.spec.feed_forward import ACTIVATIONS
from parity_tests.components.modules import PANELS
from parity_tests.components.rooms import feed_forward
from parity_tests.support.harness import DTYPES, from_torch, to_jax, to_torch


def activate(panel: str, x: np.ndarray, activation: str) -> np.ndarray:
    """Apply an activation of a panel to a numpy array."""
    functional = PANELS[panel].functional
    if panel == "torch":
        return from_torch(functional.activate(to_torch(x), activation))
    return np.asarray(functional.activate(to_jax(x), activation))


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("activation", "x", "value"),
    [
        ("gelu", -1.0, -0.158655),
        ("gelu_tanh", -1.0, -0.158808),
        ("gelu", 3.0, 2.995950),
        ("gelu_tanh", 3.0, 2.996363),
        ("relu", -2.0, 0.0),
        ("relu", 2.0, 2.0),
        ("silu", 1.0, 0.731059),
        ("silu", -1.0, -0.268941),
        ("tanh", 1.0, 0.761594),
        ("quick_gelu", 1.0, 0.845796),
        ("quick_gelu", -1.0, -0.154204),
    ],
)
def test_known_values(panel: str, activation: str, x: float, value: float) -> None:
    """huggingface/transformers#13666: the exact and the tanh form of GELU are told apart."""
    result = activate(panel, np.array([x], np.float32), activation)
    np.testing.assert_allclose(result, [value], atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_against_the_formula(panel: str, activation: str) -> None:
    x = np.linspace(-9, 9, 1001, dtype=np.float32)
    right = feed_forward.ACTIVATIONS[activation](x.astype(np.float64))
    np.testing.assert_allclose(activate(panel, x, activation), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_shape_and_dtype_are_the_inputs(panel: str, activation: str, dtype: str) -> None:
    result = activate(panel, np.zeros((2, 0, 3), DTYPES[dtype]), activation)
    assert result.shape == (2, 0, 3)
    assert result.dtype == DTYPES[dtype]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_name_is_a_function_of_its_own(panel: str, activation: str) -> None:
    functional = PANELS[panel].functional
    convert = to_torch if panel == "torch" else to_jax
    x = convert(np.linspace(-3, 3, 7, dtype=np.float32))
    by_name = functional.activate(x, activation)
    assert by_name.tolist() == getattr(functional, activation)(x).tolist()


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("gate", "up", "activation", "value"),
    [
        (-2.0, 3.0, "relu", 0.0),
        (2.0, -3.0, "relu", -6.0),
        (1.0, 3.0, "silu", 2.193176),
        (1.0, 3.0, "clamped_swiglu", 3.383182),
        (9.0, 9.0, "clamped_swiglu", 55.999625),
        (9.0, -9.0, "clamped_swiglu", -41.999719),
        (-9.0, 0.0, "clamped_swiglu", -2.0e-6),
    ],
)
def test_known_gated_values(
    panel: str, gate: float, up: float, activation: str, value: float
) -> None:
    """gpt-oss clamps the gate from above only, and shifts the other by 1."""
    functional = PANELS[panel].functional
    convert = to_torch if panel == "torch" else to_jax
    arrays = [convert(np.array([x], np.float32)) for x in (gate, up)]
    result = functional.activate_gated(*arrays, activation)
    np.testing.assert_allclose(np.asarray(result), [value], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("activation", ["gelu_new", "clamped_swiglu"])
def test_an_unknown_name_is_refused(activation: str) -> None:
    with pytest.raises(ValueError, match=rf"activation='{activation}' must be one of 'relu', 'g"):
        FeedForwardConfig(d_model=3, activation=activation)
