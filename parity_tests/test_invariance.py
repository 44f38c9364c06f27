"""What must not matter, bit for bit: a later token to the rows before it, a sample to another.

Configs, masks and ways to call are drawn; shapes stay the same. There are as many samples as query
heads, so that an array per sample that is read as one per head still broadcasts.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import jax
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.spec import (
    COMPONENTS,
    AlibiConfig,
    BlockConfig,
    Config,
    DecoderConfig,
    MixtureOfExpertsConfig,
    NormConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
)
from parity_tests.panels import JAX, Panel, both_panels

B, T, D, N, K = 2, 5, 8, 2, 1
RATE, PREFILL = 0.3, 4
HIDDEN_SEGMENT = 9
RMS = NormConfig(kind="rms")
Drawn = dict[str, Any]

SCORES = {"window": st.sampled_from([None, 2]), "softcap": st.sampled_from([None, 2.0])}
HEADS = {
    "sinks": st.booleans(),
    "num_kv_heads": st.sampled_from([N, K]),
    "position_bias": st.sampled_from(
        [
            None,
            AlibiConfig(),
            RelativeBiasConfig(num_buckets=4, max_distance=4, is_bidirectional=False),
        ]
    ),
    "rotary": st.sampled_from([None, RotaryConfig(), RotaryConfig(interleaved=True)]),
    "qk_norm": st.sampled_from([None, QKNormConfig(), QKNormConfig(over="width")]),
}
PATH = {
    "is_cached": st.booleans(),
    "training": st.booleans(),
    "need_weights": st.booleans(),
    "masking": st.sampled_from([None, "key_mask", "segment_ids", "mask"]),
}
DRAWS: dict[str, dict[str, st.SearchStrategy]] = {
    "MultiHeadAttention": SCORES | HEADS,
    "LatentAttention": SCORES
    | {
        "q_rank": st.sampled_from([None, 5]),
        "rotary": st.sampled_from([RotaryConfig(), RotaryConfig(interleaved=True)]),
    },
    "Decoder": HEADS
    | {"softcap": SCORES["softcap"]}
    | {"scoring": st.sampled_from(["softmax", "softmax_of_top", "sigmoid"])},
}
components = pytest.mark.parametrize("component", DRAWS)
seeds = st.integers(0, 99)


def examples(number: int) -> settings:
    """Return settings under which the same examples are drawn in every run."""
    return settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


@both_panels
@components
@given(data=st.data(), t=st.integers(0, T - 1), hides=st.booleans(), seed=seeds)
@examples(12)
def test_later_tokens_do_not_matter(panel, component, data, t, hides, seed):
    drawn = data.draw(st.fixed_dictionaries(DRAWS[component] | PATH)) | {"is_causal": True}
    check_later_tokens(panel, component, drawn, t=t, hides=hides, seed=seed, jit=False)


@both_panels
@components
@given(data=st.data(), sample=st.integers(0, B - 1), is_causal=st.booleans(), seed=seeds)
@examples(12)
def test_other_samples_do_not_matter(panel, component, data, sample, is_causal, seed):
    drawn = data.draw(st.fixed_dictionaries(DRAWS[component] | PATH))
    drawn["is_causal"] = is_causal or component == "Decoder"
    check_other_samples(panel, component, drawn, sample=sample, seed=seed, jit=False)


@pytest.mark.parametrize("is_cached", [False, True])
@components
@given(data=st.data(), seed=seeds)
@examples(1)
def test_under_jit(component, is_cached, data, seed):
    drawn = data.draw(st.fixed_dictionaries(DRAWS[component] | PATH))
    drawn |= {"is_causal": True, "is_cached": is_cached, "need_weights": True}
    check_later_tokens(JAX, component, drawn, t=3, hides=False, seed=seed, jit=True)
    check_other_samples(JAX, component, drawn, sample=1, seed=seed, jit=True)


@both_panels
@pytest.mark.parametrize("component", ["MultiHeadAttention", "LatentAttention"])
def test_later_tokens_matter_without_causality(panel, component):
    drawn = {"is_causal": False, "training": False, "need_weights": True, "masking": None}
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
        if array.shape[-1] == D and 0 <= row < array.shape[-2]:
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


def draw_masks(random: np.random.Generator, drawn: Drawn) -> dict[str, np.ndarray]:
    """Return the drawn kind of mask, by argument; a cache takes padding at the end alone."""
    name = drawn["masking"]
    if cached(drawn):
        padding = np.arange(PREFILL) < random.integers(1, PREFILL + 1, size=(B, 1))
        last = np.ones((B, T - PREFILL), bool)
        return {name: np.concatenate([padding, last], -1)} if name == "key_mask" else {}
    if name == "segment_ids":
        return {name: np.sort(random.integers(0, 3, size=(B, T)), -1)}
    if name == "key_mask":
        return {name: (random.random((B, T)) < 0.7) | (np.arange(T) == 0)}
    return (
        {name: (random.random((B, T, T)) < 0.7) | np.eye(T, dtype=bool)} if name == "mask" else {}
    )


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


def config_of(component: str, drawn: Drawn) -> Config:
    """Return the drawn config; a decoder's layers have a window and none in turn."""
    if component == "Decoder":
        experts = MixtureOfExpertsConfig(
            d_model=D,
            d_ff=6,
            num_experts=4,
            top_k=2,
            shared_d_ff=5,
            router=RouterConfig(scoring=drawn["scoring"]),
        )
        layers = tuple(
            BlockConfig(
                attention=config_of("MultiHeadAttention", drawn | {"window": window}),
                feed_forward=experts,
                norm=RMS,
                dropout=RATE,
            )
            for window in (None, 2)
        )
        return DecoderConfig(layer=layers, num_layers=2, final_norm=RMS, dropout=RATE)
    window = drawn.get("window")
    score = ScoreConfig(
        is_causal=drawn["is_causal"],
        window=(1, 1) if window and not drawn["is_causal"] else window,
        softcap=drawn.get("softcap"),
        sinks=drawn.get("sinks", False),
    )
    options: Drawn = {"d_model": D, "num_heads": N, "attention_dropout": RATE, "score": score}
    if component == "LatentAttention":
        options |= {"kv_rank": 5, "nope_dim": 3, "rope_dim": 4, "v_dim": 3}
    names = {field.name for field in fields(COMPONENTS[component])}
    return COMPONENTS[component](**options, **{k: v for k, v in drawn.items() if k in names})


def cached(drawn: Drawn) -> bool:
    """Return whether the call goes through a cache, which only a causal one may."""
    return drawn.get("is_cached", False) and drawn["is_causal"]
