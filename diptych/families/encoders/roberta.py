"""RoBERTa and XLM-R (Liu et al. 2019; Conneau et al. 2020): positions count from the padding id."""

from collections.abc import Mapping
from typing import Any

from ...spec import EncoderConfig, TextEmbeddingConfig
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..settings import Setting, require
from ..stacks import expect
from .bert import (
    BUFFERS,
    HEAD_BOOKKEEPING,
    MODULES,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    read_encoder,
    read_masked_lm,
    write_encoder,
)
from .family import EncoderFamily, Head, TiedCopy

_HEAD = {
    "lm_head.dense": "transform_proj",
    "lm_head.layer_norm": "transform_norm",
    "lm_head.bias": "vocab_bias_param",
}


def _read(values: dict[str, Any]) -> EncoderConfig:
    padding = values["pad_token_id"]
    length = require(values, "max_position_embeddings") - padding - 1
    if length < 1:
        raise ValueError(
            f"max_position_embeddings: {values['max_position_embeddings']} must be at least 2 more "
            f"than pad_token_id={padding}: positions count from it"
        )
    return read_encoder(values, length, padding_id=padding)


def _write(encoder: EncoderConfig, heads: Mapping[str, HeadConfig]) -> dict[str, Any]:
    embedding = expect(encoder.embedding, TextEmbeddingConfig)
    if embedding.padding_id is None:
        raise ValueError("embedding.padding_id=None, only the id that positions count from")
    return write_encoder(encoder) | {
        "max_position_embeddings": embedding.num_positions,
        "pad_token_id": embedding.padding_id,
    }


ROBERTA = EncoderFamily(
    name="roberta",
    summary="RoBERTa, XLM-R (RobertaModel, RobertaForMaskedLM)",
    model_types=("roberta", "xlm-roberta", "camembert"),
    architectures={"RobertaForMaskedLM": ("masked_lm",), "RobertaModel": ()},
    modules=MODULES,
    heads={"masked_lm": Head(_HEAD, read_masked_lm)},
    copies={
        "embeddings.word_embeddings.weight": TiedCopy("lm_head.decoder.weight"),
        "lm_head.bias": TiedCopy("lm_head.decoder.bias"),
    },
    settings=hf.settings_table(
        UNDERSTOOD | {"pad_token_id": Setting(int, 1), "tie_word_embeddings": Setting(bool, True)},
        bookkeeping=HEAD_BOOKKEEPING,
        fixed={"position_embedding_type": ("absolute", None)},
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    prefix="roberta.",
    buffers=BUFFERS,
)
