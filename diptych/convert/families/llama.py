"""Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024) as ``transformers`` stores it."""

from typing import Any

from ...spec import (
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    GatedFeedForwardConfig,
    LogitsHeadConfig,
    NormConfig,
    ScoreConfig,
    TextEmbeddingConfig,
)
from ..settings import Setting, SettingsTable, require
from .common import (
    ARCHITECTURES,
    BOOKKEEPING,
    FIXED,
    NUMBER,
    read_activation,
    write_activation,
)
from .decoder import DecoderFamily
from .rope import ROPE_SETTINGS, read_rotary, write_rotary

_LAYER, _OURS = "layers.{i}", "layers.{i}"
MODULES = {
    "embed_tokens": "embedding.token_embed",
    f"{_LAYER}.input_layernorm": f"{_OURS}.attention_norm",
    f"{_LAYER}.self_attn.q_proj": f"{_OURS}.attention.q_proj",
    f"{_LAYER}.self_attn.k_proj": f"{_OURS}.attention.k_proj",
    f"{_LAYER}.self_attn.v_proj": f"{_OURS}.attention.v_proj",
    f"{_LAYER}.self_attn.o_proj": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.post_attention_layernorm": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.mlp.gate_proj": f"{_OURS}.feed_forward.gate_proj",
    f"{_LAYER}.mlp.up_proj": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.mlp.down_proj": f"{_OURS}.feed_forward.down_proj",
    "norm": "final_norm",
}
SIZES = {
    "vocab_size": ("embed_tokens.weight", 0),
    "hidden_size": ("embed_tokens.weight", 1),
    "intermediate_size": ("layers.0.mlp.gate_proj.weight", 0),
}
BUFFERS = {f"{_LAYER}.self_attn.rotary_emb.inv_freq": None, "rotary_emb.inv_freq": None}
UNDERSTOOD = {
    **ARCHITECTURES,
    **ROPE_SETTINGS,
    "attention_bias": Setting(bool, False),
    "attention_dropout": Setting(NUMBER, 0.0),
    "head_dim": Setting(int),
    "hidden_act": Setting(str, "silu"),
    "hidden_size": Setting(int),
    "intermediate_size": Setting(int),
    "mlp_bias": Setting(bool, False),
    "num_attention_heads": Setting(int),
    "num_hidden_layers": Setting(int),
    "num_key_value_heads": Setting(int),
    "rms_norm_eps": Setting(NUMBER, 1e-6),
    "tie_word_embeddings": Setting(bool, False),
    "vocab_size": Setting(int),
}


def _read(values: dict[str, Any]) -> DecoderConfig:
    d_model, num_heads = require(values, "hidden_size"), require(values, "num_attention_heads")
    vocab_size = require(values, "vocab_size")
    head_dim = values["head_dim"] or d_model // num_heads
    norm = NormConfig(kind="rms", eps=values["rms_norm_eps"])
    bias = values["attention_bias"]
    return DecoderConfig(
        layer=BlockConfig(
            attention=AttentionConfig(
                d_model=d_model,
                num_heads=num_heads,
                num_kv_heads=values["num_key_value_heads"] or num_heads,
                head_dim=head_dim,
                qkv_bias=bias,
                out_bias=bias,
                attention_dropout=values["attention_dropout"],
                score=ScoreConfig(is_causal=True),
                rotary=read_rotary(values, head_dim),
            ),
            feed_forward=GatedFeedForwardConfig(
                d_model=d_model,
                d_ff=require(values, "intermediate_size"),
                activation=read_activation(values, "hidden_act"),
                bias=values["mlp_bias"],
            ),
            norm=norm,
        ),
        num_layers=require(values, "num_hidden_layers"),
        embedding=token_embedding(vocab_size, d_model),
        final_norm=norm,
        head=LogitsHeadConfig(
            d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"]
        ),
    )


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer: Any = config.layer
    attention, feed_forward = layer.attention, layer.feed_forward
    num_heads, num_kv_heads, head_dim = attention.sizes
    return {
        "attention_bias": attention.out_bias,
        "attention_dropout": attention.attention_dropout,
        "head_dim": head_dim,
        "hidden_act": write_activation(feed_forward.activation),
        "hidden_size": config.d_model,
        "intermediate_size": feed_forward.d_ff,
        "mlp_bias": feed_forward.bias,
        "num_attention_heads": num_heads,
        "num_hidden_layers": config.num_layers,
        "num_key_value_heads": num_kv_heads,
        "rms_norm_eps": layer.norm.of(1).eps,
        "vocab_size": config.embedding.vocab_size,
        **write_tie(config),
        **write_rotary(attention.rotary, head_dim),
    }


def token_embedding(vocab_size: int, d_model: int, **options: Any) -> TextEmbeddingConfig:
    """Return the config of a table of tokens and nothing else."""
    return TextEmbeddingConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        max_seq_len=None,
        num_token_types=0,
        norm=None,
        dropout=0.0,
        **options,
    )


def write_tie(config: DecoderConfig) -> dict[str, bool]:
    """Return the setting of a tied head, if there is a head."""
    return {} if config.head is None else {"tie_word_embeddings": config.head.tied}


LLAMA = DecoderFamily(
    name="llama",
    summary="Llama 1, 2, 3 and what copies it (LlamaForCausalLM, LlamaModel)",
    model_types=("llama",),
    architectures=("LlamaForCausalLM", "LlamaModel"),
    modules=MODULES,
    settings=SettingsTable(understood=UNDERSTOOD, bookkeeping=BOOKKEEPING, fixed=FIXED),
    sizes=SIZES,
    read=_read,
    write=_write,
    buffers=BUFFERS,
    linen_norm="weight",
).family
