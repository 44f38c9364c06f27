"""One small example of every component, built and called alike in both panels.

B batch   T positions   D model width
"""

from typing import Any, NamedTuple

import jax
import numpy as np
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.spec import (
    AttentionConfig,
    AttentionPoolingConfig,
    AudioEncoderConfig,
    Config,
    DualEncoderConfig,
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    EncoderWithProjectionConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    HeadAttentionConfig,
    LatentAttentionConfig,
    LayerNormConfig,
    LogitsHeadConfig,
    MaskedLMHeadConfig,
    MixtureOfExpertsConfig,
    NextSentenceHeadConfig,
    PatchEmbeddingConfig,
    PositionalEncodingConfig,
    QuestionAnsweringHeadConfig,
    RelativePositionBiasConfig,
    RMSNormConfig,
    ScaledDotProductAttentionConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
    TransformerDecoderLayerConfig,
    TransformerEncoderLayerConfig,
    VisionEncoderConfig,
)
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import to_flax
from parity_tests.panels.stack_cases import DECODERS, ENCODER_DECODER, block
from parity_tests.support.harness import from_torch, to_jax, to_torch
from parity_tests.support.sizes import MAX_LEN, NUM_LABELS, VOCAB, B, D, F, H, N

PANELS = {"torch": torch_impl, "jax": jax_impl}
LAYER = TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F)
TEXT = TextEmbeddingConfig(vocab_size=VOCAB, d_model=D, max_seq_len=MAX_LEN)
ENCODER = EncoderConfig(layer=LAYER, num_layers=2, embedding=TEXT, pooler=True)
HEADS: dict[str, Any] = {
    "masked_lm": MaskedLMHeadConfig(d_model=D, vocab_size=VOCAB),
    "next_sentence": NextSentenceHeadConfig(d_model=D),
    "sequence_classification": SequenceClassificationHeadConfig(d_model=D, num_labels=NUM_LABELS),
    "token_classification": TokenClassificationHeadConfig(d_model=D, num_labels=NUM_LABELS),
    "question_answering": QuestionAnsweringHeadConfig(d_model=D),
}
PATCHES = PatchEmbeddingConfig(image_size=(8, 12), patch_size=4, d_model=D)
POOLING = AttentionPoolingConfig(
    attention=AttentionConfig(d_model=D, num_heads=N),
    feed_forward=FeedForwardConfig(d_model=D, d_ff=F),
)
VISION = VisionEncoderConfig(
    embedding=PATCHES, layer=LAYER, num_layers=2, pooling="attention", attention_pooling=POOLING
)
PROJECTED = EncoderWithProjectionConfig(
    encoder=EncoderConfig(layer=LAYER, num_layers=2, embedding=TEXT, pooled_token="highest"),
    projection_dim=D,
    bias=False,
)
T = 7


class Example(NamedTuple):
    """A component and the positional arguments of one call; a config stands for its module."""

    config: Config
    arguments: tuple[Any, ...]


def random_input(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float32 normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


IDS = np.random.default_rng(1).integers(0, VOCAB, (B, T))
X = random_input(B, T, D)
IMAGES = random_input(B, 3, 8, 12)
ATTENDED = tuple(random_input(B, T, H, seed=seed) for seed in (1, 2, 3))
EXAMPLES: dict[str, Example] = {
    example.config.component: example
    for example in (
        Example(AttentionConfig(d_model=D, num_heads=N), (X, X, X)),
        Example(POOLING, (X,)),
        Example(
            AudioEncoderConfig(num_mel_bins=5, layer=LAYER, num_layers=2, max_seq_len=MAX_LEN),
            (random_input(B, 5, 2 * T),),
        ),
        Example(DECODERS["local and global"], (IDS % 19,)),
        Example(
            DualEncoderConfig(image=VISION, text=PROJECTED, logit_bias=True),
            (random_input(B, 2, 3, 8, 12), np.stack([IDS, IDS[:, ::-1], (IDS + 1) % VOCAB], 1)),
        ),
        Example(EmbeddingConfig(num_embeddings=VOCAB, d_model=D), (IDS,)),
        Example(ENCODER, (IDS,)),
        Example(ENCODER_DECODER, (IDS % 19, IDS[:, :5] % 19)),
        Example(EncoderWithHeadsConfig(encoder=ENCODER, **HEADS), (IDS,)),
        Example(PROJECTED, (IDS,)),
        Example(FeedForwardConfig(d_model=D, d_ff=F), (X,)),
        Example(GatedFeedForwardConfig(d_model=D, d_ff=F), (X,)),
        Example(
            MixtureOfExpertsConfig(d_model=D, d_ff=F, num_experts=6, top_k=2, shared_d_ff=3), (X,)
        ),
        Example(RMSNormConfig(d_model=D), (X,)),
        Example(HeadAttentionConfig(emb_size=D, head_size=H, max_seq_len=MAX_LEN), (X,)),
        Example(
            LatentAttentionConfig(
                d_model=D, num_heads=N, q_rank=8, kv_rank=9, nope_dim=4, rope_dim=6, v_dim=H
            ),
            (X,),
        ),
        Example(LayerNormConfig(d_model=D), (X,)),
        Example(LogitsHeadConfig(d_model=D, vocab_size=VOCAB, tied=False, softcap=3.0), (X,)),
        Example(HEADS["masked_lm"], (X, EmbeddingConfig(num_embeddings=VOCAB, d_model=D))),
        Example(HEADS["next_sentence"], (X[:, 0],)),
        Example(PATCHES, (IMAGES,)),
        Example(PositionalEncodingConfig(d_model=D, max_seq_len=MAX_LEN), (X,)),
        Example(HEADS["question_answering"], (X,)),
        Example(
            RelativePositionBiasConfig(num_heads=N, num_buckets=8, max_distance=10),
            (np.stack([np.arange(T), 3 * np.arange(T)]), np.stack([np.arange(T)] * 2)),
        ),
        Example(ScaledDotProductAttentionConfig(d_k=H), ATTENDED),
        Example(HEADS["sequence_classification"], (X[:, 0],)),
        Example(TEXT, (IDS,)),
        Example(HEADS["token_classification"], (X,)),
        Example(block(), (random_input(B, T, 12),)),
        Example(TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F), (X, X[:, :5])),
        Example(LAYER, (X,)),
        Example(VISION, (IMAGES,)),
    )
}


def new(panel: str, config: Config, seed: int = 0) -> Any:
    """Build a component as a user does."""
    component = getattr(PANELS[panel], config.component)
    if panel == "torch":
        torch.manual_seed(seed)
        return component.from_config(config)
    rngs = {"rngs": nnx.Rngs(seed)} if config.leaves() else {}
    return component.from_config(config, **rngs)


def random_weights(config: Config) -> dict[str, np.ndarray]:
    """Return float32 parameters by canonical name."""
    return {name: array.astype(np.float32) for name, array in random_tensors(config).items()}


def in_layout(panel: str, config: Config, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return canonical weights in the names and shapes of a panel."""
    return weights if panel == "torch" else to_flax(config, weights)


def build(panel: str, config: Config, weights: dict[str, np.ndarray] | None = None) -> Any:
    """Build a component in evaluation mode, with random weights that are equal in both panels."""
    module = new(panel, config)
    weights = random_weights(config) if weights is None else weights
    PANELS[panel].load_state(module, in_layout(panel, config, weights))
    return module.eval()


def arrays(panel: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an example in a panel: arrays, and modules for configs."""
    convert = to_torch if panel == "torch" else to_jax
    return tuple(
        build(panel, argument) if isinstance(argument, Config) else convert(argument)
        for argument in arguments
    )


def flat(result: Any) -> list[np.ndarray]:
    """Return every array of a result, in order, as numpy."""
    leaves = jax.tree.leaves(result)
    return [
        from_torch(leaf) if isinstance(leaf, torch.Tensor) else np.asarray(leaf) for leaf in leaves
    ]


def run(panel: str, config: Config, *arguments: Any, **keywords: Any) -> list[np.ndarray]:
    """Build a component, call it on numpy arguments and return every array that it returns."""
    convert = to_torch if panel == "torch" else to_jax
    module = build(panel, config)
    return flat(module(*arrays(panel, arguments), **{k: convert(v) for k, v in keywords.items()}))
