"""Stacks of layers in numpy float64: encoders and decoders of text, and their heads."""

from typing import Any

import numpy as np

from parity_tests.attention.oracle import Array
from parity_tests.components.oracle_attention_modules import block
from parity_tests.components.oracle_parts import (
    ACTIVATIONS,
    Tensors,
    layer_norm,
    linear,
    norm,
    under,
)
from parity_tests.components.oracle_positions import position_bias


def text_embedding(
    config: Any, tensors: Tensors, ids: Array, *, token_type_ids=None, position_ids=None, table=None
) -> Array:
    """Sum the rows of every table, norm, project (Devlin et al. 2019, section 3)."""
    table = tensors["token_embed.weight"] if table is None else table
    x = table[ids] * (config.scale or 1.0)
    if config.embed_proj_of == "tokens":
        x = linear(tensors, "embed_proj", x)
    if config.max_seq_len is not None:
        if position_ids is not None:
            rows = position_ids + config.position_offset
        elif config.padding_id is None:
            rows = np.arange(ids.shape[-1]) + config.position_offset
        else:
            rows = np.array(ids)
            for row in rows.reshape(-1, ids.shape[-1]):
                row[row != config.padding_id] = (
                    config.padding_id + 1 + np.arange(np.count_nonzero(row != config.padding_id))
                )
        x = x + tensors["position_embed.weight"][rows]
    if config.num_token_types:
        types = np.zeros_like(ids) if token_type_ids is None else token_type_ids
        x = x + tensors["token_type_embed.weight"][types]
    if config.norm is not None:
        x = norm(config.norm, under("embed_norm", tensors), x)
    if config.embed_dim is None or config.embed_proj_of == "tokens":
        return x
    return linear(tensors, "embed_proj", x)


def run_layers(
    config: Any,
    tensors: Tensors,
    x: Array,
    *,
    position_ids: Array | None = None,
    need_weights: bool = False,
    need_hidden_states: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Apply a stack's layers in turn, then its final norm."""
    shared = getattr(config, "position_bias", None)
    at = np.arange(x.shape[-2]) if position_ids is None else position_ids
    if shared is not None:
        N = config.layers[0].attention.num_heads
        table = tensors.get("position_bias.bias_embed.weight")
        bias = position_bias(shared, table, N, at, at)
        options["bias"] = bias[None] if bias.ndim < x.ndim + 1 else bias
    hidden_states, weights, cross_weights = [x], [], []
    for i, layer in enumerate(config.layers):
        own = under(f"layers.{i}", tensors)
        given = {} if position_ids is None else {"position_ids": position_ids}
        found = block(layer, own, x, need_weights=True, **given, **options)
        x = found["output"]
        hidden_states.append(x)
        weights.append(found["attention_weights"])
        cross_weights.append(found["cross_attention_weights"])
    if config.final_norm is not None:
        x = norm(config.final_norm, under("final_norm", tensors), x)
    has_cross = need_weights and config.layers[0].cross_attention is not None
    return {
        "output": x,
        "hidden_states": tuple(hidden_states) if need_hidden_states else None,
        "attention_weights": tuple(weights) if need_weights else None,
        "cross_attention_weights": tuple(cross_weights) if has_cross else None,
    }


def encoder(
    config: Any, tensors: Tensors, inputs: Array, *, token_type_ids=None, **options: Any
) -> dict[str, Any]:
    """Embed, apply the layers and perhaps BERT's pooler (Devlin et al. 2019)."""
    x = _embed(config, tensors, inputs, token_type_ids, options)
    found = run_layers(config, tensors, x, **options)
    return found | {"pooled": _pooled(config, tensors, found["output"], inputs)}


def _pooled(config: Any, tensors: Tensors, x: Array, ids: Array) -> Array | None:
    if config.pooler:
        return np.tanh(linear(tensors, "pooler_proj", x[..., 0, :]))
    if config.pooled_token in (None, "last"):
        return None if config.pooled_token is None else x[..., -1, :]
    pooled = np.empty((*x.shape[:-2], x.shape[-1]))
    for place in np.ndindex(ids.shape[:-1]):
        row = list(ids[place])
        token = max(row) if config.pooled_token == "highest" else config.pooled_token
        pooled[place] = x[(*place, row.index(token) if token in row else 0)]
    return pooled


def decoder(
    config: Any,
    tensors: Tensors,
    inputs: Array,
    *,
    token_type_ids=None,
    table: Array | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Embed, apply causal layers, make logits (Vaswani et al. 2017; Radford et al. 2018)."""
    x = _embed(config, tensors, inputs, token_type_ids, options, table)
    found = run_layers(config, tensors, x, **options)
    if config.head is None:
        return found
    table = tensors.get("embedding.token_embed.weight") if table is None else table
    own = under("head", tensors)
    return found | {"logits": logits_head(config.head, own, found["output"], table)}


def encoder_decoder(
    config: Any,
    tensors: Tensors,
    inputs: Array,
    decoder_inputs: Array,
    *,
    key_mask: Array | None = None,
    decoder_key_mask: Array | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Encode, and decode what reads the encoder's output."""
    ours = under("encoder", tensors)
    encoded = encoder(config.encoder, ours, inputs, key_mask=key_mask, **options)
    decoded = decoder(
        config.decoder,
        under("decoder", tensors),
        decoder_inputs,
        table=ours["embedding.token_embed.weight"] if config.shares_tokens else None,
        memory=encoded["output"],
        memory_mask=key_mask,
        key_mask=decoder_key_mask,
        **options,
    )
    return {"encoded": encoded, "decoded": decoded}


def logits_head(config: Any, tensors: Tensors, x: Array, table: Array | None = None) -> Array:
    """``softcap(scale (x W^T + b))``, W the head's own or the token table (Press, Wolf 2017)."""
    if config.tied:
        x = linear(tensors, "embed_proj", x) if config.embed_dim else x
        logits = np.inner(x, table) + tensors.get("vocab_bias_param", 0.0)
    else:
        logits = linear(tensors, "vocab_proj", x)
    logits = logits * config.scale
    return logits if config.softcap is None else config.softcap * np.tanh(logits / config.softcap)


def encoder_with_heads(
    config: Any, tensors: Tensors, inputs: Array, **options: Any
) -> dict[str, Any]:
    """Encode, and apply every task head (Devlin et al. 2019, sections 3 and 4)."""
    encoded = encoder(config.encoder, under("encoder", tensors), inputs, **options)
    x, pooled, found = encoded["output"], encoded["pooled"], {"encoded": encoded}
    for name, head in config.heads.items():
        own = under(name, tensors)
        match name:
            case "masked_lm":
                hidden = ACTIVATIONS[head.activation](linear(own, "transform_proj", x))
                hidden = layer_norm(head, under("transform_norm", own), hidden)
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


def _embed(config, tensors, inputs, token_type_ids, options, table=None):
    """Embed ids where there are tables; rows of learned positions alone read the positions."""
    embedding = config.embedding
    if embedding is None:
        return inputs
    own = {"token_type_ids": token_type_ids, "table": table}
    if embedding.max_seq_len is not None:
        own["position_ids"] = options.get("position_ids")
    return text_embedding(embedding, under("embedding", tensors), inputs, **own)
