"""The exact tier of attention: both panels and the oracle are one computation in float64."""

import numpy as np
import pytest

from jax_impl.functional import scaled_dot_product_attention as attend_jax
from parity_tests.attention import oracle
from parity_tests.attention.cases import (
    LONG_TAIL,
    QUICK,
    VARIANTS,
    AttentionCase,
    attention_call,
    attention_case,
)
from parity_tests.support.harness import (
    Arrays,
    Run,
    cotangents_of,
    judge_exact,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)
from parity_tests.support.sizes import LENGTHS
from torch_impl.functional import scaled_dot_product_attention as attend_torch


def run_oracle(case: AttentionCase) -> tuple[Run, Arrays, np.ndarray]:
    """Return the oracle's run, the cotangents that it and the panels use, and what is visible."""
    result = oracle.attention(**case.inputs, **case.options)
    outputs = {"output": result.output, "weights": result.weights}
    cotangents = cotangents_of(outputs)
    gradients = result.backward(cotangents["output"], cotangents["weights"])
    return Run(outputs, gradients), cotangents, result.visible


def judge(tally, case: AttentionCase, *, jit: bool = True) -> None:
    truth, cotangents, visible = run_oracle(case)
    torch_call = attention_call(attend_torch, to_torch, case.options)
    in_torch = run_torch(torch_call, case.inputs, cotangents)
    jax_call = attention_call(attend_jax, to_jax, case.options)
    in_jax = run_jax(jax_call, case.inputs, cotangents, jit=jit)
    nan = {"allow_nan": case.name.startswith("nan in the bias")}
    judge_exact(tally, case.name, in_torch, in_jax, **nan)
    for run in (in_torch, in_jax):
        judge_exact(tally, f"{case.name}, oracle", run, truth, float32_bits=False, **nan)
    sees_nothing = ~visible.any(-1)
    for run in (in_torch, in_jax):
        assert not run.outputs["weights"][~visible].any()
        assert not run.outputs["output"][sees_nothing].any()
        assert not run.gradients["query"][sees_nothing].any()


@pytest.mark.parametrize(("variant", "T", "S"), QUICK)
def test_attention(tally, variant, T, S):
    judge(tally, attention_case(variant, T, S))


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "T", "S"), LONG_TAIL)
def test_attention_long_tail(tally, variant, T, S):
    judge(tally, attention_case(variant, T, S))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 21))
def test_attention_with_other_data(tally, seed):
    judge(tally, attention_case("together", *LENGTHS["T<S"], seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_attention_without_jit(tally, variant):
    judge(tally, attention_case(variant, *LENGTHS["T<S"]), jit=False)
