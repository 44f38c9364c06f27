"""Inputs on which two checkpoints of one component are compared."""

from typing import Any, NamedTuple

import numpy as np

from diptych.spec import (
    AttentionConfig,
    Config,
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    FeedForwardConfig,
    HeadAttentionConfig,
    LayerNormConfig,
    PositionalEncodingConfig,
    ScaledDotProductAttentionConfig,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)

LONG = 512


class Batch(NamedTuple):
    """Arguments of one call.

    Attributes:
        name: What the batch tries.
        args: Positional arrays; floating ones are float64 and exact in float32.
        kwargs: Keyword arguments, arrays and flags.
    """

    name: str
    args: tuple[np.ndarray, ...]
    kwargs: dict[str, Any]


def batches(config: Config, *, seed: int = 0) -> tuple[Batch, ...]:
    """Return a padded batch and one long input for a component; none where it takes no plain input.

    The long input has 512 positions, or as many as the component accepts.
    """
    draw = _Draw(np.random.default_rng(seed))
    if isinstance(config, EncoderWithHeadsConfig):
        return batches(config.encoder, seed=seed)
    if isinstance(config, EncoderConfig):
        flags = {"need_weights": True, "need_hidden_states": True}
        if config.embedding is None:
            return draw.sequences(config.layer.d_model, LONG, key_mask=True, **flags)
        return draw.ids(config.embedding, **flags)
    if isinstance(config, TextEmbeddingConfig):
        return tuple(Batch(name, args, {}) for name, args, _ in draw.ids(config))
    if isinstance(config, TransformerEncoderLayerConfig):
        return draw.sequences(config.d_model, LONG, key_mask=True, need_weights=True)
    if isinstance(config, AttentionConfig):
        return draw.attention(config.d_model, ())
    if isinstance(config, ScaledDotProductAttentionConfig):
        return draw.attention(config.d_k, (3,))
    if isinstance(config, HeadAttentionConfig):
        return draw.sequences(
            config.emb_size, min(LONG, config.max_seq_len), key_mask=False, need_weights=True
        )
    if isinstance(config, PositionalEncodingConfig):
        return draw.sequences(config.d_model, min(LONG, config.max_seq_len), key_mask=False)
    if isinstance(config, FeedForwardConfig | LayerNormConfig):
        return draw.sequences(config.d_model, LONG, key_mask=False)
    if isinstance(config, EmbeddingConfig):
        return (Batch("every id", (np.arange(config.num_embeddings),), {}),)
    return ()


class _Draw:
    def __init__(self, generator: np.random.Generator):
        self.generator = generator

    def normal(self, *shape: int) -> np.ndarray:
        return self.generator.standard_normal(shape, np.float32).astype(np.float64)

    def sequences(
        self, width: int, longest: int, *, key_mask: bool, **flags: Any
    ) -> tuple[Batch, ...]:
        T = min(11, longest)
        mask = {"key_mask": _key_mask((T, T // 2, 1), T)} if key_mask else {}
        return (
            Batch(
                "padded batch" if key_mask else "batch", (self.normal(3, T, width),), flags | mask
            ),
            Batch("long input", (self.normal(1, longest, width),), dict(flags)),
        )

    def ids(self, embedding: TextEmbeddingConfig, **flags: Any) -> tuple[Batch, ...]:
        longest = min(LONG, embedding.max_seq_len)
        T = min(17, longest)
        types = {}
        if embedding.num_token_types:
            types["token_type_ids"] = self.integers(embedding.num_token_types, 3, T)
        padded = flags | types | {"key_mask": _key_mask((T, T // 2, 1), T)}
        return (
            Batch("padded batch", (self.integers(embedding.vocab_size, 3, T),), padded),
            Batch("long input", (self.integers(embedding.vocab_size, 1, longest),), dict(flags)),
        )

    def attention(self, width: int, heads: tuple[int, ...]) -> tuple[Batch, ...]:
        short, long = (2, *heads, 7, width), (1, *heads, LONG, width)
        key = (2, *heads, 13, width)
        flags = {"need_weights": True}
        return (
            Batch("batch", (self.normal(*short), self.normal(*key), self.normal(*key)), flags),
            Batch("long input", tuple(self.normal(*long) for _ in range(3)), flags),
        )

    def integers(self, high: int, *shape: int) -> np.ndarray:
        return self.generator.integers(0, high, shape, np.int32)


def _key_mask(lengths: tuple[int, ...], width: int) -> np.ndarray:
    return np.arange(width) < np.array(lengths)[:, None]
