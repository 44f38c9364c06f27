"""Attention beside ``torch.nn.attention.flex_attention``, forward and backward."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from parity_tests.peers.third_opinions import K, N, inputs_of, judge_in_float64


def _documents(length: int) -> np.ndarray:
    return np.arange(length) // 4 + np.array([[0], [1]])


FLEX_SCORES: dict[str, tuple[Callable, Callable]] = {
    # what we are given, for (T, S); the peer's score of (score, b, h, q, k)
    "softcap": (lambda T, S: {"softcap": 1.3}, lambda s, b, h, q, k: 1.3 * torch.tanh(s / 1.3)),
    "alibi": (
        lambda T, S: {
            "bias": np.array([2.0 ** -(n + 1) for n in range(N)])[None, :, None, None]
            * (np.arange(S) - np.arange(T)[:, None])
        },
        lambda s, b, h, q, k: s + torch.exp2(-(h + 1.0)) * (k - q),
    ),
}
FLEX_MASKS: dict[str, tuple[Callable, Callable]] = {
    "window": (
        lambda T, S: {"window": 3, "is_causal": True},
        lambda b, h, q, k: (k <= q) & (q - k < 3),
    ),
    "window both ways": (
        lambda T, S: {"window": (2, 1)},
        lambda b, h, q, k: (q - k <= 2) & (k - q <= 1),
    ),
    "causal offset": (
        lambda T, S: {"is_causal": True, "offset": S - T},
        lambda b, h, q, k, *, shift=None: k <= q + shift,
    ),
    "documents": (
        lambda T, S: {"segment_ids": (_documents(T), _documents(S))},
        lambda b, h, q, k: q // 4 == k // 4,
    ),
}


@pytest.fixture(autouse=True)
def _differentiable_on_any_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plain code has a backward pass that the public call refuses on a CPU."""
    monkeypatch.setattr(flex, "_validate_device", lambda query, key, value: None)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("lengths", [(7, 11), (11, 7)], ids=str)
@pytest.mark.parametrize("name", [*FLEX_SCORES, *FLEX_MASKS])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention(name, lengths, grouped, tally):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if grouped else N)
    to_options, modify = (FLEX_SCORES | FLEX_MASKS)[name]
    options: dict[str, Any] = {"enable_gqa": grouped}
    if name in FLEX_SCORES:
        options["score_mod"] = modify
    else:

        def allowed(b, h, q, k):
            return (
                modify(b, h, q, k, shift=S - T) if name == "causal offset" else modify(b, h, q, k)
            )

        options["block_mask"] = create_block_mask(allowed, None, None, T, S, device="cpu")

    def peer(query, key, value):
        return flex_attention(query, key, value, **options)

    judge_in_float64(tally, inputs, to_options(T, S), peer)
