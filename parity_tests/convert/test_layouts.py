"""torch layout <-> flax layout for every component, by the kind that a leaf's name says."""

import numpy as np
import pytest

from diptych.convert import write_model
from diptych.convert.layouts.layout import FLAX
from diptych.convert.layouts.torch_to_flax import TORCH_TO_FLAX, layout_rules
from diptych.rules import convert_tensors, inverse
from diptych.spec import (
    COMPONENTS,
    CheckpointError,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.components.rooms import EXAMPLES

LAYER = TransformerEncoderLayerConfig(d_model=6, num_heads=3, d_ff=7)
CONFIGS = [example.config for example in EXAMPLES.values()]
EMBEDDING = TextEmbeddingConfig(vocab_size=11, d_model=6, max_seq_len=5)


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
    assert {name: x.shape for name, x in flax.items()} == FLAX.shapes(config)
    back = convert_tensors(flax, inverse(rules))
    assert back.keys() == given.keys()
    assert all(np.array_equal(back[name], given[name]) for name in given)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.component)
def test_each_kind_is_called_and_stored_as_flax_does(config):
    flax = FLAX.shapes(config)
    kinds = {
        ("proj", "weight"): ("kernel", True),
        ("conv", "weight"): ("kernel", True),
        ("conv1d", "weight"): ("kernel", True),
        ("embed", "weight"): ("embedding", False),
    }
    expected = {}
    for name, leaf in config.leaves().items():
        path, dot, last = name.rpartition(".")
        new, swapped = kinds.get((leaf.kind, last), (last, False))
        if swapped:  # (O, I, height, width) -> (height, width, I, O)
            out, *others = leaf.shape
            expected[f"{path}{dot}{new}"] = (*others[1:], others[0], out)
        else:
            expected[f"{path}{dot}{new}"] = leaf.shape
    assert flax == expected


def test_square_kernels_are_transposed_too():
    rules = layout_rules(LAYER)
    given = values_of(LAYER)
    kernel = convert_tensors(given, rules)["attention.q_proj.kernel"]
    assert np.array_equal(kernel, given["attention.q_proj.weight"].T)


def test_kernels_of_convolutions_keep_every_value_at_its_place():
    random = np.random.default_rng(0)
    image, audio = random.random((2, 3, 4, 5)), random.random((2, 3, 4))
    given = {"a.patch_conv.weight": image, "first_conv1d.weight": audio}
    flax = convert_tensors(given, TORCH_TO_FLAX)
    assert flax.keys() == {"a.patch_conv.kernel", "first_conv1d.kernel"}
    for out, channel, row, column in np.ndindex(image.shape):
        moved = flax["a.patch_conv.kernel"][row, column, channel, out]
        assert moved == image[out, channel, row, column]
    for out, channel, step in np.ndindex(audio.shape):
        assert flax["first_conv1d.kernel"][step, channel, out] == audio[out, channel, step]


@pytest.mark.parametrize("name", ["layers.0.thing.weight", "q_proj.scale", "a_norm.scale", "proj"])
def test_a_leaf_of_no_kind_is_refused(name):
    with pytest.raises(CheckpointError, match="no rule covers it"):
        convert_tensors({name: np.zeros((2, 2))}, layout_rules(LAYER))


@pytest.mark.parametrize("layout", ["hf", "hf-flax", "linen"])
def test_a_component_is_written_in_the_layout_of_a_panel_alone(tmp_path, layout):
    tensors = {name: np.ones(leaf.shape) for name, leaf in LAYER.leaves().items()}
    with pytest.raises(ValueError, match=f"layout='{layout}' must be one of 'torch', 'flax'"):
        write_model(
            tmp_path / "out",
            component=LAYER.component,
            config=LAYER,
            tensors=tensors,
            layout=layout,
        )
