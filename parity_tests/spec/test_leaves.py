"""A config's leaves are what both panels hold, and names say kinds."""

import dataclasses

import pytest
import torch

from diptych.convert import layout_rules
from diptych.rules import convert_tensors, inverse
from diptych.spec import COMPONENTS, AttentionConfig, Config, EncoderConfig, NormConfig
from parity_tests.components.modules import PANELS, new
from parity_tests.components.rooms import EXAMPLES
from parity_tests.components.rooms.embedding import TEXT
from parity_tests.components.rooms.heads import HEADS
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.support.sizes import D, H

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
    "text, tokens projected": dataclasses.replace(TEXT, embed_dim=3, embed_proj_of="tokens"),
    "text, shared tokens, padding": dataclasses.replace(
        TEXT, shared_tokens=True, padding_id=1, norm=NormConfig(kind="rms")
    ),
    "one head only": dataclasses.replace(
        EXAMPLES["EncoderWithHeads"].config, **dict.fromkeys(list(HEADS)[1:])
    ),
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


def test_a_users_subclass_takes_no_components_place() -> None:
    class Own(AttentionConfig):
        """A config of a user's own."""

    assert Own.component == "MultiHeadAttention"
    assert COMPONENTS["MultiHeadAttention"] is AttentionConfig


def test_every_component_has_an_example() -> None:
    assert EXAMPLES.keys() == COMPONENTS.keys()


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


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_json_brings_a_config_back(config: Config) -> None:
    assert type(config).from_dict(config.to_dict()) == config
