"""Multi-head attention: heads, masks by rank, any leading dimensions, rows without a key."""

import jax
import numpy as np
import pytest

from diptych.spec import ScoreConfig
from parity_tests.support.panels import assert_close, both_panels, softmax, to_numpy

B, T, S, D, N, K, H = 3, 4, 5, 6, 3, 1, 7
"""As many samples as heads, and heads wider than d_model / num_heads."""


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def tokens(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def head_by_head(panel, module, query, key, value, mask):
    """Compute multi-head attention as it is defined, one head after the other."""
    heads, kv_heads, width = module.config.sizes
    query, key, value = (
        panel.project(module, name, x)
        for name, x in (("q_proj", query), ("k_proj", key), ("v_proj", value))
    )
    outputs, weights = [], []
    for n in range(heads):
        own, shared = (slice(h * width, (h + 1) * width) for h in (n, n // (heads // kv_heads)))
        scores = query[..., own] @ key[..., shared].swapaxes(-1, -2) / np.sqrt(width)
        weights.append(softmax(np.where(mask, scores, -np.inf)))
        outputs.append(weights[-1] @ value[..., shared])
    output = panel.project(module, "out_proj", np.concatenate(outputs, -1))
    return output, np.stack(weights, -3)


OPTIONS = {
    "seed": (D, N, {}),
    "wide heads": (D, N, {"head_dim": H}),
    "one key/value head": (D, N, {"head_dim": H, "num_kv_heads": K}),
    "grouped": (8, 4, {"num_kv_heads": 2}),
    "no qkv bias": (D, N, {"qkv_bias": False}),
    "no out bias": (D, N, {"out_bias": False}),
}


@both_panels
@pytest.mark.parametrize(("d_model", "heads", "options"), OPTIONS.values(), ids=OPTIONS)
def test_multi_head_attention_head_by_head(panel, d_model, heads, options):
    module = panel.build("MultiHeadAttention", d_model, heads, **options)
    given = tokens(B, T, d_model), tokens(B, S, d_model, seed=1), tokens(B, S, d_model, seed=2)
    mask = np.random.default_rng(3).random((T, S)) < 0.7
    mask[:, 0] = True
    ours = module(*panel.array(given), panel.array(mask))
    assert_close(ours, head_by_head(panel, module, *given, mask))


@both_panels
def test_without_weights_the_output_is_the_same(panel):
    module = panel.build("MultiHeadAttention", D, N)
    x = panel.array(tokens(B, T, D))
    output, _ = module(x, x, x)
    alone, weights = module(x, x, x, need_weights=False)
    assert weights is None
    assert np.array_equal(to_numpy(output), to_numpy(alone))


@both_panels
def test_a_mask_of_rank_three_is_per_sample(panel):
    module = panel.build("MultiHeadAttention", D, N)
    x = panel.array(tokens(N, T, D))
    mask = np.random.default_rng(4).random((N, T, T)) < 0.5
    _, per_sample = to_numpy(module(x, x, x, panel.array(mask)))
    assert np.array_equal(per_sample > 0, np.broadcast_to(mask[:, None], (N, N, T, T)))
    _, per_head = to_numpy(module(x, x, x, panel.array(mask[None])))
    assert np.array_equal(per_head > 0, np.broadcast_to(mask[None], (N, N, T, T)))


@both_panels
@pytest.mark.parametrize("kv_heads", [N, K])
def test_one_sequence_is_a_batch_of_one(panel, kv_heads):
    score = ScoreConfig(is_causal=True, window=3)
    module = panel.build("MultiHeadAttention", D, N, num_kv_heads=kv_heads, score=score)
    query, memory = tokens(T, D), tokens(S, D, seed=1)
    random = np.random.default_rng(5)
    alone = {
        "mask": random.random((T, S)) < 0.8,
        "key_mask": np.array([1, 1, 0, 1, 1]),
        "bias": random.normal(size=(N, T, S)),
        "segment_ids": (np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0, 1])),
        "offset": np.array(1),
    }
    batch = {
        "mask": alone["mask"],
        "key_mask": alone["key_mask"][None],
        "bias": alone["bias"][None],
        "segment_ids": tuple(ids[None] for ids in alone["segment_ids"]),
        "offset": alone["offset"][None],
    }
    one = module(*panel.array((query, memory, memory)), **panel.array(alone))
    many = module(*panel.array((query[None], memory[None], memory[None])), **panel.array(batch))
    assert to_numpy(one[1]).shape == (N, T, S)
    assert_close(one, tuple(array[0] for array in to_numpy(many)))


@both_panels
def test_a_per_head_mask_of_one_sequence(panel):
    module = panel.build("MultiHeadAttention", D, N)
    x = panel.array(tokens(T, D))
    mask = np.random.default_rng(6).random((N, T, T)) < 0.5
    _, weights = to_numpy(module(x, x, x, panel.array(mask)))
    assert np.array_equal(weights > 0, mask)


@both_panels
def test_more_leading_dimensions(panel):
    module = panel.build("MultiHeadAttention", D, N, num_kv_heads=K)
    x = tokens(2, B, T, D)
    key_mask = np.random.default_rng(7).random((2, B, T)) < 0.7
    output, weights = to_numpy(module(*[panel.array(x)] * 3, key_mask=panel.array(key_mask)))
    assert weights.shape == (2, B, N, T, T)
    flat = panel.array(x.reshape(2 * B, T, D))
    flat_mask = panel.array(key_mask.reshape(2 * B, T))
    theirs = to_numpy(module(flat, flat, flat, key_mask=flat_mask))
    assert_close((output.reshape(2 * B, T, D), weights.reshape(2 * B, N, T, T)), theirs)


@both_panels
@pytest.mark.parametrize("shape", [(0, T, D), (B, 0, D), (0, D)])
def test_empty(panel, shape):
    module = panel.build("MultiHeadAttention", D, N)
    x = panel.array(tokens(*shape))
    output, weights = module(x, x, x)
    assert output.shape == shape
    assert weights.shape == (*shape[:-2], N, shape[-2], shape[-2])


@both_panels
def test_a_row_without_a_key_leaves_the_output_bias(panel):
    module = panel.build("MultiHeadAttention", D, N, attention_dropout=0.5).eval()
    x = panel.array(tokens(B, T, D))
    key_mask = np.ones((B, T), bool)
    key_mask[1] = False
    for need_weights in (True, False):
        output, _ = module(x, x, x, key_mask=panel.array(key_mask), need_weights=need_weights)
        bias = panel.project(module, "out_proj", np.zeros((T, D)))
        assert np.array_equal(to_numpy(output)[1], bias)
