"""BLOOM (Le Scao et al. 2022) as ``transformers`` stores it: ALiBi, q, k, v in turns by head."""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...rules import Transform
from .. import transformers_settings as hf
from ..fused import both_parts, groups
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect, token_embedding, write_ends
from .family import DecoderFamily

_LAYER, _OURS = "h.{i}", "layers.{i}"
_QKV = f"{_LAYER}.self_attention.query_key_value"
_MODULES: Modules = {
    "word_embeddings": "embedding.token_embed",
    "word_embeddings_layernorm": "embedding.embed_norm",
    f"{_LAYER}.input_layernorm": f"{_OURS}.attention_norm",
    _QKV: tuple(f"{_OURS}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.self_attention.dense": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.post_attention_layernorm": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.mlp.dense_h_to_4h": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.mlp.dense_4h_to_h": f"{_OURS}.feed_forward.down_proj",
    "ln_f": "final_norm",
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    # The first files call the width n_embed.
    d_model = values["n_embed"] or require(values, "hidden_size")
    vocab_size = require(values, "vocab_size")
    norm = spec.NormConfig(eps=values["layer_norm_epsilon"])
    return spec.DecoderConfig(
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=values["num_attention_heads"] or require(values, "n_head"),
                attention_dropout=values["attention_dropout"],
                score=spec.ScoreConfig(is_causal=True),
            ),
            feed_forward=spec.FeedForwardConfig(
                d_model=d_model, d_ff=4 * d_model, activation="gelu_tanh"
            ),
            norm=norm,
            dropout=values["hidden_dropout"],
        ),
        num_layers=require(values, "n_layer"),
        embedding=token_embedding(vocab_size, d_model, norm=norm),
        final_norm=norm,
        position_bias=spec.AlibiConfig(),
        head=spec.LogitsHeadConfig(
            d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"]
        ),
    )


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return {
        "attention_dropout": layer.attention.attention_dropout,
        "hidden_dropout": layer.dropout,
        "hidden_size": config.d_model,
        "layer_norm_epsilon": layer.norm.of(1).eps,
        "n_head": layer.attention.num_heads,
        "n_layer": config.num_layers,
        **write_ends(config),
    }


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    attention = expect(config.layers[0].attention, spec.AttentionConfig)
    return both_parts(_QKV, groups(attention))


BLOOM = DecoderFamily(
    name="bloom",
    summary="BLOOM (BloomForCausalLM, BloomModel)",
    model_types=("bloom",),
    architectures=("BloomForCausalLM", "BloomModel"),
    modules=_MODULES,
    settings=hf.settings_table(
        {
            "attention_dropout": Setting(NUMBER, 0.0),
            "hidden_dropout": Setting(NUMBER, 0.0),
            "hidden_size": SIZE,
            "layer_norm_epsilon": Setting(NUMBER, 1e-5),
            "n_embed": SIZE,
            "n_head": SIZE,
            "n_layer": SIZE,
            "num_attention_heads": SIZE,
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={
            "attention_softmax_in_fp32",
            "bias_dropout_fusion",
            "masked_softmax_fusion",
            "offset_alibi",
            "seq_length",
            "skip_bias_add",
            "skip_bias_add_qkv",
            "slow_but_exact",
            "unk_token_id",
        },
        fixed={"apply_residual_connection_post_layernorm": (False,), "n_inner": (None,)},
    ),
    sizes={
        "vocab_size": ("word_embeddings.weight", 0),
        "hidden_size": ("word_embeddings.weight", 1),
        "n_embed": ("word_embeddings.weight", 1),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    transforms=_transforms,
    prefix="transformer.",
    layers=("h", "n_layer"),
)
