"""Norms, activations and feed-forward networks in numpy float64, from the papers' formulas."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from parity_tests.attention.oracle import Array

Tensors = dict[str, Array]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _logistic(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "quick_gelu": lambda x: x * _logistic(1.702 * x),
    "silu": lambda x: x * _logistic(x),
    "tanh": np.tanh,
}


def under(prefix: str, tensors: Tensors) -> Tensors:
    """Return the tensors of a part, by their names in it."""
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


def linear(tensors: Tensors, name: str, x: Array) -> Array:
    """``x W^T + b``, b where there is one."""
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", 0.0)


def layer_norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axis (Ba et al. 2016)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt(variance + config.eps) * tensors["weight"]
    return normed + tensors.get("bias", 0.0)


def rms_norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """``x / sqrt(mean(x^2) + eps) * weight``, or 1 + weight (Zhang, Sennrich 2019)."""
    factor = tensors["weight"] + (1.0 if config.unit_offset else 0.0)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.eps) * factor


def norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """Apply the norm that a ``NormConfig`` is at the width of ``x``."""
    apply = rms_norm if config.kind == "rms" else layer_norm
    return apply(config.of(x.shape[-1]), tensors, x)


def feed_forward(config: Any, tensors: Tensors, x: Array) -> Array:
    """``W_down f(W_up x)`` (Vaswani et al. 2017, section 3.3)."""
    hidden = ACTIVATIONS[config.activation](linear(tensors, "up_proj", x))
    return linear(tensors, "down_proj", hidden)


def gated_feed_forward(config: Any, tensors: Tensors, x: Array) -> Array:
    """``W_down (f(W_gate x) * W_up x)`` (Shazeer 2020)."""
    gate, up = linear(tensors, "gate_proj", x), linear(tensors, "up_proj", x)
    return linear(tensors, "down_proj", _gated(gate, up, config.activation))


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
            hidden = _gated(gate, up, config.activation)
            down = hidden @ experts["down_param"][e] + experts.get("down_bias_param", _ZEROS)[e]
            found[token] += weight * down
    output = found.reshape(x.shape)
    if config.shared is not None:
        shared = gated_feed_forward(config.shared, under("shared", tensors), x)
        if config.shared_gate:
            shared = shared * _logistic(linear(tensors, "shared_gate_proj", x))
        output = output + shared
    return output


class _Zeros:
    def __getitem__(self, index: int) -> float:
        return 0.0


_ZEROS: Any = _Zeros()


def _gated(gate: Array, up: Array, activation: str) -> Array:
    if activation == "clamped_swiglu":  # gpt-oss, OpenAI 2025
        gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
        return (up + 1.0) * gate * _logistic(1.702 * gate)
    return ACTIVATIONS[activation](gate) * up


def _chosen(config: Any, logits: Array, choice: Array) -> dict[int, float]:
    """The experts of one token and their weights."""
    router, E = config.router, config.num_experts
    powers = np.exp(logits - logits.max())
    scores = {
        "softmax": powers / powers.sum(),
        "softmax_of_top": logits,
        "sigmoid": _logistic(logits),
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
