"""The encoder layer: norm placement, masks, weights, dropout on both branches."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import torch_impl
from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    BlockConfig,
    FeedForwardConfig,
    RotaryConfig,
    ScoreConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.components.modules import PANELS, build, flat, random_weights, run
from parity_tests.components.room import T, X
from parity_tests.components.rooms import component
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.sizes import B, D, N

KEY_MASK = np.array([[1] * T, [1] * (T - 2) + [0] * 2])
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "post": ({}, {}),
    "pre": ({"norm_placement": "pre"}, {}),
    "gelu, eps": ({"activation": "gelu", "eps": 0.1}, {}),
    "mask": ({}, {"mask": np.tril(np.ones((T, T), bool))}),
    "mask per sample": ({}, {"mask": np.tri(T) * np.ones((B, 1, 1)) > 0}),
    "key_mask": ({}, {"key_mask": KEY_MASK}),
    "bias": (
        {},
        {"bias": np.random.default_rng(3).normal(size=(N, T, T)).astype(np.float32)[None]},
    ),
    "all, pre": (
        {"norm_placement": "pre", "activation": "silu"},
        {"mask": np.tri(T, dtype=int), "key_mask": KEY_MASK},
    ),
}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("fields", "options"), CASES.values(), ids=CASES)
def test_against_the_formula(panel: str, fields: dict[str, Any], options: dict[str, Any]) -> None:
    config = dataclasses.replace(LAYER, **fields)
    weights = {name: array.astype(np.float64) for name, array in random_weights(config).items()}
    right = component(config, weights, X.astype(np.float64), need_weights=True, **options)
    output, attention_weights = run(panel, config, X, need_weights=True, **options)
    np.testing.assert_allclose(output, right[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(attention_weights, right[1], rtol=1e-5, atol=1e-6)
    assert attention_weights.shape == (B, N, T, T)
    (alone,) = run(panel, config, X, **options)
    np.testing.assert_allclose(alone, output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(T, D), (1, D), (0, D), (2, 0, D), (0, T, D), (2, 3, T, D)])
def test_any_leading_dimensions_and_empty(panel: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    output, weights = run(panel, LAYER, x, need_weights=True)
    assert output.shape == shape
    assert weights.shape == (*shape[:-2], N, shape[-2], shape[-2])
    assert np.isfinite(output).all()


@pytest.mark.parametrize("panel", PANELS)
def test_samples_do_not_see_each_other(panel: str) -> None:
    whole = run(panel, LAYER, X)[0]
    np.testing.assert_allclose(run(panel, LAYER, X[1])[0], whole[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
def test_padding_cannot_reach_the_real_positions(panel: str) -> None:
    changed = X.copy()
    changed[1, -2:] = 1e3
    before, after = (run(panel, LAYER, x, key_mask=KEY_MASK)[0] for x in (X, changed))
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1, :-2], after[1, :-2])
    assert (before[1, -2:] != after[1, -2:]).any()


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_dropout_sits_on_both_branches(panel: str, placement: str) -> None:
    """With a rate near 1 (almost) nothing of a branch is left: what stays is the residual path."""
    config = dataclasses.replace(LAYER, dropout=1 - 2**-20, norm_placement=placement)
    module = build(panel, config).train()
    if panel == "torch":
        torch.manual_seed(0)
        result = flat(module(to_torch(X)))[0]
    else:
        result = flat(module(to_jax(X), rng_key=jax.random.key(0)))[0]
    weights = random_weights(config)
    right = X.astype(np.float64)
    if placement == "post":
        for name in ("attention_norm", "feed_forward_norm"):
            centred = right - right.mean(-1, keepdims=True)
            right = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config.eps)
            right = right * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("panel", PANELS)
def test_dropout_keeps_the_mean(panel: str, rate: float) -> None:
    """Over many draws a branch averages to what it is without dropout."""
    module = build(panel, dataclasses.replace(LAYER, dropout=rate, norm_placement="pre"))
    module.feed_forward = Nothing() if panel == "torch" else jnp.zeros_like
    convert = to_torch if panel == "torch" else to_jax
    one = X[:1, :1]  # one key: the attention does not vary
    right = flat(module(convert(one)))[0][0, 0]
    torch.manual_seed(0)
    keywords = {} if panel == "torch" else {"rng_key": jax.random.key(0)}
    drawn = flat(module.train()(convert(np.repeat(one, 4000, 0)), **keywords))[0][:, 0]
    spread = drawn.std(0) / 4000**0.5
    assert (spread > 0).all()
    assert (np.abs(drawn.mean(0) - right) < 5 * spread).all()


class Nothing(torch.nn.Module):
    """Stands for a feed-forward network, and gives 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return zeros."""
        return torch.zeros_like(x)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_heads": 7}, "num_heads=7 must divide d_model=15"),
        ({"num_heads": 0}, "num_heads=0 must be a positive integer"),
        ({"num_heads": -1}, "num_heads=-1 must be a positive integer"),
        ({"d_model": 0}, "d_model=0 must be a positive integer"),
        ({"d_ff": 0}, "d_ff=0 must be a positive integer"),
        ({"dropout": 1.0}, "dropout=1.0 must satisfy 0 <= dropout < 1"),
        ({"attention_dropout": -0.1}, "attention_dropout=-0.1 must satisfy"),
        ({"norm_placement": "both"}, "norm_placement='both' must be one of 'post', 'pre'"),
        ({"activation": "gelu_new"}, "activation='gelu_new' must be one of"),
        ({"eps": 0.0}, "eps=0.0 must be above 0"),
    ],
)
@pytest.mark.parametrize("panel", PANELS)
def test_bad_sizes_are_refused(panel: str, fields: dict[str, Any], words: str) -> None:
    """After pytorch/pytorch#195381."""
    keywords = {} if panel == "torch" else {"rngs": None}
    arguments = dataclasses.asdict(LAYER) | fields
    with pytest.raises(ValueError, match=words):
        PANELS[panel].TransformerEncoderLayer(**arguments, **keywords)


def test_the_seeds_constructor() -> None:
    assert TransformerEncoderLayerConfig(d_model=4, num_heads=2) == TransformerEncoderLayerConfig(
        d_model=4,
        num_heads=2,
        d_ff=2048,
        dropout=0.1,
        activation="relu",
        norm_placement="post",
        eps=1e-5,
        attention_dropout=0.0,
    )
    module = PANELS["torch"].TransformerEncoderLayer(4, 2, 6, 0.25)
    assert (module.config.d_ff, module.config.dropout) == (6, 0.25)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rotary": RotaryConfig()}, "rotary"),
        ({"position_bias": AlibiConfig()}, "position_bias"),
        ({"score": ScoreConfig(is_causal=True)}, "score.is_causal"),
        ({"score": ScoreConfig(window=(1, 1))}, "score.window"),
    ],
)
def test_an_attention_to_a_memory_has_no_positions(options, name):
    """With a cache the queries stand elsewhere: steps would give other numbers than one pass."""
    sizes = {"d_model": 8, "num_heads": 2}
    with pytest.raises(ValueError, match=f"cross_attention.{name} is set"):
        BlockConfig(
            attention=AttentionConfig(**sizes),
            feed_forward=FeedForwardConfig(d_model=8, d_ff=9),
            cross_attention=AttentionConfig(**sizes, **options),
        )


def test_a_mask_of_a_memory_needs_one():
    sizes = {"d_model": 8, "num_heads": 2}
    block = torch_impl.Block(AttentionConfig(**sizes), FeedForwardConfig(d_model=8, d_ff=9))
    with pytest.raises(ValueError, match="memory_mask is given, but cross_attention=False"):
        block(torch.ones(1, 3, 8), memory_mask=torch.ones(1, 4, dtype=torch.bool))
