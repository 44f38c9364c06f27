"""The feed-forward networks, plain and gated."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from diptych.spec import FeedForwardConfig, GatedFeedForwardConfig
from diptych.spec.feed_forward import ACTIVATIONS as NAMES
from parity_tests.attention.oracle import Array
from parity_tests.components.formulas import Tensors, linear, logistic
from parity_tests.components.room import Example, Room, X, of_vectors
from parity_tests.support.sizes import D, F

_erf = np.vectorize(math.erf, otypes=[np.float64])

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "quick_gelu": lambda x: x * logistic(1.702 * x),
    "silu": lambda x: x * logistic(x),
    "tanh": np.tanh,
}


def feed_forward(config: Any, tensors: Tensors, x: Array) -> Array:
    """``W_down f(W_up x)`` (Vaswani et al. 2017, section 3.3)."""
    hidden = ACTIVATIONS[config.activation](linear(tensors, "up_proj", x))
    return linear(tensors, "down_proj", hidden)


def gated_feed_forward(config: Any, tensors: Tensors, x: Array) -> Array:
    """``W_down (f(W_gate x) * W_up x)`` (Shazeer 2020)."""
    gate, up = linear(tensors, "gate_proj", x), linear(tensors, "up_proj", x)
    return linear(tensors, "down_proj", gated(gate, up, config.activation))


def gated(gate: Array, up: Array, activation: str) -> Array:
    """Return the hidden values of a gated network."""
    if activation == "clamped_swiglu":  # gpt-oss, OpenAI 2025
        gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
        return (up + 1.0) * gate * logistic(1.702 * gate)
    return ACTIVATIONS[activation](gate) * up


FEED_FORWARD = Room(
    Example(FeedForwardConfig(d_model=D, d_ff=F), (X,)),
    changes={"d_model": 2 * D, "d_ff": 13, "activation": "silu", "bias": False},
    formula=feed_forward,
    calls={
        "FeedForward without biases": of_vectors(FeedForwardConfig(d_model=D, d_ff=F, bias=False))
    }
    | {
        f"FeedForward, {activation}": of_vectors(
            FeedForwardConfig(d_model=D, d_ff=F, activation=activation),
            is_working=activation in ("quick_gelu", "silu"),
        )
        for activation in NAMES
    },
)
GATED_FEED_FORWARD = Room(
    Example(GatedFeedForwardConfig(d_model=D, d_ff=F), (X,)),
    changes={"d_model": 2 * D, "d_ff": 13, "activation": "relu", "bias": True},
    formula=gated_feed_forward,
    calls={
        "GatedFeedForward, silu": of_vectors(
            GatedFeedForwardConfig(d_model=D, d_ff=F), is_working=True
        ),
        "GatedFeedForward, gelu_tanh": of_vectors(
            GatedFeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh", bias=True)
        ),
        "GatedFeedForward, clamped_swiglu": of_vectors(
            GatedFeedForwardConfig(d_model=D, d_ff=F, activation="clamped_swiglu", bias=True),
            is_working=True,
        ),
    },
)
