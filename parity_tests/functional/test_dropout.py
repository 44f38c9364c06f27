"""Dropout: what is kept, what it becomes, what is drawn and when."""

import jax
import ml_dtypes
import numpy as np
import pytest
import torch

from jax_impl.functional import apply_dropout as apply_dropout_jax
from parity_tests.support.panels import JAX, TORCH, both_panels
from torch_impl.functional import apply_dropout as apply_dropout_torch

X = np.random.default_rng(0).normal(size=(3, 5))
KEEP = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)


@both_panels
@pytest.mark.parametrize("keep", [KEEP, KEEP.astype(np.int64), 7 * KEEP.astype(np.uint8)])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.75])
def test_given_keep_mask(panel, keep, rate):
    dropped = panel.run(panel.functional.apply_dropout, X, rate, keep=keep)
    assert np.array_equal(dropped, np.where(KEEP, X * (1 / (1 - rate)), 0.0))


def test_given_keep_mask_gives_the_same_bits_in_float32():
    x = X.astype(np.float32)
    ours = TORCH.run(TORCH.functional.apply_dropout, x, 0.3, keep=KEEP)
    compiled = jax.jit(lambda x, keep: apply_dropout_jax(x, 0.3, keep=keep))
    theirs = JAX.run(compiled, x, KEEP)
    assert ours.dtype == theirs.dtype == np.float32
    assert ours.tobytes() == theirs.tobytes()


@both_panels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rate", [0.1, 0.15, 0.37])
def test_the_factor_is_not_rounded_to_16_bits(panel, dtype, rate):
    """Every value is rounded once; a rounded factor would scale all of them alike."""
    x = X.astype(getattr(ml_dtypes, dtype, dtype))
    dropped = panel.run(panel.functional.apply_dropout, x, rate, keep=np.ones(X.shape, bool))
    exact = x.astype(np.float32) * np.float32(1 / (1 - rate))
    assert dropped.dtype == x.dtype
    assert np.array_equal(dropped, exact.astype(x.dtype))


@both_panels
def test_what_is_dropped_cannot_leak(panel):
    x = np.array([np.nan, np.inf, 1.0])
    dropped = panel.run(panel.functional.apply_dropout, x, 0.5, keep=np.array([0, 0, 1]))
    assert dropped.tolist() == [0.0, 0.0, 2.0]


@both_panels
@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_rate_outside_its_range_is_refused(panel, rate):
    with pytest.raises(ValueError, match=rf"rate={rate}.*0 <= rate < 1"):
        panel.run(panel.functional.apply_dropout, X, rate, keep=KEEP)


@both_panels
def test_keep_mask_of_another_kind_is_refused(panel):
    with pytest.raises(ValueError, match=r"keep has shape \(5,\), expected .*\(3, 5\)"):
        panel.run(panel.functional.apply_dropout, X, 0.5, keep=KEEP[0])
    with pytest.raises(TypeError, match="keep is float64"):
        panel.run(panel.functional.apply_dropout, X, 0.5, keep=KEEP.astype(np.float64))
    with pytest.raises(TypeError, match="x is int64"):
        panel.run(panel.functional.apply_dropout, KEEP.astype(np.int64), 0.5, keep=KEEP)


def test_rate_zero_draws_nothing():
    state = torch.random.get_rng_state()
    x = torch.from_numpy(X)
    assert apply_dropout_torch(x, 0.0) is x
    assert torch.equal(torch.random.get_rng_state(), state)
    assert apply_dropout_jax(X, 0.0) is X  # and needs no key


def test_jax_without_key_is_refused_with_both_ways_out():
    with pytest.raises(ValueError, match=r"rng_key=.*\.eval\(\)"):
        JAX.run(apply_dropout_jax, X, 0.1)


@pytest.mark.parametrize("rate", [0.1, 0.5, 2**-20, 1 - 2**-40])
@pytest.mark.parametrize("wide", [False, True])
def test_jax_keeps_by_the_documented_rule(rate, wide):
    with jax.enable_x64(wide):
        key = jax.random.key(5)
        x = jax.numpy.ones((64, 64))
        kept = np.asarray(apply_dropout_jax(x, rate, rng_key=key)) != 0
        bits = np.asarray(jax.random.bits(key, (64, 64), "uint32"))
    assert np.array_equal(kept, bits.astype(np.float64) >= rate * 2**32)


def test_jax_draw_is_that_of_its_key():
    draws = [
        np.asarray(apply_dropout_jax(jax.numpy.ones((8, 8)), 0.5, rng_key=jax.random.key(seed)))
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_torch_draw_is_that_of_the_generator():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(apply_dropout_torch(torch.ones(8, 8), 0.5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@both_panels
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_one_independent_draw_per_element(panel, rate):
    """Every row and column keeps its share: no element shares its draw with another."""
    torch.manual_seed(0)
    drawn = {} if panel is TORCH else {"rng_key": jax.random.key(0)}
    x = panel.array(np.ones((400, 300), np.float32))
    kept = np.asarray(panel.functional.apply_dropout(x, rate, **drawn)) != 0
    deviation = np.sqrt(rate * (1 - rate))
    assert abs(kept.mean() - (1 - rate)) < 5 * deviation / np.sqrt(kept.size)
    assert np.abs(kept.mean(0) - (1 - rate)).max() < 6 * deviation / np.sqrt(400)
    assert np.abs(kept.mean(1) - (1 - rate)).max() < 6 * deviation / np.sqrt(300)
    assert len({row.tobytes() for row in kept}) == 400


@both_panels
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtype_in_is_dtype_out(panel, dtype):
    x = X.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    dropped = panel.run(panel.functional.apply_dropout, x, 0.5, keep=KEEP)
    assert dropped.dtype == x.dtype
    assert np.array_equal(dropped, np.where(KEEP, 2 * x, 0 * x))
