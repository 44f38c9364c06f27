"""MPT (MosaicML 2023) as ``transformers`` stores it: ALiBi, ``[q | k | v]`` in one, no biases."""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...rules import Split, Transform
from .. import transformers_settings as hf
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, SettingsTable, require
from ..stacks import StackKind, expect, token_embedding, write_ends
from .family import DecoderFamily

_LAYER, _OURS = "blocks.{i}", "layers.{i}"
_QKV = f"{_LAYER}.attn.Wqkv"
_MODULES: Modules = {
    "wte": "embedding.token_embed",
    f"{_LAYER}.norm_1": f"{_OURS}.attention_norm",
    _QKV: tuple(f"{_OURS}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.attn.out_proj": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.norm_2": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.ffn.up_proj": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.ffn.down_proj": f"{_OURS}.feed_forward.down_proj",
    "norm_f": "final_norm",
}
_ATTENTION = SettingsTable(
    understood={
        "alibi_bias_max": Setting(NUMBER, 8),
        "attn_pdrop": Setting(NUMBER, 0.0),
        "softmax_scale": Setting(NUMBER),
    },
    bookkeeping=hf.BOOKKEEPING | {"architectures", "attn_impl", "is_encoder_decoder"},
    fixed={
        "alibi": (True,),
        "attn_type": ("multihead_attention",),
        "attn_uses_sequence_id": (False,),
        "clip_qkv": (None,),
        "prefix_lm": (False,),
        "qk_ln": (False,),
    },
)


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    given = values["attn_config"] or {}
    for fault in _ATTENTION.faults(given):
        raise ValueError(f"attn_config.{fault}")
    attention = _ATTENTION.values(given)
    d_model, vocab_size = require(values, "d_model"), require(values, "vocab_size")
    norm = spec.NormConfig(eps=values["layer_norm_epsilon"], bias=False)
    return spec.DecoderConfig(
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=require(values, "n_heads"),
                qkv_bias=False,
                out_bias=False,
                attention_dropout=attention["attn_pdrop"],
                score=spec.ScoreConfig(is_causal=True, scale=attention["softmax_scale"]),
            ),
            # transformers takes four times the width, whatever expansion_ratio says.
            feed_forward=spec.FeedForwardConfig(
                d_model=d_model, d_ff=4 * d_model, activation="gelu", bias=False
            ),
            norm=norm,
            dropout=attention["attn_pdrop"],
        ),
        num_layers=require(values, "n_layers"),
        embedding=token_embedding(vocab_size, d_model),
        final_norm=norm,
        position_bias=spec.AlibiConfig(max_exponent=float(attention["alibi_bias_max"])),
        head=spec.LogitsHeadConfig(
            d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"]
        ),
    )


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    most = float(expect(config.position_bias, spec.AlibiConfig).max_exponent)
    return {
        "attn_config": {
            "alibi": True,
            "alibi_bias_max": int(most) if most.is_integer() else most,
            "attn_pdrop": layer.attention.attention_dropout,
            "softmax_scale": layer.attention.score.scale,
        },
        "d_model": config.d_model,
        "layer_norm_epsilon": layer.norm.of(1).eps,
        "n_heads": layer.attention.num_heads,
        "n_layers": config.num_layers,
        **write_ends(config),
    }


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    return {f"{_QKV}.weight": Split(3)}


MPT = DecoderFamily(
    name="mpt",
    summary="MPT (MptForCausalLM, MptModel)",
    model_types=("mpt",),
    architectures=("MptForCausalLM", "MptModel"),
    modules=_MODULES,
    settings=hf.settings_table(
        {
            "attn_config": Setting(dict),
            "d_model": SIZE,
            "layer_norm_epsilon": Setting(NUMBER, 1e-5),
            "n_heads": SIZE,
            "n_layers": SIZE,
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={
            "auto_map",
            "emb_pdrop",
            "embedding_fraction",
            "expansion_ratio",
            "init_config",
            "init_device",
            "learned_pos_emb",
            "max_seq_len",
            "norm_type",
            "resid_pdrop",
            "tokenizer_name",
            "verbose",
        },
        fixed={"logit_scale": (None,), "no_bias": (True,)},
    ),
    sizes={"vocab_size": ("wte.weight", 0), "d_model": ("wte.weight", 1)},
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig, position_bias=spec.AlibiConfig),
    transforms=_transforms,
    prefix="transformer.",
    layers=("blocks", "n_layers"),
)
