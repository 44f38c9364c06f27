"""Mixtures of experts, as real models choose and weigh them."""

import math
from typing import Any

import numpy as np

from diptych.spec import MixtureOfExpertsConfig, RouterConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.formulas import Tensors, linear, logistic, under
from parity_tests.components.room import Call, Example, Room, X, of_vectors, starting_at
from parity_tests.components.rooms.feed_forward import gated, gated_feed_forward
from parity_tests.support.sizes import D, F


def mixture_of_experts(config: Any, tensors: Tensors, x: Array) -> Array:
    """Send every token through its chosen experts, one after the other."""
    logits = linear(tensors, "router_proj", x)
    rows, scores = x.reshape(-1, config.d_model), logits.reshape(-1, config.num_experts)
    choice = tensors.get("router_choice_param", np.zeros(config.num_experts))
    experts, found = under("experts", tensors), np.zeros_like(rows)
    for token, row in enumerate(rows):
        for e, weight in _chosen(config, scores[token], choice).items():
            gate = row @ experts["gate_param"][e] + experts.get("gate_bias_param", _ZEROS)[e]
            up = row @ experts["up_param"][e] + experts.get("up_bias_param", _ZEROS)[e]
            hidden = gated(gate, up, config.activation)
            down = hidden @ experts["down_param"][e] + experts.get("down_bias_param", _ZEROS)[e]
            found[token] += weight * down
    output = found.reshape(x.shape)
    if config.shared is not None:
        shared = gated_feed_forward(config.shared, under("shared", tensors), x)
        if config.shared_gate:
            shared = shared * logistic(linear(tensors, "shared_gate_proj", x))
        output = output + shared
    return output


class _Zeros:
    def __getitem__(self, index: int) -> float:
        return 0.0


_ZEROS: Any = _Zeros()


def _chosen(config: Any, logits: Array, choice: Array) -> dict[int, float]:
    """The experts of one token and their weights."""
    router, E = config.router, config.num_experts
    powers = np.exp(logits - logits.max())
    scores = {
        "softmax": powers / powers.sum(),
        "softmax_of_top": logits,
        "sigmoid": logistic(logits),
    }[router.scoring]
    ranked = scores + choice
    size = E // router.num_groups
    best = [sum(sorted(ranked[g * size : (g + 1) * size])[-2:]) for g in range(router.num_groups)]
    groups = sorted(range(router.num_groups), key=lambda g: -best[g])[: router.top_groups]
    candidates = [e for e in range(E) if e // size in groups]
    chosen = sorted(candidates, key=lambda e: -ranked[e])[: config.top_k]
    weights = {e: float(scores[e]) for e in chosen}
    if router.scoring == "softmax_of_top":
        total = sum(math.exp(w) for w in weights.values())
        weights = {e: math.exp(w) / total for e, w in weights.items()}
    elif router.normalize:
        total = sum(weights.values())
        weights = {e: w / total for e, w in weights.items()}
    return {e: router.scale * w for e, w in weights.items()}


def _mixture(top_k: int, *, is_slow: bool = False, **options: Any) -> Call:
    config = MixtureOfExpertsConfig(d_model=D, d_ff=F, num_experts=6, top_k=top_k, **options)
    return of_vectors(config, is_slow=is_slow)


MIXTURE_OF_EXPERTS = Room(
    Example(MixtureOfExpertsConfig(d_model=D, d_ff=F, num_experts=6, top_k=2, shared_d_ff=3), (X,)),
    changes={
        "d_model": 2 * D,
        "d_ff": 13,
        "num_experts": 4,
        "top_k": 1,
        "activation": "relu",
        "bias": True,
        "router": RouterConfig(scoring="sigmoid"),
        "shared_d_ff": None,
        "shared_gate": True,
    },
    parts={
        "router": starting_at(
            RouterConfig(),
            scoring="sigmoid",
            normalize=True,
            scale=2.0,
            bias=True,
            choice_bias=True,
            num_groups=3,
        )
        | starting_at(RouterConfig(num_groups=3), top_groups=2)
    },
    formula=mixture_of_experts,
    calls={
        "MixtureOfExperts, softmax, then top 2": _mixture(2),
        "MixtureOfExperts, normalized (Mixtral)": _mixture(
            2, is_slow=True, router=RouterConfig(normalize=True)
        ),
        "MixtureOfExperts, one expert": _mixture(1, activation="gelu"),
        "MixtureOfExperts, all experts": _mixture(6, router=RouterConfig(normalize=True)),
        "MixtureOfExperts, softmax of the top (gpt-oss)": _mixture(
            3,
            is_slow=True,
            activation="clamped_swiglu",
            bias=True,
            router=RouterConfig(scoring="softmax_of_top", bias=True),
        ),
        "MixtureOfExperts, gated shared expert (Qwen2-MoE)": _mixture(
            2, is_slow=True, shared_d_ff=7, shared_gate=True
        ),
        "MixtureOfExperts, sigmoid, groups, shared expert (DeepSeek-V3)": _mixture(
            3,
            is_slow=True,
            router=RouterConfig(
                scoring="sigmoid",
                normalize=True,
                scale=2.5,
                choice_bias=True,
                num_groups=3,
                top_groups=2,
            ),
            shared_d_ff=7,
        ),
    },
    is_slow=True,
)
