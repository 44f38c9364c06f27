"""RoBERTa and XLM-R (Liu et al. 2019; Conneau et al. 2020): positions count from the padding id."""

from typing import Any

from ...spec import EncoderConfig, EncoderWithHeadsConfig
from ..settings import Setting, SettingsTable, require
from ..transformers_settings import BOOKKEEPING, FIXED
from .bert import EMBEDDINGS, LINEARS, NORMS
from .family import EncoderFamily
from .parts import (
    HEAD_BOOKKEEPING,
    UNDERSTOOD,
    read_embedding,
    read_layer,
    read_masked_lm,
    write_encoder,
)

_MODULES = {
    name: ours for name, ours in (EMBEDDINGS | LINEARS | NORMS).items() if ours != "pooler_proj"
}
_HEADS = {
    "lm_head.dense": "masked_lm.transform_proj",
    "lm_head.layer_norm": "masked_lm.transform_norm",
    "lm_head.bias": "masked_lm.vocab_bias_param",
}


def _read(values: dict[str, Any]) -> EncoderWithHeadsConfig:
    padding = values["pad_token_id"]
    length = require(values, "max_position_embeddings") - padding - 1
    layer = read_layer(values)
    return EncoderWithHeadsConfig(
        encoder=EncoderConfig(
            layer=layer,
            num_layers=require(values, "num_hidden_layers"),
            embedding=read_embedding(values, length, padding_id=padding),
        ),
        masked_lm=read_masked_lm(values),
    )


def _write(encoder: EncoderConfig, heads: EncoderWithHeadsConfig | None) -> dict[str, Any]:
    embedding: Any = encoder.embedding
    return write_encoder(encoder) | {
        "max_position_embeddings": embedding.num_positions,
        "pad_token_id": embedding.padding_id,
    }


ROBERTA = EncoderFamily(
    name="roberta",
    summary="RoBERTa, XLM-R (RobertaModel, RobertaForMaskedLM)",
    model_types=("roberta", "xlm-roberta", "camembert"),
    architectures=("RobertaForMaskedLM", "RobertaModel"),
    modules=_MODULES,
    heads=_HEADS,
    copies={
        "embeddings.word_embeddings.weight": "lm_head.decoder.weight",
        "lm_head.bias": "lm_head.decoder.bias",
    },
    settings=SettingsTable(
        understood=UNDERSTOOD
        | {
            "pad_token_id": Setting(int, 1, nullable=True),
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping=(BOOKKEEPING | HEAD_BOOKKEEPING) - {"pad_token_id"},
        fixed=FIXED | {"position_embedding_type": ("absolute", None)},
    ),
    sizes={
        "vocab_size": ("embeddings.word_embeddings.weight", 0),
        "hidden_size": ("embeddings.word_embeddings.weight", 1),
        "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": ("embeddings.token_type_embeddings.weight", 0),
        "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0),
    },
    read=_read,
    write=_write,
    pooler="pooler.dense",
    prefix="roberta.",
    buffers={"embeddings.position_ids": "arange", "embeddings.token_type_ids": "zeros"},
).family
