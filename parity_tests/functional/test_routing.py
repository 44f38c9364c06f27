"""Routing to experts: what is chosen at the edges, alike in both panels."""

from typing import Any

import jax
import numpy as np
import pytest
import torch

import jax_impl
import torch_impl
from diptych.spec import RouterConfig
from parity_tests.support.harness import DTYPES
from parity_tests.support.panels import JAX, TORCH, both_panels, to_numpy

SCORINGS = ("softmax", "softmax_of_top", "sigmoid")
NAN, INF = np.nan, np.inf


def route(panel: Any, logits: Any, top_k: int = 2, **options: Any) -> np.ndarray:
    """Route float32 logits."""
    choice_bias = options.pop("choice_bias", None)
    bias = None if choice_bias is None else panel.array(np.array(choice_bias, np.float32))
    return to_numpy(
        panel.functional.route(
            panel.array(np.array(logits, np.float32)),
            top_k=top_k,
            router=RouterConfig(**options),
            choice_bias=bias,
        )
    )


@both_panels
@pytest.mark.parametrize(
    ("logits", "right"),
    [
        ([0, 0, 0, 0], [1, 1, 0, 0]),
        ([-0.0, 0.0, -0.0, 0.0], [1, 1, 0, 0]),
        ([0, 2, 1, 1], [0, 1, 1, 0]),
        ([5, 5, 5, 9], [1, 0, 0, 1]),
        ([1, 2, 3, 4], [0, 0, 1, 1]),
    ],
)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_equal_scores_choose_the_lower_index(
    panel: Any, scoring: str, logits: list[float], right: list[int]
) -> None:
    """A negative zero is no less than a zero."""
    assert (route(panel, logits, scoring=scoring) != 0).tolist() == [bool(x) for x in right]


@both_panels
def test_many_equal_scores_choose_the_lower_index(panel: Any) -> None:
    """Sorts that are stable for few values are not always for many."""
    assert np.flatnonzero(route(panel, np.zeros(4000), top_k=7)).tolist() == list(range(7))


@both_panels
@pytest.mark.parametrize(
    ("options", "right"),
    [
        ({"num_groups": 3, "top_groups": 1}, [0, 1]),
        ({"num_groups": 3, "top_groups": 2}, [0, 1]),
        ({"num_groups": 2, "top_groups": 1, "choice_bias": [0, 0, 0, 0, 1, 1]}, [4, 5]),
    ],
)
def test_equal_groups_choose_the_lower_index(
    panel: Any, options: dict[str, Any], right: list[int]
) -> None:
    weights = route(panel, np.zeros(6), scoring="sigmoid", **options)
    assert np.flatnonzero(weights).tolist() == right


@both_panels
def test_the_two_best_of_a_group_are_its_score(panel: Any) -> None:
    """By the best alone, or by the sum of all, another group would win."""
    logits = [4.0, -9.0, -9.0, 2.0, 2.0, -9.0, 1.0, 1.0, 1.0]
    weights = route(panel, logits, scoring="sigmoid", num_groups=3, top_groups=1)
    assert np.flatnonzero(weights).tolist() == [3, 4]


@both_panels
def test_negative_choices_stay_within_the_groups(panel: Any) -> None:
    """Code that sets the scores of other groups to 0 chooses those over negative ones."""
    weights = route(
        panel,
        np.zeros(4),
        scoring="sigmoid",
        num_groups=2,
        top_groups=1,
        choice_bias=[-2, -2, -3, -3],
    )
    assert weights.tolist() == [0.5, 0.5, 0.0, 0.0]


@both_panels
def test_a_choice_bias_only_chooses(panel: Any) -> None:
    weights = route(panel, [0, 0, 0, 0], scoring="sigmoid", choice_bias=[0, 9, 0, 8], scale=2.0)
    assert weights.tolist() == [0.0, 1.0, 0.0, 1.0]


@both_panels
@pytest.mark.parametrize("normalize", [False, True])
def test_all_experts_chosen_is_the_plain_softmax(panel: Any, normalize: bool) -> None:
    logits = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    right = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for scoring in ("softmax", "softmax_of_top"):
        weights = route(panel, logits, top_k=4, scoring=scoring, normalize=normalize)
        np.testing.assert_allclose(weights, right, rtol=1e-6)


@both_panels
@pytest.mark.parametrize("logit", [-90.0, -200.0, -np.inf])
def test_scores_that_all_underflow_give_zero(panel: Any, logit: float) -> None:
    """0 / 0 would be NaN, from there on everywhere."""
    weights = route(panel, np.full(4, logit), scoring="sigmoid", normalize=True)
    np.testing.assert_allclose(weights, np.zeros(4), atol=1e-18)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("normalize", [False, True])
def test_what_is_not_finite_is_routed_alike(scoring: str, normalize: bool) -> None:
    logits = [[1, NAN, 2, 0], [INF, 0, 1, INF], [-INF, -INF, -INF, 1], [NAN] * 4, [200, 0, 0, 0]]
    found = [route(panel, logits, scoring=scoring, normalize=normalize) for panel in (TORCH, JAX)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert np.isnan(found[0][0]).any(), "a NaN must be seen"


@both_panels
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_weights_are_float32_at_least(panel: Any, dtype: str) -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(DTYPES[dtype])
    router = RouterConfig(normalize=True)
    weights = panel.run(panel.functional.route, logits, top_k=2, router=router)
    assert weights.dtype == (np.float64 if dtype == "float64" else np.float32)
    np.testing.assert_allclose(weights.sum(-1), np.ones(3), rtol=1e-6)
    wide = panel.run(panel.functional.route, logits.astype(float), top_k=2, router=router)
    np.testing.assert_allclose(weights, wide, rtol=1e-6)


@both_panels
@pytest.mark.parametrize("shape", [(5,), (0, 5), (2, 0, 5), (2, 3, 4, 5)])
def test_any_leading_dimensions(panel: Any, shape: tuple[int, ...]) -> None:
    weights = route(panel, np.zeros(shape), top_k=2)
    assert weights.shape == shape
    assert ((weights != 0).sum(-1) == 2).all()


@both_panels
def test_integers_are_refused(panel: Any) -> None:
    logits = panel.array(np.zeros(4, np.int32))
    with pytest.raises(TypeError, match="logits is int32, but it must be floating"):
        panel.functional.route(logits, top_k=1, router=RouterConfig())


def test_mapped_and_differentiated() -> None:
    """By row under vmap as for the batch; the choice takes no gradient, the weights do."""
    logits = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    router = RouterConfig(scoring="sigmoid", normalize=True, num_groups=3, top_groups=2)
    right = to_numpy(torch_impl.functional.route(torch.from_numpy(logits), top_k=2, router=router))

    def of_torch(row: Any) -> Any:
        return torch_impl.functional.route(row, top_k=2, router=router)

    def of_jax(row: Any) -> Any:
        return jax_impl.functional.route(row, top_k=2, router=router)

    in_torch = torch.vmap(of_torch)(torch.from_numpy(logits))
    in_jax = jax.jit(jax.vmap(of_jax))(logits)
    for found in (in_torch, in_jax):
        np.testing.assert_allclose(to_numpy(found), right, rtol=1e-6)
    slopes = torch.func.vmap(torch.func.jacrev(of_torch))(torch.from_numpy(logits))
    np.testing.assert_allclose(
        to_numpy(slopes), to_numpy(jax.vmap(jax.jacrev(of_jax))(logits)), rtol=1e-5, atol=1e-7
    )
    unchosen = right == 0
    assert not to_numpy(slopes).swapaxes(-1, -2)[unchosen].any()
