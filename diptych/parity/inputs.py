"""Inputs on which two checkpoints of one component are compared."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..spec import (
    AttentionConfig,
    AttentionPoolingConfig,
    AudioEncoderConfig,
    BlockConfig,
    Config,
    DecoderConfig,
    DualEncoderConfig,
    EmbeddingConfig,
    EncoderConfig,
    EncoderDecoderConfig,
    EncoderWithHeadsConfig,
    EncoderWithProjectionConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    HeadAttentionConfig,
    LatentAttentionConfig,
    LayerNormConfig,
    LogitsHeadConfig,
    MixtureOfExpertsConfig,
    PatchEmbeddingConfig,
    PositionalEncodingConfig,
    RelativePositionBiasConfig,
    RMSNormConfig,
    ScaledDotProductAttentionConfig,
    TextEmbeddingConfig,
    TransformerDecoderLayerConfig,
    TransformerEncoderLayerConfig,
    VisionEncoderConfig,
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

    The long input has 512 positions, or as many as the component accepts. A component that reads a
    memory or another's output gets one.
    """
    find = _BATCHES.get(type(config))
    return find(_Draw(np.random.default_rng(seed)), config) if find else ()


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
        longest = _longest(embedding)
        T = min(17, longest)
        types = {}
        if embedding.num_token_types:
            types["token_type_ids"] = self.integers(embedding.num_token_types, 3, T)
        padded = flags | types | {"key_mask": _key_mask((T, T // 2, 1), T)}
        return (
            Batch("padded batch", (self.integers(embedding.vocab_size, 3, T),), padded),
            Batch("long input", (self.integers(embedding.vocab_size, 1, longest),), dict(flags)),
        )

    def attention(self, width: int, key_width: int, heads: tuple[int, ...]) -> tuple[Batch, ...]:
        found = []
        for name, B, T, S in (("batch", 2, 7, 13), ("long input", 1, LONG, LONG)):
            query = self.normal(B, *heads, T, width)
            key, value = (self.normal(B, *heads, S, key_width) for _ in range(2))
            found.append(Batch(name, (query, key, value), {"need_weights": True}))
        return tuple(found)

    def integers(self, high: int, *shape: int) -> np.ndarray:
        return self.generator.integers(0, high, shape, np.int32)


def _key_mask(lengths: tuple[int, ...], width: int) -> np.ndarray:
    return np.arange(width) < np.array(lengths)[:, None]


def _longest(embedding: TextEmbeddingConfig | None) -> int:
    limit = embedding.max_seq_len if embedding is not None else None
    return LONG if limit is None else min(LONG, limit)


def _vectors(draw: _Draw, config: Any) -> tuple[Batch, ...]:
    return draw.sequences(config.d_model, LONG, key_mask=False)


def _positioned(draw: _Draw, config: PositionalEncodingConfig) -> tuple[Batch, ...]:
    return draw.sequences(config.d_model, min(LONG, config.max_seq_len), key_mask=False)


def _head(draw: _Draw, config: HeadAttentionConfig) -> tuple[Batch, ...]:
    longest = min(LONG, config.max_seq_len)
    return draw.sequences(config.emb_size, longest, key_mask=False, need_weights=True)


def _self_attention(draw: _Draw, config: Any) -> tuple[Batch, ...]:
    return draw.sequences(config.d_model, LONG, key_mask=True, need_weights=True)


def _attention(draw: _Draw, config: AttentionConfig) -> tuple[Batch, ...]:
    return draw.attention(config.d_model, config.key_width, ())


def _bare_attention(draw: _Draw, config: ScaledDotProductAttentionConfig) -> tuple[Batch, ...]:
    return draw.attention(config.d_k, config.d_k, (3,))


def _distances(draw: _Draw, config: RelativePositionBiasConfig) -> tuple[Batch, ...]:
    short, long = np.arange(3, 8, dtype=np.int32), np.arange(LONG, dtype=np.int32)
    return (Batch("batch", (short, short), {}), Batch("long input", (long, long), {}))


def _all_ids(draw: _Draw, config: EmbeddingConfig) -> tuple[Batch, ...]:
    return (Batch("every id", (np.arange(config.num_embeddings),), {}),)


def _text(draw: _Draw, config: TextEmbeddingConfig) -> tuple[Batch, ...]:
    if config.shared_tokens:
        return ()
    return tuple(Batch(name, args, {}) for name, args, _ in draw.ids(config))


def _logits(draw: _Draw, config: LogitsHeadConfig) -> tuple[Batch, ...]:
    return () if config.tied else _vectors(draw, config)


def _block(draw: _Draw, config: BlockConfig) -> tuple[Batch, ...]:
    found = _self_attention(draw, config)
    return _with_memories(draw, found, config.cross_attention)


def _decoder_layer(draw: _Draw, config: TransformerDecoderLayerConfig) -> tuple[Batch, ...]:
    found = _self_attention(draw, config)
    attention = config.block.cross_attention
    assert attention is not None
    return tuple(
        batch._replace(args=(*batch.args, draw.normal(len(batch.args[0]), 5, attention.key_width)))
        for batch in found
    )


def _decoder(draw: _Draw, config: DecoderConfig) -> tuple[Batch, ...]:
    if config.embedding is not None and config.embedding.shared_tokens:
        return ()
    return _with_memories(draw, _stack(draw, config), config.layers[0].cross_attention)


def _encoder_decoder(draw: _Draw, config: EncoderDecoderConfig) -> tuple[Batch, ...]:
    read = _BATCHES[type(config.encoder)](draw, config.encoder)
    written = _stack(draw, config.decoder)
    found = []
    for first, second in zip(read, written, strict=True):
        kwargs = {key: value for key, value in first.kwargs.items() if key != "token_type_ids"}
        if "key_mask" in second.kwargs:
            kwargs["decoder_key_mask"] = second.kwargs["key_mask"]
        found.append(Batch(first.name, (*first.args, *second.args), kwargs))
    return tuple(found)


def _with_heads(draw: _Draw, config: EncoderWithHeadsConfig) -> tuple[Batch, ...]:
    return _stack(draw, config.encoder)


def _stack(draw: _Draw, config: EncoderConfig | DecoderConfig) -> tuple[Batch, ...]:
    if config.embedding is None:
        return draw.sequences(config.d_model, LONG, key_mask=True, **_EVERYTHING)
    return draw.ids(config.embedding, **_EVERYTHING)


def _with_memories(
    draw: _Draw, found: tuple[Batch, ...], attention: AttentionConfig | None
) -> tuple[Batch, ...]:
    if attention is None:
        return found
    return tuple(
        batch._replace(
            kwargs=batch.kwargs
            | {"memory": draw.normal(len(batch.args[0]), 5, attention.key_width)}
        )
        for batch in found
    )


def _pooling(draw: _Draw, config: AttentionPoolingConfig) -> tuple[Batch, ...]:
    return draw.sequences(config.attention.key_width, LONG, key_mask=True)


def _patches(draw: _Draw, config: PatchEmbeddingConfig, **flags: Any) -> tuple[Batch, ...]:
    images = draw.normal(3, config.num_channels, *config.sides)
    found = (Batch("batch", (images,), dict(flags)),)
    if not config.mask_token:
        return found
    mask = _key_mask((config.num_patches, config.num_patches // 2, 0), config.num_patches)
    return (*found, Batch("masked batch", (images,), flags | {"patch_mask": mask}))


def _vision(draw: _Draw, config: VisionEncoderConfig) -> tuple[Batch, ...]:
    return _patches(draw, config.embedding, **_EVERYTHING)


def _with_projection(draw: _Draw, config: EncoderWithProjectionConfig) -> tuple[Batch, ...]:
    return _BATCHES[type(config.encoder)](draw, config.encoder)


def _dual(draw: _Draw, config: DualEncoderConfig) -> tuple[Batch, ...]:
    """Every batch of images beside each batch of texts."""
    images = _BATCHES[type(config.image)](draw, config.image)
    texts = _BATCHES[type(config.text)](draw, config.text)
    found = []
    for place, text in enumerate(texts):
        image = images[place % len(images)]
        kwargs = {key: value for key, value in text.kwargs.items() if key != "token_type_ids"}
        found.append(Batch(text.name, (*image.args, *text.args), image.kwargs | kwargs))
    return tuple(found)


def _audio(draw: _Draw, config: AudioEncoderConfig) -> tuple[Batch, ...]:
    longest = min(LONG, config.max_seq_len)
    return tuple(
        Batch(name, (draw.normal(B, config.num_mel_bins, 2 * T),), dict(_EVERYTHING))
        for name, B, T in (("batch", 3, min(11, longest)), ("long input", 1, longest))
    )


_EVERYTHING = {"need_weights": True, "need_hidden_states": True}
_BATCHES: dict[type[Config], Callable[[_Draw, Any], tuple[Batch, ...]]] = {
    AttentionConfig: _attention,
    AttentionPoolingConfig: _pooling,
    AudioEncoderConfig: _audio,
    BlockConfig: _block,
    DecoderConfig: _decoder,
    DualEncoderConfig: _dual,
    EmbeddingConfig: _all_ids,
    EncoderConfig: _stack,
    EncoderDecoderConfig: _encoder_decoder,
    EncoderWithHeadsConfig: _with_heads,
    EncoderWithProjectionConfig: _with_projection,
    FeedForwardConfig: _vectors,
    GatedFeedForwardConfig: _vectors,
    HeadAttentionConfig: _head,
    LatentAttentionConfig: _self_attention,
    LayerNormConfig: _vectors,
    LogitsHeadConfig: _logits,
    MixtureOfExpertsConfig: _vectors,
    PatchEmbeddingConfig: _patches,
    PositionalEncodingConfig: _positioned,
    RMSNormConfig: _vectors,
    RelativePositionBiasConfig: _distances,
    ScaledDotProductAttentionConfig: _bare_attention,
    TextEmbeddingConfig: _text,
    TransformerDecoderLayerConfig: _decoder_layer,
    TransformerEncoderLayerConfig: _self_attention,
    VisionEncoderConfig: _vision,
}
