"""Inputs on which two checkpoints of one component are compared.

What a component is given stands in one function here, registered by its config; a component whose
config has none takes no plain input.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from .. import spec

LONG = 512
_EVERYTHING = {"need_weights": True, "need_hidden_states": True}


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


def batches(config: spec.Config, *, seed: int = 0) -> tuple[Batch, ...]:
    """Return a padded batch and one long input for a component; none where it takes no plain input.

    The long input has 512 positions, or as many as the component accepts. A component that reads a
    memory or another's output gets one.
    """
    return _batches(config, _Draw(np.random.default_rng(seed)))


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

    def ids(self, embedding: spec.TextEmbeddingConfig, **flags: Any) -> tuple[Batch, ...]:
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


def _longest(embedding: spec.TextEmbeddingConfig | None) -> int:
    limit = embedding.max_seq_len if embedding is not None else None
    return LONG if limit is None else min(LONG, limit)


@singledispatch
def _batches(config: spec.Config, draw: _Draw) -> tuple[Batch, ...]:
    return ()


@_batches.register
def _vectors(
    config: spec.FeedForwardConfig
    | spec.GatedFeedForwardConfig
    | spec.LayerNormConfig
    | spec.LogitsHeadConfig
    | spec.MixtureOfExpertsConfig
    | spec.RMSNormConfig,
    draw: _Draw,
) -> tuple[Batch, ...]:
    if isinstance(config, spec.LogitsHeadConfig) and config.tied:
        return ()
    return draw.sequences(config.d_model, LONG, key_mask=False)


@_batches.register
def _positioned(config: spec.PositionalEncodingConfig, draw: _Draw) -> tuple[Batch, ...]:
    return draw.sequences(config.d_model, min(LONG, config.max_seq_len), key_mask=False)


@_batches.register
def _head(config: spec.HeadAttentionConfig, draw: _Draw) -> tuple[Batch, ...]:
    longest = min(LONG, config.max_seq_len)
    return draw.sequences(config.emb_size, longest, key_mask=False, need_weights=True)


@_batches.register
def _attention(config: spec.AttentionConfig, draw: _Draw) -> tuple[Batch, ...]:
    return draw.attention(config.d_model, config.key_width, ())


@_batches.register
def _bare_attention(config: spec.ScaledDotProductAttentionConfig, draw: _Draw) -> tuple[Batch, ...]:
    return draw.attention(config.d_k, config.d_k, (3,))


@_batches.register
def _distances(config: spec.RelativePositionBiasConfig, draw: _Draw) -> tuple[Batch, ...]:
    short, long = np.arange(3, 8, dtype=np.int32), np.arange(LONG, dtype=np.int32)
    return (Batch("batch", (short, short), {}), Batch("long input", (long, long), {}))


@_batches.register
def _all_ids(config: spec.EmbeddingConfig, draw: _Draw) -> tuple[Batch, ...]:
    return (Batch("every id", (np.arange(config.num_embeddings),), {}),)


@_batches.register
def _text(config: spec.TextEmbeddingConfig, draw: _Draw) -> tuple[Batch, ...]:
    if config.shared_tokens:
        return ()
    return tuple(Batch(name, args, {}) for name, args, _ in draw.ids(config))


@_batches.register
def _self_attention(
    config: spec.LatentAttentionConfig | spec.TransformerEncoderLayerConfig, draw: _Draw
) -> tuple[Batch, ...]:
    return draw.sequences(config.d_model, LONG, key_mask=True, need_weights=True)


@_batches.register
def _block(config: spec.BlockConfig, draw: _Draw) -> tuple[Batch, ...]:
    found = draw.sequences(config.d_model, LONG, key_mask=True, need_weights=True)
    return _with_memories(draw, found, config.cross_attention)


@_batches.register
def _decoder_layer(config: spec.TransformerDecoderLayerConfig, draw: _Draw) -> tuple[Batch, ...]:
    found = draw.sequences(config.d_model, LONG, key_mask=True, need_weights=True)
    attention = config.block.cross_attention
    assert attention is not None
    return tuple(
        batch._replace(args=(*batch.args, draw.normal(len(batch.args[0]), 5, attention.key_width)))
        for batch in found
    )


@_batches.register
def _encoder(config: spec.EncoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    return _stack(config, draw)


@_batches.register
def _decoder(config: spec.DecoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    if config.embedding is not None and config.embedding.shared_tokens:
        return ()
    return _with_memories(draw, _stack(config, draw), config.layers[0].cross_attention)


@_batches.register
def _encoder_decoder(config: spec.EncoderDecoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    read = _batches(config.encoder, draw)
    written = _stack(config.decoder, draw)
    found = []
    for first, second in zip(read, written, strict=True):
        kwargs = {key: value for key, value in first.kwargs.items() if key != "token_type_ids"}
        if "key_mask" in second.kwargs:
            kwargs["decoder_key_mask"] = second.kwargs["key_mask"]
        found.append(Batch(first.name, (*first.args, *second.args), kwargs))
    return tuple(found)


@_batches.register
def _with_heads(config: spec.EncoderWithHeadsConfig, draw: _Draw) -> tuple[Batch, ...]:
    return _batches(config.encoder, draw)


@_batches.register
def _pooling(config: spec.AttentionPoolingConfig, draw: _Draw) -> tuple[Batch, ...]:
    return draw.sequences(config.attention.key_width, LONG, key_mask=True)


@_batches.register
def _patches(config: spec.PatchEmbeddingConfig, draw: _Draw) -> tuple[Batch, ...]:
    images = draw.normal(3, config.num_channels, *config.sides)
    found = (Batch("batch", (images,), {}),)
    if not config.mask_token:
        return found
    mask = _key_mask((config.num_patches, config.num_patches // 2, 0), config.num_patches)
    return (*found, Batch("masked batch", (images,), {"patch_mask": mask}))


@_batches.register
def _vision(config: spec.VisionEncoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    found = _batches(config.embedding, draw)
    return tuple(batch._replace(kwargs=_EVERYTHING | batch.kwargs) for batch in found)


@_batches.register
def _audio(config: spec.AudioEncoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    longest = min(LONG, config.max_seq_len)
    return tuple(
        Batch(name, (draw.normal(B, config.num_mel_bins, 2 * T),), dict(_EVERYTHING))
        for name, B, T in (("batch", 3, min(11, longest)), ("long input", 1, longest))
    )


@_batches.register
def _with_projection(config: spec.EncoderWithProjectionConfig, draw: _Draw) -> tuple[Batch, ...]:
    return _batches(config.encoder, draw)


@_batches.register
def _dual(config: spec.DualEncoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    """Every batch of images beside each batch of texts."""
    images = _batches(config.image, draw)
    texts = _batches(config.text, draw)
    found = []
    for place, text in enumerate(texts):
        image = images[place % len(images)]
        kwargs = {key: value for key, value in text.kwargs.items() if key != "token_type_ids"}
        found.append(Batch(text.name, (*image.args, *text.args), image.kwargs | kwargs))
    return tuple(found)


def _stack(config: spec.EncoderConfig | spec.DecoderConfig, draw: _Draw) -> tuple[Batch, ...]:
    if config.embedding is None:
        return draw.sequences(config.d_model, LONG, key_mask=True, **_EVERYTHING)
    return draw.ids(config.embedding, **_EVERYTHING)


def _with_memories(
    draw: _Draw, found: tuple[Batch, ...], attention: spec.AttentionConfig | None
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
