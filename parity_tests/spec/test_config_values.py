"""Values that a config refuses, in Python and in a checkpoint's config.json."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import torch_impl
from diptych.convert import read_model
from diptych.spec import (
    CheckpointError,
    Config,
    Llama3Scaling,
    LongRopeScaling,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.components.modules import build
from parity_tests.components.rooms import EXAMPLES
from parity_tests.panels.stack_cases import DECODERS, ENCODER_DECODER

YARN = YarnScaling(factor=2.0, max_seq_len=8)
PARTS = (ScoreConfig(), RotaryConfig(), NormConfig(), QKNormConfig(), RouterConfig(), YARN)
CONFIGS: list[Config] = [*(example.config for example in EXAMPLES.values()), *PARTS]
BAD = (0, 1, 2.0, "yes", None, [True], np.bool_(True))
SAVED: dict[str, Config] = {
    "Decoder": DECODERS["local and global"],
    "EncoderDecoder": ENCODER_DECODER,
    **{name: EXAMPLES[name].config for name in ("VisionEncoder", "AudioEncoder")},
}
CORRUPT = (None, True, "x", -1, 2**70, 1.5, [], {"type": "Nope"}, {"type": []}, [None])
all_configs = pytest.mark.parametrize("config", CONFIGS, ids=lambda c: type(c).__name__)


@all_configs
def test_a_flag_is_a_boolean(config: Config) -> None:
    """What is merely true would be saved, and refused when it is loaded."""
    hints = get_type_hints(type(config))
    for name in [field.name for field in fields(config) if hints[field.name] is bool]:
        for value in BAD:
            with pytest.raises(ValueError, match=f"{name}=.* must be a boolean"):
                replace(config, **{name: value})


@all_configs
def test_a_number_is_no_boolean_and_fits_32_bits(config: Config) -> None:
    hints = get_type_hints(type(config))
    for name in [field.name for field in fields(config) if hints[field.name] in (int, float)]:
        with pytest.raises(ValueError, match=name):
            replace(config, **{name: True})
        if hints[name] is int:
            with pytest.raises(ValueError, match=r"must|has|exceed"):
                replace(config, **{name: 2**70})


def test_numbers_of_numpy_are_saved_as_numbers() -> None:
    config = ScoreConfig(scale=np.float32(0.5), softcap=np.float64(3.0))  # type: ignore[arg-type]
    assert ScoreConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda: replace(YARN, mscale=float("nan")), ValueError, "mscale=nan must be above 0"),
        (lambda: replace(YARN, mscale_all_dim=-1.0), ValueError, "mscale_all_dim=-1.0 must be ab"),
        (
            lambda: Llama3Scaling(
                factor=2.0,
                low_freq_factor=1.0,
                high_freq_factor="4",  # type: ignore[arg-type]
                max_seq_len=8,
            ),
            ValueError,
            "high_freq_factor='4' must be above 0",
        ),
        (
            lambda: LongRopeScaling(
                short_factor=2.0,  # type: ignore[arg-type]
                long_factor=(2.0,),
                max_seq_len=8,
                factor=2.0,
            ),
            TypeError,
            "short_factor=float must be of tuple",
        ),
        (
            lambda: replace(EXAMPLES["EncoderWithHeads"].config, masked_lm=3),  # type: ignore[call-arg]
            TypeError,
            "masked_lm=int must be of MaskedLMHeadConfig or NoneType",
        ),
        (
            lambda: replace(EXAMPLES["Decoder"].config, num_layers=10**9),  # type: ignore[call-arg]
            ValueError,
            "num_layers=1000000000 must not exceed 10000",
        ),
    ],
)
def test_values_that_are_refused(change: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        change()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in JSON."""
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


@pytest.mark.parametrize("name", SAVED)
def test_a_corrupt_config_is_one_clear_error(name: str, tmp_path: Path) -> None:
    """Anything in any place: refused as a fault of the file, or it is what the place may hold."""
    torch_impl.save_model(build("torch", SAVED[name]), tmp_path / "saved")
    (tmp_path / "x").mkdir()
    (tmp_path / "saved" / "model.safetensors").rename(tmp_path / "x" / "model.safetensors")
    text = (tmp_path / "saved" / "config.json").read_text()
    read, faults = 0, []
    for number, path in enumerate(places(json.loads(text))):
        for value in CORRUPT if len(path) < 3 else CORRUPT[number % 3 :: 3]:
            given: Any = {"": json.loads(text)}
            at = given
            for key in ("", *path)[:-1]:
                at = at[key]
            at[("", *path)[-1]] = value
            (tmp_path / "x" / "config.json").write_text(json.dumps(given[""]))
            try:
                read_model(tmp_path / "x", layout="torch", dtype=None)
                read += 1
            except CheckpointError as error:
                faults.append(str(error))
    assert all("config.json: " in fault or "model.safetensors" in fault for fault in faults)
    assert not [fault for fault in faults if "has no attribute" in fault or "hashable" in fault]
    assert len(faults) > 4 * read > 0


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("config",), 3, "config: DecoderConfig must be an object, not 3"),
        (("component",), {}, "component: {} is none of ours"),
        (("config", "surprise"), 1, "DecoderConfig has no field 'surprise'"),
        (
            ("config", "layer", 1, "attention", "num_heads"),
            "3",
            r"layer\[1\]: attention: num_heads='3' must be an integer",
        ),
        (("config", "layer", 0, "attention", "type"), 3, r"layer\[0\]: attention: type 3 must be"),
        (("config", "layer", 0, "feed_forward"), {}, r"layer\[0\]: .* needs the field 'd_model'"),
        (("config", "position_bias"), [], "must be an object or null"),
        (("config", "num_layers"), 10**9, "num_layers: 1000000000, but there are 33 tensors"),
    ],
)
def test_the_place_of_a_fault_is_named(path: Any, value: Any, words: str, tmp_path: Path) -> None:
    torch_impl.save_model(build("torch", SAVED["Decoder"]), tmp_path / "x")
    text: Any = json.loads((tmp_path / "x" / "config.json").read_text())
    at = text
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    (tmp_path / "x" / "config.json").write_text(json.dumps(text))
    with pytest.raises(CheckpointError, match=words):
        read_model(tmp_path / "x", layout="torch", dtype=None)
