"""ALBERT (Lan et al. 2020) as ``transformers`` stores it: groups of layers share their weights.

Here every layer has its own copy; writing needs the copies of a group to be the same, bit for bit.
"""

from collections.abc import Mapping
from typing import Any

from ...rules import Copy, Rule, rule
from ...spec import EncoderConfig, MaskedLMHeadConfig, TextEmbeddingConfig
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..modules import PARTS
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import expect
from .bert import (
    BUFFERS,
    EMBEDDINGS,
    HEAD_BOOKKEEPING,
    STACK_KIND,
    UNDERSTOOD,
    read_encoder,
    read_masked_lm,
    write_encoder,
)
from .family import EncoderFamily, Head, TiedCopy

_GROUP = "encoder.albert_layer_groups"
_SHARED = {
    "attention.query": "attention.q_proj",
    "attention.key": "attention.k_proj",
    "attention.value": "attention.v_proj",
    "attention.dense": "attention.out_proj",
    "attention.LayerNorm": "attention_norm",
    "ffn": "feed_forward.up_proj",
    "ffn_output": "feed_forward.down_proj",
    "full_layer_layer_norm": "feed_forward_norm",
}
_HEAD = {
    "predictions.dense": "transform_proj",
    "predictions.LayerNorm": "transform_norm",
    "predictions.bias": "vocab_bias_param",
}


def _read(values: dict[str, Any]) -> EncoderConfig:
    return read_encoder(values, embed_dim=require(values, "embedding_size"))


def _read_masked_lm(values: dict[str, Any], rows: int | None) -> MaskedLMHeadConfig:
    width = values["embedding_size"]
    return read_masked_lm(values, embed_dim=None if width == values["hidden_size"] else width)


def _write(encoder: EncoderConfig, heads: Mapping[str, HeadConfig]) -> dict[str, Any]:
    embedding = expect(encoder.embedding, TextEmbeddingConfig)
    return write_encoder(encoder, usual="gelu_new") | {"embedding_size": embedding.embed_dim}


def _layers(encoder: EncoderConfig, theirs: str, ours: str) -> list[Rule]:
    """Return the rules that give every layer a copy of its group's weights."""
    number = encoder.num_layers
    return [
        rule(
            f"{theirs}{_GROUP}.0.albert_layers.0.{name}.{part}",
            [f"{ours}layers.{i}.{to}.{part}" for i in range(number)],
            Copy(number),
        )
        for name, to in _SHARED.items()
        for part in PARTS
    ]


ALBERT = EncoderFamily(
    name="albert",
    summary="ALBERT with one group of layers (AlbertModel, AlbertForMaskedLM)",
    model_types=("albert",),
    architectures={"AlbertForMaskedLM": ("masked_lm",), "AlbertModel": ()},
    modules=EMBEDDINGS
    | {
        "encoder.embedding_hidden_mapping_in": "embedding.embed_proj",
        "pooler": "pooler_proj",
    },
    heads={"masked_lm": Head(_HEAD, _read_masked_lm)},
    copies={
        "embeddings.word_embeddings.weight": TiedCopy("predictions.decoder.weight"),
        "predictions.bias": TiedCopy("predictions.decoder.bias"),
    },
    extra_rules=_layers,
    extra_names=tuple(
        f"{_GROUP}.{{i}}.albert_layers.{{j}}.{name}.{part}" for name in _SHARED for part in PARTS
    ),
    settings=hf.settings_table(
        UNDERSTOOD
        | {
            "attention_probs_dropout_prob": Setting(NUMBER, 0.0),
            "embedding_size": SIZE,
            "hidden_act": Setting(str, "gelu_new"),
            "hidden_dropout_prob": Setting(NUMBER, 0.0),
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping=HEAD_BOOKKEEPING
        | {"down_scale_factor", "layers_to_keep", "net_structure_type"},
        fixed={
            "gap_size": (0,),
            "inner_group_num": (1,),
            "num_hidden_groups": (1,),
            "num_memory_blocks": (0,),
            "position_embedding_type": ("absolute", None),
        },
    ),
    sizes={
        "vocab_size": ("embeddings.word_embeddings.weight", 0),
        "embedding_size": ("embeddings.word_embeddings.weight", 1),
        "hidden_size": ("encoder.embedding_hidden_mapping_in.weight", 0),
        "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
        "intermediate_size": (f"{_GROUP}.0.albert_layers.0.ffn.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    prefix="albert.",
    layers=(None, "num_hidden_layers"),
    buffers=BUFFERS,
)
