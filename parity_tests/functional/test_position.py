"""Sinusoidal positions: the table, its limits, its dtype."""

import numpy as np
import pytest
import torch

from diptych.spec import PositionalEncodingConfig, SinusoidTable
from parity_tests.components.modules import PANELS, new, run
from parity_tests.support.harness import DTYPES, from_torch, to_jax, to_torch


def rows(panel: str, T: int, d_model: int, *, max_seq_len: int = 8, offset: int = 0) -> np.ndarray:
    """Return what is added at each of T positions."""
    config = PositionalEncodingConfig(d_model=d_model, max_seq_len=max_seq_len)
    return run(panel, config, np.zeros((T, d_model), np.float32), offset=offset)[0]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("d_model", "right"),
    [(5, [0.841471, 0.540302, 0.025116, 0.999685, 0.000631]), (1, [0.841471])],
)
def test_odd_widths(panel: str, d_model: int, right: list[float]) -> None:
    """After codertimo/BERT-pytorch#78."""
    np.testing.assert_allclose(rows(panel, 2, d_model)[1], right, atol=1e-6)


@pytest.mark.parametrize("panel", PANELS)
def test_sine_and_cosine_of_one_angle(panel: str) -> None:
    """After shenweichen/DeepCTR#379."""
    table = rows(panel, 8, 6)
    np.testing.assert_allclose(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, 1, atol=1e-6)
    np.testing.assert_allclose(table[0], [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("panel", PANELS)
def test_it_is_added_to_every_sample(panel: str) -> None:
    config = PositionalEncodingConfig(d_model=6, max_seq_len=8)
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype(np.float32)
    right = x + SinusoidTable(8, 6).values[:5].astype(np.float32)
    np.testing.assert_array_equal(run(panel, config, x)[0], right)


@pytest.mark.parametrize("panel", PANELS)
def test_offset_shifts(panel: str) -> None:
    np.testing.assert_array_equal(rows(panel, 3, 6, offset=5), rows(panel, 8, 6)[5:])


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("T", "offset", "words"),
    [
        (5, 0, "a sequence of 5 positions exceeds max_seq_len=4"),
        (2, 3, "a sequence of 5 positions exceeds max_seq_len=4"),
        (2, -1, "offset=-1 must not be negative"),
    ],
)
def test_past_the_table(panel: str, T: int, offset: int, words: str) -> None:
    """After bentrevett/pytorch-seq2seq#89."""
    with pytest.raises(ValueError, match=words):
        rows(panel, T, 6, max_seq_len=4, offset=offset)


@pytest.mark.parametrize("panel", PANELS)
def test_the_whole_table_and_nothing(panel: str) -> None:
    assert rows(panel, 4, 6, max_seq_len=4).shape == (4, 6)
    assert rows(panel, 0, 6).shape == (0, 6)


@pytest.mark.parametrize("panel", PANELS)
def test_a_width_of_one_does_not_broadcast(panel: str) -> None:
    config = PositionalEncodingConfig(d_model=6)
    with pytest.raises(ValueError, match=r"shape \(3, 1\), expected \(..., T, 6\)"):
        run(panel, config, np.zeros((3, 1), np.float32))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_same_bits_in_both_panels(dtype: str) -> None:
    config = PositionalEncodingConfig(d_model=31, max_seq_len=600)
    x = np.zeros((600, 31), DTYPES[dtype])
    in_torch = from_torch(new("torch", config)(to_torch(x)))
    in_jax = np.asarray(new("jax", config)(to_jax(x)))
    assert in_torch.dtype == in_jax.dtype == DTYPES[dtype]
    assert in_torch.tobytes() == in_jax.tobytes()


def test_float64_keeps_every_bit_of_the_table() -> None:
    module = new("torch", PositionalEncodingConfig(d_model=6, max_seq_len=600)).double()
    result = module(torch.zeros(600, 6, dtype=torch.float64))
    assert from_torch(result).tobytes() == SinusoidTable(600, 6).values.tobytes()


@pytest.mark.parametrize("panel", PANELS)
def test_it_holds_no_parameters(panel: str) -> None:
    module = new(panel, PositionalEncodingConfig(d_model=6))
    assert PANELS[panel].export_state(module) == {}
