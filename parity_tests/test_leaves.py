"""A config's leaves are what both panels hold, names say kinds, and no field is without effect."""

import dataclasses
import inspect
from typing import Any

import jax
import pytest
import torch

from diptych.convert.layouts import layout_rules
from diptych.convert.rules import convert_tensors, inverse
from diptych.spec import (
    COMPONENTS,
    AlibiConfig,
    AttentionConfig,
    Config,
    EncoderConfig,
    FeedForwardConfig,
    LinearScaling,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
)
from parity_tests import stack_cases
from parity_tests.components import (
    ENCODER,
    EXAMPLES,
    HEADS,
    LAYER,
    PANELS,
    PATCHES,
    POOLING,
    PROJECTED,
    TEXT,
    VISION,
    Example,
    arrays,
    build,
    flat,
    new,
)
from parity_tests.sizes import D, F, H, N

VARIANTS = {
    **{name: example.config for name, example in EXAMPLES.items()},
    "grouped, own head width, no biases": AttentionConfig(
        d_model=D, num_heads=4, num_kv_heads=2, head_dim=H, qkv_bias=False, out_bias=False
    ),
    "encoder of vectors": EncoderConfig(layer=LAYER, num_layers=11),
    "without token types": dataclasses.replace(TEXT, num_token_types=0),
    "text, tokens alone": dataclasses.replace(
        TEXT, max_seq_len=None, num_token_types=0, norm=None, embed_dim=3, embed_bias=False
    ),
    "text, shared tokens, padding": dataclasses.replace(
        TEXT, shared_tokens=True, padding_id=1, norm=NormConfig(kind="rms")
    ),
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
        "kv_dim": 4,
        "rotary": RotaryConfig(dim=4),
        "qk_norm": QKNormConfig(),
        "position_bias": AlibiConfig(),
    },
    "LatentAttention": {
        "d_model": 2 * D,
        "num_heads": 5,
        "kv_rank": 7,
        "nope_dim": 3,
        "rope_dim": 4,
        "v_dim": 4,
        "q_rank": None,
        "qkv_bias": True,
        "out_bias": True,
        "attention_dropout": 0.5,
        "norm": NormConfig(),
        "score": ScoreConfig(is_causal=True),
        "rotary": RotaryConfig(theta=10.0),
    },
    "AttentionPooling": {
        "attention": AttentionConfig(d_model=D, num_heads=1),
        "feed_forward": FeedForwardConfig(d_model=D, d_ff=F + 2),
        "norm": NormConfig(eps=0.1),
    },
    "AudioEncoder": {
        "num_mel_bins": 7,
        "layer": dataclasses.replace(LAYER, d_ff=13),
        "num_layers": 3,
        "max_seq_len": 6,
        "final_norm": None,
        "dropout": 0.5,
    },
    "PatchEmbedding": {
        "image_size": (12, 8),
        "patch_size": 2,
        "d_model": 2 * D,
        "num_channels": 1,
        "patch_bias": False,
        "class_token": False,
        "mask_token": True,
        "norm": NormConfig(),
        "dropout": 0.5,
    },
    "VisionEncoder": {
        "embedding": dataclasses.replace(PATCHES, class_token=False),
        "layer": dataclasses.replace(LAYER, d_ff=13),
        "num_layers": 3,
        "final_norm": None,
        "pooling": {"pooling": "class_mean", "attention_pooling": None},
        "attention_pooling": dataclasses.replace(POOLING, norm=NormConfig(eps=0.1)),
    },
    "Block": {
        "attention": dataclasses.replace(stack_cases.block().attention, num_heads=2),
        "feed_forward": FeedForwardConfig(d_model=stack_cases.D, d_ff=13),
        "norm": NormConfig(kind="rms"),
        "norm_placement": "branch",
        "cross_attention": AttentionConfig(d_model=stack_cases.D, num_heads=2),
        "dropout": 0.5,
        "layer_scale": 0.5,
        "attention_norm": False,
    },
    "Decoder": {
        "layer": stack_cases.block(),
        "num_layers": 3,
        "embedding": stack_cases.LEARNED,
        "final_norm": None,
        "position_bias": {"layer": stack_cases.block(), "position_bias": AlibiConfig()},
        "dropout": 0.5,
        "head": None,
    },
    "Embedding": {"num_embeddings": 5, "d_model": 2 * D},
    "Encoder": {
        "layer": dataclasses.replace(LAYER, d_ff=13),
        "num_layers": 3,
        "embedding": dataclasses.replace(TEXT, num_token_types=3),
        "pooler": False,
        "final_norm": NormConfig(),
        "position_bias": AlibiConfig(),
        "dropout": 0.5,
        "pooled_token": {"pooled_token": 3, "pooler": False},
    },
    "DualEncoder": {
        "image": dataclasses.replace(VISION, num_layers=1),
        "text": dataclasses.replace(PROJECTED, bias=True),
        "logit_bias": False,
    },
    "EncoderWithProjection": {
        "encoder": dataclasses.replace(PROJECTED.encoder, num_layers=1),
        "projection_dim": 2,
        "bias": True,
    },
    "EncoderDecoder": {
        "encoder": dataclasses.replace(stack_cases.ENCODER, num_layers=2),
        "decoder": dataclasses.replace(stack_cases.ENCODER_DECODER.decoder, num_layers=1),
    },
    "EncoderWithHeads": {
        "encoder": dataclasses.replace(ENCODER, num_layers=1),
        **dict.fromkeys(HEADS),
    },
    "FeedForward": {"d_model": 2 * D, "d_ff": 13, "activation": "silu", "bias": False},
    "GatedFeedForward": {"d_model": 2 * D, "d_ff": 13, "activation": "relu", "bias": True},
    "HeadAttention": {"emb_size": 2 * D, "head_size": 13, "max_seq_len": 6},
    "LayerNorm": {"d_model": 2 * D, "eps": 0.1, "bias": False},
    "LogitsHead": {
        "d_model": 2 * D,
        "vocab_size": 5,
        "tied": True,
        "bias": True,
        "scale": 0.5,
        "softcap": None,
        "embed_dim": {"tied": True, "embed_dim": 4},
    },
    "MaskedLMHead": {"d_model": 2 * D, "vocab_size": 5, "activation": "gelu_tanh", "eps": 0.1},
    "MixtureOfExperts": {
        "d_model": 2 * D,
        "d_ff": 13,
        "num_experts": 4,
        "top_k": 1,
        "activation": "relu",
        "bias": True,
        "router": RouterConfig(scoring="sigmoid"),
        "shared_d_ff": None,
        "shared_gate": True,
    },
    "NextSentenceHead": {"d_model": 2 * D},
    "PositionalEncoding": {"d_model": 2 * D, "max_seq_len": 6},
    "QuestionAnsweringHead": {"d_model": 2 * D},
    "RelativePositionBias": {
        "num_heads": N + 1,
        "num_buckets": 4,
        "max_distance": 3,
        "is_bidirectional": False,
    },
    "RMSNorm": {"d_model": 2 * D, "eps": 0.1, "unit_offset": True},
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
        "norm": NormConfig(kind="rms"),
        "dropout": 0.5,
        "scale": 3.0,
        "position_offset": 2,
        "padding_id": 1,
        "embed_dim": 3,
        "embed_bias": {"embed_dim": 3, "embed_bias": False},
        "shared_tokens": True,
    },
    "TokenClassificationHead": {"d_model": 2 * D, "num_labels": 5, "dropout": 0.5},
}
for _layer in ("TransformerDecoderLayer", "TransformerEncoderLayer"):
    CHANGES[_layer] = {
        "d_model": 2 * D,
        "num_heads": 5,
        "d_ff": F + 2,
        "dropout": 0.5,
        "activation": "gelu",
        "norm_placement": "pre",
        "eps": 0.1,
        "attention_dropout": 0.5,
    }

SCORES = {
    "scale": 2.0,
    "softcap": 1.0,
    "window": (1, 0),
    "is_causal": True,
    "sinks": True,
}
QK_NORMS = {"norm": NormConfig(), "over": "width"}
ROTARIES = {
    "theta": 10.0,
    "dim": 2,
    "interleaved": True,
    "scaling": LinearScaling(factor=2.0),
}


ROUTERS = {
    "scoring": (RouterConfig(), "sigmoid"),
    "normalize": (RouterConfig(), True),
    "scale": (RouterConfig(), 2.0),
    "bias": (RouterConfig(), True),
    "choice_bias": (RouterConfig(), True),
    "num_groups": (RouterConfig(), 3),
    "top_groups": (RouterConfig(num_groups=3), 2),
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
        "proj": (torch.nn.Linear,),
        "norm": (PANELS["torch"].LayerNorm, PANELS["torch"].RMSNorm),
        "embed": (PANELS["torch"].Embedding,),
        "conv": (torch.nn.Conv2d,),
        "conv1d": (torch.nn.Conv1d,),
    }
    module = new("torch", config)
    for name, leaf in config.leaves().items():
        path, _, last = name.rpartition(".")
        if leaf.kind == "param":
            assert last.endswith("_param"), name
            assert isinstance(module.get_parameter(name), torch.nn.Parameter)
            continue
        assert type(module.get_submodule(path)) in kinds[leaf.kind], name
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
        together = value if isinstance(value, dict) else {name: value}
        changed = dataclasses.replace(example.config, **together)
        assert fingerprint(panel, example._replace(config=changed)) != before, name


@pytest.mark.parametrize("panel", PANELS)
def test_every_field_of_a_score_changes_something(panel: str) -> None:
    assert {field.name for field in dataclasses.fields(ScoreConfig)} == SCORES.keys()
    example = EXAMPLES["MultiHeadAttention"]
    before = fingerprint(panel, example)
    for name, value in SCORES.items():
        config = dataclasses.replace(example.config, score=ScoreConfig(**{name: value}))
        assert fingerprint(panel, example._replace(config=config)) != before, name


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("part", "given", "changes"),
    [("qk_norm", QKNormConfig(), QK_NORMS), ("rotary", RotaryConfig(dim=4), ROTARIES)],
)
def test_every_field_of_a_part_of_attention_changes_something(
    panel: str, part: str, given: Config, changes: dict[str, Any]
) -> None:
    assert {field.name for field in dataclasses.fields(given)} == changes.keys()
    example = EXAMPLES["MultiHeadAttention"]
    config = dataclasses.replace(example.config, **{part: given})
    before = fingerprint(panel, example._replace(config=config))
    for name, value in changes.items():
        changed = {part: dataclasses.replace(given, **{name: value})}
        config = dataclasses.replace(example.config, **changed)
        assert fingerprint(panel, example._replace(config=config)) != before, name


@pytest.mark.parametrize("panel", PANELS)
def test_every_field_of_a_router_changes_something(panel: str) -> None:
    assert {field.name for field in dataclasses.fields(RouterConfig)} == ROUTERS.keys()
    example = EXAMPLES["MixtureOfExperts"]
    for name, (config, changed) in ROUTERS.items():
        fingerprints = [
            fingerprint(
                panel,
                example._replace(config=dataclasses.replace(example.config, router=router)),
            )
            for router in (config, dataclasses.replace(config, **{name: changed}))
        ]
        assert fingerprints[0] != fingerprints[1], name


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
