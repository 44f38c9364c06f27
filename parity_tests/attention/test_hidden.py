"""What is hidden: rows without a key, and NaN and infinity where no query looks."""

import numpy as np
import pytest

from parity_tests.support.panels import both_panels

B, N, T, S, H, V = 2, 4, 3, 5, 2, 3
ROW = 1
"""The query, of sample 1, that sees no key in every case below."""

blind = np.ones((B, T, S), bool)
blind[1, ROW] = False
segments = np.zeros((B, T), int)
segments[1, ROW] = 9

HIDES_THE_ROW = {
    "mask": {"mask": blind},
    "mask of all heads": {"mask": np.repeat(blind[:, None], N, 1)},
    "bias": {"bias": np.where(blind, 0.5, -np.inf)},
    "segments": {"segment_ids": (segments, np.zeros((B, S), int))},
    "mask and causal": {"mask": blind, "is_causal": True, "offset": 2},
    "sinks": {"mask": blind, "sinks": np.linspace(-1, 1, N)},
    "sinks of -inf": {"mask": blind, "sinks": np.full(N, -np.inf)},
    "softcap": {"mask": blind, "softcap": 2.0},
    "dropout": {"mask": blind, "dropout": 0.5, "keep": np.ones((B, N, T, S), bool)},
}
HIDES_THE_SAMPLE = {
    "key mask": {"key_mask": np.array([[True] * S, [False] * S])},
    "offset": {"is_causal": True, "offset": np.array([S, -T])},
    "window": {"window": (1, 1), "offset": np.array([0, S + 1])},
}


def inputs(kv_heads=N):
    random = np.random.default_rng(0)
    return {
        "query": random.normal(size=(B, N, T, H)),
        "key": random.normal(size=(B, kv_heads, S, H)),
        "value": random.normal(size=(B, kv_heads, S, V)),
    }


def loss_weights():
    random = np.random.default_rng(1)
    return {
        "output": random.normal(size=(B, N, T, V)),
        "weights": random.normal(size=(B, N, T, S)),
    }


def split(options):
    """Part the arrays that are differentiated from the options."""
    floating = {name: options[name] for name in ("bias", "sinks") if name in options}
    return floating, {name: value for name, value in options.items() if name not in floating}


@both_panels
@pytest.mark.parametrize(
    ("options", "rows"),
    [(options, ROW) for options in HIDES_THE_ROW.values()]
    + [(options, slice(None)) for options in HIDES_THE_SAMPLE.values()],
    ids=[*HIDES_THE_ROW, *HIDES_THE_SAMPLE],
)
@pytest.mark.parametrize("kv_heads", [N, 2])
def test_a_row_without_a_key_is_zero_forward_and_backward(panel, options, rows, kv_heads):
    output, weights = panel.attend(**inputs(kv_heads), **options)
    assert not output[1, :, rows].any()
    assert not weights[1, :, rows].any()
    assert np.isfinite(output).all()
    assert weights[0].any()  # the other sample does see keys

    floating, options = split(options)
    gradients = panel.attend_gradients(inputs(kv_heads) | floating, loss_weights(), **options)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert not gradients["query"][1, :, rows].any()
    assert gradients["query"][0].any()


@both_panels
def test_gradients_are_those_without_the_row(panel):
    """Hiding row 1 wholly is the same as leaving its query out."""
    rest = [row for row in range(T) if row != ROW]
    mask = np.ones((T, S), bool)
    mask[ROW] = False
    whole = panel.attend_gradients(inputs(), loss_weights(), mask=mask)
    without = inputs() | {"query": inputs()["query"][:, :, rest]}
    rest_weights = {name: array[:, :, rest] for name, array in loss_weights().items()}
    reduced = panel.attend_gradients(without, rest_weights)
    assert np.allclose(whole["query"][:, :, rest], reduced["query"], rtol=0, atol=1e-14)
    assert np.allclose(whole["key"], reduced["key"], rtol=0, atol=1e-14)
    assert np.allclose(whole["value"], reduced["value"], rtol=0, atol=1e-14)


LAST = np.arange(S) < S - 1
HIDES_THE_LAST_KEY = {
    "mask": {"mask": LAST[None]},
    "key mask": {"key_mask": np.stack([LAST, LAST])},
    "bias": {"bias": np.where(LAST, 0.0, -np.inf)[None]},
    "causal": {"is_causal": True, "offset": S - T - 1},
    "window": {"window": (9, 1), "offset": 0},
    "segments": {"segment_ids": (np.zeros((B, T), int), np.where(LAST, 0, 1)[None].repeat(B, 0))},
    "no row sees anything": {"mask": np.zeros((T, S), bool)},
}


@both_panels
@pytest.mark.parametrize("options", HIDES_THE_LAST_KEY.values(), ids=HIDES_THE_LAST_KEY)
@pytest.mark.parametrize("name", ["key", "value"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_no_query_sees_cannot_reach_anything(panel, options, name, poison):
    clean, poisoned = inputs(), inputs()
    poisoned[name][..., -1, :] = poison
    for ours, theirs in zip(
        panel.attend(**clean, **options), panel.attend(**poisoned, **options), strict=True
    ):
        assert np.array_equal(ours, theirs)
    floating, options = split(options)
    gradients = panel.attend_gradients(poisoned | floating, loss_weights(), **options)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert not gradients[name][..., -1, :].any()


@both_panels
def test_unseen_is_decided_per_key_value_head(panel):
    """Only the two query heads that read key/value head 0 look away from the last key."""
    mask = np.ones((1, N, T, S), bool)
    mask[:, :2, :, -1] = False
    poisoned = inputs(kv_heads=2)
    poisoned["value"][:, 0, -1] = np.nan
    output, _ = panel.attend(**poisoned, mask=mask)
    clean, _ = panel.attend(**inputs(kv_heads=2), mask=mask)
    assert np.array_equal(output, clean)
    mask[:, 1, 0, -1] = True
    output, _ = panel.attend(**poisoned, mask=mask)
    assert np.isnan(output[:, :2]).any()
    assert np.isfinite(output[:, 2:]).all()


@both_panels
def test_what_a_query_sees_does_reach_it(panel):
    poisoned = inputs()
    poisoned["value"][1, 2, 0] = np.nan
    output, _ = panel.attend(**poisoned)
    assert np.isnan(output[1, 2]).all()
    assert np.isfinite(output[0]).all()


@both_panels
def test_nan_in_a_bias_stays(panel):
    bias = np.zeros((T, S))
    bias[0, 2] = np.nan
    output, weights = panel.attend(**inputs(), bias=bias)
    assert np.isnan(output[:, :, 0]).all()
    assert np.isnan(weights[:, :, 0]).all()
    assert np.isfinite(output[:, :, 1:]).all()


@both_panels
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_only_minus_infinity_in_a_bias_hides(panel, dtype):
    """The smallest finite number is a number: where a whole row has it, all keys are alike."""
    bias = np.full((T, S), np.finfo(dtype).min, dtype)
    given = {name: array.astype(dtype) for name, array in inputs().items()}
    _, weights = panel.attend(**given, bias=bias)
    assert np.allclose(weights, 1 / S, rtol=0, atol=1e-7)
    bias[:, 1:] = 0
    _, weights = panel.attend(**given, bias=bias)
    assert not weights[..., 0].any()  # underflow, not hiding


@both_panels
def test_hidden_weights_are_exactly_zero(panel):
    mask = np.random.default_rng(5).random((B, N, T, S)) < 0.5
    given = {name: 30 * array for name, array in inputs().items()}
    _, weights = panel.attend(**given, mask=mask)
    assert not weights[~mask].any()
    assert np.allclose(weights.sum(-1), mask.any(-1), rtol=0, atol=1e-15)
