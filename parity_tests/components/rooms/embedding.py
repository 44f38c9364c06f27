"""Tables of vectors, alone and as texts sum them."""

from dataclasses import replace
from typing import Any

import numpy as np

from diptych.spec import EmbeddingConfig, NormConfig, TextEmbeddingConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, linear, under
from parity_tests.components.room import IDS, QUERIES, Example, Room
from parity_tests.components.rooms.norms import norm
from parity_tests.support.sizes import MAX_LEN, VOCAB, B, D

TEXT = TextEmbeddingConfig(vocab_size=VOCAB, d_model=D, max_seq_len=MAX_LEN)
TYPED_TEXT = replace(TEXT, num_token_types=3)


def embedding(config, tensors, ids):
    return tensors["weight"][ids]


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


EMBEDDING = Room(
    Example(EmbeddingConfig(num_embeddings=VOCAB, d_model=D), (IDS,)),
    changes={"num_embeddings": 5, "d_model": 2 * D},
    formula=embedding,
    calls={
        "Embedding": lambda draw: ComponentCase(
            EmbeddingConfig(num_embeddings=VOCAB, d_model=D), {"ids": draw.ids()}
        )
    },
    is_slow=True,
)
TEXT_EMBEDDING = Room(
    Example(TEXT, (IDS,)),
    changes={
        "vocab_size": 29,
        "d_model": 2 * D,
        "max_seq_len": 6,
        "num_token_types": 0,
        "norm": NormConfig(kind="rms"),
        "dropout": 0.5,
        "scale": 3.0,
        "position_offset": 2,
        "padding_id": 1,
        "embed_dim": 3,
        "embed_bias": {"embed_dim": 3, "embed_bias": False},
        "embed_proj_of": {"embed_dim": 3, "embed_proj_of": "tokens"},
        "shared_tokens": True,
    },
    formula=text_embedding,
    calls={
        "TextEmbedding": lambda draw: ComponentCase(
            TYPED_TEXT,
            {"ids": draw.ids()},
            {
                "token_type_ids": draw.integers(3, B, QUERIES),
                "position_ids": draw.integers(MAX_LEN, B, QUERIES),
            },
            is_working=True,
        ),
        "TextEmbedding, no norm, scaled, offset": lambda draw: ComponentCase(
            replace(TYPED_TEXT, norm=None, scale=2.5, position_offset=2),
            {"ids": draw.ids()},
            {"position_ids": draw.integers(MAX_LEN, B, QUERIES)},
        ),
        "TextEmbedding, padding, projected": lambda draw: ComponentCase(
            replace(TEXT, padding_id=1, embed_dim=3, num_token_types=0), {"ids": draw.ids() % 3}
        ),
        "TextEmbedding, tokens projected": lambda draw: ComponentCase(
            replace(TYPED_TEXT, embed_dim=3, embed_bias=False, embed_proj_of="tokens", scale=2.5),
            {"ids": draw.ids()},
            {"position_ids": draw.integers(MAX_LEN, B, QUERIES)},
        ),
        "TextEmbedding of tokens alone": lambda draw: ComponentCase(
            replace(
                TEXT,
                max_seq_len=None,
                num_token_types=0,
                norm=NormConfig(kind="rms", unit_offset=True),
                embed_dim=3,
                embed_bias=False,
            ),
            {"ids": draw.ids()},
        ),
    },
    is_slow=True,
)
