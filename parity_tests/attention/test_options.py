"""Scaled dot-product attention: what every option means, by values known by heart; what is refused.

The same against the oracle, with gradients, stands in test_exact.py.
"""

import math

import numpy as np
import pytest

from parity_tests.support.panels import JAX, TORCH, both_panels, softmax

B, N, T, S, H = 2, 3, 3, 5, 4


def uniform_kit(T, S, *leading):
    """Return queries, keys and values for which the output is the row of attention weights."""
    key = np.random.default_rng(0).normal(size=(*leading, S, 2))
    value = np.broadcast_to(np.eye(S), (*leading, S, S))
    return np.zeros((*leading, T, 2)), key, value


def random_qkv(seed=0, heads=N, kv_heads=N):
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(B, heads, T, H)),
        random.normal(size=(B, kv_heads, S, H)),
        random.normal(size=(B, kv_heads, S, 2)),
    )


# fmt: off
ROWS = {
    "nothing hidden": ({}, [[0.2] * 5] * 3),
    "causal starts at the first key": (
        {"is_causal": True}, [[1, 0, 0, 0, 0], [1/2, 1/2, 0, 0, 0], [1/3, 1/3, 1/3, 0, 0]]),
    "offset S - T ends at the last key": (
        {"is_causal": True, "offset": 2}, [[1/3, 1/3, 1/3, 0, 0], [1/4] * 4 + [0], [1/5] * 5]),
    "offset may be negative": (
        {"is_causal": True, "offset": -2}, [[0] * 5, [0] * 5, [1, 0, 0, 0, 0]]),
    "offset past the keys": ({"is_causal": True, "offset": 9}, [[0.2] * 5] * 3),
    "window of 1 is the own key": (
        {"is_causal": True, "window": 1}, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]),
    "window of 2 is the own key and the one before": (
        {"is_causal": True, "window": 2, "offset": 1},
        [[1/2, 1/2, 0, 0, 0], [0, 1/2, 1/2, 0, 0], [0, 0, 1/2, 1/2, 0]]),
    "window without causal": (
        {"window": (0, 1)}, [[1/2, 1/2, 0, 0, 0], [0, 1/2, 1/2, 0, 0], [0, 0, 1/2, 1/2, 0]]),
    "window with causal has no right side": (
        {"window": (1, 3), "is_causal": True},
        [[1, 0, 0, 0, 0], [1/2, 1/2, 0, 0, 0], [0, 1/2, 1/2, 0, 0]]),
    "window past the keys": (
        {"window": (0, 0), "offset": 3}, [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0] * 5]),
    "segments": (
        {"segment_ids": (np.array([[7, 7, -1]]), np.array([[7, 0, 0, -1, -1]]))},
        [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1/2, 1/2]]),
    "key mask": ({"key_mask": np.array([[0, 3, 0, 0, -1]])}, [[0, 1/2, 0, 0, 1/2]] * 3),
    "bias": ({"bias": np.log(np.array([[1.0, 2, 3, 4, 10]]))}, [[.05, .1, .15, .2, .5]] * 3),
    "-inf in a bias hides": (
        {"bias": np.array([[0, 0, -np.inf, -np.inf, 0]])}, [[1/3, 1/3, 0, 0, 1/3]] * 3),
    "all must allow": (
        {"mask": np.array([[1, 1, 1, 1, 0]]), "key_mask": np.array([[0, 1, 1, 1, 1]]),
         "is_causal": True, "offset": 2, "window": 3,
         "bias": np.array([[0, 0, -np.inf, 0, 0]])},
        [[0, 1, 0, 0, 0], [0, 1/2, 0, 1/2, 0], [0, 0, 0, 1, 0]]),
    "a sink takes its share": ({"sinks": np.log(np.array([5.0]))}, [[0.1] * 5] * 3),
    "a sink beside hidden keys": (
        {"sinks": np.zeros(1), "is_causal": True, "offset": -1},
        [[0] * 5, [1/2, 0, 0, 0, 0], [1/3, 1/3, 0, 0, 0]]),
}
# fmt: on


@both_panels
@pytest.mark.parametrize(("options", "rows"), ROWS.values(), ids=ROWS)
def test_rows_of_the_uniform_kit(panel, options, rows):
    output, weights = panel.attend(*uniform_kit(3, 5, 1, 1), **options)
    assert np.allclose(weights[0, 0], rows, rtol=0, atol=1e-15)
    assert np.array_equal(output, weights)
    hidden = np.array(rows) == 0
    assert not weights[0, 0][hidden].any()


@both_panels
def test_one_offset_per_sample(panel):
    options = {"is_causal": True, "offset": np.array([3, -1])}
    _, weights = panel.attend(*uniform_kit(2, 5, 2, 3), **options)
    assert np.allclose(weights[0], [[1 / 4] * 4 + [0], [1 / 5] * 5])
    assert np.allclose(weights[1], [[0] * 5, [1, 0, 0, 0, 0]])


@both_panels
def test_one_array_of_segments_serves_queries_and_keys(panel):
    _, weights = panel.attend(*uniform_kit(4, 4, 2, 3), segment_ids=np.array([[0, 0, 1, 1]] * 2))
    assert np.allclose(weights, np.kron(np.eye(2), np.full((2, 2), 0.5)))


@both_panels
def test_per_sample_arrays_apply_to_their_sample_and_all_heads(panel):
    key_mask = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    _, weights = panel.attend(*uniform_kit(3, 5, 2, 2), key_mask=key_mask)
    assert np.array_equal(weights > 0, np.broadcast_to(key_mask[:, None, None] > 0, (2, 2, 3, 5)))


@both_panels
def test_scale_softcap_bias_in_this_order(panel):
    query, key, value = random_qkv()
    bias = np.random.default_rng(1).normal(size=(T, S))
    products = query @ key.swapaxes(-1, -2)
    expected = {
        (None, None): products / math.sqrt(H),
        (0.3, None): 0.3 * products,
        (None, 1.5): 1.5 * np.tanh(products / math.sqrt(H) / 1.5),
        (2.0, 0.7): 0.7 * np.tanh(2.0 * products / 0.7),
    }
    for (scale, softcap), scores in expected.items():
        options = {"scale": scale, "softcap": softcap, "bias": bias}
        output, weights = panel.attend(query, key, value, **options)
        assert np.allclose(weights, softmax(scores + bias), rtol=0, atol=1e-14)
        assert np.allclose(output, weights @ value, rtol=0, atol=1e-14)


@both_panels
def test_sinks_are_per_head(panel):
    query, key, value = random_qkv()
    sinks = np.array([-1.0, 0.5, 2.0])
    _, weights = panel.attend(query, key, value, sinks=sinks)
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(H)
    column = np.broadcast_to(sinks[:, None, None], (B, N, T, 1))
    expected = softmax(np.concatenate([scores, column], -1))[..., :-1]
    assert np.allclose(weights, expected, rtol=0, atol=1e-15)


@both_panels
def test_query_head_reads_its_group(panel):
    query, key, value = random_qkv(heads=6, kv_heads=2)
    grouped = panel.attend(query, key, value, is_causal=True)
    repeated = panel.attend(query, key.repeat(3, 1), value.repeat(3, 1), is_causal=True)
    for ours, theirs in zip(grouped, repeated, strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-14)


@both_panels
def test_weights_are_returned_before_dropout(panel):
    query, key, value = random_qkv()
    keep = np.random.default_rng(1).random((B, N, T, S)) < 0.5
    output, weights = panel.attend(query, key, value, dropout=0.5, keep=keep)
    _, whole = panel.attend(query, key, value)
    assert np.array_equal(weights, whole)
    assert np.allclose(output, (weights * keep * 2) @ value, rtol=0, atol=1e-14)


@both_panels
@pytest.mark.parametrize(("options", "rows"), ROWS.values(), ids=ROWS)
def test_without_weights_the_output_is_the_same(panel, options, rows):
    query, key, _ = uniform_kit(3, 5, 1, 1)
    value = np.random.default_rng(2).normal(size=(1, 1, 5, 3))
    output, _ = panel.attend(query, key, value, **options)
    alone, weights = panel.attend(query, key, value, need_weights=False, **options)
    assert weights is None
    assert np.abs(output - alone).max() <= 1e-14


@both_panels
@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (2, 3, 1), (1, 2, 1, 3)])
def test_any_leading_dimensions(panel, leading):
    random = np.random.default_rng(0)
    query, key = random.normal(size=(*leading, T, H)), random.normal(size=(*leading, S, H))
    value = random.normal(size=(*leading, S, 2))
    output, weights = panel.attend(query, key, value)
    assert np.allclose(weights, softmax(query @ key.swapaxes(-1, -2) / math.sqrt(H)))
    assert np.allclose(output, weights @ value)


@both_panels
@pytest.mark.parametrize("sizes", [(0, T, S), (B, 0, S), (B, T, 0), (0, 0, 0)])
@pytest.mark.parametrize("grouped", [False, True])
def test_empty(panel, sizes, grouped):
    b, t, s = sizes
    inputs = {
        "query": np.ones((b, 4, t, H)),
        "key": np.ones((b, 2 if grouped else 4, s, H)),
        "value": np.ones((b, 2 if grouped else 4, s, 2)),
        "bias": np.zeros((t, s)),
        "sinks": np.zeros(4),
    }
    options = {"is_causal": True, "window": 2, "key_mask": np.ones((b, s), bool)}
    output, weights = panel.attend(**inputs, **options)
    assert output.shape == (b, 4, t, 2)
    assert weights.shape == (b, 4, t, s)
    assert not output[..., s:, :].any()  # without keys there is nothing to read
    loss_weights = {"output": np.ones_like(output)}
    gradients = panel.attend_gradients(inputs, loss_weights, **options)
    assert all(gradients[name].shape == array.shape for name, array in inputs.items())
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


@both_panels
@pytest.mark.parametrize("sides", [(2**31, 0), (2**63, 2**63), 2**40])
def test_a_window_wider_than_32_bits_hides_nothing(panel, sides):
    """Without 64 bits JAX counts positions in 32; ``sys.maxsize`` is a usual "no limit"."""
    inputs = [panel.array(np.ones((1, T, H), np.float32))] * 3
    attend = panel.functional.scaled_dot_product_attention
    causal = isinstance(sides, int) or sides[1] == 0
    _, weights = attend(*inputs, window=sides, is_causal=causal)
    _, unlimited = attend(*inputs, is_causal=causal)
    assert np.array_equal(weights, unlimited)


Q, K = (B, N, T, H), (B, N, S, H)
# fmt: off
SHAPES_REFUSED = [
    ((H,), (H,), (H,), {}, "at least 2"),
    (Q, K[1:], K[1:], {}, "same rank"),
    (Q, (B, N, S, H + 1), K, {}, "same width"),
    ((B, N, T, 0), (B, N, S, 0), K, {}, "at least 1"),
    (Q, K, (B, N, S + 1, H), {}, "same shape but for the width"),
    (Q, (B + 1, N, S, H), (B + 1, N, S, H), {}, "same leading"),
    (Q, (B, 2, S, H), (B, 2, S, H), {}, "num_kv_heads=2 must divide num_heads=3"),
    (Q, (B, 0, S, H), (B, 0, S, H), {}, "num_kv_heads=0 must divide num_heads=3"),
    ((N, T, H), (1, S, H), (1, S, H), {}, "same leading"),
    (Q, K, K, {"key_mask": np.ones(S, bool)}, r"key_mask has shape \(5,\), expected \(2, 5\)"),
    (Q, K, K, {"key_mask": np.ones((B, N, S), bool)}, "key_mask has shape"),
    (Q, K, K, {"key_mask": np.ones((B, T), bool)}, "key_mask has shape"),
    (Q, K, K, {"is_causal": True, "offset": np.zeros(3, int)}, r"offset has shape \(3,\)"),
    (Q, K, K, {"is_causal": True, "offset": np.zeros((2, 1), int)}, "offset has shape"),
    (Q, K, K, {"segment_ids": np.zeros((B, T), int)}, "pair .*3 queries and 5 keys"),
    (Q, K, K, {"segment_ids": (np.zeros((B, S), int),) * 2}, "segment_ids of the queries"),
    (Q, K, K, {"segment_ids": (np.zeros((B, T), int),) * 2}, "segment_ids of the keys"),
    (Q, K, K, {"sinks": np.zeros(1)}, r"sinks has shape \(1,\), expected \(3,\)"),
    (Q, K, K, {"window": 2}, r"window=2 without is_causal.*\(left, right\)"),
    (Q, K, K, {"window": 0, "is_causal": True}, "window=0 must be at least 1"),
    (Q, K, K, {"window": (1, 2, 3)}, r"window=\(1, 2, 3\) must be an int or a pair"),
    (Q, K, K, {"window": [1, 2]}, r"window=\[1, 2\] must be an int or a pair"),
    (Q, K, K, {"window": (1.5, 0)}, r"window=\(1.5, 0\) must be an int or a pair"),
    (Q, K, K, {"window": True, "is_causal": True}, "window=True must be an int or a pair"),
    (Q, K, K, {"window": (-1, 0)}, r"window=\(-1, 0\) must not be negative"),
    (Q, K, K, {"dropout": 1.0}, "dropout=1.0"),
    (Q, K, K, {"dropout": -0.5}, "dropout=-0.5"),
    (Q, K, K, {"dropout": "0.5"}, "dropout='0.5' must satisfy"),
    (Q, K, K, {"keep": np.ones((T, S), bool), "dropout": 0.5}, r"keep has shape \(3, 5\)"),
]
ones = np.ones
TYPES_REFUSED = [
    ((ones(Q, int), ones(K, int), ones(K, int)), {}, "query is int64.*one dtype"),
    ((ones(Q), ones(K, np.float32), ones(K)), {}, "query is float64, key is float32"),
    ((ones(Q), ones(K), ones(K, np.float16)), {}, "value is float16"),
    ((ones(Q), ones(K), ones(K)), {"mask": ones((T, S))}, "mask is float64.*mask != 0.*bias="),
    ((ones(Q), ones(K), ones(K)), {"key_mask": ones((B, S))}, "key_mask != 0.*bias="),
    ((ones(Q), ones(K), ones(K)), {"bias": ones((T, S), bool)}, "bias is bool.*mask="),
    ((ones(Q), ones(K), ones(K)), {"bias": ones((T, S), int)}, "bias is int64.*mask="),
    ((ones(Q), ones(K), ones(K)), {"bias": ones((T, S), complex)}, "bias is complex128.*float64"),
    ((ones(Q), ones(K), ones(K)), {"is_causal": True, "offset": 1.5}, "offset is float"),
    ((ones(Q), ones(K), ones(K)), {"dropout": 0.5, "keep": ones((B, N, T, S))}, "keep is float64"),
]
# fmt: on


@pytest.mark.parametrize(("query", "key", "value", "options", "rule"), SHAPES_REFUSED)
def test_refused_values_name_the_rule_in_the_same_words(query, key, value, options, rule):
    messages = []
    for panel in (TORCH, JAX):
        with pytest.raises(ValueError, match=rule) as caught:
            panel.attend(np.ones(query), np.ones(key), np.ones(value), **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(("arguments", "options", "rule"), TYPES_REFUSED)
def test_refused_types_name_the_rule(arguments, options, rule):
    for panel in (TORCH, JAX):
        with pytest.raises(TypeError, match=rule):
            panel.attend(*arguments, **options)
