"""The table of component calls that the tiers run: every component with every option that counts.

The data is floating where it is differentiated; ids, masks and switches are options or integers.
"""

from dataclasses import replace

import numpy as np

from diptych.spec import (
    AttentionConfig,
    AttentionPoolingConfig,
    AudioEncoderConfig,
    DualEncoderConfig,
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    EncoderWithProjectionConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    HeadAttentionConfig,
    LayerNormConfig,
    LogitsHeadConfig,
    MaskedLMHeadConfig,
    MixtureOfExpertsConfig,
    NextSentenceHeadConfig,
    NormConfig,
    PatchEmbeddingConfig,
    PositionalEncodingConfig,
    QuestionAnsweringHeadConfig,
    RelativePositionBiasConfig,
    RMSNormConfig,
    ScaledDotProductAttentionConfig,
    ScoreConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
    TransformerDecoderLayerConfig,
    TransformerEncoderLayerConfig,
    VisionEncoderConfig,
)
from diptych.spec.feed_forward import ACTIVATIONS
from parity_tests.components.case import ComponentCase
from parity_tests.panels.mixture_cases import MIXTURES
from parity_tests.panels.stack_cases import BLOCKS, DECODERS, ENCODER_DECODER
from parity_tests.support.sizes import (
    GROUPED_K,
    GROUPED_N,
    MAX_LEN,
    NUM_LABELS,
    VOCAB,
    B,
    D,
    F,
    H,
    N,
    V,
)

_random = np.random.default_rng(11)
_T, _S = 11, 13


def _normal(*shape: int) -> np.ndarray:
    return _random.normal(size=shape)


def _coins(*shape: int) -> np.ndarray:
    return _random.random(shape) < 0.7


_ids = _random.integers(0, VOCAB, (B, _T))
_key_mask = np.arange(_T) < np.array([[_T], [7]])
_everything = {"need_weights": True, "need_hidden_states": True}
_text = TextEmbeddingConfig(vocab_size=VOCAB, d_model=D, max_seq_len=MAX_LEN, num_token_types=3)
_layer = TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F, activation="gelu", eps=1e-12)
_patches = PatchEmbeddingConfig(image_size=(4, 6), patch_size=2, d_model=D, mask_token=True)
_images = {"images": _normal(B, 3, 4, 6)}
_patch_mask = {"patch_mask": _coins(B, 6)}
_pooling = AttentionPoolingConfig(
    attention=AttentionConfig(d_model=D, num_heads=N),
    feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh"),
)
_vision = VisionEncoderConfig(embedding=_patches, layer=_layer, num_layers=1, pooling="class")
_pooled = EncoderConfig(layer=_layer, num_layers=1, embedding=_text, pooled_token="highest")
_x = {"x": _normal(B, _T, D)}

CASES: dict[str, ComponentCase] = (
    {
        "ScaledDotProductAttention": ComponentCase(
            ScaledDotProductAttentionConfig(d_k=H),
            {"query": _normal(B, _T, H), "key": _normal(B, _S, H), "value": _normal(B, _S, V)},
            {"mask": _coins(_T, _S)},
        ),
        "ScaledDotProductAttention, causal, capped": ComponentCase(
            ScaledDotProductAttentionConfig(d_k=H, score=ScoreConfig(is_causal=True, softcap=1.1)),
            {
                "query": _normal(B, N, 7, H),
                "key": _normal(B, N, 5, H),
                "value": _normal(B, N, 5, V),
            },
            {"offset": -2},
        ),
        "HeadAttention": ComponentCase(
            HeadAttentionConfig(emb_size=D, head_size=H, max_seq_len=MAX_LEN),
            _x,
            {"need_weights": True},
        ),
        "MultiHeadAttention": ComponentCase(
            AttentionConfig(d_model=D, num_heads=N),
            {"query": _normal(B, _T, D), "key": _normal(B, _S, D), "value": _normal(B, _S, D)},
            {"mask": _coins(B, _T, _S) & _coins(B, _T, 1)},
        ),
        "MultiHeadAttention, grouped": ComponentCase(
            AttentionConfig(
                d_model=D,
                num_heads=GROUPED_N,
                num_kv_heads=GROUPED_K,
                head_dim=H,
                qkv_bias=False,
                out_bias=False,
                score=ScoreConfig(is_causal=True, window=4, scale=0.3),
            ),
            {"query": _normal(B, _T, D), "key": _normal(B, _S, D), "value": _normal(B, _S, D)},
            {"bias": _normal(GROUPED_N, 1, _S)[None], "offset": np.array([1, 2])},
        ),
        "PositionalEncoding": ComponentCase(
            PositionalEncodingConfig(d_model=D, max_seq_len=MAX_LEN), _x, {"offset": 3}
        ),
        "LayerNorm": ComponentCase(LayerNormConfig(d_model=D, eps=1e-3), _x),
        "LayerNorm without a bias": ComponentCase(LayerNormConfig(d_model=D, bias=False), _x),
        "RMSNorm": ComponentCase(RMSNormConfig(d_model=D, eps=1e-3), _x),
        "RMSNorm, 1 + weight": ComponentCase(RMSNormConfig(d_model=D, unit_offset=True), _x),
        "FeedForward without biases": ComponentCase(
            FeedForwardConfig(d_model=D, d_ff=F, bias=False), _x
        ),
        "Embedding": ComponentCase(EmbeddingConfig(num_embeddings=VOCAB, d_model=D), {"ids": _ids}),
        "TextEmbedding": ComponentCase(
            _text,
            {"ids": _ids},
            {
                "token_type_ids": _random.integers(0, 3, (B, _T)),
                "position_ids": _random.integers(0, MAX_LEN, (B, _T)),
            },
        ),
        "TextEmbedding, no norm, scaled, offset": ComponentCase(
            replace(_text, norm=None, scale=2.5, position_offset=2),
            {"ids": _ids},
            {"position_ids": _random.integers(0, MAX_LEN, (B, _T))},
        ),
        "TextEmbedding, padding, projected": ComponentCase(
            replace(_text, padding_id=1, embed_dim=3, num_token_types=0), {"ids": _ids % 3}
        ),
        "TextEmbedding, tokens projected": ComponentCase(
            replace(_text, embed_dim=3, embed_bias=False, embed_proj_of="tokens", scale=2.5),
            {"ids": _ids},
            {"position_ids": _random.integers(0, MAX_LEN, (B, _T))},
        ),
        "TextEmbedding of tokens alone": ComponentCase(
            replace(
                _text,
                max_seq_len=None,
                num_token_types=0,
                norm=NormConfig(kind="rms", unit_offset=True),
                embed_dim=3,
                embed_bias=False,
            ),
            {"ids": _ids},
        ),
        "RelativePositionBias": ComponentCase(
            RelativePositionBiasConfig(num_heads=N, num_buckets=8, max_distance=10),
            {"query_positions": 3 + np.arange(_T), "key_positions": np.arange(_S)},
        ),
        "RelativePositionBias, one direction": ComponentCase(
            RelativePositionBiasConfig(
                num_heads=N, num_buckets=6, max_distance=9, is_bidirectional=False
            ),
            {"query_positions": 9 * np.arange(_T), "key_positions": 5 * np.arange(_S)},
        ),
        "TransformerEncoderLayer": ComponentCase(
            TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F),
            _x,
            {"key_mask": _key_mask, "need_weights": True},
        ),
        "TransformerEncoderLayer, pre-norm": ComponentCase(
            TransformerEncoderLayerConfig(
                d_model=D, num_heads=N, d_ff=F, activation="gelu", norm_placement="pre", eps=1e-2
            ),
            _x,
            {"mask": np.tril(np.ones((_T, _T), bool)), "bias": _normal(N, _T, _T)[None]},
        ),
        "Encoder": ComponentCase(
            EncoderConfig(layer=_layer, num_layers=2, embedding=_text, pooler=True),
            {"ids": _ids},
            {"key_mask": _key_mask, **_everything},
        ),
        "Encoder of vectors": ComponentCase(
            EncoderConfig(layer=_layer, num_layers=2), _x, {"mask": _coins(_T, _T)}
        ),
        "EncoderWithHeads": ComponentCase(
            EncoderWithHeadsConfig(
                encoder=EncoderConfig(layer=_layer, num_layers=1, embedding=_text, pooler=True),
                masked_lm=MaskedLMHeadConfig(d_model=D, vocab_size=VOCAB),
                next_sentence=NextSentenceHeadConfig(d_model=D),
                sequence_classification=SequenceClassificationHeadConfig(
                    d_model=D, num_labels=NUM_LABELS
                ),
                token_classification=TokenClassificationHeadConfig(
                    d_model=D, num_labels=NUM_LABELS
                ),
                question_answering=QuestionAnsweringHeadConfig(d_model=D),
            ),
            {"ids": _ids},
            {"key_mask": _key_mask},
        ),
        "EncoderWithHeads, narrow tables, few biases": ComponentCase(
            EncoderWithHeadsConfig(
                encoder=EncoderConfig(
                    layer=_layer, num_layers=1, embedding=replace(_text, embed_dim=4)
                ),
                masked_lm=MaskedLMHeadConfig(
                    d_model=D,
                    vocab_size=VOCAB,
                    embed_dim=4,
                    transform_bias=False,
                    norm_bias=False,
                ),
            ),
            {"ids": _ids},
            {"key_mask": _key_mask},
        ),
        "PatchEmbedding": ComponentCase(_patches, _images, _patch_mask),
        "PatchEmbedding, no class, no bias, a norm": ComponentCase(
            PatchEmbeddingConfig(
                image_size=6,
                patch_size=3,
                d_model=D,
                num_channels=2,
                patch_bias=False,
                class_token=False,
                norm=NormConfig(),
            ),
            {"images": _normal(B, 2, 6, 6)},
        ),
        "AttentionPooling": ComponentCase(_pooling, _x, {"key_mask": _key_mask}),
        "VisionEncoder, attention": ComponentCase(
            VisionEncoderConfig(
                embedding=_patches,
                layer=_layer,
                num_layers=2,
                pooling="attention",
                attention_pooling=_pooling,
            ),
            _images,
            _patch_mask | _everything,
        ),
        "VisionEncoder, class": ComponentCase(
            _vision,
            _images,
        ),
        "VisionEncoder, tanh, no final norm": ComponentCase(
            VisionEncoderConfig(
                embedding=_patches, layer=_layer, num_layers=1, final_norm=None, pooling="tanh"
            ),
            _images,
        ),
        "VisionEncoder, class and mean": ComponentCase(
            replace(_vision, pooling="class_mean"), _images
        ),
        "Encoder, pooled where an id comes first": ComponentCase(
            replace(_pooled, pooled_token=int(_ids[0, 3])), {"ids": _ids}
        ),
        "Encoder, pooled at the last token": ComponentCase(
            replace(_pooled, pooled_token="last", embedding=None), _x
        ),
        "EncoderWithProjection": ComponentCase(
            EncoderWithProjectionConfig(encoder=_pooled, projection_dim=NUM_LABELS, bias=False),
            {"ids": _ids},
            {"key_mask": _key_mask, **_everything},
        ),
        "EncoderWithProjection, images": ComponentCase(
            EncoderWithProjectionConfig(encoder=_vision, projection_dim=NUM_LABELS), _images
        ),
        "DualEncoder": ComponentCase(
            DualEncoderConfig(
                image=EncoderWithProjectionConfig(encoder=_vision, projection_dim=D, bias=False),
                text=_pooled,
                logit_bias=True,
            ),
            {"images": _normal(3, 3, 4, 6), "ids": _ids},
            {"key_mask": _key_mask, **_everything},
        ),
        "AudioEncoder": ComponentCase(
            AudioEncoderConfig(num_mel_bins=4, layer=_layer, num_layers=2, max_seq_len=9),
            {"features": _normal(B, 4, 14)},
            {"key_mask": np.arange(7) < np.array([[7], [4]]), **_everything},
        ),
    }
    | {
        f"FeedForward, {activation}": ComponentCase(
            FeedForwardConfig(d_model=D, d_ff=F, activation=activation), _x
        )
        for activation in ACTIVATIONS
    }
    | {
        f"GatedFeedForward, {activation}": ComponentCase(
            GatedFeedForwardConfig(d_model=D, d_ff=F, activation=activation, bias=bias), _x
        )
        for activation, bias in (("silu", False), ("gelu_tanh", True), ("clamped_swiglu", True))
    }
    | {
        f"MixtureOfExperts, {name}": ComponentCase(
            MixtureOfExpertsConfig(d_model=D, d_ff=F, num_experts=6, top_k=top_k, **options), _x
        )
        for name, (top_k, options) in MIXTURES.items()
    }
)


_stacked = {"key_mask": np.arange(7) < np.array([[7], [4]]), **_everything}
_tokens = _random.integers(0, 19, (B, 7))
_memory = {"x": _normal(B, 7, 12), "memory": _normal(B, 5, 12)}
CASES |= {
    f"Decoder, {name}": ComponentCase(config, {"ids": _tokens}, _stacked)
    for name, config in DECODERS.items()
}
CASES |= {
    f"Block, {name}": ComponentCase(
        config,
        {"x": _memory["x"]},
        {"need_weights": True} | ({"memory": _memory["memory"]} if config.cross_attention else {}),
    )
    for name, config in BLOCKS.items()
}
CASES |= {
    "EncoderDecoder": ComponentCase(
        ENCODER_DECODER,
        {"ids": _tokens, "decoder_ids": _tokens[:, :5]},
        {"key_mask": _stacked["key_mask"], **_everything},
    ),
    "LogitsHead": ComponentCase(
        LogitsHeadConfig(d_model=D, vocab_size=VOCAB, tied=False, bias=True, scale=0.5), _x
    ),
    "TransformerDecoderLayer": ComponentCase(
        TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F),
        {"x": _normal(B, 7, D), "memory": _normal(B, 5, D)},
        {"key_mask": _stacked["key_mask"], "need_weights": True},
    ),
}
