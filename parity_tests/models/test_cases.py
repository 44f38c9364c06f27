"""The exact tier of every attention and block that model families have; see ``model_cases``."""

import pytest

from parity_tests.components.test_exact_components import judge
from parity_tests.models.cases import MODEL_CASES, VARIANTS


@pytest.mark.parametrize("name", MODEL_CASES)
def test_compiled(tally, name):
    judge(tally, name, MODEL_CASES[name])


@pytest.mark.parametrize("name", VARIANTS.values())
def test_row_of_a_variant_uncompiled(tally, name):
    judge(tally, name, MODEL_CASES[name], compiled=False)


def test_the_table_is_as_long_as_it_claims():
    assert len(MODEL_CASES) >= 120
    assert set(VARIANTS.values()) <= MODEL_CASES.keys()
    assert len(set(VARIANTS.values())) == len(VARIANTS)
