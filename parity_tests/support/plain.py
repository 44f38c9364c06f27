"""Plain, decomposed code for one or the other framework: the yardstick that a panel is held to.

Written as a tutorial would write it, in the dtype that comes in, with nothing fused and nothing
widened. ``xp`` is ``torch`` or ``jax.numpy``; parameters have canonical names and torch's shapes.
"""

import math
from types import ModuleType
from typing import Any

Array = Any
Parameters = dict[str, Array]


def linear(x: Array, parameters: Parameters, name: str) -> Array:
    """``x W^T + b``."""
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def layer_norm(xp: ModuleType, x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis."""
    centred = x - xp.mean(x, -1, keepdims=True)
    variance = xp.mean(centred * centred, -1, keepdims=True)
    return centred / xp.sqrt(variance + eps) * weight + bias


def activation(xp: ModuleType, x: Array, name: str) -> Array:
    """One of relu, gelu, tanh by its formula."""
    if name == "relu":
        return xp.where(x > 0, x, xp.zeros_like(x))
    if name == "gelu":
        return 0.5 * x * (1.0 + _erf(xp)(x / math.sqrt(2.0)))
    assert name == "tanh"
    return xp.tanh(x)


def attention(
    xp: ModuleType,
    query: Array,
    key: Array,
    value: Array,
    *,
    visible: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Array | None = None,
) -> tuple[Array, Array]:
    """Output and weights; every query must see a key. Heads may be grouped."""
    group = query.shape[-3] // key.shape[-3] if query.ndim >= 4 else 1
    if group > 1:
        heads = [i // group for i in range(query.shape[-3])]
        key, value = key[..., heads, :, :], value[..., heads, :, :]
    scores = query @ xp.swapaxes(key, -1, -2)
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * xp.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = xp.where(visible, scores, xp.full_like(scores, -math.inf))
    top = xp.amax(scores, -1, keepdims=True)
    if sinks is not None:
        sinks = sinks[:, None, None]
        top = xp.maximum(top, sinks)
    powers = xp.exp(scores - top)
    total = xp.sum(powers, -1, keepdims=True)
    if sinks is not None:
        total = total + xp.exp(sinks - top)
    weights = powers / total
    return weights @ value, weights


def multi_head_attention(
    xp: ModuleType,
    parameters: Parameters,
    prefix: str,
    query: Array,
    key: Array,
    value: Array,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    visible: Array | None = None,
) -> tuple[Array, Array]:
    """Project, attend per head, project back."""

    def heads(x: Array, name: str, count: int) -> Array:
        x = linear(x, parameters, f"{prefix}{name}")
        return xp.swapaxes(x.reshape(*x.shape[:-1], count, x.shape[-1] // count), -2, -3)

    output, weights = attention(
        xp,
        heads(query, "q_proj", num_heads),
        heads(key, "k_proj", num_kv_heads or num_heads),
        heads(value, "v_proj", num_kv_heads or num_heads),
        visible=visible,
    )
    joined = xp.swapaxes(output, -2, -3)
    joined = joined.reshape(*joined.shape[:-2], joined.shape[-2] * joined.shape[-1])
    return linear(joined, parameters, f"{prefix}out_proj"), weights


def encoder_layer(
    xp: ModuleType, parameters: Parameters, prefix: str, x: Array, config: Any, visible: Any = None
) -> tuple[Array, Array]:
    """One layer, post- or pre-norm, without dropout; output and attention weights."""
    config = config.block

    def norm(x: Array, name: str) -> Array:
        weight, bias = parameters[f"{prefix}{name}.weight"], parameters[f"{prefix}{name}.bias"]
        return layer_norm(xp, x, weight, bias, config.norm.eps)

    def feed_forward(x: Array) -> Array:
        hidden = linear(x, parameters, f"{prefix}feed_forward.up_proj")
        hidden = activation(xp, hidden, config.feed_forward.activation)
        return linear(hidden, parameters, f"{prefix}feed_forward.down_proj")

    is_pre = config.norm_placement == "pre"
    inner = norm(x, "attention_norm") if is_pre else x
    attended, weights = multi_head_attention(
        xp,
        parameters,
        f"{prefix}attention.",
        inner,
        inner,
        inner,
        num_heads=config.attention.num_heads,
        visible=visible,
    )
    if is_pre:
        x = x + attended
        return x + feed_forward(norm(x, "feed_forward_norm")), weights
    x = norm(x + attended, "attention_norm")
    return norm(x + feed_forward(x), "feed_forward_norm"), weights


def encoder(
    xp: ModuleType, parameters: Parameters, inputs: Array, config: Any, visible: Any = None
) -> dict[str, Array]:
    """Embeddings where the config has them, layers, pooler; every hidden state and all weights."""
    x = inputs
    if config.embedding is not None:
        length, name = inputs.shape[-1], "embedding."
        x = parameters[f"{name}token_embed.weight"][inputs]
        x = x + parameters[f"{name}position_embed.weight"][:length]
        if config.embedding.num_token_types:
            x = x + parameters[f"{name}token_type_embed.weight"][0]
        weight, bias = parameters[f"{name}embed_norm.weight"], parameters[f"{name}embed_norm.bias"]
        x = layer_norm(xp, x, weight, bias, config.embedding.eps)
    found = {"hidden_states.0": x}
    for i in range(config.num_layers):
        x, weights = encoder_layer(xp, parameters, f"layers.{i}.", x, config.layer, visible)
        found[f"hidden_states.{i + 1}"] = x
        found[f"attention_weights.{i}"] = weights
    found["output"] = x
    if config.pooler:
        found["pooled"] = xp.tanh(linear(x[..., 0, :], parameters, "pooler_proj"))
    return found


def _erf(xp: ModuleType) -> Any:
    if xp.__name__ == "torch":
        return xp.erf
    from jax.scipy.special import erf

    return erf
