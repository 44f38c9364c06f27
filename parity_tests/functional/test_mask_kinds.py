"""Masks of prefixes, windows, blocks and segments: cell by cell, T other than S, offsets, empty."""

from typing import Any

import numpy as np
import pytest

from parity_tests.support.panels import Panel, both_panels

PREFIXES = np.array([0, 2])


@both_panels
@pytest.mark.parametrize(
    ("T", "S", "offset", "expected"),
    [
        (3, 3, 0, [[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 1, 0], [1, 1, 0], [1, 1, 1]]]),
        (2, 4, 0, [[[1, 0, 0, 0], [1, 1, 0, 0]], [[1, 1, 0, 0], [1, 1, 0, 0]]]),
        (2, 4, 2, [[[1, 1, 1, 0], [1, 1, 1, 1]]] * 2),
        (3, 2, -2, [[[0, 0], [0, 0], [1, 0]], [[1, 1], [1, 1], [1, 1]]]),
        (1, 3, np.array([1, 0]), [[[1, 1, 0]], [[1, 1, 0]]]),
        (0, 2, 0, np.zeros((2, 0, 2))),
        (2, 0, 0, np.zeros((2, 2, 0))),
    ],
)
def test_prefix_mask(panel: Panel, T: int, S: int, offset: Any, expected: Any) -> None:
    mask = panel.run(panel.functional.prefix_mask, T, S, PREFIXES, offset=offset)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@both_panels
def test_a_prefix_beyond_the_keys_shows_all(panel: Panel) -> None:
    mask = panel.run(panel.functional.prefix_mask, 2, 3, np.array([9, 3, 0]))
    np.testing.assert_array_equal(mask[:2], True)
    np.testing.assert_array_equal(mask[2], np.tri(2, 3, dtype=bool))


@both_panels
@pytest.mark.parametrize(
    ("T", "S", "window", "offset", "expected"),
    [
        (4, 4, (1, 0), 0, [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]),
        (3, 3, (0, 0), 0, np.eye(3)),
        (3, 4, (0, 2), 0, [[1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]),
        (2, 5, (1, 1), 2, [[0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]),
        (3, 2, (1, 0), -1, [[0, 0], [1, 0], [1, 1]]),
        (1, 4, (1, 0), np.array([0, 3, 9]), [[[1, 0, 0, 0]], [[0, 0, 1, 1]], [[0, 0, 0, 0]]]),
        (0, 3, (1, 1), 0, np.zeros((0, 3))),
        (3, 0, (1, 1), 0, np.zeros((3, 0))),
    ],
)
def test_window_mask(
    panel: Panel, T: int, S: int, window: tuple[int, int], offset: Any, expected: Any
) -> None:
    mask = panel.run(panel.functional.window_mask, T, S, window, offset=offset)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@both_panels
@pytest.mark.parametrize(
    ("T", "S", "size", "previous", "offset", "expected"),
    [
        (4, 4, 2, 0, 0, [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]),
        (3, 5, 2, 1, 2, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]),
        (3, 3, 1, 0, 0, np.eye(3)),
        (3, 3, 1, 1, 0, [[1, 0, 0], [1, 1, 0], [0, 1, 1]]),
        (2, 3, 9, 0, 0, np.ones((2, 3))),
        (3, 2, 2, 0, -2, [[0, 0], [0, 0], [1, 1]]),
        (1, 4, 2, 0, np.array([1, 2]), [[[1, 1, 0, 0]], [[0, 0, 1, 1]]]),
        (0, 2, 2, 0, 0, np.zeros((0, 2))),
        (2, 0, 2, 0, 0, np.zeros((2, 0))),
    ],
)
def test_block_mask(
    panel: Panel, T: int, S: int, size: int, previous: int, offset: Any, expected: Any
) -> None:
    function = panel.functional.block_mask
    mask = panel.run(function, T, S, size, num_previous=previous, offset=offset)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.array(expected, bool))


@both_panels
def test_segment_mask(panel: Panel) -> None:
    ids = np.array([[0, 0, 1], [5, 7, 5]])
    mask = panel.run(panel.functional.segment_mask, ids)
    assert mask.dtype == bool
    expected = [[[1, 1, 0], [1, 1, 0], [0, 0, 1]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]]]
    np.testing.assert_array_equal(mask, np.array(expected, bool))
    keys = np.array([[1, 0], [7, 9]])
    mask = panel.run(panel.functional.segment_mask, ids, keys)
    expected = [[[0, 1], [0, 1], [1, 0]], [[0, 0], [1, 0], [0, 0]]]
    np.testing.assert_array_equal(mask, np.array(expected, bool))
    assert panel.run(panel.functional.segment_mask, ids[:, :0], keys).shape == (2, 0, 2)


@both_panels
@pytest.mark.parametrize(
    ("kind", "arguments", "options"),
    [
        ("window_mask", (5, 7, (2, 1)), {"window": (2, 1)}),
        ("segment_mask", (np.array([[0, 0, 1, 1, 2]]), np.array([[0, 1, 1, 2, 2, 0, 1]])), {}),
    ],
)
def test_a_mask_is_what_the_option_of_attention_does(
    panel: Panel, kind: str, arguments: Any, options: Any
) -> None:
    query, key, value = (
        np.random.default_rng(i).normal(size=(1, n, 4)) for i, n in enumerate((5, 7, 7))
    )
    if kind == "segment_mask":
        options = {"segment_ids": arguments}
    mask = panel.run(getattr(panel.functional, kind), *arguments)
    by_mask, by_option = (
        panel.attend(query, key, value, **given) for given in ({"mask": mask}, options)
    )
    for ours, theirs in zip(by_mask, by_option, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@both_panels
def test_masks_combine(panel: Panel) -> None:
    """A local, prefix-aware, packed mask of samples."""
    window = panel.run(panel.functional.window_mask, 3, 3, (1, 0))
    prefix = panel.run(panel.functional.prefix_mask, 3, 3, PREFIXES)
    combined = panel.run(panel.functional.combine_masks, window, prefix)
    np.testing.assert_array_equal(combined, window & prefix)


@both_panels
@pytest.mark.parametrize(
    ("kind", "arguments", "options", "error", "words"),
    [
        ("block_mask", (3, 3, 0), {}, ValueError, "block_size=0 must be a positive integer"),
        ("block_mask", (3, 3, 2), {"num_previous": -1}, ValueError, "num_previous=-1 must be"),
        ("block_mask", (3, 3, 2), {"offset": 1.0}, TypeError, "offset is float.*integer"),
        ("window_mask", (3, 3, (-1, 0)), {}, ValueError, r"window=\(-1, 0\)"),
        ("window_mask", (3, 3, 2), {}, ValueError, "left, right"),
        ("window_mask", (3, 3, (1, 0)), {"offset": 1.0}, TypeError, "offset is float.*integer"),
        ("prefix_mask", (3, 3, np.ones(2)), {}, TypeError, "prefix_lengths is float64"),
        ("prefix_mask", (3, 3, PREFIXES), {"offset": 1.0}, TypeError, "offset is float.*integer"),
        ("segment_mask", (np.ones((1, 3)),), {}, TypeError, "query_ids is float64"),
        ("segment_mask", (np.ones((1, 3), int), np.ones((1, 2))), {}, TypeError, "key_ids is"),
    ],
)
def test_what_is_refused(
    panel: Panel, kind: str, arguments: Any, options: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        panel.run(getattr(panel.functional, kind), *arguments, **options)
