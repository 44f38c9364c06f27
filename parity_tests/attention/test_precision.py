"""In which precision attention computes, whatever the framework's defaults and contexts."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

from jax_impl.functional import scaled_dot_product_attention as attend_jax
from parity_tests.attention import oracle
from parity_tests.support.panels import JAX, TORCH, both_panels
from torch_impl.functional import scaled_dot_product_attention as attend_torch

NARROW = [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)]
FLOATING = [np.dtype(np.float64), np.dtype(np.float32), *NARROW]


def qkv(dtype, size=1.0, S=7):
    random = np.random.default_rng(0)
    shapes = ((2, 4, 3, 5), (2, 2, S, 5), (2, 2, S, 5))
    return [(size * random.normal(size=shape)).astype(dtype) for shape in shapes]


@both_panels
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_dtype_in_is_dtype_out(panel, dtype):
    options = {
        "bias": np.zeros((3, 7), np.float32),
        "sinks": np.zeros(4, np.float32),
        "softcap": 3.0,
        "is_causal": True,
        "dropout": 0.5,
        "keep": np.ones((2, 4, 3, 7), bool),
    }
    output, weights = panel.attend(*qkv(dtype), **options)
    assert output.dtype == weights.dtype == dtype
    assert np.isfinite(output.astype(np.float64)).all()


@both_panels
def test_float64_stays_float64(panel):
    """The stock functions of JAX and Flax drop to float32 here, 1e-7 away."""
    mask = np.ones((3, 7), bool)
    mask[:, 3] = False
    output, weights = panel.attend(*qkv(np.float64), mask=mask)
    truth = oracle.attention(*qkv(np.float64), mask=mask)
    assert np.abs(output - truth.output).max() < 1e-14
    assert np.abs(weights - truth.weights).max() < 1e-14


@both_panels
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_scores_are_kept_in_float32(panel, dtype):
    """The weights are the float32 softmax, rounded once: half a spacing from the truth."""
    query, key, value = qkv(dtype, size=3.0)
    _, weights = panel.attend(query, key, value)
    truth = oracle.attention(query, key, value).weights
    half = np.spacing(truth.astype(dtype)).astype(float) / 2
    float32_error = 64 * 2.0**-24 * truth  # scores up to 30, each 2 units of roundoff away
    assert (np.abs(weights.astype(float) - truth) <= half + float32_error).all()


@both_panels
def test_float16_scores_do_not_overflow(panel):
    """q k^T is 400,000 here, past float16; so is the largest negative number of a mask."""
    query = np.full((1, 1, 2, 4), 316, np.float16)
    key = np.stack([np.full((1, 1, 4), 316), np.full((1, 1, 4), 315)], 2).astype(np.float16)
    value = np.eye(2, dtype=np.float16)[None, None]
    mask = np.array([[1, 1], [0, 1]])
    output, weights = panel.attend(query, key, value, mask=mask)
    assert weights[0, 0].tolist() == [[1, 0], [0, 1]]
    assert np.array_equal(output, weights)


def autocast_case():
    query, key, value = (TORCH.array(array) for array in qkv(np.float32))
    return query, key, value, {"is_causal": True, "bias": torch.zeros(3, 7)}


def test_autocast_does_not_reach_inside():
    query, key, value, options = autocast_case()
    outside = attend_torch(query, key, value, **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = attend_torch(query, key, value, **options)
        narrow = attend_torch(query.bfloat16(), key.bfloat16(), value.bfloat16(), **options)
    narrow_outside = attend_torch(query.bfloat16(), key.bfloat16(), value.bfloat16(), **options)
    for ours, theirs in zip((*inside, *narrow), (*outside, *narrow_outside), strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_autocast_of_a_module_narrows_its_projections_only():
    torch.manual_seed(0)
    module = TORCH.build("MultiHeadAttention", 8, 2).float()
    x = torch.randn(2, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = module(x, x, x)
    assert output.dtype == weights.dtype == torch.bfloat16
    whole, _ = module(x, x, x)
    assert (output - whole).abs().max() < 0.02


def test_a_device_without_autocast_works():
    query, key, value, options = autocast_case()
    meta = [array.to("meta") for array in (query, key, value)]
    output, weights = attend_torch(*meta, is_causal=options["is_causal"])
    assert output.shape == (2, 4, 3, 5)
    assert weights.device.type == "meta"


def test_jax_products_have_the_highest_precision_unless_the_user_sets_it():
    arrays = JAX.array(tuple(qkv(np.float32)))

    def text():
        return str(jax.make_jaxpr(lambda *qkv: attend_jax(*qkv))(*arrays))

    assert text().count("precision=(Precision.HIGHEST, Precision.HIGHEST)") == 2
    with jax.default_matmul_precision("tensorfloat32"):
        followed = text()
    assert "HIGHEST" not in followed
    assert followed.count("precision=(Precision.HIGH, Precision.HIGH)") == 2


def test_a_compiled_function_follows_a_later_change_of_the_setting():
    compiled = jax.jit(lambda *qkv: attend_jax(*qkv))
    arrays = JAX.array(tuple(qkv(np.float32)))
    default = compiled.lower(*arrays).as_text()
    with jax.default_matmul_precision("bfloat16"):
        changed = compiled.lower(*arrays).as_text()
    assert "HIGHEST" in default
    assert "HIGHEST" not in changed


@both_panels
def test_softmax_of_narrow_scores(panel):
    """Scores 88, 87.5 and 510 zeros in bfloat16, where a bfloat16 softmax loses the difference."""
    dtype = np.dtype(ml_dtypes.bfloat16)
    scores = np.zeros(512)
    scores[:2] = 88, 87.5
    query = np.ones((1, 1, 1, 1), dtype)
    key = scores.astype(dtype).reshape(1, 1, 512, 1)
    _, weights = panel.attend(query, key, np.ones_like(key), scale=1.0)
    powers = np.exp(scores - 88)
    expected = powers / powers.sum()
    assert np.allclose(weights[0, 0, 0].astype(float)[:2], expected[:2], rtol=2**-8)


def test_weights_of_x64_off_and_on_agree():
    arrays = qkv(np.float32)
    off = [np.asarray(x) for x in attend_jax(*map(jnp.asarray, arrays), is_causal=True)]
    on = JAX.attend(*arrays, is_causal=True)
    for ours, theirs in zip(off, on, strict=True):
        assert ours.dtype == theirs.dtype == np.float32
        assert np.array_equal(ours, theirs)


@both_panels
def test_a_wider_bias_is_a_number_not_a_hiding(panel):
    """Cast to float32, -1e300 would be -inf, the one value that hides."""
    inputs = [np.ones((1, 2, 2), np.float32)] * 3
    _, weights = panel.attend(*inputs, bias=np.array([[0.0, -1e300], [-1e300, -1e300]]))
    assert weights.dtype == np.float32
    assert weights.tolist() == [[[1.0, 0.0], [0.5, 0.5]]]


def test_a_numpy_bias_of_float64_is_taken_as_jax_takes_it():
    """Without 64 bits JAX makes float32 of every numpy float64, and so do we: no warning."""
    x = jnp.ones((1, 2, 2))
    _, weights = attend_jax(x, x, x, bias=np.array([[0.0, -np.inf], [0.0, 0.0]]))
    assert weights.dtype == np.float32
    assert weights.tolist() == [[[1.0, 0.0], [0.5, 0.5]]]
