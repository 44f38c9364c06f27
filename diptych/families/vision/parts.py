"""Encoders of images and of text as CLIP and SigLIP store them: modules, sizes and settings."""

from collections.abc import Mapping
from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import expect

_LAYER, _OURS = "encoder.layers.{i}", "layers.{i}"
_LAYERS = {
    **{f"{_LAYER}.self_attn.{x}": f"{_OURS}.attention.{x}" for x in ("q_proj", "k_proj", "v_proj")},
    f"{_LAYER}.self_attn.out_proj": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.layer_norm1": f"{_OURS}.attention_norm",
    f"{_LAYER}.layer_norm2": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.mlp.fc1": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.mlp.fc2": f"{_OURS}.feed_forward.down_proj",
}
MODULES: Mapping[str, Modules] = {
    "image": {
        "embeddings.patch_embedding": "embedding.patch_conv",
        "embeddings.position_embedding": "embedding.position_embed",
        **_LAYERS,
        "post_layernorm": "final_norm",
    },
    "text": {
        "embeddings.token_embedding": "embedding.token_embed",
        "embeddings.position_embedding": "embedding.position_embed",
        **_LAYERS,
        "final_layer_norm": "final_norm",
    },
}
"""Our modules by theirs, for each encoder; theirs without the prefix."""

_SIZES = {
    "hidden_size": ("embeddings.position_embedding.weight", 1),
    "intermediate_size": ("encoder.layers.0.mlp.fc1.weight", 0),
}
SIZES = {
    "image": {
        **_SIZES,
        "num_channels": ("embeddings.patch_embedding.weight", 1),
        "patch_size": ("embeddings.patch_embedding.weight", 2),
    },
    "text": {
        **_SIZES,
        "max_position_embeddings": ("embeddings.position_embedding.weight", 0),
        "vocab_size": ("embeddings.token_embedding.weight", 0),
    },
}
"""Settings that a bare state dict shows: the tensor, without the prefix, and its axis."""

_UNDERSTOOD = {
    "attention_dropout": Setting(NUMBER, 0.0),
    "hidden_size": SIZE,
    "intermediate_size": SIZE,
    "num_attention_heads": SIZE,
    "num_hidden_layers": SIZE,
}
UNDERSTOOD = {
    "image": _UNDERSTOOD | {"image_size": SIZE, "num_channels": SIZE, "patch_size": SIZE},
    "text": _UNDERSTOOD | {"max_position_embeddings": SIZE, "vocab_size": SIZE},
}


def read_image(
    values: Mapping[str, Any], patches: Mapping[str, Any], **pooling: Any
) -> spec.VisionEncoderConfig:
    """Return the encoder of images that the settings describe.

    Args:
        values: Settings.
        patches: More of the embedding of the patches.
        **pooling: More of the encoder.
    """
    return spec.VisionEncoderConfig(
        embedding=spec.PatchEmbeddingConfig(
            image_size=require(values, "image_size"),
            patch_size=require(values, "patch_size"),
            d_model=require(values, "hidden_size"),
            num_channels=require(values, "num_channels"),
            **patches,
        ),
        layer=_read_layer(values, spec.ScoreConfig()),
        num_layers=require(values, "num_hidden_layers"),
        final_norm=read_norm(values),
        **pooling,
    )


def read_text(
    values: Mapping[str, Any], score: spec.ScoreConfig, pooled_token: int | str
) -> spec.EncoderConfig:
    """Return the encoder of text that the settings describe."""
    return spec.EncoderConfig(
        layer=_read_layer(values, score),
        num_layers=require(values, "num_hidden_layers"),
        embedding=spec.TextEmbeddingConfig(
            vocab_size=require(values, "vocab_size"),
            d_model=require(values, "hidden_size"),
            max_seq_len=require(values, "max_position_embeddings"),
            num_token_types=0,
            norm=None,
            dropout=0.0,
        ),
        final_norm=read_norm(values),
        pooled_token=pooled_token,
    )


def read_norm(values: Mapping[str, Any]) -> spec.NormConfig:
    """Return the norm that the settings describe."""
    return spec.NormConfig(eps=values["layer_norm_eps"])


def read_feed_forward(values: Mapping[str, Any]) -> spec.FeedForwardConfig:
    """Return the network that the settings describe."""
    return spec.FeedForwardConfig(
        d_model=require(values, "hidden_size"),
        d_ff=require(values, "intermediate_size"),
        activation=hf.read_activation(values, "hidden_act"),
    )


def write_image(config: spec.VisionEncoderConfig) -> dict[str, Any]:
    """Return the settings that ``read_image`` reads."""
    return _write_layers(config) | {
        "image_size": config.embedding.image_size,
        "num_channels": config.embedding.num_channels,
        "patch_size": config.embedding.patch_size,
    }


def write_text(config: spec.EncoderConfig) -> dict[str, Any]:
    """Return the settings that ``read_text`` reads."""
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    return _write_layers(config) | {
        "max_position_embeddings": embedding.max_seq_len,
        "vocab_size": embedding.vocab_size,
    }


def _read_layer(values: Mapping[str, Any], score: spec.ScoreConfig) -> spec.BlockConfig:
    return spec.BlockConfig(
        attention=spec.AttentionConfig(
            d_model=require(values, "hidden_size"),
            num_heads=require(values, "num_attention_heads"),
            attention_dropout=values["attention_dropout"],
            score=score,
        ),
        feed_forward=read_feed_forward(values),
        norm=read_norm(values),
    )


def _write_layers(config: spec.EncoderConfig | spec.VisionEncoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return {
        "attention_dropout": layer.attention.attention_dropout,
        "hidden_act": hf.write_activation(layer.feed_forward.activation),
        "hidden_size": config.d_model,
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_norm_eps": layer.norm.of(1).eps,
        "num_attention_heads": layer.attention.num_heads,
        "num_hidden_layers": config.num_layers,
    }
