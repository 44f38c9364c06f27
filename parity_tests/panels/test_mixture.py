"""Mixtures of experts: routing, and the blocks of transformers."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    DeepseekV3Config,
    GptOssConfig,
    MixtralConfig,
    Qwen2MoeConfig,
    Qwen3MoeConfig,
)
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

from diptych.spec import MixtureOfExpertsConfig, RouterConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support.harness import Arrays, Run, judge_exact, random_arrays
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.panels import both_panels

D, F, E, T = 10, 7, 6, 13
X = np.random.default_rng(0).normal(size=(2, T, D))
COTANGENTS = random_arrays(1, {"output": X.shape})
EAGER = {"experts_implementation": "eager"}


def banks(gate_up: np.ndarray, down: np.ndarray) -> dict[str, np.ndarray]:
    """Return transformers' (E, 2 F, D) and (E, D, F) as our banks (E, in, out)."""
    gate, up = np.split(gate_up, 2, axis=1)
    every = {"gate_param": gate, "up_param": up, "down_param": down}
    return {f"experts.{name}": np.swapaxes(bank, 1, 2) for name, bank in every.items()}


def shared_expert(state: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        f"shared.{name}_proj.weight": state[f"{prefix}.{name}_proj.weight"]
        for name in ("gate", "up", "down")
    }


def mixtral() -> tuple[Any, MixtureOfExpertsConfig, Any]:
    config = MixtralConfig(
        hidden_size=D, intermediate_size=F, num_local_experts=E, num_experts_per_tok=2, **EAGER
    )
    ours = MixtureOfExpertsConfig(
        d_model=D, d_ff=F, num_experts=E, top_k=2, router=RouterConfig(normalize=True)
    )
    return MixtralSparseMoeBlock(config), ours, lambda state: {}


def qwen2_moe() -> tuple[Any, MixtureOfExpertsConfig, Any]:
    config = Qwen2MoeConfig(
        hidden_size=D,
        moe_intermediate_size=F,
        shared_expert_intermediate_size=5,
        num_experts=E,
        num_experts_per_tok=3,
        norm_topk_prob=False,
        **EAGER,
    )
    ours = MixtureOfExpertsConfig(
        d_model=D, d_ff=F, num_experts=E, top_k=3, shared_d_ff=5, shared_gate=True
    )

    def more(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        gate = {"shared_gate_proj.weight": state["shared_expert_gate.weight"]}
        return gate | shared_expert(state, "shared_expert")

    return Qwen2MoeSparseMoeBlock(config), ours, more


def qwen3_moe() -> tuple[Any, MixtureOfExpertsConfig, Any]:
    """Every expert chosen, and the weights not normalised."""
    config = Qwen3MoeConfig(
        hidden_size=D,
        moe_intermediate_size=F,
        num_experts=E,
        num_experts_per_tok=E,
        norm_topk_prob=False,
        **EAGER,
    )
    ours = MixtureOfExpertsConfig(d_model=D, d_ff=F, num_experts=E, top_k=E)
    return Qwen3MoeSparseMoeBlock(config), ours, lambda state: {}


def deepseek_v3() -> tuple[Any, MixtureOfExpertsConfig, Any]:
    config = DeepseekV3Config(
        hidden_size=D,
        moe_intermediate_size=F,
        n_routed_experts=E,
        num_experts_per_tok=2,
        n_group=3,
        topk_group=2,
        n_shared_experts=2,
        norm_topk_prob=True,
        routed_scaling_factor=2.5,
        **EAGER,
    )
    ours = MixtureOfExpertsConfig(
        d_model=D,
        d_ff=F,
        num_experts=E,
        top_k=2,
        router=RouterConfig(
            scoring="sigmoid",
            normalize=True,
            scale=2.5,
            choice_bias=True,
            num_groups=3,
            top_groups=2,
        ),
        shared_d_ff=2 * F,
    )

    def more(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        bias = {"router_choice_param": state["gate.e_score_correction_bias"]}
        return bias | shared_expert(state, "shared_experts")

    return DeepseekV3MoE(config), ours, more


def gpt_oss() -> tuple[Any, MixtureOfExpertsConfig, Any]:
    config = GptOssConfig(
        hidden_size=D, intermediate_size=F, num_local_experts=E, num_experts_per_tok=3, **EAGER
    )
    ours = MixtureOfExpertsConfig(
        d_model=D,
        d_ff=F,
        num_experts=E,
        top_k=3,
        activation="clamped_swiglu",
        bias=True,
        router=RouterConfig(scoring="softmax_of_top", bias=True),
    )

    def more(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            "router_proj.weight": state["router.weight"],
            "router_proj.bias": state["router.bias"],
            "experts.gate_param": state["experts.gate_up_proj"][..., ::2],
            "experts.up_param": state["experts.gate_up_proj"][..., 1::2],
            "experts.down_param": state["experts.down_proj"],
            "experts.gate_bias_param": state["experts.gate_up_proj_bias"][..., ::2],
            "experts.up_bias_param": state["experts.gate_up_proj_bias"][..., 1::2],
            "experts.down_bias_param": state["experts.down_proj_bias"],
        }

    return GptOssMLP(config), ours, more


@pytest.mark.parametrize("family", [mixtral, qwen2_moe, qwen3_moe, deepseek_v3, gpt_oss])
def test_against_transformers(tally: Any, family: Any) -> None:
    torch.manual_seed(0)
    with float64_throughout():
        theirs, config, more = family()
        for tensor in [*theirs.parameters(), *theirs.buffers()]:
            # Large, so that gates are clamped and the correction bias changes the choice.
            torch.nn.init.normal_(tensor, std=2.0 if family is gpt_oss else 0.7)
        x = torch.from_numpy(X).requires_grad_()
        result = theirs(x)
        output = result[0] if isinstance(result, tuple) else result
        (output * torch.from_numpy(COTANGENTS["output"])).sum().backward()
    state = {name: tensor.detach().double().numpy() for name, tensor in theirs.state_dict().items()}
    found = {name: tensor.grad.numpy() for name, tensor in theirs.named_parameters()}
    gradients = {name: np.zeros_like(tensor) for name, tensor in state.items()} | found

    def canonical(tensors: Arrays) -> Arrays:
        named = more(tensors)
        if family is not gpt_oss:
            named |= {"router_proj.weight": tensors["gate.weight"]}
            named |= banks(tensors["experts.gate_up_proj"], tensors["experts.down_proj"])
        return {name: np.ascontiguousarray(array) for name, array in named.items()}

    truth = Run({"output": output.detach().numpy()}, {"x": x.grad.numpy(), **canonical(gradients)})
    case, tensors = ComponentCase(config, {"x": X}), canonical(state)
    for ours in (run_component_torch, run_component_jax):
        judge_exact(tally, family.__name__, ours(case, tensors, COTANGENTS), truth)


@both_panels
def test_equal_scores_choose_the_first(panel: Any) -> None:
    logits = panel.array(np.array([[0.0, 1.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0, 2.0]]))
    weights = panel.functional.route(logits, top_k=2, router=RouterConfig(normalize=True))
    np.testing.assert_allclose(np.asarray(weights), [[0, 0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0, 0]])


@both_panels
def test_no_token_is_dropped_where_all_choose_one_expert(panel: Any) -> None:
    """A capacity would drop most of them."""
    x = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    bank = np.random.default_rng(2).normal(size=(4, 3, 3)).astype(np.float32)
    weights = np.tile(np.array([0, 0, 1, 0], np.float32), (50, 1))
    arrays = [panel.array(a) for a in (x, weights, bank, bank, bank)]
    result = np.asarray(panel.functional.mix_experts(*arrays, activation="tanh"))
    right = (np.tanh(x @ bank[2]) * (x @ bank[2])) @ bank[2]
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


@both_panels
@pytest.mark.parametrize("value", [3e38, np.inf, np.nan])
@pytest.mark.parametrize("where", ["banks", "biases"])
def test_an_expert_that_overflows_is_heard_only_by_those_who_chose_it(
    panel: Any, where: str, value: float
) -> None:
    """0 * inf would reach every token, and every gradient."""
    shapes = {"x": (3, 4), "gate": (2, 4, 5), "up": (2, 4, 5), "down": (2, 5, 4)}
    shapes |= {"gate_bias": (2, 5), "up_bias": (2, 5), "down_bias": (2, 4)}
    inputs = {name: x.astype(np.float32) for name, x in random_arrays(0, shapes).items()}
    for name in shapes:
        if name != "x" and name.endswith("_bias") == (where == "biases"):
            inputs[name][1] = value
    weights = panel.array(np.array([[1, 0]] * 3, np.float32))

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"output": panel.functional.mix_experts(weights=weights, **arrays)}

    cotangents = {"output": np.ones((3, 4), np.float32)}
    run = panel.differentiate(call, inputs, cotangents)
    assert np.isfinite(run.outputs["output"]).all()
    for name, gradient in run.gradients.items():
        assert np.isfinite(gradient).all(), name
        assert gradient[0].any()
        assert name == "x" or not gradient[1].any()


@both_panels
def test_a_token_does_not_depend_on_the_others(panel: Any) -> None:
    x = np.random.default_rng(3).normal(size=(5, 3))
    bank = np.random.default_rng(4).normal(size=(4, 3, 3))
    logits = np.random.default_rng(5).normal(size=(5, 4))
    with panel.wide():
        banks = [panel.array(bank)] * 3
        router = RouterConfig(scoring="sigmoid")

        def run(rows: Any) -> np.ndarray:
            weights = panel.functional.route(panel.array(logits[rows]), top_k=2, router=router)
            return np.asarray(panel.functional.mix_experts(panel.array(x[rows]), weights, *banks))

        every = run(slice(None))
        for i in range(5):
            np.testing.assert_allclose(run(slice(i, i + 1))[0], every[i], rtol=1e-13)
        assert run(slice(0, 0)).shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"top_k": 7}, "top_k=7 must not exceed the 6 experts"),
        ({"router": RouterConfig(num_groups=4)}, "num_groups=4 must divide num_experts=6"),
        ({"router": RouterConfig(num_groups=6, top_groups=3)}, "a group needs two experts"),
        ({"shared_gate": True}, "shared_gate=True needs a shared_d_ff"),
        ({"activation": "swish"}, "activation='swish' must be one of"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MixtureOfExpertsConfig(**{"d_model": D, "d_ff": F, "num_experts": E, "top_k": 2} | options)


def test_more_groups_chosen_than_there_are() -> None:
    with pytest.raises(ValueError, match="top_groups=3 must not exceed num_groups=2"):
        RouterConfig(num_groups=2, top_groups=3)
