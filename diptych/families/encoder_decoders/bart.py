"""BART (Lewis et al. 2020) as ``transformers`` stores it: positions from row 2 on, post-norm."""

from dataclasses import replace
from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import expect
from . import parts
from .family import EncoderDecoderFamily, Size

_OFFSET = 2
_ENDS = {
    f"{stack}.{theirs}": f"{stack}.embedding.{ours}"
    for stack in ("encoder", "decoder")
    for theirs, ours in {
        "embed_positions": "position_embed",
        "layernorm_embedding": "embed_norm",
    }.items()
}


def _read(values: dict[str, Any]) -> spec.EncoderDecoderConfig:
    d_model = require(values, "d_model")
    embedding = spec.TextEmbeddingConfig(
        vocab_size=require(values, "vocab_size"),
        d_model=d_model,
        max_seq_len=require(values, "max_position_embeddings"),
        num_token_types=0,
        norm=spec.NormConfig(),
        dropout=values["dropout"],
        scale=d_model**0.5 if values["scale_embedding"] else None,
        position_offset=_OFFSET,
    )
    return spec.EncoderDecoderConfig(
        encoder=spec.EncoderConfig(
            layer=parts.read_layer(values, "encoder", norm_placement="post"),
            num_layers=require(values, "encoder_layers"),
            embedding=embedding,
        ),
        decoder=spec.DecoderConfig(
            layer=parts.read_layer(values, "decoder", norm_placement="post"),
            num_layers=require(values, "decoder_layers"),
            embedding=replace(embedding, shared_tokens=True),
        ),
    )


def _read_head(values: dict[str, Any], has_weight: bool, has_bias: bool) -> spec.LogitsHeadConfig:
    return spec.LogitsHeadConfig(
        d_model=values["d_model"], vocab_size=values["vocab_size"], bias=has_bias
    )


def _write(encoder: spec.EncoderConfig, decoder: spec.DecoderConfig | None) -> dict[str, Any]:
    embedding = expect(encoder.embedding, spec.TextEmbeddingConfig)
    return parts.write_layers(encoder, expect(decoder, spec.DecoderConfig)) | {
        "max_position_embeddings": embedding.max_seq_len,
        "scale_embedding": embedding.scale is not None,
    }


BART = EncoderDecoderFamily(
    name="bart",
    summary="BART (BartForConditionalGeneration, BartModel), with or without model.",
    model_types=("bart",),
    architectures=("BartForConditionalGeneration", "BartModel"),
    modules={**_ENDS, **parts.LAYERS},
    tables=("shared", "encoder.embed_tokens", "decoder.embed_tokens"),
    settings=hf.settings_table(
        {
            **parts.UNDERSTOOD,
            "dropout": Setting(NUMBER, 0.1),
            "max_position_embeddings": SIZE,
            "scale_embedding": Setting(bool, False),
        },
        bookkeeping=parts.ALIASES
        | parts.TRAINING
        | {"classif_dropout", "classifier_dropout", "force_bos_token_to_be_generated", "save_step"},
        fixed={
            "add_bias_logits": (False,),
            "add_final_layer_norm": (False,),
            "extra_pos_embeddings": (_OFFSET,),
            "is_encoder_decoder": (True, None),
            "normalize_before": (False,),
            "normalize_embedding": (True,),
            "static_position_embeddings": (False,),
            "tie_word_embeddings": (True,),
        },
    ),
    sizes={
        **parts.LAYER_SIZES,
        "max_position_embeddings": Size("encoder.embed_positions.weight", 0, _OFFSET),
    },
    layers=parts.LAYER_COUNTS,
    read=_read,
    read_head=_read_head,
    write=_write,
    stack_kind=parts.STACK_KIND,
    head_bias="final_logits_bias",
    buffers={"encoder.version": None, "decoder.version": None},
)
