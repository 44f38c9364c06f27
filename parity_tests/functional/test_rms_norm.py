"""Root-mean-square normalisation, and norms by a width-free config."""

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from flax import nnx
from transformers.models.cohere.modeling_cohere import CohereLayerNorm
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from diptych.parity.compare import compare_exact
from diptych.spec import LayerNormConfig, NormConfig, RMSNormConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support.harness import DTYPES, Run, judge_exact, random_arrays
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.panels import both_panels, to_numpy

D = 7
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 5, D)) + 0.3
WEIGHT = RANDOM.normal(size=D)
COTANGENTS = random_arrays(1, {"output": X.shape})


@pytest.mark.parametrize(
    ("theirs", "config"),
    [
        (LlamaRMSNorm, RMSNormConfig(d_model=D, eps=1e-3)),
        (T5LayerNorm, RMSNormConfig(d_model=D, eps=1e-3)),
        (GemmaRMSNorm, RMSNormConfig(d_model=D, eps=1e-3, unit_offset=True)),
        (CohereLayerNorm, LayerNormConfig(d_model=D, eps=1e-3, bias=False)),
    ],
)
def test_against_transformers(tally: Any, theirs: Any, config: Any) -> None:
    """Forward and backward."""
    with float64_throughout():
        module = theirs(D, eps=1e-3)
        module.weight.data = torch.from_numpy(WEIGHT)
        x = torch.from_numpy(X).requires_grad_()
        output = module(x)
        (output * torch.from_numpy(COTANGENTS["output"])).sum().backward()
    gradients = {"x": x.grad.numpy(), "weight": module.weight.grad.numpy()}
    truth = Run({"output": output.detach().numpy()}, gradients)
    case, tensors = ComponentCase(config, {"x": X}), {"weight": WEIGHT}
    for ours in (run_component_torch, run_component_jax):
        judge_exact(tally, theirs.__name__, ours(case, tensors, COTANGENTS), truth)


def test_against_the_frameworks() -> None:
    right = torch.nn.functional.rms_norm(torch.from_numpy(X), (D,), torch.from_numpy(WEIGHT), 1e-3)
    in_both_panels(RMSNormConfig(d_model=D, eps=1e-3), right.numpy(), "torch rms_norm")
    with jax.enable_x64(True):
        module = nnx.RMSNorm(D, epsilon=1e-3, param_dtype=np.float64, rngs=nnx.Rngs(0))
        module.scale[...] = np.asarray(WEIGHT)
        right = np.asarray(module(np.asarray(X)))
    in_both_panels(RMSNormConfig(d_model=D, eps=1e-3), right, "nnx.RMSNorm")


@both_panels
def test_rows_far_from_zero(panel: Any) -> None:
    """The mean is not taken off: a row of equal numbers becomes a row of ones."""
    x = np.full((2, 4), 2000.0, np.float32)
    ones = panel.array(np.ones(4, np.float32))
    result = to_numpy(panel.functional.rms_norm(panel.array(x), ones, eps=1e-6))
    np.testing.assert_allclose(result, np.ones((2, 4)), rtol=1e-6)


@both_panels
def test_rows_whose_squares_overflow_are_no_nan(panel: Any) -> None:
    """After pytorch/pytorch#178123, forward and backward; both panels give 0."""
    inputs = {"x": np.array([[1e30, 2e30]], np.float32), "weight": np.ones(2, np.float32)}

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"output": panel.functional.rms_norm(**arrays, eps=1e-6)}

    run = panel.differentiate(call, inputs, {"output": np.ones((1, 2), np.float32)})
    assert not run.outputs["output"].any()
    assert not any(gradient.any() for gradient in run.gradients.values())


@both_panels
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_weight", DTYPES)
def test_any_dtypes_give_the_inputs(panel: Any, dtype: str, of_weight: str) -> None:
    x, weight = X.astype(DTYPES[dtype]), WEIGHT.astype(DTYPES[of_weight])
    result = panel.run(panel.functional.rms_norm, x, weight, eps=1e-6)
    assert result.dtype == DTYPES[dtype]
    wide = x.astype(np.float64)
    right = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight.astype(np.float64)
    unit = {"float64": 1e-14, "float32": 1e-6, "float16": 2**-10, "bfloat16": 2**-7}[dtype]
    np.testing.assert_allclose(result.astype(np.float64), right, rtol=unit)


@both_panels
def test_eps_is_added_to_the_mean_square(panel: Any) -> None:
    x, ones = (panel.array(np.full(4, size, np.float32)) for size in (1e-3, 1.0))
    result = to_numpy(panel.functional.rms_norm(x[None], ones, eps=1e-6))
    np.testing.assert_allclose(result, np.full((1, 4), 0.5**0.5), rtol=1e-6)


@both_panels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bits_are_rounded_once(panel: Any, dtype: str) -> None:
    """1 + weight in 16 bits would lose the weight's last bits; so would squares and their sum."""
    x = (100 + RANDOM.normal(size=(50, 64))).astype(DTYPES[dtype])
    weight = (RANDOM.normal(size=64) * 2e-3).astype(DTYPES[dtype])
    result = panel.functional.rms_norm(
        panel.array(x), panel.array(weight), eps=1e-6, unit_offset=True
    )
    wide = x.astype(np.float64)
    scale = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    right = wide * scale * (1 + weight.astype(np.float64))
    assert to_numpy(result).dtype == DTYPES[dtype]
    unit = float(ml_dtypes.finfo(DTYPES[dtype]).eps)
    error = np.abs(to_numpy(result).astype(np.float64) - right)
    assert error.max() <= 0.51 * unit * 2 ** np.ceil(np.log2(np.abs(right).max()))


@both_panels
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_norm_by_its_config(panel: Any, kind: str) -> None:
    rngs = {} if panel.name == "torch_impl" else {"rngs": nnx.Rngs(0)}
    module = panel.package.norm(NormConfig(kind=kind), 5, **rngs)
    right = {"layer": LayerNormConfig(d_model=5), "rms": RMSNormConfig(d_model=5)}
    assert module.config == right[kind]
    assert module.config.eps == {"layer": 1e-5, "rms": 1e-6}[kind]


@both_panels
@pytest.mark.parametrize(("unit_offset", "start"), [(False, 1.0), (True, 0.0)])
def test_a_new_norm_only_normalises(panel: Any, unit_offset: bool, start: float) -> None:
    rngs = {} if panel.name == "torch_impl" else {"rngs": nnx.Rngs(0)}
    module = panel.package.RMSNorm(5, unit_offset=unit_offset, **rngs)
    assert set(panel.package.export_state(module)["weight"]) == {start}
    result = to_numpy(module(panel.array(X[..., :5].astype(np.float32))))
    np.testing.assert_allclose((result**2).mean(-1), np.ones((3, 5)), rtol=1e-4)


@both_panels
def test_what_does_not_fit(panel: Any) -> None:
    ones = panel.array(np.ones(4, np.float32))
    with pytest.raises(ValueError, match="expected a last axis of 4"):
        panel.functional.rms_norm(panel.array(np.ones((2, 3), np.float32)), ones, eps=1e-6)
    with pytest.raises(TypeError, match="x is int32, but it must be floating"):
        panel.functional.rms_norm(panel.array(np.ones((2, 4), np.int32)), ones, eps=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "batch"}, "kind='batch' must be one of 'layer', 'rms'"),
        ({"eps": 0.0}, "eps=0.0 must be above 0"),
        ({"unit_offset": True}, "unit_offset=True is of kind='rms' only"),
    ],
)
def test_configs_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NormConfig(**options)


def in_both_panels(config: RMSNormConfig, right: np.ndarray, name: str) -> None:
    case, tensors = ComponentCase(config, {"x": X}), {"weight": WEIGHT}
    for run in (run_component_torch(case, tensors, {}), run_component_jax(case, tensors, {})):
        row = compare_exact(run.outputs["output"], right, name=name)
        assert row.ok, row
