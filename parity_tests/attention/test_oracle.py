"""The oracle itself: values known by heart, and its hand-written gradients against differences."""

import numpy as np
import pytest

from parity_tests.attention.oracle import attention

B, N, K, T, S, H, V = 2, 6, 3, 5, 7, 4, 3


def uniform(T, S, **options):
    """Weights when all scores are 0: every visible key gets 1 / count."""
    return attention(np.zeros((T, 2)), np.ones((S, 2)), np.eye(S), **options).weights


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"is_causal": True}, [[1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0]]),
        ({"is_causal": True, "offset": 3}, [[0.25] * 4 + [0], [0.2] * 5]),
        ({"is_causal": True, "offset": -1}, [[0] * 5, [1, 0, 0, 0, 0]]),
        ({"is_causal": True, "offset": 3, "window": 2}, [[0, 0, 0.5, 0.5, 0], [0, 0, 0, 0.5, 0.5]]),
        ({"window": (0, 1)}, [[0.5, 0.5, 0, 0, 0], [0, 0.5, 0.5, 0, 0]]),
        ({"mask": np.array([[1, 0, 0, 0, 1], [0] * 5])}, [[0.5, 0, 0, 0, 0.5], [0] * 5]),
        ({"key_mask": np.array([0, 1, 0, 0, 0])}, [[0, 1, 0, 0, 0]] * 2),
        (
            {"segment_ids": (np.array([0, 1]), np.array([0, 0, 1, 1, 2]))},
            [[0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0.5, 0]],
        ),
        ({"bias": np.array([0, -np.inf, 0, -np.inf, -np.inf])}, [[0.5, 0, 0.5, 0, 0]] * 2),
        ({"bias": np.log([1.0, 2, 3, 4, 10])}, [[0.05, 0.1, 0.15, 0.2, 0.5]] * 2),
    ],
)
def test_uniform_kit(options, expected):
    np.testing.assert_allclose(uniform(2, 5, **options), expected, atol=1e-15)


def test_heads_read_their_group_and_a_rank_three_mask_is_per_sample():
    query, key = np.zeros((2, 4, 1, 2)), np.zeros((2, 2, 1, 2))
    value = np.arange(4.0).reshape(2, 2, 1, 1)
    mask = np.array([1, 0]).reshape(2, 1, 1)
    output = attention(query, key, value, mask=mask).output
    assert output.reshape(2, 4).tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]


def test_sink_takes_its_share_and_has_no_column():
    weights = attention(
        np.zeros((1, 2, 1, 2)), np.zeros((1, 2, 3, 2)), np.ones((1, 2, 3, 1)), sinks=np.log([1, 3])
    ).weights
    np.testing.assert_allclose(weights[0, :, 0], [[0.25] * 3, [1 / 6] * 3])


def test_unseen_nan_stays_out():
    random = np.random.default_rng(0)
    query, key, value = (random.normal(size=(1, 2, n, 2)) for n in (3, 4, 4))
    mask = np.array([True, True, False, True])
    clean = attention(query, key, value, mask=mask[None]).output
    key[..., 2, :], value[..., 2, :] = np.nan, np.inf
    np.testing.assert_array_equal(attention(query, key, value, mask=mask[None]).output, clean)


GRADIENT_CASES = {
    "plain": {},
    "causal offset": {"is_causal": True, "offset": np.array([1, -2])},
    "window": {"is_causal": True, "window": 3, "offset": 2},
    "softcap bias": {"softcap": 1.5, "bias": "per sample", "scale": 0.7},
    "sinks": {"sinks": "given", "mask": "random"},
    "dropout": {"dropout": 0.25, "keep": "random", "bias": "row"},
}


@pytest.mark.parametrize("name", GRADIENT_CASES)
def test_gradients_against_central_differences(name):
    random = np.random.default_rng(1)
    options = dict(GRADIENT_CASES[name])
    inputs = {
        "query": random.normal(size=(B, N, T, H)),
        "key": random.normal(size=(B, K, S, H)),
        "value": random.normal(size=(B, K, S, V)),
    }
    for option in ("mask", "keep"):
        if option in options:
            options[option] = random.random((B, N, T, S)) < 0.6
    if "sinks" in options:
        inputs["sinks"] = random.normal(size=N)
        del options["sinks"]
    if "bias" in options:
        shape = (B, T, S) if options.pop("bias") == "per sample" else (1, S)
        inputs["bias"] = random.normal(size=shape)
    d_output, d_weights = random.normal(size=(B, N, T, V)), random.normal(size=(B, N, T, S))

    def loss(**changed):
        result = attention(**(inputs | changed), **options)
        return (result.output * d_output).sum() + (result.weights * d_weights).sum()

    gradients = attention(**inputs, **options).backward(d_output, d_weights)
    assert gradients.keys() == inputs.keys()
    for argument, values in inputs.items():
        direction = random.normal(size=values.shape)
        step = 1e-5
        slope = loss(**{argument: values + step * direction})
        slope = (slope - loss(**{argument: values - step * direction})) / (2 * step)
        expected = (gradients[argument] * direction).sum()
        assert abs(slope - expected) < 1e-7 * max(1.0, abs(expected)), argument
