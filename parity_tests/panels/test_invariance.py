"""What must not matter, bit for bit: a later token to the rows before it, a sample to another.

Configs, masks and ways to call are drawn; shapes stay the same. There are as many samples as query
heads, so that an array per sample that is read as one per head still broadcasts.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import jax
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.spec import Config
from parity_tests.panels.invariance_cases import (
    CHOICES,
    PREFILL,
    B,
    D,
    Drawn,
    T,
    cached,
    config_of,
    covering_rows,
    draw_masks,
)
from parity_tests.support.panels import JAX, Panel, both_panels, both_panels_slow_in_jax

HIDDEN_SEGMENT = 9
ROWS = {component: covering_rows(component) for component in CHOICES}
BY_DEFAULT = {"MultiHeadAttention": 7, "LatentAttention": 3, "Decoder": 3}
"""The number of rows that every run compiles; the rest are slow."""
DRAWS = {
    component: st.fixed_dictionaries(
        {name: st.sampled_from(values) for name, values in choices.items()}
    )
    for component, choices in CHOICES.items()
}
components = pytest.mark.parametrize("component", CHOICES)
positions, samples = st.integers(0, T - 1), st.integers(0, B - 1)
seeds = st.integers(0, 99)


def examples(number: int) -> settings:
    """Return settings under which the same examples are drawn in every run."""
    return settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@both_panels_slow_in_jax
@components
@given(data=st.data(), t=positions, hides=st.booleans(), seed=seeds)
@examples(12)
def test_later_tokens_do_not_matter(panel, component, data, t, hides, seed):
    drawn = data.draw(DRAWS[component]) | {"is_causal": True}
    check_later_tokens(panel, component, drawn, t=t, hides=hides, seed=seed, jit=False)


@both_panels_slow_in_jax
@components
@given(data=st.data(), sample=samples, is_causal=st.booleans(), seed=seeds)
@examples(12)
def test_other_samples_do_not_matter(panel, component, data, sample, is_causal, seed):
    drawn = data.draw(DRAWS[component])
    drawn["is_causal"] = is_causal or component == "Decoder"
    check_other_samples(panel, component, drawn, sample=sample, seed=seed, jit=False)


@pytest.mark.parametrize(
    ("component", "row"),
    [
        pytest.param(component, row, marks=pytest.mark.slow if row >= BY_DEFAULT[component] else ())
        for component in CHOICES
        for row in range(len(ROWS[component]))
    ],
)
@given(t=positions, hides=st.booleans(), sample=samples, seed=seeds)
@examples(12)
def test_under_jit(component, row, t, hides, sample, seed):
    drawn = ROWS[component][row]
    check_later_tokens(JAX, component, drawn, t=t, hides=hides, seed=seed, jit=True)
    check_other_samples(JAX, component, drawn, sample=sample, seed=seed, jit=True)


@pytest.mark.parametrize("row", [0, 2])
@given(t=positions, hides=st.booleans(), sample=samples, seed=seeds)
@examples(6)
def test_without_jit(row, t, hides, sample, seed):
    """The same shapes once more, so that little is compiled; more draws are in the long tail."""
    drawn = ROWS["MultiHeadAttention"][row]
    check_later_tokens(JAX, "MultiHeadAttention", drawn, t=t, hides=hides, seed=seed, jit=False)
    check_other_samples(JAX, "MultiHeadAttention", drawn, sample=sample, seed=seed, jit=False)


@components
def test_any_two_choices_are_compiled_together(component):
    for (name, values), (other, seconds) in itertools.combinations(CHOICES[component].items(), 2):
        found = {(row[name], row[other]) for row in ROWS[component]}
        assert found == set(itertools.product(values, seconds))


def test_every_run_compiles_every_choice_of_an_attention():
    rows = ROWS["MultiHeadAttention"][: BY_DEFAULT["MultiHeadAttention"]]
    for name, values in CHOICES["MultiHeadAttention"].items():
        assert {row[name] for row in rows} == set(values), name


@both_panels
@pytest.mark.parametrize("component", ["MultiHeadAttention", "LatentAttention"])
def test_later_tokens_matter_without_causality(panel, component):
    drawn = {"is_causal": False, "training": False, "need_weights": True, "path": ("full", None)}
    x = np.random.default_rng(0).normal(size=(B, T, D))
    changed = x.copy()
    changed[:, -1] += 1.0
    pair = [list(run(panel, component, drawn, rows, {}, jit=False)) for rows in (x, changed)]
    for (_, array), (_, other) in zip(*pair, strict=True):
        assert (array != other)[..., :-1, :].any(-1).all()


def check_later_tokens(panel, component, drawn, *, t, hides, seed, jit):
    """Change token t, perhaps its masks: rows before stay, row t does not, a hidden key no row."""
    random = np.random.default_rng(seed)
    x, masks = random.normal(size=(B, T, D)), draw_masks(random, drawn)
    changed, changed_masks = x.copy(), {name: mask.copy() for name, mask in masks.items()}
    changed[:, t] = random.normal(size=(B, D))
    is_seen = masks["key_mask"][:, t] if "key_mask" in masks else np.ones(B, bool)
    is_hidden, changes = ~is_seen, is_seen
    if hides and masks and not cached(drawn):
        is_hidden = changes = np.zeros(B, bool)
        for name, mask in changed_masks.items():
            mask[..., t:] = HIDDEN_SEGMENT if name == "segment_ids" else False
    first = run(panel, component, drawn, x, masks, jit=jit)
    second = run(panel, component, drawn, changed, changed_masks, jit=jit)
    for (start, array), (_, other) in zip(first, second, strict=True):
        row = t - start
        same = array == other
        assert np.isfinite(array).all()
        assert same[..., : max(row, 0), :].all()
        assert same[is_hidden][..., max(row + 1, 0) :, :].all()
        # In training, dropout may take every weight of a row that sees few keys.
        if array.shape[-1] == D and 0 <= row < array.shape[-2] and not drawn["training"]:
            assert not same[changes, row].all(-1).any()


def check_other_samples(panel, component, drawn, *, sample, seed, jit):
    """Change all of the other sample, its masks too: the sample stays, the other does not."""
    random = np.random.default_rng(seed)
    x, masks = random.normal(size=(B, T, D)), draw_masks(random, drawn)
    changed, changed_masks = random.normal(size=(B, T, D)), draw_masks(random, drawn)
    for array, other in [(changed, x), *((changed_masks[name], masks[name]) for name in masks)]:
        array[sample] = other[sample]
    first = run(panel, component, drawn, x, masks, jit=jit)
    second = run(panel, component, drawn, changed, changed_masks, jit=jit)
    for (_, array), (_, other) in zip(first, second, strict=True):
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(array[sample], other[sample])
        if array.shape[-1] == D:
            assert (array != other)[1 - sample].any()


def run(
    panel: Panel, component: str, drawn: Drawn, x: np.ndarray, masks: Drawn, *, jit: bool
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield what every call returns, with its first position: outputs (B, ..., T, D), weights."""
    call = caller(
        panel,
        config_of(component, drawn),
        drawn["training"],
        drawn["need_weights"],
        cached(drawn),
        jit,
    )
    torch.manual_seed(0)
    for start, arrays in zip((0, PREFILL), panel.run(call, x, **masks), strict=False):
        for array in arrays:
            yield start, array


@functools.cache
def caller(
    panel: Panel, config: Config, training: bool, need_weights: bool, is_cached: bool, jit: bool
) -> Callable[..., Any]:
    """Return a function of x and its masks; each of its calls draws the same dropout."""
    module = build(panel, config).train(training)
    options: Drawn = {"need_weights": need_weights}

    def call(x, **masks):
        if panel is JAX:
            options["rng_key"] = jax.random.key(0)
        if not is_cached:
            return (returned(module(x, **masks, **options))[0],)
        cache, chunks = module.new_cache(B, T), []
        for rows in (slice(PREFILL), slice(PREFILL, T)):
            masked = {name: mask[:, rows] for name, mask in masks.items()}
            arrays, cache = returned(module(x[:, rows], cache=cache, **masked, **options))
            chunks.append(arrays)
        return tuple(chunks)

    return panel.compile(call) if jit else call


def returned(result: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the arrays by position that a call returned, and its cache."""
    if hasattr(result, "output"):
        return (result.output, *(result.attention_weights or ())), result.cache
    output, weights, *cache = result
    arrays = (output,) if weights is None else (output, weights)
    return arrays, cache[0] if cache else None


@functools.cache
def build(panel: Panel, config: Config) -> Any:
    torch.manual_seed(0)
    options = {field.name: getattr(config, field.name) for field in fields(config)}
    return panel.build(config.component, **options)
