"""ViT, DINOv2, CLIP and SigLIP: spellings, settings, bare files, and what faults would change."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diptych.convert import convert_checkpoint, open_checkpoint, read_model, write_model
from diptych.families import FAMILIES
from diptych.spec import CheckpointError, Config
from parity_tests.families.cases_vision import VISION_CASES as CASES
from parity_tests.support.checkpoints import assert_same_tensors, stored_tensors, write_checkpoint
from parity_tests.support.tiny_transformers import open_theirs, save_tiny

NAMES = pytest.mark.parametrize("name", CASES)
BARE = {
    "vit": {"num_attention_heads": 4, "image_size": [8, 12], "layer_norm_eps": 1e-3},
    "dinov2": {"num_attention_heads": 4, "mlp_ratio": 2, "layerscale_value": 0.5},
    "clip": {
        "text_config.num_attention_heads": 4,
        "text_config.eos_token_id": 96,
        "vision_config.num_attention_heads": 3,
    },
    "clip text, projected": {"num_attention_heads": 4, "eos_token_id": 96},
    "clip image": {"num_attention_heads": 3},
    "siglip": {"text_config.num_attention_heads": 4, "vision_config.num_attention_heads": 3},
    "siglip image": {"num_attention_heads": 3},
    "siglip image, no pooling": {"num_attention_heads": 3},
}
"""What the names and shapes of a bare state dict do not say."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    """Return the folder that a case's model was saved to, written once."""
    made: dict[str, Path] = {}

    def save(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("case") / "source"
            save_tiny(CASES[name], made[name])
        return made[name]

    return save


def settings_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "config.json").read_text())


@pytest.mark.parametrize("name", BARE)
def test_a_bare_state_dict_says_its_sizes(name: str, folder: Any, tmp_path: Path) -> None:
    path, family = folder(name), CASES[name].family
    given = open_checkpoint(path).config
    bare = write_checkpoint(tmp_path / "bare", stored_tensors(path))
    assert open_checkpoint(bare, family=family, settings=BARE[name]).config == given


@pytest.mark.parametrize("name", ["vit", "clip", "siglip image"])
def test_heads_are_not_guessed(name: str, folder: Any, tmp_path: Path) -> None:
    bare = write_checkpoint(tmp_path / "bare", stored_tensors(folder(name)))
    within = "vision_config." if name == "clip" else ""
    cause = f"{within}num_attention_heads: not in the checkpoint"
    with pytest.raises(CheckpointError, match=cause):
        open_checkpoint(bare, family=CASES[name].family, settings={"image_size": 12})


@NAMES
def test_what_is_written_without_a_source_opens(name: str, folder: Any, tmp_path: Path) -> None:
    """Nothing is missing or unexpected, and it is read as it was."""
    case = CASES[name]
    loaded = read_model(folder(name), layout="flax")
    write_model(
        tmp_path / "ours",
        component=loaded.component,
        config=loaded.config,
        tensors=loaded.tensors,
        layout="flax",
    )
    convert_checkpoint(tmp_path / "ours", tmp_path / "theirs", to="hf", family=case.family)
    open_theirs(case, tmp_path / "theirs", torch.float32)
    assert open_checkpoint(tmp_path / "theirs").config == loaded.config


@pytest.mark.parametrize("name", ["clip text", "clip image", "siglip text", "siglip image"])
def test_one_encoder_with_its_prefix_is_the_same(name: str, folder: Any, tmp_path: Path) -> None:
    """``transformers`` up to 4 writes it, 5 does not."""
    path = folder(name)
    prefix = "text_model." if "text" in name else "vision_model."
    tensors = {f"{prefix}{key}": array for key, array in stored_tensors(path).items()}
    old = write_checkpoint(tmp_path / "old", tensors, settings_of(path))
    assert open_checkpoint(old).variants == ("prefix",)
    found, wanted = read_model(old, layout="torch"), read_model(path, layout="torch")
    assert found.config == wanted.config
    assert_same_tensors(found.tensors, wanted.tensors)


@pytest.mark.parametrize("name", ["clip", "siglip", "clip text"])
def test_position_ids_are_recreated(name: str, folder: Any, tmp_path: Path) -> None:
    path = folder(name)
    tensors = stored_tensors(path)
    prefix = "text_model." if "text_model.final_layer_norm.weight" in tensors else ""
    tensors[f"{prefix}embeddings.position_ids"] = np.arange(16)[None]
    old = write_checkpoint(tmp_path / "old", tensors, settings_of(path))
    convert_checkpoint(old, tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)


def test_vit_with_a_mask_token(folder: Any, tmp_path: Path) -> None:
    path = folder("vit base")
    token = {"embeddings.mask_token": np.arange(32, dtype=np.float32).reshape(1, 1, 32)}
    masked = write_checkpoint(tmp_path / "masked", stored_tensors(path) | token, settings_of(path))
    found = read_model(masked, layout="torch").tensors["embedding.mask_param"]
    np.testing.assert_array_equal(found, np.arange(32))


def test_old_clip_settings(folder: Any, tmp_path: Path) -> None:
    """``text_config_dict`` is the whole truth where it is given, its own defaults included."""
    path = folder("clip")
    settings = settings_of(path)
    wanted = open_checkpoint(path).config
    text = settings["text_config"]
    settings["text_config_dict"] = {k: v for k, v in text.items() if k != "hidden_act"}
    text |= {"hidden_act": "relu", "torchscript": False, "top_k": 50, "dropout": 0.0}
    old = write_checkpoint(tmp_path / "old", stored_tensors(path), settings)
    assert open_checkpoint(old).config == wanted


def test_sizes_that_equal_the_defaults_are_left_out(folder: Any, tmp_path: Path) -> None:
    """As ``transformers`` 4 writes the objects within."""
    path = folder("siglip")
    settings = settings_of(path) | {"text_config": {"model_type": "siglip_text_model"}}
    settings["text_config"]["projection_size"] = 24
    old = write_checkpoint(tmp_path / "old", stored_tensors(path), settings)
    with pytest.raises(CheckpointError, match="num_heads=12 must divide d_model=32"):
        open_checkpoint(old)
    settings["text_config"]["num_attention_heads"] = 4
    old = write_checkpoint(tmp_path / "new", stored_tensors(path), settings)
    assert open_checkpoint(old).config == open_checkpoint(path).config


REFUSED = [
    ("vit", {"hidden_act": "mish"}, "hidden_act: 'mish' must be one of"),
    ("vit", {"pooler_act": "relu"}, 'pooler_act: "relu" is not supported'),
    ("vit base", {"pooler_output_size": 12}, "pooler_output_size: 12 is not supported"),
    ("vit", {"image_size": [8, 12, 4]}, r"image_size: \[8, 12, 4\] must be one size"),
    ("vit", {"patch_size": [4, 2]}, r"patch_size: \[4, 2\] is not supported, only a square"),
    ("vit", {"position_embedding_type": "x"}, "position_embedding_type: setting not understood"),
    ("dinov2", {"drop_path_rate": 0.1}, "drop_path_rate: 0.1 is not supported"),
    ("dinov2", {"image_size": [8, 12]}, r"image_size: \[8, 12\] is not supported, only a square"),
    ("dinov2", {"num_register_tokens": 4}, "num_register_tokens: setting not understood"),
    ("clip", {"text_config.hidden_act": "mish"}, "text_config.hidden_act: 'mish' must be one of"),
    ("clip", {"text_config.rope": 1}, "text_config.rope: setting not understood"),
    ("clip", {"vision_config.image_size": [12, 12]}, "vision_config.image_size: .* wrong type"),
    ("clip", {"text_config.eos_token_id": [1, 2]}, "text_config.eos_token_id: .* wrong type"),
    ("clip text", {"eos_token_id": None}, "eos_token_id: null is no value"),
    ("clip image", {"is_decoder": True}, "is_decoder: true is not supported"),
    ("siglip", {"vision_config.quantization_config": {}}, "vision_config.quantization_config: "),
    ("siglip image", {"hidden_act": "mish"}, "hidden_act: 'mish' must be one of"),
]


@pytest.mark.parametrize(("name", "change", "cause"), REFUSED)
def test_settings_that_are_not_understood_are_refused_by_name(
    name: str, change: dict[str, Any], cause: str, folder: Any
) -> None:
    with pytest.raises(CheckpointError, match=cause):
        open_checkpoint(folder(name), settings=change)


def test_a_setting_within_can_be_ignored(folder: Any) -> None:
    change = {"text_config.rope": 1}
    opened = open_checkpoint(folder("clip"), settings=change, ignore_settings=["text_config.rope"])
    assert opened.config == open_checkpoint(folder("clip")).config


UNWRITABLE = [
    ("vit", {"encoder": {"pooling": "class_mean"}}, "pooling='class_mean', only 'class'"),
    ("vit base", {"final_norm": None}, "final_norm"),
    ("dinov2 base, gated, masked", {"pooling": None}, "pooling=None, only 'class'"),
    ("clip text", {"pooled_token": 2}, "pooled_token=2, only 'highest'"),
    ("clip text", {"pooled_token": None}, "pooled_token=None, only"),
    ("siglip text", {"encoder": {"pooled_token": "highest"}}, "pooled_token='highest'"),
    ("siglip image", {"final_norm": None}, "final_norm=None"),
]


@pytest.mark.parametrize(("name", "change", "cause"), UNWRITABLE)
def test_a_component_that_a_family_lacks_is_refused(
    name: str, change: dict[str, Any], cause: str, folder: Any
) -> None:
    config = _replaced(open_checkpoint(folder(name)).config, change)
    with pytest.raises(ValueError, match=cause):
        FAMILIES[CASES[name].family].write_config(config, None)


def _replaced(config: Config, change: dict[str, Any]) -> Config:
    parts = {
        key: _replaced(getattr(config, key), value) if isinstance(value, dict) else value
        for key, value in change.items()
    }
    return dataclasses.replace(config, **parts)


@NAMES
def test_biases_of_keys_are_where_they_belong(name: str, folder: Any) -> None:
    """What no output shows, by its bytes: stored under a key's name, or a middle third."""
    stored, ours = stored_tensors(folder(name)), read_model(folder(name), layout="torch").tensors
    wanted = {
        array.tobytes()
        for key, array in stored.items()
        if key.endswith(("key.bias", "k_proj.bias"))
    }
    wanted |= {
        np.split(array, 3)[1].tobytes()
        for key, array in stored.items()
        if key.endswith("in_proj_bias")
    }
    found = {array.tobytes() for key, array in ours.items() if key.endswith("k_proj.bias")}
    assert found == wanted
