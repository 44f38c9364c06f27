"""The workloads in JAX: ours, and the stock layers of Flax NNX."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from benchmarks.workloads import LAYER, MINILM, Attention, Calls, token_ids
from jax_impl import Encoder, MultiHeadAttention


def attention(workload: Attention) -> Calls:
    """Return one multi-head attention, forward."""
    x, ours, stock = _attention_pair(workload)
    return {
        "ours": _forward(lambda m, x: m(x, x, x, need_weights=False)[0], ours, x),
        "stock": _forward(lambda m, x: m(x), stock, x),
    }


def attention_with_weights(workload: Attention) -> Calls:
    """Return one multi-head attention that also gives its weights, forward."""
    x, ours, stock = _attention_pair(workload)

    def stock_weights(module: nnx.Module, x: Array) -> object:
        return module(x, sow_weights=True), nnx.pop(module, nnx.Intermediate)

    return {
        "ours": _forward(lambda m, x: m(x, x, x), ours, x),
        "stock": _forward(stock_weights, stock, x),
    }


def attention_gradient(workload: Attention) -> Calls:
    """Return one multi-head attention, forward and backward."""
    x, ours, stock = _attention_pair(workload)
    return {
        "ours": _gradient(lambda m, x: m(x, x, x, need_weights=False)[0], ours, x),
        "stock": _gradient(lambda m, x: m(x), stock, x),
    }


def minilm() -> Calls:
    """Return a 6-layer encoder of MiniLM's sizes, forward."""
    ids = jnp.asarray(token_ids())
    ours = Encoder.from_config(MINILM, rngs=nnx.Rngs(0)).eval()
    stock = _StockEncoder(rngs=nnx.Rngs(0))
    return {
        "ours": _forward(lambda m, ids: m(ids).output, ours, ids),
        "stock": _forward(lambda m, ids: m(ours.embedding(ids)), stock, ids),
    }


class _StockLayer(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.attention = _stock_attention(LAYER.d_model, LAYER.num_heads)
        self.norm1 = nnx.LayerNorm(LAYER.d_model, rngs=rngs)
        self.norm2 = nnx.LayerNorm(LAYER.d_model, rngs=rngs)
        self.linear1 = nnx.Linear(LAYER.d_model, LAYER.d_ff, rngs=rngs)
        self.linear2 = nnx.Linear(LAYER.d_ff, LAYER.d_model, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.linear2(jax.nn.gelu(self.linear1(x), approximate=False)))


class _StockEncoder(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.layers = nnx.List([_StockLayer(rngs=rngs) for _ in range(MINILM.num_layers)])

    def __call__(self, x: Array) -> Array:
        for layer in self.layers:
            x = layer(x)
        return x


def _stock_attention(d_model: int, num_heads: int) -> nnx.MultiHeadAttention:
    return nnx.MultiHeadAttention(
        num_heads, d_model, decode=False, deterministic=True, rngs=nnx.Rngs(0)
    )


def _attention_pair(workload: Attention) -> tuple[Array, nnx.Module, nnx.Module]:
    ours = MultiHeadAttention(workload.d_model, workload.num_heads, rngs=nnx.Rngs(0))
    stock = _stock_attention(workload.d_model, workload.num_heads)
    return jnp.asarray(workload.inputs()), ours, stock


def _forward(call: Callable[..., object], module: nnx.Module, x: Array) -> Callable[[], object]:
    graph, state = nnx.split(module)
    compiled = jax.jit(lambda state, x: call(nnx.merge(graph, state), x))
    return lambda: jax.block_until_ready(compiled(state, x))


def _gradient(call: Callable[..., Array], module: nnx.Module, x: Array) -> Callable[[], object]:
    graph, state = nnx.split(module)
    compiled = jax.jit(jax.grad(lambda state, x: call(nnx.merge(graph, state), x).sum()))
    return lambda: jax.block_until_ready(compiled(state, x))
