"""Llama as Meta released it: ``consolidated.00.pth`` beside ``params.json``; neighbours rotate.

Read into an interleaved rotation, with no weight moved. Once in a panel's layout, ``--to hf
--family llama`` writes what ``transformers`` reads, queries and keys reordered.
"""

from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, SettingsTable, require
from ..stacks import expect, token_embedding
from .family import DecoderFamily
from .parts import STACK_KIND

_LAYER = "layers.{i}"
_MODULES = {
    "tok_embeddings": "embedding.token_embed",
    f"{_LAYER}.attention_norm": f"{_LAYER}.attention_norm",
    f"{_LAYER}.attention.wq": f"{_LAYER}.attention.q_proj",
    f"{_LAYER}.attention.wk": f"{_LAYER}.attention.k_proj",
    f"{_LAYER}.attention.wv": f"{_LAYER}.attention.v_proj",
    f"{_LAYER}.attention.wo": f"{_LAYER}.attention.out_proj",
    f"{_LAYER}.ffn_norm": f"{_LAYER}.feed_forward_norm",
    f"{_LAYER}.feed_forward.w1": f"{_LAYER}.feed_forward.gate_proj",
    f"{_LAYER}.feed_forward.w3": f"{_LAYER}.feed_forward.up_proj",
    f"{_LAYER}.feed_forward.w2": f"{_LAYER}.feed_forward.down_proj",
    "norm": "final_norm",
}
_SCALED = spec.Llama3Scaling(
    factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, max_seq_len=8192
)
"""What ``use_scaled_rope`` means in Meta's code, for Llama 3.1."""


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model, num_heads = require(values, "dim"), require(values, "n_heads")
    vocab_size = require(values, "vocab_size")
    norm = spec.NormConfig(kind="rms", eps=require(values, "norm_eps"))
    return spec.DecoderConfig(
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=num_heads,
                num_kv_heads=values["n_kv_heads"] or num_heads,
                head_dim=d_model // num_heads,
                qkv_bias=False,
                out_bias=False,
                score=spec.ScoreConfig(is_causal=True),
                rotary=spec.RotaryConfig(
                    theta=float(values["rope_theta"]),
                    interleaved=True,
                    scaling=_SCALED if values["use_scaled_rope"] else None,
                ),
            ),
            feed_forward=spec.GatedFeedForwardConfig(
                d_model=d_model, d_ff=require(values, "hidden_dim"), activation="silu"
            ),
            norm=norm,
        ),
        num_layers=require(values, "n_layers"),
        embedding=token_embedding(vocab_size, d_model),
        final_norm=norm,
        head=spec.LogitsHeadConfig(d_model=d_model, vocab_size=vocab_size, tied=False),
    )


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    attention = expect(layer.attention, spec.AttentionConfig)
    rotary = expect(attention.rotary, spec.RotaryConfig)
    return {
        "dim": config.d_model,
        "hidden_dim": layer.feed_forward.d_ff,
        "n_heads": attention.num_heads,
        "n_kv_heads": attention.sizes[1],
        "n_layers": config.num_layers,
        "norm_eps": layer.norm.of(1).eps,
        "rope_theta": rotary.theta,
        "use_scaled_rope": rotary.scaling is not None,
        "vocab_size": embedding.vocab_size,
    }


LLAMA_META = DecoderFamily(
    name="llama_meta",
    summary="Llama as Meta released it, one file (tok_embeddings, attention.wq)",
    model_types=("llama_meta",),
    modules=_MODULES,
    settings=SettingsTable(
        understood={
            "dim": SIZE,
            "hidden_dim": SIZE,
            "n_heads": SIZE,
            "n_kv_heads": SIZE,
            "n_layers": SIZE,
            "norm_eps": Setting(NUMBER),
            "rope_theta": Setting(NUMBER, 10000.0),
            "use_scaled_rope": Setting(bool, False),
            "vocab_size": SIZE,
        },
        # The hidden width is read from the shapes, as Meta's rule for it gave it.
        bookkeeping=hf.BOOKKEEPING
        | {"architectures", "ffn_dim_multiplier", "max_batch_size", "max_seq_len", "multiple_of"},
        fixed={"quantization_args": (None,)},
    ),
    sizes={
        "vocab_size": ("tok_embeddings.weight", 0),
        "dim": ("tok_embeddings.weight", 1),
        "hidden_dim": ("layers.0.feed_forward.w1.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    prefix="model.",
    layers=("layers", "n_layers"),
    head="output",
    buffers={"rope.freqs": None},
)
