"""GPTs trained with nanoGPT and minGPT (Karpathy): GPT-2's names, weights (out, in).

Their training files hold the weights under ``model``. The number of heads is in no tensor, but
nanoGPT writes it into ``model_args`` beside them.
"""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...rules import Split, Transform
from .. import transformers_settings as hf
from ..decoders.family import DecoderFamily
from ..decoders.gpt2 import MODULES
from ..fused import both_parts
from ..settings import NUMBER, SIZE, Setting, SettingsTable, require
from ..stacks import StackKind, expect, write_ends

_SIZES = {
    "vocab_size": ("wte.weight", 0),
    "n_embd": ("wte.weight", 1),
    "block_size": ("wpe.weight", 0),
}


def _reader(activation: str) -> Any:
    def read(values: dict[str, Any]) -> spec.DecoderConfig:
        d_model, vocab_size = require(values, "n_embd"), require(values, "vocab_size")
        bias, dropout = values.get("bias") is not False, values["dropout"]
        norm = spec.NormConfig(eps=1e-5, bias=bias)
        return spec.DecoderConfig(
            layer=spec.BlockConfig(
                attention=spec.AttentionConfig(
                    d_model=d_model,
                    num_heads=require(values, "n_head"),
                    qkv_bias=bias,
                    out_bias=bias,
                    attention_dropout=dropout,
                    score=spec.ScoreConfig(is_causal=True),
                ),
                feed_forward=spec.FeedForwardConfig(
                    d_model=d_model, d_ff=4 * d_model, activation=activation, bias=bias
                ),
                norm=norm,
                dropout=dropout,
            ),
            num_layers=require(values, "n_layer"),
            embedding=spec.TextEmbeddingConfig(
                vocab_size=vocab_size,
                d_model=d_model,
                max_seq_len=require(values, "block_size"),
                num_token_types=0,
                norm=None,
                dropout=dropout,
            ),
            final_norm=norm,
            head=spec.LogitsHeadConfig(
                d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"]
            ),
        )

    return read


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    return {
        "block_size": embedding.max_seq_len,
        "dropout": layer.dropout,
        "n_embd": config.d_model,
        "n_head": layer.attention.num_heads,
        "n_layer": config.num_layers,
        **write_ends(config),
    }


def _write_with_bias(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return _write(config) | {"bias": layer.attention.out_bias}


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    return both_parts("h.{i}.attn.c_attn", Split(3))


_UNDERSTOOD = {
    "block_size": SIZE,
    "dropout": Setting(NUMBER, 0.0),
    "n_embd": SIZE,
    "n_head": SIZE,
    "n_layer": SIZE,
    "tie_word_embeddings": Setting(bool, False),
    "vocab_size": SIZE,
}
_COMMON: dict[str, Any] = {
    "architectures": ("GPT", "GPT"),
    "modules": MODULES,
    "sizes": _SIZES,
    "stack_kind": StackKind(feed_forward=spec.FeedForwardConfig),
    "transforms": _transforms,
    "prefix": "transformer.",
    "layers": ("h", "n_layer"),
    "buffers": {"h.{i}.attn.bias": "lower_triangle", "h.{i}.attn.masked_bias": None},
}
_BOOKKEEPING = hf.BOOKKEEPING | {"architectures"}

NANOGPT = DecoderFamily(
    name="nanogpt",
    summary="nanoGPT's training files (exact gelu, tied head)",
    model_types=("nanogpt",),
    settings=SettingsTable(
        understood=_UNDERSTOOD
        | {"bias": Setting(bool), "tie_word_embeddings": Setting(bool, True)},
        bookkeeping=_BOOKKEEPING,
    ),
    flags={"bias": "ln_f.bias"},
    read=_reader("gelu"),
    write=_write_with_bias,
    **_COMMON,
)
MINGPT = DecoderFamily(
    name="mingpt",
    summary="minGPT's (tanh gelu, a head of its own): --set n_head=...",
    model_types=("mingpt",),
    settings=SettingsTable(understood=_UNDERSTOOD, bookkeeping=_BOOKKEEPING),
    read=_reader("gelu_tanh"),
    write=_write,
    **_COMMON,
)
