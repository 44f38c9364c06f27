"""Rotating by positions: both pairings, what it keeps, far positions, other people's code."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.models.llama import modeling_llama

from diptych.spec import DynamicScaling, RotaryConfig, RotaryTable
from parity_tests.functional.rotary_cases import POSITIONS, B, H, N, T, X, rotate
from parity_tests.support.harness import DTYPES
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.panels import JAX, TORCH, Panel, both_panels, to_numpy


@both_panels
@pytest.mark.parametrize(
    ("interleaved", "right"),
    [
        (True, [-1.142640, 1.922076, 2.959851, 4.029800]),
        (False, [-1.984111, 1.959901, 2.462378, 4.019800]),
    ],
)
def test_four_channels(panel: Panel, interleaved: bool, right: list[float]) -> None:
    """After huggingface/transformers#25199."""
    x, config = np.array([[1.0, 2.0, 3.0, 4.0]]), RotaryConfig(interleaved=interleaved)
    np.testing.assert_allclose(rotate(panel, x, np.array([1]), config)[0], right, atol=5e-7)


@both_panels
@pytest.mark.parametrize("dim", [4, 10, H])
def test_pairings_are_permutations_of_each_other(panel: Panel, dim: int) -> None:
    """After huggingface/transformers#25199 and vllm-project/vllm PR#55335 (the rest stays)."""
    p = np.r_[np.arange(dim).reshape(dim // 2, 2).T.reshape(dim), dim:H]
    half = rotate(panel, X[..., p], POSITIONS, RotaryConfig(dim=dim))
    inter = rotate(panel, X, POSITIONS, RotaryConfig(dim=dim, interleaved=True))
    np.testing.assert_array_equal(half, inter[..., p])
    np.testing.assert_array_equal(half[..., dim:], X[..., dim:])
    assert not np.isclose(half[..., 1:, :dim], X[..., p][..., 1:, :dim]).all(axis=-2).any()


def test_scores_are_the_same_in_either_pairing() -> None:
    """After huggingface/transformers#25199: q.k does not see the permutation."""
    key = np.random.default_rng(1).normal(size=X.shape)
    p = np.arange(H).reshape(H // 2, 2).T.reshape(H)
    inter = [rotate(TORCH, x, POSITIONS, RotaryConfig(interleaved=True)) for x in (X, key)]
    half = [rotate(TORCH, x[..., p], POSITIONS) for x in (X, key)]
    np.testing.assert_allclose(
        inter[0] @ inter[1].swapaxes(-1, -2), half[0] @ half[1].swapaxes(-1, -2), atol=1e-13
    )


@settings(max_examples=25, deadline=None)
@given(
    first=st.integers(-(2**20), 2**20),
    distance=st.integers(-5000, 5000),
    shift=st.integers(-(2**20), 2**20),
    interleaved=st.booleans(),
    theta=st.sampled_from([100.0, 1e4, 5e5]),
)
def test_norms_stay_and_scores_see_distances_alone(
    first: int, distance: int, shift: int, interleaved: bool, theta: float
) -> None:
    """RoFormer's two properties, equations 11 and 16."""
    config = RotaryConfig(theta=theta, interleaved=interleaved)
    q, k = np.random.default_rng(2).normal(size=(2, 1, H))
    for panel in (TORCH, JAX):

        def at(x: np.ndarray, position: int, panel: Panel = panel) -> np.ndarray:
            return rotate(panel, x, np.array([position]), config)

        assert np.linalg.norm(at(q, first)) == pytest.approx(np.linalg.norm(q), rel=1e-14)
        score = (at(q, first) * at(k, first + distance)).sum()
        moved = (at(q, first + shift) * at(k, first + shift + distance)).sum()
        assert score == pytest.approx(moved, abs=1e-8)  # angles up to 2**21 in float64


@both_panels
def test_position_0_stays(panel: Panel) -> None:
    np.testing.assert_array_equal(rotate(panel, X, np.zeros(T, int)), X)


@both_panels
def test_positions_per_sample(panel: Panel) -> None:
    positions = np.array([[0, 1, 2, 3, 4, 5, 6], [9, 3, 3, -2, 0, 100, 7]])
    rotated = rotate(panel, X, positions)
    for i in range(B):
        np.testing.assert_array_equal(rotated[i], rotate(panel, X[i], positions[i]))
    without_heads = rotate(panel, X[:, 0], positions)
    np.testing.assert_array_equal(without_heads, rotated[:, 0])


@both_panels
@pytest.mark.parametrize("shape", [(T, H), (0, H), (B, N, 0, H), (0, N, T, H), (2, B, N, T, H)])
def test_any_shape(panel: Panel, shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    rotated = rotate(panel, x, np.arange(shape[-2]))
    assert rotated.shape == shape
    np.testing.assert_array_equal(
        rotated, np.broadcast_to(rotate(panel, x[..., :, :], np.arange(shape[-2])), shape)
    )


@both_panels
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_comes_in_goes_out(panel: Panel, dtype: str) -> None:
    x = X.astype(DTYPES[dtype])
    rotated = rotate(panel, x, POSITIONS + 1000)
    assert rotated.dtype == x.dtype
    wide = rotate(panel, x.astype(np.float64), POSITIONS + 1000)
    roundoff = {"float64": 1e-13, "float32": 3e-4, "bfloat16": 2.0**-6, "float16": 2.0**-9}[dtype]
    np.testing.assert_allclose(rotated.astype(np.float64), wide, atol=roundoff)


@both_panels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bits_round_once(panel: Panel, dtype: str) -> None:
    """Angles, cosines and products in float32: only the result is rounded."""
    x = X.astype(DTYPES[dtype])
    wide = rotate(panel, x.astype(np.float32), POSITIONS + 4000)
    rounded = wide.astype(DTYPES[dtype])
    np.testing.assert_array_equal(rotate(panel, x, POSITIONS + 4000), rounded)


FAR = 131_072


def their_rotation(x: torch.Tensor, positions: torch.Tensor) -> np.ndarray:
    """Rotate as Llama does."""
    config = LlamaConfig(hidden_size=2 * H, num_attention_heads=2, head_dim=H)
    embedding = modeling_llama.LlamaRotaryEmbedding(config)
    cos, sin = embedding(x, positions[None])
    rotated, _ = modeling_llama.apply_rotary_pos_emb(x, x, cos, sin)
    return to_numpy(rotated)


def test_far_positions_in_float32_as_the_reference_models() -> None:
    x, positions = X.astype(np.float32), POSITIONS + FAR
    with float64_throughout():
        truth = their_rotation(torch.from_numpy(x.astype(np.float64)), torch.from_numpy(positions))
    assert truth.dtype == np.float64
    theirs = their_rotation(torch.from_numpy(x), torch.from_numpy(positions))
    assert theirs.dtype == np.float32
    theirs_off = np.linalg.norm(theirs - truth)
    assert theirs_off > 1e-4  # float64 angles would be better than the models are
    in_torch, in_jax = (rotate(panel, x, positions) for panel in (TORCH, JAX))
    assert np.linalg.norm(in_torch - truth) <= 4 * theirs_off
    np.testing.assert_allclose(in_torch, in_jax, atol=1e-6)
    np.testing.assert_allclose(rotate(TORCH, X, positions), rotate(JAX, X, positions), atol=1e-14)


@both_panels
def test_gradients_turn_back(panel: Panel) -> None:
    """A rotation's gradient is the rotation by the opposite angle."""
    config = RotaryConfig(dim=10, interleaved=True)
    table = RotaryTable(config, H)

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        rotated = panel.functional.apply_rotary(
            arrays["x"], panel.array(POSITIONS), table.frequencies(T), interleaved=True
        )
        return {"y": rotated}

    cotangent = np.random.default_rng(4).normal(size=X.shape)
    gradient = panel.differentiate(call, {"x": X}, {"y": cotangent}).gradients["x"]
    np.testing.assert_allclose(gradient, rotate(panel, cotangent, -POSITIONS, config), atol=1e-14)


@both_panels
@pytest.mark.parametrize("config", [RotaryConfig(), RotaryConfig(dim=6, interleaved=True)])
def test_compiled(panel: Panel, config: RotaryConfig) -> None:
    table = RotaryTable(config, H)

    def call(x: Any, positions: Any) -> Any:
        return panel.functional.apply_rotary(
            x, positions, table.frequencies(T), interleaved=config.interleaved
        )

    compiled = panel.run(panel.compile(call), X, POSITIONS)
    np.testing.assert_allclose(compiled, rotate(panel, X, POSITIONS, config), atol=1e-14)


def test_dynamic_frequencies_fold_when_compiled() -> None:
    table = RotaryTable(RotaryConfig(scaling=DynamicScaling(factor=2.0, max_seq_len=4)), H)
    for panel in (TORCH, JAX):

        def call(x: Any, positions: Any, panel: Panel = panel) -> Any:
            return panel.functional.apply_rotary(x, positions, table.frequencies(x.shape[-2]))

        compiled = panel.run(panel.compile(call), X, POSITIONS)
        np.testing.assert_allclose(compiled, panel.run(call, X, POSITIONS), atol=1e-14)


@both_panels
@pytest.mark.parametrize(
    ("x", "positions", "error", "words"),
    [
        (X, np.arange(T + 1), ValueError, r"positions has shape \(8,\), expected a last axis of 7"),
        (X, np.zeros((3, T), int), ValueError, r"positions has shape \(3, 7\), expected \(2, 7\)"),
        (X[0, 0, 0], POSITIONS[0], ValueError, r"the input has shape \(16,\)"),
        (X, np.arange(T) / 2, TypeError, "positions is float64, but it must be integer"),
        (np.ones((T, H), int), POSITIONS, TypeError, "x is int64, but it must be floating"),
        (X[..., : H - 2], POSITIONS, ValueError, r"\(2, 2, 7, 14\), expected .* H >= 16"),
    ],
)
def test_what_does_not_fit(panel: Panel, x: Any, positions: Any, error: Any, words: str) -> None:
    frequencies = RotaryTable(RotaryConfig(), H).frequencies(T)
    with pytest.raises(error, match=words):
        panel.run(panel.functional.apply_rotary, x, positions, frequencies)
