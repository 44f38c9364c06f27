"""Compilers and function transforms accept attention with every option, and change nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from jax_impl.functional import scaled_dot_product_attention as attend_jax
from parity_tests.support.panels import JAX, TORCH, assert_close, both_panels, to_numpy
from torch_impl.functional import scaled_dot_product_attention as attend_torch

B, N, K, T, S, H = 2, 4, 2, 3, 5, 2
random = np.random.default_rng(0)

QKV = (
    random.normal(size=(B, N, T, H)),
    random.normal(size=(B, K, S, H)),
    random.normal(size=(B, K, S, 3)),
)
ARRAYS = {
    "mask": random.random((B, T, S)) < 0.8,
    "key_mask": np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
    "bias": random.normal(size=(1, N, T, S)),
    "offset": np.array([2, 1]),
    "segment_ids": (np.array([[0, 0, 1]] * B), np.array([[0, 0, 0, 1, 1]] * B)),
    "sinks": np.linspace(-1, 1, N),
    "keep": random.random((B, N, T, S)) < 0.7,
}
STATIC = {"is_causal": True, "window": 4, "softcap": 2.0, "scale": 0.7, "dropout": 0.3}


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


@both_panels
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, ARRAYS | STATIC], ids=len)
def test_compiled(panel, options):
    attend = panel.functional.scaled_dot_product_attention
    arrays = {name: value for name, value in options.items() if name in ARRAYS}
    static = {name: value for name, value in options.items() if name in STATIC}
    compiled = panel.compile(lambda *qkv, **arrays: attend(*qkv, **arrays, **static))
    ours = compiled(*panel.array(QKV), **panel.array(arrays))
    assert_close(ours, attend(*panel.array(QKV), **panel.array(options)))


@both_panels
def test_compiled_module_with_dropout(panel):
    """A training call draws inside the compiled function."""
    torch.manual_seed(0)
    module = panel.build("ScaledDotProductAttention", H, attention_dropout=0.5)
    drawn = {} if panel is TORCH else {"rng_key": jax.random.key(0)}
    compiled = panel.compile(lambda *args, **options: module(*args, **options))
    output, weights = to_numpy(compiled(*panel.array(QKV), **drawn))
    whole_output, whole_weights = panel.attend(*QKV)
    assert np.allclose(weights, whole_weights, rtol=0, atol=1e-14)
    assert not np.allclose(output, whole_output)


def test_a_compiled_offset_is_a_value_in_jax():
    """One compilation serves every offset, as a scalar or per sample."""
    traces = []

    def attend(offset):
        traces.append(offset)
        return attend_jax(*JAX.array(QKV), is_causal=True, offset=offset)

    compiled = jax.jit(attend)
    for offset in (0, 2, -1):
        expected = attend_jax(*JAX.array(QKV), is_causal=True, offset=offset)
        assert_close(compiled(jnp.asarray(offset)), expected)
        assert_close(compiled(jnp.asarray(offset)), expected)
    assert len(traces) == 1


def test_a_scalar_tensor_is_an_offset_in_torch():
    attend = TORCH.functional.scaled_dot_product_attention
    for offset in (0, 2, -1):
        ours = attend(*TORCH.array(QKV), is_causal=True, offset=torch.tensor(offset))
        assert_close(ours, attend(*TORCH.array(QKV), is_causal=True, offset=offset))


def test_gradients_of_both_transforms_agree():
    inputs = [*QKV, ARRAYS["bias"], ARRAYS["sinks"]]
    options = {n: a for n, a in ARRAYS.items() if n not in ("bias", "sinks")} | STATIC

    def loss(attend, options):
        def call(query, key, value, bias, sinks):
            output, weights = attend(query, key, value, bias=bias, sinks=sinks, **options)
            return (output**2).sum() + (weights**2).sum()

        return call

    positions = tuple(range(5))
    of_torch = torch.func.grad(loss(attend_torch, TORCH.array(options)), positions)
    of_jax = jax.jit(jax.grad(loss(attend_jax, JAX.array(options)), positions))
    ours, theirs = of_torch(*TORCH.array(tuple(inputs))), of_jax(*JAX.array(tuple(inputs)))
    assert_close(ours, theirs)
    assert all(np.asarray(gradient).any() for gradient in theirs)


PER_SAMPLE = ("mask", "key_mask", "offset", "segment_ids", "keep")


@both_panels
def test_vmap_over_samples_is_the_batch(panel):
    """One sample is a batch of one: vmap over the batch axis, kept as size 1 inside."""
    attend = panel.functional.scaled_dot_product_attention
    vmap = torch.func.vmap if panel is TORCH else jax.vmap
    whole = {name: ARRAYS[name] for name in ("bias", "sinks")}
    mapped = {name: ARRAYS[name] for name in PER_SAMPLE}

    def one(qkv, mapped):
        qkv = [array[None] for array in qkv]
        lifted = {
            name: tuple(part[None] for part in value) if isinstance(value, tuple) else value[None]
            for name, value in mapped.items()
        }
        output, weights = attend(*qkv, **lifted, **panel.array(whole), **STATIC)
        return output[0], weights[0]

    ours = vmap(one)(panel.array(QKV), panel.array(mapped))
    assert_close(ours, attend(*panel.array(QKV), **panel.array(ARRAYS), **STATIC))


@both_panels
def test_vmap_over_queries_without_heads(panel):
    query, key, value = (array[0, 0] for array in QKV)
    attend = panel.functional.scaled_dot_product_attention
    vmap = torch.func.vmap if panel is TORCH else jax.vmap
    key, value = panel.array((key, value))

    def one(row):
        output, weights = attend(row[None], key, value, mask=panel.array(np.arange(S) != 1))
        return output[0], weights[0]

    ours = vmap(one)(panel.array(query))
    assert_close(ours, attend(panel.array(query), key, value, mask=panel.array(np.arange(S) != 1)))


def test_per_example_gradients_of_torch():
    query, key, value = TORCH.array(QKV)

    def loss(query, key, value):
        output, _ = attend_torch(query[None], key[None], value[None], is_causal=True, window=2)
        return (output**2).sum()

    each = torch.func.vmap(torch.func.grad(loss))(query, key, value)
    one = torch.func.grad(loss)(query[1], key[1], value[1])
    assert torch.allclose(each[1], one, rtol=0, atol=1e-14)
