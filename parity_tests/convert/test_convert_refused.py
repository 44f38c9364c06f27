"""Conversions that are refused: arguments, configs, files that lead out or are none."""

import os
import re

import pytest

from diptych.convert import convert_checkpoint, open_checkpoint
from diptych.spec import CheckpointError

from ..support.checkpoints import write_bert


@pytest.fixture
def source(tmp_path):
    return write_bert(tmp_path / "source")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": "linen"}, "to='linen' must be one of 'hf', 'hf-flax', 'torch', 'flax'"),
        ({"to": "flax", "format": "npz"}, "format='npz' must be one of"),
        ({"to": "flax", "dtype": "int8"}, "dtype='int8' must be one of float64, float32"),
        ({"to": "flax", "max_shard_size": "many"}, "max_shard_size='many' must be"),
        ({"to": "flax", "max_shard_size": 0}, "max_shard_size=0 must be"),
        ({"to": "flax", "family": "gpt9"}, "family='gpt9' must be one of bert"),
        ({"to": "flax", "family": "seed_head"}, "model_type: 'bert' is not of the family"),
        ({"to": "flax", "key": "model"}, "model: no such dictionary"),
        ({"to": "flax", "config": "/nonexistent/config.json"}, "/nonexistent/config.json: "),
    ],
)
def test_arguments_that_are_refused(tmp_path, source, options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        convert_checkpoint(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "a JSON object expected"),
        ('{"model_type": "bert", "model_type": "bert"}', "key 'model_type' stands twice"),
        ('{"layer_norm_eps": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "not valid JSON"),
        ('{"component": "Encodr", "config": {}}', "'Encodr' is none of ours (nearest: Encoder)"),
        ('{"component": "Encoder", "config": {"depth": 3}}', "EncoderConfig has no field 'depth'"),
        ('{"component": "Encoder", "config": [1]}', "config: "),
        ('{"component": "Encoder", "config": {"layer": {}, "num_layers": 1e99}}', "config: "),
        (
            '{"component": "FeedForward", "config": {"d_model": 6, "d_ff": 7}}',
            "no rule covers it",
        ),
        (
            '{"component": "EncoderWithHeads", "config": {"encoder": {"num_layers": 999999999}}}',
            "num_layers: 999999999, but there are",
        ),
    ],
)
def test_configs_that_are_refused(tmp_path, source, content, words):
    (source / "config.json").write_text(content)
    with pytest.raises(CheckpointError) as caught:
        convert_checkpoint(source, tmp_path / "out", to="flax")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_companion_that_leads_out_is_refused(tmp_path, source):
    (tmp_path / "secret.json").write_text("{}")
    (source / "vocab.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(CheckpointError, match=r"vocab\.json: leads out of its folder"):
        convert_checkpoint(source, tmp_path / "out", to="flax")


@pytest.mark.parametrize("name", ["vocab.txt", "config.json"])
def test_what_is_no_regular_file_is_refused_not_waited_for(tmp_path, source, name):
    (source / name).unlink(missing_ok=True)
    os.mkfifo(source / name)
    with pytest.raises(CheckpointError, match=rf"{name}: is not a regular file"):
        convert_checkpoint(source, tmp_path / "out", to="flax")


@pytest.mark.parametrize("name", ["config.json", "source_config.json", "diptych.json"])
def test_a_config_that_leads_out_is_refused(tmp_path, source, name):
    folder = tmp_path / "flax"
    convert_checkpoint(source, folder, to="flax")
    (folder / name).rename(tmp_path / "outside.json")
    (folder / name).symlink_to(tmp_path / "outside.json")
    with pytest.raises(CheckpointError, match=rf"{name}: leads out of its folder"):
        open_checkpoint(folder)
