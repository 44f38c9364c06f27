"""Layer normalisation: the variance, eps, dtypes and shapes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from diptych.spec import LayerNormConfig
from parity_tests.components.modules import PANELS, new, run
from parity_tests.support.harness import DTYPES, from_torch, to_jax, to_torch

RAMP = [0.0, 0.01, 0.02, 0.03]


def norm(panel: str, x: Any, *, eps: float = 1e-5, dtype: Any = np.float32) -> np.ndarray:
    """Normalise without weight and bias."""
    functional = PANELS[panel].functional
    convert = to_torch if panel == "torch" else to_jax
    x = np.asarray(x, dtype)
    ones, zeros = np.ones(x.shape[-1], np.float32), np.zeros(x.shape[-1], np.float32)
    result = functional.layer_norm(convert(x), convert(ones), convert(zeros), eps=eps)
    return from_torch(result) if panel == "torch" else np.asarray(result)


def by_formula(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Normalise in float64."""
    x = x.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("eps", "value"), [(1e-5, 0.301511), (1e-6, 0.707107), (1e-12, 1.0)])
def test_eps_is_added_to_the_variance(panel: str, eps: float, value: float) -> None:
    """After google/flax#2195."""
    x = [1e-3, -1e-3, 1e-3, -1e-3]
    np.testing.assert_allclose(norm(panel, x, eps=eps), np.sign(x) * value, rtol=2e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("mean", "right"),
    [
        (100.0, [-1.2911, -0.4301, 0.4301, 1.2911]),
        (1000.0, [-1.2911, -0.4304, 0.4304, 1.2911]),
    ],
)
def test_the_variance_does_not_cancel(panel: str, mean: float, right: list[float]) -> None:
    """keras-team/keras-core#866: E[x^2] - E[x]^2 gives -4.743 for the first."""
    np.testing.assert_allclose(norm(panel, np.array(RAMP) + mean), right, atol=1e-3)


@pytest.mark.parametrize("panel", PANELS)
def test_rows_far_from_zero(panel: str) -> None:
    """After pytorch/pytorch#51102."""
    x = (np.random.default_rng(0).normal(size=(50, 4)) + 2000).astype(np.float32)
    assert np.abs(norm(panel, x) - by_formula(x)).max() < 1e-2


@pytest.mark.parametrize("panel", PANELS)
def test_statistics_of_16_bit_are_float32(panel: str) -> None:
    """google/flax#612: within one bfloat16 ulp, where bfloat16 statistics are far off."""
    x = (100 + 0.5 * np.random.default_rng(0).normal(size=(9, 64))).astype(ml_dtypes.bfloat16)
    result, right = norm(panel, x, dtype=x.dtype), by_formula(x)
    assert result.dtype == x.dtype
    ulp = np.exp2(np.floor(np.log2(np.abs(right))) - 7)
    assert (np.abs(result.astype(np.float64) - right) <= ulp).all()


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("of_parameters", ["float32", "bfloat16", "float16"])
def test_any_dtypes_give_the_inputs(panel: str, dtype: str, of_parameters: str) -> None:
    functional = PANELS[panel].functional
    convert = to_torch if panel == "torch" else to_jax
    x = np.random.default_rng(0).normal(size=(3, 8)).astype(DTYPES[dtype])
    weight = np.full(8, 2, DTYPES[of_parameters])
    bias = np.full(8, 1, DTYPES[of_parameters])
    result = functional.layer_norm(convert(x), convert(weight), convert(bias), eps=1e-5)
    assert str(result.dtype).removeprefix("torch.") == dtype
    value = from_torch(result) if panel == "torch" else np.asarray(result)
    unit = {"float32": 1e-6, "float16": 2**-10, "bfloat16": 2**-7}[dtype]
    right = 2 * by_formula(x) + 1
    np.testing.assert_allclose(value.astype(np.float64), right, rtol=unit, atol=2 * unit)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("of_weight", ["float32", "bfloat16"])
def test_without_a_bias_is_with_a_bias_of_zero(panel: str, dtype: str, of_weight: str) -> None:
    functional = PANELS[panel].functional
    convert = to_torch if panel == "torch" else to_jax
    random = np.random.default_rng(0)
    x = convert(random.normal(size=(3, 8)).astype(DTYPES[dtype]))
    weight = random.normal(size=8).astype(DTYPES[of_weight])
    zeros = convert(np.zeros_like(weight))
    without = functional.layer_norm(x, convert(weight), None, eps=1e-5)
    assert (without == functional.layer_norm(x, convert(weight), zeros, eps=1e-5)).all()


@pytest.mark.parametrize("panel", PANELS)
def test_a_norm_without_a_bias_has_none(panel: str) -> None:
    state = PANELS[panel].export_state(new(panel, LayerNormConfig(d_model=3, bias=False)))
    assert {name: array.tolist() for name, array in state.items()} == {"weight": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 0, 4), (5, 1)])
def test_any_leading_dimensions(panel: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(norm(panel, x), by_formula(x), atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("width", [1, 5])
def test_another_width_is_refused(panel: str, width: int) -> None:
    """A width of 1 would broadcast."""
    with pytest.raises(ValueError, match=rf"shape \(3, {width}\), expected a last axis of 4"):
        run(panel, LayerNormConfig(d_model=4), np.ones((3, width), np.float32))


@pytest.mark.parametrize("panel", PANELS)
def test_starts_as_the_plain_norm(panel: str) -> None:
    state = PANELS[panel].export_state(new(panel, LayerNormConfig(d_model=3)))
    assert {name: array.tolist() for name, array in state.items()} == {
        "weight": [1.0, 1.0, 1.0],
        "bias": [0.0, 0.0, 0.0],
    }


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"d_model": 0}, "d_model=0"), ({"d_model": 3, "eps": 0.0}, "eps=0.0 must be above 0")],
)
def test_bad_configs_are_refused(panel: str, wrong: dict[str, Any], words: str) -> None:
    keywords = {} if panel == "torch" else {"rngs": None}
    with pytest.raises(ValueError, match=words):
        PANELS[panel].LayerNorm(**wrong, **keywords)
