"""OPT (Zhang et al. 2022) as ``transformers`` stores it: positions from row 2 on."""

from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect, write_ends
from .family import DecoderFamily

_LAYER = "layers.{i}"
_MODULES = {
    "embed_tokens": "embedding.token_embed",
    "embed_positions": "embedding.position_embed",
    "project_in": "embedding.embed_proj",
    "project_out": "head.embed_proj",
    f"{_LAYER}.self_attn_layer_norm": f"{_LAYER}.attention_norm",
    f"{_LAYER}.self_attn.q_proj": f"{_LAYER}.attention.q_proj",
    f"{_LAYER}.self_attn.k_proj": f"{_LAYER}.attention.k_proj",
    f"{_LAYER}.self_attn.v_proj": f"{_LAYER}.attention.v_proj",
    f"{_LAYER}.self_attn.out_proj": f"{_LAYER}.attention.out_proj",
    f"{_LAYER}.final_layer_norm": f"{_LAYER}.feed_forward_norm",
    f"{_LAYER}.fc1": f"{_LAYER}.feed_forward.up_proj",
    f"{_LAYER}.fc2": f"{_LAYER}.feed_forward.down_proj",
    "final_layer_norm": "final_norm",
}
_OFFSET = 2


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model, vocab_size = require(values, "hidden_size"), require(values, "vocab_size")
    width = values["word_embed_proj_dim"] or d_model
    # OPT-350m: narrower tables, projected before positions are added, and back before the head.
    embed_dim = None if width == d_model else width
    bias, is_pre = values["enable_bias"], values["do_layer_norm_before"]
    layer = spec.BlockConfig(
        attention=spec.AttentionConfig(
            d_model=d_model,
            num_heads=require(values, "num_attention_heads"),
            qkv_bias=bias,
            out_bias=bias,
            attention_dropout=values["attention_dropout"],
            score=spec.ScoreConfig(is_causal=True),
        ),
        feed_forward=spec.FeedForwardConfig(
            d_model=d_model,
            d_ff=require(values, "ffn_dim"),
            activation=hf.read_activation(values, "activation_function"),
            bias=bias,
        ),
        norm_placement="pre" if is_pre else "post",
        dropout=values["dropout"],
    )
    return spec.DecoderConfig(
        layer=layer,
        num_layers=require(values, "num_hidden_layers"),
        embedding=spec.TextEmbeddingConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            max_seq_len=require(values, "max_position_embeddings"),
            num_token_types=0,
            norm=None,
            dropout=0.0,
            position_offset=_OFFSET,
            embed_dim=embed_dim,
            embed_bias=False,
            embed_proj_of="sum" if embed_dim is None else "tokens",
        ),
        final_norm=spec.NormConfig() if is_pre and not values["_remove_final_layer_norm"] else None,
        head=spec.LogitsHeadConfig(
            d_model=d_model,
            vocab_size=vocab_size,
            tied=values["tie_word_embeddings"],
            embed_dim=embed_dim,
        ),
    )


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    is_pre = layer.norm_placement == "pre"
    return {
        "_remove_final_layer_norm": is_pre and config.final_norm is None,
        "activation_function": hf.write_activation(layer.feed_forward.activation),
        "attention_dropout": layer.attention.attention_dropout,
        "do_layer_norm_before": is_pre,
        "dropout": layer.dropout,
        "enable_bias": layer.attention.out_bias,
        "ffn_dim": layer.feed_forward.d_ff,
        "hidden_size": config.d_model,
        "max_position_embeddings": embedding.max_seq_len,
        "num_attention_heads": layer.attention.num_heads,
        "num_hidden_layers": config.num_layers,
        "word_embed_proj_dim": embedding.embed_dim or config.d_model,
        **write_ends(config),
    }


OPT = DecoderFamily(
    name="opt",
    summary="OPT (OPTForCausalLM; OPTModel, but not of 350m)",
    model_types=("opt",),
    architectures=("OPTForCausalLM", "OPTModel"),
    modules={f"decoder.{theirs}": ours for theirs, ours in _MODULES.items()},
    settings=hf.settings_table(
        {
            "_remove_final_layer_norm": Setting(bool, False),
            "activation_function": Setting(str, "relu"),
            "attention_dropout": Setting(NUMBER, 0.0),
            "do_layer_norm_before": Setting(bool, True),
            "dropout": Setting(NUMBER, 0.1),
            "enable_bias": Setting(bool, True),
            "ffn_dim": SIZE,
            "hidden_size": SIZE,
            "max_position_embeddings": SIZE,
            "num_attention_heads": SIZE,
            "num_hidden_layers": SIZE,
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
            "word_embed_proj_dim": SIZE,
        },
        bookkeeping={"activation_dropout", "init_std", "layerdrop"},
        fixed={"layer_norm_elementwise_affine": (True,)},
    ),
    sizes={
        "vocab_size": ("decoder.embed_tokens.weight", 0),
        "hidden_size": ("decoder.embed_positions.weight", 1),
        "word_embed_proj_dim": ("decoder.embed_tokens.weight", 1),
        "ffn_dim": ("decoder.layers.0.fc1.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    layers=("decoder.layers", "num_hidden_layers"),
)
