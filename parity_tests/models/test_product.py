"""The exact tier of the full product of what attention offers, not only of what families combine.

Causal x window x heads x softcap x sinks x additive bias x q/k norm x rotary x weights asked for or
not: 1,152 combinations, forward and backward, each against the other panel and the oracle. One
sample hides two of its keys, so that a causal query sees none. Uncompiled: all combinations have
the shapes of the first, and eager JAX compiles an operation once for a shape.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from diptych.spec import AttentionConfig, QKNormConfig, RotaryConfig, ScoreConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.test_exact_components import judge
from parity_tests.support.harness import random_arrays

B, T, S, D, N, H = 2, 3, 5, 7, 4, 6
ARRAYS = random_arrays(7, {"query": (B, T, D), "key": (B, S, D), "bias": (B, N, T, S)})
KEY_MASK = np.arange(S) >= np.array([[0], [2]])

FACTORS: tuple[dict[str, Any], ...] = (
    {"bidirectional": False, "causal": True},
    {"no window": None, "window": (1, 1)},
    {"multi-head": N, "grouped": 2, "multi-query": 1},
    {"no softcap": None, "softcap": 1.1},
    {"no sinks": False, "sinks": True},
    {"no bias": False, "bias": True},
    {"no norm": None, "head norm": QKNormConfig(), "width norm": QKNormConfig(over="width")},
    {"no rotary": None, "rotary": RotaryConfig(theta=100.0, dim=4)},
    {"weights": True, "no weights": False},
)
PRODUCT = {
    ", ".join(names): tuple(factor[name] for factor, name in zip(FACTORS, names, strict=True))
    for names in product(*FACTORS)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCT)
def test_combination(tally, name):
    judge(tally, name, case_of(*PRODUCT[name]), jax_compiled=False)


def test_the_product_is_as_large_as_it_claims():
    assert len(PRODUCT) == 1152


def case_of(
    is_causal: bool,
    window: Any,
    num_kv_heads: int,
    softcap: float | None,
    sinks: bool,
    has_bias: bool,
    qk_norm: QKNormConfig | None,
    rotary: RotaryConfig | None,
    need_weights: bool,
) -> ComponentCase:
    """Return attention of T queries to S keys with one choice of every factor."""
    config = AttentionConfig(
        d_model=D,
        num_heads=N,
        num_kv_heads=num_kv_heads,
        head_dim=H,
        score=ScoreConfig(is_causal=is_causal, window=window, softcap=softcap, sinks=sinks),
        rotary=rotary,
        qk_norm=qk_norm,
    )
    arguments = {name: x for name, x in ARRAYS.items() if name != "bias" or has_bias}
    options = {"key_mask": KEY_MASK, "need_weights": need_weights}
    return ComponentCase(config, arguments, options, keywords=("bias",))
