"""torch layout <-> flax layout for every component, by the kind that a leaf's name says."""

import numpy as np
import pytest

from diptych.convert.layouts import layout_rules
from diptych.convert.models import layout_shapes
from diptych.convert.rules import convert_tensors, inverse
from diptych.spec import (
    COMPONENTS,
    AttentionConfig,
    CheckpointError,
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    FeedForwardConfig,
    HeadAttentionConfig,
    LayerNormConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    PositionalEncodingConfig,
    QuestionAnsweringHeadConfig,
    ScaledDotProductAttentionConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
    TransformerEncoderLayerConfig,
)

LAYER = TransformerEncoderLayerConfig(d_model=6, num_heads=3, d_ff=7)
EMBEDDING = TextEmbeddingConfig(vocab_size=11, d_model=6, max_seq_len=5)
ENCODER = EncoderConfig(layer=LAYER, num_layers=2, embedding=EMBEDDING, pooler=True)
MASKED_LM = MaskedLMHeadConfig(d_model=6, vocab_size=11)
CONFIGS = [
    ScaledDotProductAttentionConfig(d_k=4),
    PositionalEncodingConfig(d_model=5),
    HeadAttentionConfig(emb_size=6, head_size=3, max_seq_len=4),
    AttentionConfig(d_model=6, num_heads=2, head_dim=5),
    FeedForwardConfig(d_model=6, d_ff=7),
    LayerNormConfig(d_model=6),
    EmbeddingConfig(num_embeddings=11, d_model=6),
    EMBEDDING,
    LAYER,
    ENCODER,
    MASKED_LM,
    NextSentenceHeadConfig(d_model=6),
    SequenceClassificationHeadConfig(d_model=6, num_labels=4),
    TokenClassificationHeadConfig(d_model=6, num_labels=4),
    QuestionAnsweringHeadConfig(d_model=6),
    EncoderWithHeadsConfig(encoder=ENCODER, masked_lm=MASKED_LM),
]


def values_of(config):
    random = np.random.default_rng(0)
    return {name: random.random(leaf.shape) for name, leaf in config.leaves().items()}


def test_the_table_has_every_component():
    assert {config.component for config in CONFIGS} == COMPONENTS.keys()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.component)
def test_there_and_back(config):
    rules = layout_rules(config)
    given = values_of(config)
    flax = convert_tensors(given, rules)
    assert {name: x.shape for name, x in flax.items()} == layout_shapes(config, "flax")
    back = convert_tensors(flax, inverse(rules))
    assert back.keys() == given.keys()
    assert all(np.array_equal(back[name], given[name]) for name in given)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.component)
def test_each_kind_is_called_and_stored_as_flax_does(config):
    flax = layout_shapes(config, "flax")
    kinds = {
        ("proj", "weight"): ("kernel", True),
        ("conv", "weight"): ("kernel", True),
        ("embed", "weight"): ("embedding", False),
    }
    expected = {}
    for name, leaf in config.leaves().items():
        path, dot, last = name.rpartition(".")
        new, swapped = kinds.get((leaf.kind, last), (last, False))
        expected[f"{path}{dot}{new}"] = leaf.shape[::-1] if swapped else leaf.shape
    assert flax == expected


def test_square_kernels_are_transposed_too():
    rules = layout_rules(LAYER)
    given = values_of(LAYER)
    kernel = convert_tensors(given, rules)["attention.q_proj.kernel"]
    assert np.array_equal(kernel, given["attention.q_proj.weight"].T)


@pytest.mark.parametrize("name", ["layers.0.thing.weight", "q_proj.scale", "a_norm.scale", "proj"])
def test_a_leaf_of_no_kind_is_refused(name):
    with pytest.raises(CheckpointError, match="no rule covers it"):
        convert_tensors({name: np.zeros((2, 2))}, layout_rules(LAYER))
