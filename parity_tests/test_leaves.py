"""A config's leaves are what both panels hold, names say kinds, and no field is without effect."""

import dataclasses
import inspect
from typing import Any

import jax
import pytest
import torch

from diptych.convert.layouts import layout_rules
from diptych.convert.rules import convert_tensors, inverse
from diptych.spec import COMPONENTS, AttentionConfig, Config, EncoderConfig, ScoreConfig
from parity_tests.components import (
    ENCODER,
    EXAMPLES,
    HEADS,
    LAYER,
    PANELS,
    TEXT,
    Example,
    arrays,
    build,
    flat,
    new,
)
from parity_tests.sizes import D, F, H

VARIANTS = {
    **{name: example.config for name, example in EXAMPLES.items()},
    "grouped, own head width, no biases": AttentionConfig(
        d_model=D, num_heads=4, num_kv_heads=2, head_dim=H, qkv_bias=False, out_bias=False
    ),
    "encoder of vectors": EncoderConfig(layer=LAYER, num_layers=11),
    "without token types": dataclasses.replace(TEXT, num_token_types=0),
    "one head only": dataclasses.replace(
        EXAMPLES["EncoderWithHeads"].config, **dict.fromkeys(list(HEADS)[1:])
    ),
}

CHANGES: dict[str, dict[str, Any]] = {
    "MultiHeadAttention": {
        "d_model": 2 * D,
        "num_heads": 5,
        "num_kv_heads": 1,
        "head_dim": 4,
        "qkv_bias": False,
        "out_bias": False,
        "attention_dropout": 0.5,
        "score": ScoreConfig(is_causal=True),
    },
    "Embedding": {"num_embeddings": 5, "d_model": 2 * D},
    "Encoder": {
        "layer": dataclasses.replace(LAYER, d_ff=13),
        "num_layers": 3,
        "embedding": dataclasses.replace(TEXT, num_token_types=3),
        "pooler": False,
    },
    "EncoderWithHeads": {
        "encoder": dataclasses.replace(ENCODER, num_layers=1),
        **dict.fromkeys(HEADS),
    },
    "FeedForward": {"d_model": 2 * D, "d_ff": 13, "activation": "silu"},
    "HeadAttention": {"emb_size": 2 * D, "head_size": 13, "max_seq_len": 6},
    "LayerNorm": {"d_model": 2 * D, "eps": 0.1},
    "MaskedLMHead": {"d_model": 2 * D, "vocab_size": 5, "activation": "gelu_tanh", "eps": 0.1},
    "NextSentenceHead": {"d_model": 2 * D},
    "PositionalEncoding": {"d_model": 2 * D, "max_seq_len": 6},
    "QuestionAnsweringHead": {"d_model": 2 * D},
    "ScaledDotProductAttention": {
        "d_k": 4,
        "attention_dropout": 0.5,
        "score": ScoreConfig(softcap=1.0),
    },
    "SequenceClassificationHead": {"d_model": 2 * D, "num_labels": 5, "dropout": 0.5},
    "TextEmbedding": {
        "vocab_size": 29,
        "d_model": 2 * D,
        "max_seq_len": 6,
        "num_token_types": 0,
        "eps": 0.1,
        "dropout": 0.5,
    },
    "TokenClassificationHead": {"d_model": 2 * D, "num_labels": 5, "dropout": 0.5},
    "TransformerEncoderLayer": {
        "d_model": 2 * D,
        "num_heads": 5,
        "d_ff": F + 2,
        "dropout": 0.5,
        "activation": "gelu",
        "norm_placement": "pre",
        "eps": 0.1,
        "attention_dropout": 0.5,
    },
}
SCORES = {
    "scale": 2.0,
    "softcap": 1.0,
    "window": (1, 0),
    "is_causal": True,
}


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_leaves_are_the_parameters_of_both_panels(config: Config) -> None:
    expected = {name: leaf.shape for name, leaf in config.leaves().items()}
    in_torch = PANELS["torch"].export_state(new("torch", config))
    assert {name: array.shape for name, array in in_torch.items()} == expected
    in_jax = PANELS["jax"].export_state(new("jax", config))
    back = convert_tensors(in_jax, inverse(layout_rules(config)))
    assert {name: array.shape for name, array in back.items()} == expected
    assert {array.dtype.name for array in (in_torch | in_jax).values()} <= {"float32"}


def test_every_component_has_an_example() -> None:
    assert EXAMPLES.keys() == COMPONENTS.keys() == CHANGES.keys()


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_attribute_names_say_the_kind(config: Config) -> None:
    kinds = {
        "proj": torch.nn.Linear,
        "norm": PANELS["torch"].LayerNorm,
        "embed": PANELS["torch"].Embedding,
    }
    module = new("torch", config)
    for name, leaf in config.leaves().items():
        path, _, last = name.rpartition(".")
        if leaf.kind == "param":
            assert last.endswith("_param"), name
            assert isinstance(module.get_parameter(name), torch.nn.Parameter)
            continue
        assert type(module.get_submodule(path)) is kinds[leaf.kind], name
        assert not path or path.endswith(f"_{leaf.kind}"), name
        assert last in ("weight", "bias"), name


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("component", CHANGES)
def test_every_field_changes_something(panel: str, component: str) -> None:
    example = EXAMPLES[component]
    names = {field.name for field in dataclasses.fields(example.config)}
    assert names == CHANGES[component].keys()
    before = fingerprint(panel, example)
    for name, value in CHANGES[component].items():
        changed = dataclasses.replace(example.config, **{name: value})
        assert fingerprint(panel, example._replace(config=changed)) != before, name


@pytest.mark.parametrize("panel", PANELS)
def test_every_field_of_a_score_changes_something(panel: str) -> None:
    assert {field.name for field in dataclasses.fields(ScoreConfig)} == SCORES.keys()
    example = EXAMPLES["ScaledDotProductAttention"]
    before = fingerprint(panel, example)
    for name, value in SCORES.items():
        config = dataclasses.replace(example.config, score=ScoreConfig(**{name: value}))
        assert fingerprint(panel, example._replace(config=config)) != before, name


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_json_brings_a_config_back(config: Config) -> None:
    assert type(config).from_dict(config.to_dict()) == config


def fingerprint(panel: str, example: Example) -> Any:
    """Return all that can be seen of a component: its leaves, its outputs, what it refuses."""
    module = build(panel, example.config)
    arguments = arrays(panel, example.arguments)
    try:
        evaluated = flat(module(*arguments))
        drawn = flat(draw(panel, module.train(), arguments))
    except (ValueError, TypeError, IndexError, RuntimeError) as refused:
        return example.config.leaves(), str(refused)
    return example.config.leaves(), [array.tobytes() for array in evaluated + drawn]


def draw(panel: str, module: Any, arguments: Any) -> Any:
    """Call a module in training mode, always with the same random numbers."""
    if panel == "torch":
        torch.manual_seed(0)
        return module(*arguments)
    takes_key = "rng_key" in inspect.signature(module.__call__).parameters
    return module(*arguments, rng_key=jax.random.key(0)) if takes_key else module(*arguments)
