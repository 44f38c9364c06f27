"""DistilBERT (Sanh et al. 2019) as ``transformers`` stores it: no token types, no pooler."""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import expect
from .bert import STACK_KIND
from .family import EncoderFamily, Head, TiedCopy

_LAYER, _OURS = "transformer.layer.{i}", "layers.{i}"
_MODULES = {
    "embeddings.word_embeddings": "embedding.token_embed",
    "embeddings.position_embeddings": "embedding.position_embed",
    "embeddings.LayerNorm": "embedding.embed_norm",
    f"{_LAYER}.attention.q_lin": f"{_OURS}.attention.q_proj",
    f"{_LAYER}.attention.k_lin": f"{_OURS}.attention.k_proj",
    f"{_LAYER}.attention.v_lin": f"{_OURS}.attention.v_proj",
    f"{_LAYER}.attention.out_lin": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.sa_layer_norm": f"{_OURS}.attention_norm",
    f"{_LAYER}.ffn.lin1": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.ffn.lin2": f"{_OURS}.feed_forward.down_proj",
    f"{_LAYER}.output_layer_norm": f"{_OURS}.feed_forward_norm",
}
_HEAD = {
    "vocab_transform": "transform_proj",
    "vocab_layer_norm": "transform_norm",
    "vocab_projector.bias": "vocab_bias_param",
}
_EPS = 1e-12


def _read(values: dict[str, Any]) -> spec.EncoderConfig:
    d_model = require(values, "dim")
    return spec.EncoderConfig(
        layer=spec.TransformerEncoderLayerConfig(
            d_model=d_model,
            num_heads=require(values, "n_heads"),
            d_ff=require(values, "hidden_dim"),
            dropout=values["dropout"],
            activation=hf.read_activation(values, "activation"),
            eps=_EPS,
            attention_dropout=values["attention_dropout"],
        ),
        num_layers=require(values, "n_layers"),
        embedding=spec.TextEmbeddingConfig(
            vocab_size=require(values, "vocab_size"),
            d_model=d_model,
            max_seq_len=require(values, "max_position_embeddings"),
            num_token_types=0,
            norm=spec.NormConfig(eps=_EPS),
            dropout=values["dropout"],
        ),
    )


def _read_masked_lm(values: dict[str, Any], rows: int | None) -> spec.MaskedLMHeadConfig:
    return spec.MaskedLMHeadConfig(
        d_model=values["dim"],
        vocab_size=values["vocab_size"],
        activation=hf.read_activation(values, "activation"),
        eps=_EPS,
    )


def _write(encoder: spec.EncoderConfig, heads: Mapping[str, HeadConfig]) -> dict[str, Any]:
    layer, embedding = encoder.layers[0], expect(encoder.embedding, spec.TextEmbeddingConfig)
    return {
        "activation": hf.write_activation(layer.feed_forward.activation),
        "attention_dropout": layer.attention.attention_dropout,
        "dim": encoder.d_model,
        "dropout": layer.dropout,
        "hidden_dim": layer.feed_forward.d_ff,
        "max_position_embeddings": embedding.max_seq_len,
        "n_heads": layer.attention.num_heads,
        "n_layers": encoder.num_layers,
        "vocab_size": embedding.vocab_size,
    }


DISTILBERT = EncoderFamily(
    name="distilbert",
    summary="DistilBERT (DistilBertModel, DistilBertForMaskedLM)",
    model_types=("distilbert",),
    architectures={"DistilBertForMaskedLM": ("masked_lm",), "DistilBertModel": ()},
    modules=_MODULES,
    heads={"masked_lm": Head(_HEAD, _read_masked_lm)},
    copies={"embeddings.word_embeddings.weight": TiedCopy("vocab_projector.weight")},
    settings=hf.settings_table(
        {
            "activation": Setting(str, "gelu"),
            "attention_dropout": Setting(NUMBER, 0.1),
            "dim": SIZE,
            "dropout": Setting(NUMBER, 0.1),
            "hidden_dim": SIZE,
            "max_position_embeddings": SIZE,
            "n_heads": SIZE,
            "n_layers": SIZE,
            "vocab_size": SIZE,
        },
        bookkeeping={"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds"},
        fixed={"tie_word_embeddings": (True,), "tie_weights_": (True,)},
    ),
    sizes={
        "vocab_size": ("embeddings.word_embeddings.weight", 0),
        "dim": ("embeddings.word_embeddings.weight", 1),
        "max_position_embeddings": ("embeddings.position_embeddings.weight", 0),
        "hidden_dim": ("transformer.layer.0.ffn.lin1.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    prefix="distilbert.",
    layers=("transformer.layer", "n_layers"),
    buffers={"embeddings.position_ids": "arange"},
)
