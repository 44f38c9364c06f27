"""The exact tier of every attention and block that model families have; see ``cases``.

Every row runs as users run it: torch eagerly, JAX under jit. One row of every variant runs the
other way round too.
"""

import pytest

from parity_tests.components.test_exact_components import judge
from parity_tests.models.cases import MODEL_CASES, VARIANTS

QUICK = (
    "multi-head",
    "grouped heads",
    "causal, offset per sample",
    "window",
    "segments",
    "fully masked rows",
    "additive bias",
    "softcap",
    "sinks",
    "q/k norm and memory",
    "latent, scaled rotary",
    "rotary, dynamic",
    "ALiBi",
    "T5 bias, one way",
    "post-norm",
    "parallel",
    "cross-attention",
    "mixture, sigmoid, shared",
)
"""Variants that every run also takes the other way; ``torch.compile`` traces a second a row."""

UNCOMPILED = tuple(name for name in QUICK if "block" not in VARIANTS[name])
"""Of these, those that JAX runs operation by operation; blocks compile too many of them."""


def variants(quick: tuple[str, ...]) -> list:
    """Return every variant's row, those slow that are not among the quick ones."""
    assert set(quick) <= VARIANTS.keys()
    return [
        pytest.param(row, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, row in VARIANTS.items()
    ]


@pytest.mark.parametrize("name", MODEL_CASES)
def test_row(tally, name):
    judge(tally, name, MODEL_CASES[name])


@pytest.mark.parametrize("name", variants(QUICK))
def test_row_of_a_variant_compiled_by_torch(tally, name):
    judge(tally, name, MODEL_CASES[name], torch_compiled=True)


@pytest.mark.parametrize("name", variants(UNCOMPILED))
def test_row_of_a_variant_uncompiled_by_jax(tally, name):
    judge(tally, name, MODEL_CASES[name], jax_compiled=False)


def test_the_table_is_as_long_as_it_claims():
    assert len(MODEL_CASES) >= 120
    assert set(VARIANTS.values()) <= MODEL_CASES.keys()
    assert len(set(VARIANTS.values())) == len(VARIANTS)
