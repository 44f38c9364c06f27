"""Small stacks of every kind, which the tests of decoders and of generation run."""

from dataclasses import replace

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    EncoderConfig,
    EncoderDecoderConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LatentAttentionConfig,
    LogitsHeadConfig,
    NormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    ScoreConfig,
    TextEmbeddingConfig,
)
from diptych.spec.block import NORM_PLACEMENTS

B, D, N, F, VOCAB, ROWS = 3, 12, 3, 14, 19, 16
RMS = NormConfig(kind="rms")
TOKENS = TextEmbeddingConfig(
    vocab_size=VOCAB, d_model=D, max_seq_len=None, num_token_types=0, norm=None, dropout=0.0
)
LEARNED = replace(TOKENS, max_seq_len=ROWS, position_offset=2)
TIED = LogitsHeadConfig(d_model=D, vocab_size=VOCAB)
T5_BIAS = RelativeBiasConfig(num_buckets=8, max_distance=9, is_bidirectional=False)


def block(window: int | None = None, **fields) -> BlockConfig:
    """Return a small causal block; the fields are those of its attention."""
    return BlockConfig(
        attention=AttentionConfig(
            d_model=D, num_heads=N, score=ScoreConfig(is_causal=True, window=window), **fields
        ),
        feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh"),
    )


def decoder(layer, **fields) -> DecoderConfig:
    """Return a small decoder of tokens."""
    options = {"embedding": TOKENS, "final_norm": NormConfig(), "head": TIED}
    return DecoderConfig(layer=layer, num_layers=2, **(options | fields))


_gated = GatedFeedForwardConfig(d_model=D, d_ff=F)
_sandwich = {"feed_forward": _gated, "norm": RMS, "norm_placement": "sandwich"}
_latent = LatentAttentionConfig(
    d_model=D,
    num_heads=N,
    q_rank=7,
    kv_rank=5,
    nope_dim=4,
    rope_dim=2,
    v_dim=3,
    score=ScoreConfig(is_causal=True),
)
_crossing = replace(block(), cross_attention=AttentionConfig(d_model=D, num_heads=N))

BLOCKS: dict[str, BlockConfig] = {
    f"{placement}": replace(block(), norm_placement=placement) for placement in NORM_PLACEMENTS
} | {
    "cross, layer scale": replace(_crossing, layer_scale=0.5),
    "cross, sandwich": replace(_crossing, norm_placement="sandwich", norm=RMS),
    "no attention norm": replace(block(), attention_norm=False),
}

DECODERS: dict[str, DecoderConfig] = {
    "learned positions": decoder(block(), embedding=LEARNED),
    "rotary, grouped": decoder(block(num_kv_heads=1, rotary=RotaryConfig())),
    "local and global": decoder(
        (
            replace(block(3, rotary=RotaryConfig(theta=100.0)), **_sandwich),
            replace(block(rotary=RotaryConfig()), **_sandwich),
        ),
        head=replace(TIED, softcap=2.0, scale=0.5),
    ),
    "latent": decoder(BlockConfig(attention=_latent, feed_forward=_gated, norm=RMS)),
    "T5 bias": decoder(block(), position_bias=T5_BIAS, head=replace(TIED, tied=False, bias=True)),
    "ALiBi": decoder(block(), position_bias=AlibiConfig(), head=replace(TIED, bias=True)),
}

ENCODER = EncoderConfig(
    layer=BlockConfig(
        attention=AttentionConfig(d_model=D, num_heads=N),
        feed_forward=FeedForwardConfig(d_model=D, d_ff=F),
    ),
    num_layers=1,
    embedding=TOKENS,
    final_norm=RMS,
    position_bias=RelativeBiasConfig(num_buckets=8, max_distance=9),
)

ENCODER_DECODER = EncoderDecoderConfig(
    encoder=ENCODER,
    decoder=decoder(
        _crossing, embedding=replace(TOKENS, shared_tokens=True), position_bias=T5_BIAS
    ),
)
