"""Gated feed-forward networks, beside those of ``transformers``, forward and backward."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GemmaConfig, LlamaConfig
from transformers.models.gemma.modeling_gemma import GemmaMLP
from transformers.models.llama.modeling_llama import LlamaMLP

from diptych.spec import GatedFeedForwardConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.modules import PANELS, run
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support.harness import Run, judge_exact, random_arrays, to_torch
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.sizes import D, F

X = random_arrays(0, {"x": (2, 5, D)})["x"]
COTANGENTS = random_arrays(1, {"output": X.shape})
SIZES = {"hidden_size": D, "intermediate_size": F, "num_attention_heads": 1, "head_dim": 2}
FAMILIES: dict[str, tuple[Any, Any, GatedFeedForwardConfig]] = {
    "llama": (LlamaMLP, LlamaConfig(**SIZES), GatedFeedForwardConfig(d_model=D, d_ff=F)),
    "llama with biases": (
        LlamaMLP,
        LlamaConfig(**SIZES, mlp_bias=True),
        GatedFeedForwardConfig(d_model=D, d_ff=F, bias=True),
    ),
    "gemma": (
        GemmaMLP,
        GemmaConfig(**SIZES),
        GatedFeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh"),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_against_transformers(tally: Any, name: str) -> None:
    """The names are theirs: one that takes gate for up computes something else."""
    kind, settings, config = FAMILIES[name]
    tensors = random_arrays(2, {leaf: spec.shape for leaf, spec in config.leaves().items()})
    with float64_throughout():
        theirs = kind(settings)
        theirs.load_state_dict(to_torch(tensors))
        x = to_torch(X).requires_grad_()
        output = theirs(x)
        (output * to_torch(COTANGENTS["output"])).sum().backward()
    gradients = {leaf: tensor.grad.numpy() for leaf, tensor in theirs.named_parameters()}
    truth = Run({"output": output.detach().numpy()}, {"x": x.grad.numpy(), **gradients})
    case = ComponentCase(config, {"x": X})
    for ours in (run_component_torch, run_component_jax):
        judge_exact(tally, name, ours(case, tensors, COTANGENTS), truth)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(D,), (0, D), (2, 0, D), (2, 3, 4, D)])
def test_any_leading_dimensions(panel: str, shape: tuple[int, ...]) -> None:
    config = GatedFeedForwardConfig(d_model=D, d_ff=F)
    assert run(panel, config, np.ones(shape, np.float32))[0].shape == shape


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("width", [1, D + 1])
def test_another_width_is_refused(panel: str, width: int) -> None:
    with pytest.raises(ValueError, match=f"expected a last axis of {D}"):
        run(panel, GatedFeedForwardConfig(d_model=D, d_ff=F), np.ones((3, width), np.float32))


def test_the_frameworks_own_layers() -> None:
    """Quantisation looks for the exact type."""
    module = PANELS["torch"].GatedFeedForward(3, 2)
    assert [type(part) for part in module.children()] == [torch.nn.Linear] * 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"d_ff": 0}, "d_ff=0"),
        ({"activation": "swiglu"}, r"activation='swiglu' must be one of .*'clamped_swiglu'"),
    ],
)
def test_bad_configs_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GatedFeedForwardConfig(**{"d_model": D} | wrong)
