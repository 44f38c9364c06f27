"""Encoders of text or of vectors, and what every stack of layers computes."""

from dataclasses import replace
from typing import Any

import numpy as np

from diptych.spec import AlibiConfig, EncoderConfig, NormConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, linear, under
from parity_tests.components.room import EVERYTHING, IDS, QUERIES, Example, Room, key_mask
from parity_tests.components.rooms.block import block
from parity_tests.components.rooms.embedding import TEXT, TYPED_TEXT, text_embedding
from parity_tests.components.rooms.norms import norm
from parity_tests.components.rooms.positions import position_bias
from parity_tests.components.rooms.transformer_layers import GELU_LAYER, LAYER
from parity_tests.support.sizes import B, D

ENCODER = EncoderConfig(layer=LAYER, num_layers=2, embedding=TEXT, pooler=True)
POOLED = EncoderConfig(layer=GELU_LAYER, num_layers=1, embedding=TYPED_TEXT, pooled_token="highest")


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
    x = embed(config, tensors, inputs, token_type_ids, options)
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


def embed(config, tensors, inputs, token_type_ids, options, table=None):
    """Embed ids where there are tables; rows of learned positions alone read the positions."""
    embedding = config.embedding
    if embedding is None:
        return inputs
    own = {"token_type_ids": token_type_ids, "table": table}
    if embedding.max_seq_len is not None:
        own["position_ids"] = options.get("position_ids")
    return text_embedding(embedding, under("embedding", tensors), inputs, **own)


def _first_of_an_id(draw):
    ids = draw.ids()
    return ComponentCase(replace(POOLED, pooled_token=int(ids[0, 3])), {"ids": ids})


ENCODER_ROOM = Room(
    Example(ENCODER, (IDS,)),
    changes={
        "layer": replace(LAYER, d_ff=13),
        "num_layers": 3,
        "embedding": replace(TEXT, num_token_types=3),
        "pooler": False,
        "final_norm": NormConfig(),
        "position_bias": AlibiConfig(),
        "dropout": 0.5,
        "pooled_token": {"pooled_token": 3, "pooler": False},
    },
    formula=encoder,
    calls={
        "Encoder": lambda draw: ComponentCase(
            EncoderConfig(layer=GELU_LAYER, num_layers=2, embedding=TYPED_TEXT, pooler=True),
            {"ids": draw.ids()},
            {"key_mask": key_mask(QUERIES, 7), **EVERYTHING},
        ),
        "Encoder of vectors": lambda draw: ComponentCase(
            EncoderConfig(layer=GELU_LAYER, num_layers=1),
            {"x": draw.normal(B, QUERIES, D)},
            {"mask": draw.coins(QUERIES, QUERIES)},
        ),
        "Encoder, pooled where an id comes first": _first_of_an_id,
        "Encoder, pooled at the last token": lambda draw: ComponentCase(
            replace(POOLED, pooled_token="last", embedding=None),
            {"x": draw.normal(B, QUERIES, D)},
            is_slow=True,
        ),
    },
    is_slow=True,
)
