"""One language for layers: a stack holds blocks, whatever its layers were called."""

from dataclasses import fields, replace

import pytest

from diptych.spec import (
    AudioEncoderConfig,
    BlockConfig,
    Config,
    DecoderConfig,
    EncoderConfig,
    EncoderDecoderConfig,
    PatchEmbeddingConfig,
    TransformerDecoderLayerConfig,
    TransformerEncoderLayerConfig,
    VisionEncoderConfig,
)

ENCODER_LAYER = TransformerEncoderLayerConfig(d_model=8, num_heads=2, d_ff=6)
DECODER_LAYER = TransformerDecoderLayerConfig(d_model=8, num_heads=2, d_ff=6)
PATCHES = PatchEmbeddingConfig(image_size=4, patch_size=2, d_model=8)
STACKS = {  # each with the layer that it takes
    "encoder": (EncoderConfig(layer=ENCODER_LAYER, num_layers=2), ENCODER_LAYER),
    "decoder": (DecoderConfig(layer=DECODER_LAYER, num_layers=2), DECODER_LAYER),
    "audio": (AudioEncoderConfig(num_mel_bins=3, layer=ENCODER_LAYER, num_layers=2), ENCODER_LAYER),
    "vision": (
        VisionEncoderConfig(embedding=PATCHES, layer=ENCODER_LAYER, num_layers=2),
        ENCODER_LAYER,
    ),
}
CHANGES = {
    "d_model": 12,
    "num_heads": 4,
    "d_ff": 7,
    "dropout": 0.25,
    "activation": "gelu",
    "norm_placement": "pre",
    "eps": 1e-6,
    "attention_dropout": 0.5,
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("times", [1, 2])
def test_a_named_layer_and_its_block_make_one_config(name, times):
    config, layer = STACKS[name]
    named, block = (replace(config, layer=(one,) * times) for one in (layer, layer.block))
    assert named == block
    assert hash(named) == hash(block)
    assert named.leaves() == block.leaves()
    assert type(config.layer) is BlockConfig
    assert {type(one) for one in named.layer} == {BlockConfig}


@pytest.mark.parametrize("name", STACKS)
def test_a_stored_config_of_named_layers_is_read(name):
    """As ``config.json`` was written when stacks held the layers that they were given."""
    config, layer = STACKS[name]
    tag = {"type": "TransformerDecoderLayer"} if name == "decoder" else {}
    stored = config.to_dict() | {"layer": tag | layer.to_dict()}
    assert type(config).from_dict(stored) == config
    assert type(config).from_dict(config.to_dict()) == config


def test_a_stored_pair_of_stacks_is_read():
    encoder, decoder = STACKS["encoder"][0], STACKS["decoder"][0]
    config = EncoderDecoderConfig(encoder=encoder, decoder=decoder)
    stored = config.to_dict()
    stored["encoder"]["layer"] = ENCODER_LAYER.to_dict()
    assert EncoderDecoderConfig.from_dict(stored) == config


@pytest.mark.parametrize("layer", [ENCODER_LAYER, DECODER_LAYER], ids=["encoder", "decoder"])
@pytest.mark.parametrize("field", CHANGES)
def test_each_field_of_a_named_layer_is_in_its_block(layer: Config, field: str):
    """And no two fields change the same place, so that none takes another's."""
    assert {field.name for field in fields(layer)} == CHANGES.keys()
    block = layer.block.to_dict()
    changed = {
        name: _different(block, replace(layer, **{name: value}).block.to_dict())
        for name, value in CHANGES.items()
    }
    assert changed[field]
    others = [changed[name] for name in CHANGES if name != field]
    assert all(changed[field].isdisjoint(places) for places in others)


def test_the_rate_of_the_weights_is_that_of_both_attentions():
    block = replace(DECODER_LAYER, attention_dropout=0.5).block
    assert block.attention.attention_dropout == 0.5
    assert block.cross_attention.attention_dropout == 0.5


def _different(a: object, b: object, path: str = "") -> set[str]:
    """Return the paths at which two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        assert a.keys() == b.keys()
        return set().union(*(_different(a[key], b[key], f"{path}.{key}") for key in a))
    return set() if a == b else {path}
