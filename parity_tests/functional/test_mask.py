"""Masks: what each maker returns, what each shape means, what is refused."""

import numpy as np
import pytest

from parity_tests.support.panels import both_panels

LENGTHS = np.array([3, 0])


@both_panels
@pytest.mark.parametrize(
    ("arguments", "offset", "expected"),
    [
        ((3,), 0, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        ((2, 4), 0, [[1, 0, 0, 0], [1, 1, 0, 0]]),
        ((2, 4), 2, [[1, 1, 1, 0], [1, 1, 1, 1]]),
        ((4, 2), -2, [[0, 0], [0, 0], [1, 0], [1, 1]]),
        ((2, 3), np.array([-1, 1]), [[[0, 0, 0], [1, 0, 0]], [[1, 1, 0], [1, 1, 1]]]),
        ((0, 2), 0, np.zeros((0, 2))),
        ((2, 0), 0, np.zeros((2, 0))),
    ],
)
def test_causal_mask(panel, arguments, offset, expected):
    mask = panel.run(panel.functional.causal_mask, *arguments, offset=offset)
    assert mask.dtype == bool
    assert np.array_equal(mask, np.array(expected, bool))


@both_panels
def test_padding_mask_shows_the_first_keys(panel):
    mask = panel.run(panel.functional.padding_mask, LENGTHS, 4)
    assert mask.dtype == bool
    assert np.array_equal(mask, np.array([[1, 1, 1, 0], [0, 0, 0, 0]], bool)[:, None, None])


@both_panels
@pytest.mark.parametrize("dtype", [bool, np.int32, np.int64, np.uint8])
def test_mask_from_keys(panel, dtype):
    key_mask = np.array([[1, 0, 1], [0, 0, 1]], dtype)
    mask = panel.run(panel.functional.mask_from_keys, key_mask)
    assert mask.dtype == bool
    assert np.array_equal(mask, key_mask.astype(bool)[:, None, None])


@both_panels
def test_not_zero_may_attend_whatever_the_integer(panel):
    mask = panel.run(panel.functional.mask_from_keys, np.array([[2, 0, -1]]))
    assert mask.tolist() == [[[[True, False, True]]]]


@both_panels
def test_combine_masks(panel):
    combine = panel.functional.combine_masks
    causal = np.tri(2, 3, dtype=bool)
    padding = np.array([[1, 0, 1], [1, 1, 1]])[:, None, None]
    combined = panel.run(combine, causal, padding)
    assert combined.dtype == bool
    assert np.array_equal(combined, causal & (padding != 0))
    per_sample = np.array([[[1, 1, 0]], [[0, 1, 1]]])
    assert np.array_equal(panel.run(combine, per_sample, causal), causal & (per_sample != 0))
    assert np.array_equal(panel.run(combine, np.array([[2, 0]])), [[True, False]])


@both_panels
@pytest.mark.parametrize(
    ("shapes", "rule"),
    [
        ([], "at least one mask"),
        ([(2, 3, 3), (2, 1, 1, 3)], "ambiguous"),
        ([(3,), (2, 3, 3)], "ambiguous"),
        ([(2, 3), (3, 3)], "do not broadcast"),
        ([(3, 3), (2, 1, 1, 4)], "do not broadcast"),
    ],
)
def test_combine_masks_refuses(panel, shapes, rule):
    masks = [np.ones(shape, bool) for shape in shapes]
    with pytest.raises(ValueError, match=rule):
        panel.run(panel.functional.combine_masks, *masks)


FLOAT_MASKS = [
    ("mask_from_keys", (np.ones((2, 3), np.float32),), "key_mask"),
    ("combine_masks", (np.ones((2, 3), bool), np.ones((2, 3), np.float32)), "mask"),
]


@both_panels
@pytest.mark.parametrize(("function", "arguments", "name"), FLOAT_MASKS)
def test_a_float_mask_is_refused_with_both_ways_out(panel, function, arguments, name):
    with pytest.raises(TypeError, match=f"^{name} is float32.*{name} != 0.*bias="):
        panel.run(getattr(panel.functional, function), *arguments)


@both_panels
def test_float_lengths_and_offsets_are_refused(panel):
    with pytest.raises(TypeError, match=r"lengths is float64.*integer"):
        panel.run(panel.functional.padding_mask, LENGTHS / 2, 3)
    with pytest.raises(TypeError, match=r"offset is float.*integer"):
        panel.run(panel.functional.causal_mask, 3, offset=1.0)


B, N, T, S, H = 2, 2, 3, 5, 4
"""As many samples as heads, so that an axis of heads read as one of samples would pass."""

FITTING = [
    ((T, S), (1, 1, T, S)),
    ((1, S), (1, 1, 1, S)),
    ((T, 1), (1, 1, T, 1)),
    ((B, T, S), (B, 1, T, S)),
    ((1, T, S), (1, 1, T, S)),
    ((B, 1, S), (B, 1, 1, S)),
    ((B, 1, 1, S), (B, 1, 1, S)),
    ((1, N, T, S), (1, N, T, S)),
    ((B, N, T, S), (B, N, T, S)),
    ((B, 1, T, 1), (B, 1, T, 1)),
]


@both_panels
@pytest.mark.parametrize(("shape", "meaning"), FITTING, ids=str)
@pytest.mark.parametrize("argument", ["mask", "bias"])
def test_what_a_shape_means_beside_heads(panel, argument, shape, meaning):
    random = np.random.default_rng(0)
    visible = random.random(shape) < 0.5
    given = visible if argument == "mask" else np.where(visible, 0.0, -np.inf)
    query, key, value = np.zeros((B, N, T, H)), np.zeros((B, N, S, H)), np.zeros((B, N, S, 1))
    _, weights = panel.attend(query, key, value, **{argument: given})
    assert np.array_equal(weights > 0, np.broadcast_to(visible.reshape(meaning), (B, N, T, S)))


@both_panels
@pytest.mark.parametrize("shape", [(), (S,), (1, 1), (T, 1), (T, S), (B, T, S), (1, T, S)], ids=str)
@pytest.mark.parametrize("argument", ["mask", "bias"])
def test_what_a_shape_means_without_heads(panel, argument, shape):
    visible = np.random.default_rng(1).random(shape) < 0.5
    given = np.asarray(visible if argument == "mask" else np.where(visible, 0.0, -np.inf))
    query, key, value = np.zeros((B, T, H)), np.zeros((B, S, H)), np.zeros((B, S, 1))
    _, weights = panel.attend(query, key, value, **{argument: given})
    assert np.array_equal(weights > 0, np.broadcast_to(visible, (B, T, S)))


REFUSED = [
    ((B, N, T, H), (S,)),
    ((B, N, T, H), (B, S)),
    ((B, N, T, H), (T, S + 1)),
    ((B, N, T, H), (S, T)),
    ((B, N, T, H), (3, T, S)),
    ((B, N, T, H), (1, B, N, T, S)),
    ((B, T, H), (3, T, S)),
    ((B, T, H), (1, B, T, S)),
    ((T, H), (1, T, S)),
]


@both_panels
@pytest.mark.parametrize(("query", "shape"), REFUSED, ids=str)
@pytest.mark.parametrize("argument", ["mask", "bias"])
def test_another_shape_is_refused_with_both_shapes(panel, argument, query, shape):
    given = np.ones(shape, bool) if argument == "mask" else np.ones(shape)
    key = np.zeros((*query[:-2], S, H))
    with pytest.raises(ValueError, match=f"^{argument} of shape ") as caught:
        panel.attend(np.zeros(query), key, key, **{argument: given})
    assert str(shape) in str(caught.value)
    assert str((*query[:-1], S)) in str(caught.value)
