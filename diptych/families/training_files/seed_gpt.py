"""A hand-written GPT around causal heads that have a linear map each (``_heads._heads.1._q``)."""

from typing import Any

from ... import spec
from ...rules import Join, Rule, rule
from ..decoders.family import DecoderFamily
from ..settings import NUMBER, SIZE, Setting, SettingsTable, require
from ..stacks import StackKind, expect

_LAYER, _OURS = "_decoders.{i}", "layers.{i}"
_HEADS = f"{_LAYER}._heads._heads"
_MODULES = {
    "_token_embeddings._embedding": "embedding.token_embed",
    "_position_embeddings._embedding": "embedding.position_embed",
    f"{_LAYER}._heads._layer": f"{_OURS}.attention.out_proj",
    f"{_LAYER}._norm1": f"{_OURS}.attention_norm",
    f"{_LAYER}._ff._layer1": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}._ff._layer2": f"{_OURS}.feed_forward.down_proj",
    f"{_LAYER}._norm2": f"{_OURS}.feed_forward_norm",
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model, vocab_size = require(values, "emb_size"), require(values, "vocab_size")
    return spec.DecoderConfig(
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=require(values, "num_heads"),
                head_dim=require(values, "head_size"),
                score=spec.ScoreConfig(is_causal=True),
            ),
            feed_forward=spec.FeedForwardConfig(
                d_model=d_model, d_ff=4 * d_model, activation="relu"
            ),
            norm_placement="post",
            dropout=values["dropout"],
        ),
        num_layers=require(values, "num_layers"),
        embedding=spec.TextEmbeddingConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            max_seq_len=require(values, "max_seq_len"),
            num_token_types=0,
            norm=None,
            dropout=values["dropout"],
        ),
        head=spec.LogitsHeadConfig(d_model=d_model, vocab_size=vocab_size, tied=False, bias=True),
    )


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    num_heads, _, head_size = expect(layer.attention, spec.AttentionConfig).sizes
    return {
        "dropout": layer.dropout,
        "emb_size": config.d_model,
        "head_size": head_size,
        "max_seq_len": embedding.max_seq_len,
        "num_heads": num_heads,
        "num_layers": config.num_layers,
        "vocab_size": embedding.vocab_size,
    }


def _heads(config: spec.DecoderConfig, prefix: str) -> list[Rule]:
    number = config.layers[0].attention.num_heads
    return [
        rule(
            [f"{prefix}{_HEADS}.{head}._{letter}.{part}" for head in range(number)],
            f"{_OURS}.attention.{letter}_proj.{part}",
            Join(number),
        )
        for letter in "qkv"
        for part in ("weight", "bias")
    ]


SEED_GPT = DecoderFamily(
    name="seed_gpt",
    summary="a hand-written GPT with a linear map for every head (_decoders.0._heads._heads.1._q)",
    model_types=("seed_gpt",),
    architectures=("GPT", "GPT"),
    modules=_MODULES,
    extra_rules=_heads,
    extra_names=tuple(
        f"{_HEADS}.{{j}}._{letter}.{part}" for letter in "qkv" for part in ("weight", "bias")
    ),
    settings=SettingsTable(
        understood={
            "dropout": Setting(NUMBER, 0.1),
            "emb_size": SIZE,
            "head_size": SIZE,
            "max_seq_len": SIZE,
            "num_heads": SIZE,
            "num_layers": SIZE,
            "vocab_size": SIZE,
        },
        bookkeeping=frozenset({"architectures", "device", "model_type", "pad_token_id"}),
    ),
    sizes={
        "vocab_size": ("_token_embeddings._embedding.weight", 0),
        "emb_size": ("_token_embeddings._embedding.weight", 1),
        "max_seq_len": ("_position_embeddings._embedding.weight", 0),
        "head_size": ("_decoders.0._heads._heads.0._q.weight", 0),
    },
    counts={"num_heads": "_decoders.0._heads._heads"},
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    prefix="model.",
    layers=("_decoders", "num_layers"),
    head="_linear",
    buffers={f"{_HEADS}.{{j}}._tril_mask": "lower_triangle"},
)
