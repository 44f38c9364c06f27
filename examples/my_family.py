"""A family of one's own: what ``diptych convert SRC DST --to flax --rules my_family.py`` reads.

The checkpoints are those of a small GPT whose file holds ``tok.weight``, ``pos.weight``,
``blocks.0.mix.qkv.weight`` (queries, keys and values in one, without biases) and so on, and whose
config.json says ``{"model_type": "my_gpt", "width": 32, "heads": 4, ...}``.
"""

from typing import Any

from diptych.convert import DecoderFamily, Setting, SettingsTable, Split
from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    FeedForwardConfig,
    LogitsHeadConfig,
    NormConfig,
    ScoreConfig,
    TextEmbeddingConfig,
)

MODULES = {  # theirs: ours; {i} is a layer
    "tok": "embedding.token_embed",
    "pos": "embedding.position_embed",
    "blocks.{i}.norm1": "layers.{i}.attention_norm",
    "blocks.{i}.mix.qkv": tuple(f"layers.{{i}}.attention.{x}_proj" for x in "qkv"),
    "blocks.{i}.mix.out": "layers.{i}.attention.out_proj",
    "blocks.{i}.norm2": "layers.{i}.feed_forward_norm",
    "blocks.{i}.up": "layers.{i}.feed_forward.up_proj",
    "blocks.{i}.down": "layers.{i}.feed_forward.down_proj",
    "last": "final_norm",
}


def read(values: dict[str, Any]) -> DecoderConfig:
    """From settings, sizes included, to the component."""
    width, vocabulary = values["width"], values["vocabulary"]
    return DecoderConfig(
        layer=BlockConfig(
            attention=AttentionConfig(
                d_model=width,
                num_heads=values["heads"],
                qkv_bias=False,
                out_bias=False,
                score=ScoreConfig(is_causal=True),
            ),
            feed_forward=FeedForwardConfig(
                d_model=width, d_ff=values["hidden"], activation="gelu", bias=False
            ),
            norm=NormConfig(bias=False),
        ),
        num_layers=values["depth"],
        embedding=TextEmbeddingConfig(
            vocab_size=vocabulary,
            d_model=width,
            max_seq_len=values["length"],
            num_token_types=0,
            norm=None,
            dropout=0.0,
        ),
        final_norm=NormConfig(bias=False),
        head=LogitsHeadConfig(d_model=width, vocab_size=vocabulary, tied=True),
    )


def write(config: DecoderConfig) -> dict[str, Any]:
    """And back; what the settings cannot say is refused by reading them."""
    layer = config.layers[0]
    return {
        "width": config.d_model,
        "vocabulary": config.embedding.vocab_size,
        "heads": layer.attention.num_heads,
        "hidden": layer.feed_forward.d_ff,
        "depth": config.num_layers,
        "length": config.embedding.max_seq_len,
    }


FAMILY = DecoderFamily(
    name="my_gpt",
    summary="the GPT of our group",
    model_types=("my_gpt",),
    modules=MODULES,
    settings=SettingsTable(
        understood=dict.fromkeys(
            ("width", "vocabulary", "heads", "hidden", "depth", "length"), Setting(int)
        )
    ),
    sizes={  # what a bare state dict shows
        "vocabulary": ("tok.weight", 0),
        "width": ("tok.weight", 1),
        "length": ("pos.weight", 0),
        "hidden": ("blocks.0.up.weight", 0),
    },
    read=read,
    write=write,
    transforms=lambda config: {"blocks.{i}.mix.qkv.weight": Split(3)},
    prefix="model.",
    layers=("blocks", "depth"),
    head="head",
)
