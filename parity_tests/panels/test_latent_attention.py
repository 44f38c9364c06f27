"""Latent attention: its formula, and what makes it another attention when parts are left out."""

from typing import Any

import numpy as np
import pytest

from diptych.spec import LatentAttentionConfig, NormConfig, RotaryConfig, ScoreConfig
from parity_tests.support.panels import Panel, assert_close, both_panels, softmax, to_numpy

B, T, D, N = 2, 7, 15, 3
SIZES: dict[str, Any] = {"kv_rank": 11, "nope_dim": 4, "rope_dim": 6, "v_dim": 5}
X = np.random.default_rng(0).normal(size=(B, T, D))


def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotate channels 2i and 2i + 1 of (..., T, H) by ``position * 10000**(-2i / H)``."""
    found, width = np.empty_like(x), x.shape[-1]
    for i in range(width // 2):
        angle = positions * 10000.0 ** (-2 * i / width)
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        found[..., 2 * i] = a * np.cos(angle) - b * np.sin(angle)
        found[..., 2 * i + 1] = b * np.cos(angle) + a * np.sin(angle)
    return found


def head_by_head(
    panel: Panel, module: Any, x: np.ndarray, visible: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute latent attention as the paper defines it, one head after the other."""
    config = module.config

    def project(name: str, x: np.ndarray) -> np.ndarray:
        return panel.project(module, name, x)

    def norm(x: np.ndarray) -> np.ndarray:  # its weight is still 1
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)

    if config.q_rank is None:
        queries = project("q_proj", x)
    else:
        queries = project("q_up_proj", norm(project("q_down_proj", x)))
    down = project("kv_down_proj", x)
    shared = rotate(down[..., config.kv_rank :], np.arange(T))
    both = project("kv_up_proj", norm(down[..., : config.kv_rank]))
    nope, key_width = config.nope_dim, config.nope_dim + config.rope_dim
    outputs, weights = [], []
    for n in range(N):
        query = queries[..., n * key_width : (n + 1) * key_width]
        own = both[..., n * (nope + config.v_dim) : (n + 1) * (nope + config.v_dim)]
        scores = query[..., :nope] @ own[..., :nope].swapaxes(-1, -2)
        scores = scores + rotate(query[..., nope:], np.arange(T)) @ shared.swapaxes(-1, -2)
        scores = np.where(visible, scores / np.sqrt(key_width), -np.inf)
        weights.append(softmax(scores))
        outputs.append(weights[-1] @ own[..., nope:])
    return project("out_proj", np.concatenate(outputs, -1)), np.stack(weights, -3)


@both_panels
@pytest.mark.parametrize("q_rank", [None, 8])
@pytest.mark.parametrize("bias", [False, True])
def test_head_by_head(panel, q_rank, bias):
    score = ScoreConfig(is_causal=True, window=4)
    module = panel.build(
        "LatentAttention", D, N, **SIZES, q_rank=q_rank, qkv_bias=bias, out_bias=bias, score=score
    )
    distances = np.arange(T)[:, None] - np.arange(T)
    key_mask = np.arange(T) < np.array([[T], [5]])
    visible = (distances >= 0) & (distances < 4) & key_mask[:, None]
    ours = panel.run(module, X, key_mask=key_mask)
    assert_close(ours, head_by_head(panel, module, X, visible))


@both_panels
def test_what_is_cached_is_narrow(panel):
    module = panel.build("LatentAttention", D, N, **SIZES, score=ScoreConfig(is_causal=True))
    with panel.wide():
        _, _, cache = module(panel.array(X), cache=module.new_cache(B, T))
    assert [entry.shape for entry in cache.entries] == [(B, T, 11), (B, T, 6)]


@both_panels
def test_leading_dimensions(panel):
    module = panel.build("LatentAttention", D, N, **SIZES)
    truth = panel.run(module, X)
    for lead in ((), (1, 2)):
        x = X[0] if lead == () else X[None]
        ours = panel.run(module, x)
        expected = tuple(a[0] for a in truth) if lead == () else tuple(a[None] for a in truth)
        assert_close(ours, expected)


@both_panels
@pytest.mark.parametrize("shape", [(0, T, D), (B, 0, D), (0, D)])
def test_empty(panel, shape):
    module = panel.build("LatentAttention", D, N, **SIZES)
    output, weights = panel.run(module, np.zeros(shape))
    assert output.shape == shape
    assert weights.shape == (*shape[:-2], N, shape[-2], shape[-2])


@both_panels
def test_only_distances_count(panel):
    module = panel.build("LatentAttention", D, N, **SIZES)
    later = panel.run(module, X, position_ids=np.arange(T) + 3)
    assert_close(later, panel.run(module, X))
    apart = panel.run(module, X, position_ids=2 * np.arange(T))
    assert np.abs(apart[1] - later[1]).max() > 1e-4


@both_panels
def test_a_row_without_a_key_leaves_the_output_bias(panel):
    module = panel.build("LatentAttention", D, N, **SIZES, out_bias=True)
    key_mask = np.array([[1] * T, [0] * T])
    output, weights = panel.run(module, X, key_mask=key_mask)
    bias = panel.project(module, "out_proj", np.zeros((T, N * SIZES["v_dim"])))
    assert not weights[1].any()
    assert np.array_equal(output[1], bias)


@both_panels
def test_options_reach_the_scores(panel):
    module = panel.build("LatentAttention", D, N, **SIZES)
    plain = panel.run(module, X)[0]
    segments = np.array([[0] * 3 + [1] * 4] * B)
    same = segments[:, :, None] == segments[:, None]
    for options in (
        {"segment_ids": segments},
        {"mask": same},
        {"bias": np.where(same, 0.0, -np.inf)},
    ):
        output, weights = panel.run(module, X, **options)
        assert np.array_equal(weights[0] > 0, np.broadcast_to(same[0], weights[0].shape))
        assert np.abs(output - plain).max() > 1e-4
    assert panel.run(module, X, need_weights=False)[1] is None


@both_panels
def test_training_draws(panel):
    module = panel.build("LatentAttention", D, N, **SIZES, attention_dropout=0.5)
    key = {} if panel.name == "torch_impl" else {"rng_key": np.array([0, 1], np.uint32)}
    plain = panel.run(module.eval(), X)
    drawn = panel.run(module.train(), X, **key)
    assert np.abs(drawn[0] - plain[0]).max() > 1e-3
    assert np.array_equal(drawn[1], plain[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kv_rank": 0}, "kv_rank=0"),
        ({"q_rank": 0}, "q_rank=0"),
        ({"rope_dim": 3}, "head_dim=3 must be even"),
        ({"rotary": RotaryConfig(dim=8)}, "dim=8 must not exceed head_dim=6"),
        ({"attention_dropout": 1.0}, "attention_dropout=1.0"),
        ({"score": ScoreConfig(sinks=True)}, "latent attention has no sinks"),
        ({"norm": None}, "norm"),
    ],
)
def test_refused(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        LatentAttentionConfig(**({"d_model": D, "num_heads": N} | SIZES | options))


@both_panels
def test_norms_of_another_kind(panel):
    module = panel.build("LatentAttention", D, N, **SIZES, norm=NormConfig(eps=1e-3))
    assert type(module.kv_norm).__name__ == "LayerNorm"
    assert module.kv_norm.config.eps == 1e-3
    with panel.wide(), pytest.raises(ValueError, match=r"expected \(\.\.\., T, 15\)"):
        module(panel.array(X[..., :4]))
    assert to_numpy(panel.run(module, X))[0].shape == X.shape
