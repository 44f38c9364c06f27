"""Every component: saved by one panel, loaded by the other, converted, and verified identical."""

import numpy as np
import pytest

import diptych
from diptych.parity.inputs import batches
from parity_tests.components.modules import PANELS, in_layout, new
from parity_tests.components.rooms import EXAMPLES, marked_components
from parity_tests.components.runs import to_canonical

LAYOUTS = {"torch": "torch", "jax": "flax"}


def canonical(panel, module):
    state = PANELS[panel].export_state(module)
    return state if panel == "torch" else to_canonical(module.config, state)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("ours", "theirs"), [("torch", "jax"), ("jax", "torch")])
def test_a_saved_model_crosses(name, ours, theirs, tmp_path):
    config = EXAMPLES[name].config
    module = new(ours, config)
    PANELS[ours].save_model(module, tmp_path / "saved")
    loaded = PANELS[theirs].load_model(tmp_path / "saved")
    assert loaded.config == config
    given, found = canonical(ours, module), canonical(theirs, loaded)
    assert given.keys() == found.keys()
    assert all(np.array_equal(given[leaf], found[leaf]) for leaf in given)


@pytest.mark.parametrize("name", marked_components(EXAMPLES))
def test_a_converted_model_is_verified(name, tmp_path):
    config = EXAMPLES[name].config
    PANELS["torch"].save_model(new("torch", config), tmp_path / "saved")
    diptych.convert_checkpoint(tmp_path / "saved", tmp_path / "converted", to=LAYOUTS["jax"])
    verification = diptych.verify(tmp_path / "saved", tmp_path / "converted")
    assert verification.identical, str(verification)
    assert bool(verification.exact) == bool(batches(config))


def test_a_changed_weight_is_found(tmp_path):
    config = EXAMPLES["VisionEncoder"].config
    module = new("torch", config)
    PANELS["torch"].save_model(module, tmp_path / "saved")
    weights = canonical("torch", module)
    kernel = weights["embedding.patch_conv.weight"].copy()
    weights["embedding.patch_conv.weight"] = kernel[..., ::-1].copy()
    other = new("jax", config)
    PANELS["jax"].load_state(other, in_layout("jax", config, weights))
    PANELS["jax"].save_model(other, tmp_path / "other")
    assert not diptych.verify(tmp_path / "saved", tmp_path / "other").identical
