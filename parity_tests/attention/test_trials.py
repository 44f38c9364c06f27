"""Faults that people reported elsewhere, each tried here; the number is that of the trial.

``uniform`` has zero queries and the identity as values: the output is the row of weights.
"""

import numpy as np
import pytest

from parity_tests.attention.oracle import attention
from parity_tests.support.panels import both_panels

INF = np.inf
LOWER = np.tri(5, 10, dtype=bool)


def uniform(panel, T, S, *, leading=(1, 1), dtype=np.float64, **options):
    key = np.random.default_rng(0).normal(size=(*leading, S, 2)).astype(dtype)
    value = np.broadcast_to(np.eye(S, dtype=dtype), (*leading, S, S))
    output, weights = panel.attend(np.zeros((*leading, T, 2), dtype), key, value, **options)
    assert np.array_equal(output, weights)
    return weights


def rows_equal(weights, expected, atol=1e-15):
    return np.allclose(weights[0, 0], expected, rtol=0, atol=atol)


# After pytorch/pytorch#103963, patrick-kidger/equinox#274.
@both_panels
@pytest.mark.parametrize("dtype", [bool, np.int32])
def test_fully_masked_row(panel, dtype):
    mask = np.ones((3, 3), dtype)
    mask[1] = 0
    assert rows_equal(uniform(panel, 3, 3, mask=mask), [[1 / 3] * 3, [0] * 3, [1 / 3] * 3])
    mask = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], dtype)
    assert rows_equal(uniform(panel, 3, 3, mask=mask), [[0.5, 0.5, 0], [0.5, 0.5, 0], [0] * 3])


# After pytorch/pytorch#103749.
@both_panels
def test_two_spellings_of_one_mask(panel):
    mask = np.concatenate([LOWER, np.zeros((1, 10), bool)])
    as_mask = uniform(panel, 6, 10, mask=mask)
    as_bias = uniform(panel, 6, 10, bias=np.where(mask, 0.0, -INF))
    assert np.array_equal(as_mask, as_bias)
    assert not as_mask[0, 0, 5].any()
    assert rows_equal(as_mask[..., :5, :], LOWER / LOWER.sum(-1, keepdims=True))


# After pytorch/pytorch#160064, pytorch/pytorch#152028.
@both_panels
def test_one_head_fully_masked(panel):
    module = panel.build("MultiHeadAttention", 3, 3, attention_dropout=0.5).eval()
    x = np.random.default_rng(0).normal(size=(1, 5, 3))
    mask = np.ones((1, 3, 5, 5), bool)
    mask[:, 2] = False
    output, weights = panel.run(module, x, x, x, mask)
    alone, _ = panel.run(module, x, x, x, mask, need_weights=False)
    assert np.array_equal(output, alone)
    assert np.isfinite(output).all()
    assert not weights[:, 2].any()


# After pytorch/pytorch#41508.
@both_panels
def test_padding_and_causal_leave_the_first_row_empty(panel):
    random = np.random.default_rng(0)
    inputs = {name: random.normal(size=(1, 1, 4, 3)) for name in ("query", "key", "value")}
    loss = np.ones((1, 1, 4, 3))
    loss[:, :, 0] = 0
    options = {"is_causal": True, "key_mask": np.array([[0, 1, 1, 1]])}
    gradients = panel.attend_gradients(inputs, {"output": loss}, **options)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert not gradients["query"][:, :, 0].any()


# After pytorch/pytorch#101967.
@both_panels
@pytest.mark.parametrize("name", ["key", "value"])
def test_nan_in_a_hidden_key(panel, name):
    inputs = {n: np.ones((1, 1, 2, 2)) for n in ("query", "key", "value")}
    inputs["value"][..., 0, :] = 5.0
    inputs[name][..., 1, :] = np.nan
    output, _ = panel.attend(**inputs, mask=np.array([[True, False]]))
    assert np.array_equal(output, np.full((1, 1, 2, 2), 5.0))


# After pytorch/pytorch#170415, huggingface/transformers#41443, pytorch/pytorch#86120.
@both_panels
def test_true_and_not_zero_may_attend(panel):
    for mask in (np.array([[True, True, False, False]]), np.array([[1, 7, 0, 0]])):
        assert rows_equal(uniform(panel, 1, 4, mask=mask), [[0.5, 0.5, 0, 0]])
        assert rows_equal(uniform(panel, 1, 4, key_mask=mask), [[0.5, 0.5, 0, 0]])


# After pytorch/pytorch#107084, mlverse/torch#1205, pytorch/pytorch#136816.
@both_panels
def test_an_added_bias_is_a_bias(panel):
    bias = np.array([[0.0, 1.0]])
    assert rows_equal(uniform(panel, 1, 2, bias=bias), [[0.268941, 0.731059]], atol=1e-6)
    random = np.random.default_rng(1)
    query, key, value = (random.normal(size=(1, 1, 4, 3)) for _ in range(3))
    bias = random.normal(size=(4, 4))
    output, weights = panel.attend(query, key, value, bias=bias)
    truth = attention(query, key, value, bias=bias)
    assert np.allclose(output, truth.output, rtol=0, atol=1e-14)
    assert np.allclose(weights, truth.weights, rtol=0, atol=1e-14)


# After huggingface/transformers#13764, nishide-dev/unturtle#56.
@both_panels
def test_values_that_people_hide_with(panel):
    for value in (-1e9, np.finfo(np.float32).min, -INF, -1e4):
        bias = np.array([[0, 0, value]], np.float32)
        assert rows_equal(uniform(panel, 1, 3, bias=bias), [[0.5, 0.5, 0]])
        with pytest.raises(TypeError, match=r"mask != 0.*bias="):
            uniform(panel, 1, 3, mask=bias)


# After ahrefs/ocannl#548.
@both_panels
def test_a_mask_in_float16(panel):
    weights = uniform(panel, 1, 3, dtype=np.float16, mask=np.array([[1, 1, 0]]))
    assert weights.dtype == np.float16
    assert weights.tolist() == [[[[0.5, 0.5, 0.0]]]]


# fmt: off
ALIGNED = [
    ((2, 5), 0, [[1, 0, 0, 0, 0], [.5, .5, 0, 0, 0]]),
    ((2, 5), 3, [[.25] * 4 + [0], [.2] * 5]),
    ((1, 4), 0, [[1, 0, 0, 0]]),
    ((1, 4), 3, [[.25] * 4]),
    ((5, 2), -3, [[0, 0], [0, 0], [0, 0], [1, 0], [.5, .5]]),
]
# fmt: on


# After pytorch/pytorch#103082, ml-explore/mlx#2835, Dao-AILab/flash-attention#1778.
@both_panels
@pytest.mark.parametrize(("sizes", "offset", "rows"), ALIGNED)
def test_causal_alignment(panel, sizes, offset, rows):
    assert rows_equal(uniform(panel, *sizes, is_causal=True, offset=offset), rows)


# After onnx/onnx#8068.
@both_panels
def test_cached_lengths_per_sample(panel):
    options = {"is_causal": True, "offset": np.array([3, 1]), "leading": (2, 1)}
    visible = uniform(panel, 2, 5, **options) > 0
    assert visible[0, 0].tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert visible[1, 0].tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]


# After pytorch/pytorch#99282, pytorch/pytorch#118972.
@both_panels
def test_causal_and_mask_both_count_on_every_path(panel):
    mask = np.ones((3, 3), bool)
    weights = uniform(panel, 3, 3, mask=mask, is_causal=True)
    assert np.array_equal(weights[0, 0] > 0, np.tri(3, dtype=bool))
    eye = np.eye(3)[None, None]
    alone, _ = panel.attend(0 * eye, eye, eye, mask=mask, is_causal=True, need_weights=False)
    assert np.array_equal(alone, weights)


# After huggingface/transformers#29176, huggingface/transformers#39408, jax-ml/jax#32300.
@both_panels
def test_a_window_counts_its_own_key(panel):
    expected = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5]]
    assert rows_equal(uniform(panel, 4, 4, window=2, is_causal=True), expected)
    assert rows_equal(uniform(panel, 4, 4, window=(1, 0)), expected)
    for window in (1, 2, 4, 9):
        weights = uniform(panel, 4, 4, window=window, is_causal=True)
        assert (weights[0, 0] > 0).sum(-1).tolist() == [min(window, i + 1) for i in range(4)]
    weights = uniform(panel, 2, 6, window=3, is_causal=True, offset=4)
    assert (weights[0, 0] > 0).sum(-1).tolist() == [3, 3]


# After keras-team/keras-hub#2911.
@both_panels
def test_a_mask_per_sample_beside_as_many_heads(panel):
    mask = np.ones((2, 3, 3), bool)
    mask[1, :, 2] = False
    weights = uniform(panel, 3, 3, leading=(2, 2), mask=mask)
    assert np.allclose(weights[0], 1 / 3)
    assert np.allclose(weights[1], [0.5, 0.5, 0])


# After pytorch/pytorch#64706.
@both_panels
def test_with_one_head_a_rank_three_mask_is_still_per_sample(panel):
    mask = np.ones((2, 3, 3), bool)
    mask[1, :, 2] = False
    weights = uniform(panel, 3, 3, leading=(2, 1), mask=mask)
    assert np.array_equal(weights > 0, mask[:, None])
    with pytest.raises(ValueError, match="mask of shape"):
        uniform(panel, 3, 3, leading=(2, 1), mask=np.ones((2, 3), bool))


# After pytorch/pytorch#42929.
@both_panels
def test_weights_are_those_before_dropout(panel):
    keep = np.zeros((1, 1, 1, 1), bool)
    output, weights = panel.attend(*[np.ones((1, 1, 1, 2))] * 3, dropout=0.2, keep=keep)
    assert weights.item() == 1.0
    assert not output.any()


# After onnx/onnx#7274.
@both_panels
def test_heads_are_repeated_not_tiled(panel):
    value = np.array([10.0, 20.0]).reshape(1, 2, 1, 1)
    output, _ = panel.attend(np.ones((1, 4, 1, 2)), np.ones((1, 2, 1, 2)), value)
    assert output.ravel().tolist() == [10, 10, 20, 20]


# After huggingface/transformers#16058.
@both_panels
def test_the_key_bias_has_no_gradient_of_its_own(panel):
    module = panel.build("MultiHeadAttention", 8, 2)
    state = panel.package.export_state(module)
    x = np.random.default_rng(0).normal(size=(2, 5, 8))

    def call(params):
        output, _ = panel.package.functional_call(module, params, *[panel.array(x)] * 3)
        return {"output": output**2}

    gradients = panel.differentiate(call, state, {"output": np.ones((2, 5, 8))}).gradients
    assert np.abs(gradients["k_proj.bias"]).max() < 1e-14
    assert np.abs(gradients["q_proj.bias"]).max() > 1e-3
    assert np.abs(gradients["v_proj.bias"]).max() > 0.1


# After jax-ml/jax#17117.
@both_panels
def test_large_hidden_scores_leave_the_gradient_finite(panel):
    inputs = {
        "query": np.ones((1, 1, 1, 1)),
        "key": np.array([1.0, 1.0, 100.0]).reshape(1, 1, 3, 1),
        "value": np.eye(3)[None, None],
    }
    options = {"scale": 1.0, "mask": np.array([[True, True, False]])}
    output, weights = panel.attend(**inputs, **options)
    assert rows_equal(weights, [[0.5, 0.5, 0]])
    gradients = panel.attend_gradients(inputs, {"output": 2 * output}, **options)
    assert not gradients["query"].any()
    assert not gradients["key"].any()


# After google/flax#5591, huggingface/transformers#25420.
@both_panels
@pytest.mark.parametrize("is_causal", [True, False])
def test_step_by_step_is_the_whole(panel, is_causal):
    """Decoding without a cache: one query at a time, then 3 and 2, against all 5."""
    random = np.random.default_rng(0)
    query, key, value = (random.normal(size=(2, 2, 5, 3)) for _ in range(3))
    mask = np.tri(5, dtype=bool)
    whole, _ = panel.attend(query, key, value, mask=mask)
    for starts in (range(5), (0, 3)):
        ends = [*starts[1:], 5]
        for start, end in zip(starts, ends, strict=True):
            options = {"is_causal": True, "offset": start} if is_causal else {}
            hidden = {} if is_causal else {"mask": mask[start:end, :end]}
            chunk = query[:, :, start:end], key[:, :, :end], value[:, :, :end]
            output, _ = panel.attend(*chunk, **options, **hidden)
            assert np.allclose(output, whole[:, :, start:end], rtol=0, atol=1e-14)
