"""Whisper (Radford et al. 2022) as ``transformers`` stores it: keys have no bias."""

from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import expect
from . import parts
from .family import EncoderDecoderFamily, Size

_ENDS = {
    "encoder.conv1": "encoder.first_conv1d",
    "encoder.conv2": "encoder.second_conv1d",
    "encoder.embed_positions": "encoder.position_embed",
    "encoder.layer_norm": "encoder.final_norm",
    "decoder.embed_positions": "decoder.embedding.position_embed",
    "decoder.layer_norm": "decoder.final_norm",
}
_BIASES = (True, False, True)


def _read(values: dict[str, Any]) -> spec.EncoderDecoderConfig:
    d_model, dropout = require(values, "d_model"), values["dropout"]
    return spec.EncoderDecoderConfig(
        encoder=spec.AudioEncoderConfig(
            num_mel_bins=require(values, "num_mel_bins"),
            layer=parts.read_layer(values, "encoder", norm_placement="pre", qkv_bias=_BIASES),
            num_layers=require(values, "encoder_layers"),
            max_seq_len=require(values, "max_source_positions"),
            dropout=dropout,
        ),
        decoder=spec.DecoderConfig(
            layer=parts.read_layer(values, "decoder", norm_placement="pre", qkv_bias=_BIASES),
            num_layers=require(values, "decoder_layers"),
            embedding=spec.TextEmbeddingConfig(
                vocab_size=require(values, "vocab_size"),
                d_model=d_model,
                max_seq_len=require(values, "max_target_positions"),
                num_token_types=0,
                norm=None,
                dropout=dropout,
            ),
            final_norm=spec.NormConfig(),
        ),
    )


def _read_head(values: dict[str, Any], has_weight: bool, has_bias: bool) -> spec.LogitsHeadConfig:
    return spec.LogitsHeadConfig(
        d_model=values["d_model"],
        vocab_size=values["vocab_size"],
        tied=values["tie_word_embeddings"],
    )


def _write(encoder: spec.AudioEncoderConfig, decoder: spec.DecoderConfig | None) -> dict[str, Any]:
    decoder = expect(decoder, spec.DecoderConfig)
    tied = {} if decoder.head is None else {"tie_word_embeddings": decoder.head.tied}
    return parts.write_layers(encoder, decoder) | {
        "max_source_positions": encoder.max_seq_len,
        "max_target_positions": expect(decoder.embedding, spec.TextEmbeddingConfig).max_seq_len,
        "num_mel_bins": encoder.num_mel_bins,
        **tied,
    }


WHISPER = EncoderDecoderFamily(
    name="whisper",
    summary="Whisper (WhisperForConditionalGeneration, WhisperModel), with or without model.",
    model_types=("whisper",),
    architectures=("WhisperForConditionalGeneration", "WhisperModel"),
    modules={**_ENDS, **parts.LAYERS},
    tables=("decoder.embed_tokens",),
    table="decoder.embedding.token_embed",
    settings=hf.settings_table(
        {
            **parts.UNDERSTOOD,
            "dropout": Setting(NUMBER, 0.0),
            "max_source_positions": SIZE,
            "max_target_positions": SIZE,
            "num_mel_bins": SIZE,
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping=parts.ALIASES
        | parts.TRAINING
        | {
            "alignment_heads",
            "apply_spec_augment",
            "classifier_proj_size",
            "mask_feature_length",
            "mask_feature_min_masks",
            "mask_feature_prob",
            "mask_time_length",
            "mask_time_min_masks",
            "mask_time_prob",
            "median_filter_width",
        },
        fixed={
            "is_encoder_decoder": (True, None),
            "scale_embedding": (False,),
            "use_weighted_layer_sum": (False,),
        },
    ),
    sizes={
        **parts.LAYER_SIZES,
        "max_source_positions": Size("encoder.embed_positions.weight", 0),
        "max_target_positions": Size("decoder.embed_positions.weight", 0),
        "num_mel_bins": Size("encoder.conv1.weight", 1),
    },
    layers=parts.LAYER_COUNTS,
    read=_read,
    read_head=_read_head,
    write=_write,
    encoder=spec.AudioEncoderConfig,
    stack_kind=parts.STACK_KIND,
    head="proj_out",
    untie="to read both, give --set tie_word_embeddings=false",
)
