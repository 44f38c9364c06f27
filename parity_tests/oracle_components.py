"""Every component in numpy float64, from its config and its canonical parameters, forward only.

Written from the formulas of the papers; shares no code with a panel. Outputs are nested as the
panels nest theirs.
"""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from diptych.spec import Config
from parity_tests.oracle import Array, attention

Tensors = dict[str, Array]

_erf = np.vectorize(math.erf, otypes=[np.float64])

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "tanh": np.tanh,
}


def component(config: Config, tensors: Tensors, *args: Any, **options: Any) -> Any:
    """Compute what the component of a config returns in evaluation mode.

    Args:
        config: Of the component.
        tensors: float64 parameters by canonical name, in torch's shapes.
        args: Positional arguments of the call.
        options: Keyword arguments of the call.
    """
    return _COMPONENTS[config.component](config, tensors, *args, **options)


def linear(tensors: Tensors, name: str, x: Array) -> Array:
    """``x W^T + b``, b where there is one."""
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", 0.0)


def layer_norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axis (Ba et al. 2016)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + config.eps) * tensors["weight"] + tensors["bias"]


def _bare_attention(config, tensors, query, key, value, mask=None, **options):
    score = {field.name: getattr(config.score, field.name) for field in fields(config.score)}
    result = attention(query, key, value, mask=mask, **score, **options)
    return result.output, result.weights


def _head_attention(config, tensors, x, *, need_weights=False):
    query, key, value = (linear(tensors, name, x) for name in ("q_proj", "k_proj", "v_proj"))
    result = attention(query, key, value, is_causal=True)
    return (result.output, result.weights) if need_weights else result.output


def _multi_head_attention(config, tensors, query, key, value, mask=None, **options):
    N, K, H = config.sizes

    def heads(name: str, x: Array, count: int) -> Array:
        columns = linear(tensors, name, x)
        return np.stack([columns[..., i * H : (i + 1) * H] for i in range(count)], axis=-3)

    query, key = heads("q_proj", query, N), heads("k_proj", key, K)
    output, weights = _bare_attention(
        config, {}, query, key, heads("v_proj", value, K), mask, **options
    )
    joined = np.concatenate([output[..., i, :, :] for i in range(N)], axis=-1)
    return linear(tensors, "out_proj", joined), weights


def _positional_encoding(config, tensors, x, *, offset=0):
    def at(position: int, column: int) -> float:
        angle = position / 10000.0 ** (2 * (column // 2) / config.d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    columns = range(config.d_model)
    rows = range(offset, offset + x.shape[-2])
    return x + np.array([[at(position, column) for column in columns] for position in rows])


def _feed_forward(config, tensors, x):
    hidden = ACTIVATIONS[config.activation](linear(tensors, "up_proj", x))
    return linear(tensors, "down_proj", hidden)


def _embedding(config, tensors, ids):
    return tensors["weight"][ids]


def _text_embedding(config, tensors, ids, *, token_type_ids=None, position_ids=None):
    positions = np.arange(ids.shape[-1]) if position_ids is None else position_ids
    x = tensors["token_embed.weight"][ids] + tensors["position_embed.weight"][positions]
    if config.num_token_types:
        types = np.zeros_like(ids) if token_type_ids is None else token_type_ids
        x = x + tensors["token_type_embed.weight"][types]
    return layer_norm(config, _under("embed_norm", tensors), x)


def _encoder_layer(config, tensors, x, mask=None, *, need_weights=False, **options):
    def norm(name: str, x: Array) -> Array:
        return layer_norm(config, _under(name, tensors), x)

    def attend(x: Array) -> Any:
        inner = _under("attention", tensors)
        return _multi_head_attention(config.attention, inner, x, x, x, mask, **options)

    def feed_forward(x: Array) -> Array:
        return _feed_forward(config.feed_forward, _under("feed_forward", tensors), x)

    if config.norm_placement == "pre":
        attended, weights = attend(norm("attention_norm", x))
        x = x + attended
        x = x + feed_forward(norm("feed_forward_norm", x))
    else:
        attended, weights = attend(x)
        x = norm("attention_norm", x + attended)
        x = norm("feed_forward_norm", x + feed_forward(x))
    return (x, weights) if need_weights else x


def _encoder(config, tensors, inputs, *, need_weights=False, need_hidden_states=False, **options):
    masks = {name: options.pop(name) for name in ("mask", "key_mask") if name in options}
    x = inputs
    if config.embedding is not None:
        x = _text_embedding(config.embedding, _under("embedding", tensors), inputs, **options)
    hidden_states, all_weights = [x], []
    for i in range(config.num_layers):
        layer = _under(f"layers.{i}", tensors)
        x, weights = _encoder_layer(config.layer, layer, x, need_weights=True, **masks)
        hidden_states.append(x)
        all_weights.append(weights)
    pooled = np.tanh(linear(tensors, "pooler_proj", x[..., 0, :])) if config.pooler else None
    return {
        "output": x,
        "pooled": pooled,
        "hidden_states": tuple(hidden_states) if need_hidden_states else None,
        "attention_weights": tuple(all_weights) if need_weights else None,
    }


def _encoder_with_heads(config, tensors, inputs, **options):
    encoded = _encoder(config.encoder, _under("encoder", tensors), inputs, **options)
    x, pooled, found = encoded["output"], encoded["pooled"], {"encoded": encoded}
    for name, head in config.heads.items():
        own = _under(name, tensors)
        match name:
            case "masked_lm":
                hidden = ACTIVATIONS[head.activation](linear(own, "transform_proj", x))
                hidden = layer_norm(head, _under("transform_norm", own), hidden)
                table = tensors["encoder.embedding.token_embed.weight"]
                found[name] = hidden @ table.T + own["vocab_bias_param"]
            case "next_sentence" | "sequence_classification":
                found[name] = linear(own, "classifier_proj", pooled)
            case "token_classification":
                found[name] = linear(own, "classifier_proj", x)
            case "question_answering":
                logits = linear(own, "span_proj", x)
                found[name] = (logits[..., 0], logits[..., 1])
    return found


def _under(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


_COMPONENTS: dict[str, Callable[..., Any]] = {
    "Embedding": _embedding,
    "Encoder": _encoder,
    "EncoderWithHeads": _encoder_with_heads,
    "FeedForward": _feed_forward,
    "HeadAttention": _head_attention,
    "LayerNorm": layer_norm,
    "MultiHeadAttention": _multi_head_attention,
    "PositionalEncoding": _positional_encoding,
    "ScaledDotProductAttention": _bare_attention,
    "TextEmbedding": _text_embedding,
    "TransformerEncoderLayer": _encoder_layer,
}
