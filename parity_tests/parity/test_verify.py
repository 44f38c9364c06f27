"""verify: identical checkpoints pass, and every planted difference is found."""

import dataclasses
import functools
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import diptych
import torch_impl
from diptych.parity import inputs, panels
from diptych.spec import (
    CheckpointError,
    EncoderConfig,
    EncoderWithHeadsConfig,
    MaskedLMHeadConfig,
    QuestionAnsweringHeadConfig,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.families.cases import CASES
from parity_tests.support.tiny_transformers import save_tiny

LAYER = TransformerEncoderLayerConfig(d_model=6, num_heads=3, d_ff=10, activation="gelu")
EMBEDDING = TextEmbeddingConfig(vocab_size=13, d_model=6, max_seq_len=19, num_token_types=3)
ENCODER = EncoderConfig(layer=LAYER, num_layers=1, embedding=EMBEDDING, pooler=True)
WITH_HEADS = EncoderWithHeadsConfig(
    encoder=ENCODER,
    masked_lm=MaskedLMHeadConfig(d_model=6, vocab_size=13),
    question_answering=QuestionAnsweringHeadConfig(d_model=6),
)


def saved(config, path):
    torch.manual_seed(0)
    torch_impl.save_model(getattr(torch_impl, config.component).from_config(config), path)
    return path


@pytest.fixture
def pair(tmp_path):
    """The same encoder in both layouts."""
    a, b = saved(ENCODER, tmp_path / "a"), tmp_path / "b"
    diptych.convert_checkpoint(a, b, to="flax")
    return a, b


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(ENCODER, id="encoder"),
        pytest.param(WITH_HEADS, id="heads"),
        pytest.param(LAYER, id="layer"),
        pytest.param(
            EncoderConfig(layer=LAYER, num_layers=1), id="vectors", marks=pytest.mark.slow
        ),
    ],
)
def test_a_converted_checkpoint_is_identical(config, tmp_path):
    a, b = saved(config, tmp_path / "a"), tmp_path / "b"
    diptych.convert_checkpoint(a, b, to="flax")
    verification = diptych.verify(a, b)
    assert verification.identical, str(verification)
    assert verification.complete
    assert {row.name.split(": ")[0] for row in verification.exact} == {
        batch.name for batch in inputs.batches(config)
    }
    assert len(verification.working) == len(verification.exact)
    json.dumps(verification.to_dict())


def test_every_kind_of_output_is_compared(pair):
    rows = {row.name for row in diptych.verify(*pair).exact}
    kinds = ("output", "pooled", "hidden states", "attention weights")
    assert rows == {f"{batch}: {k}" for batch in ("padded batch", "long input") for k in kinds}


def test_one_ulp_is_found(pair, tmp_path):
    a, _ = pair
    model = torch_impl.load_model(a)
    weight = model.layers[0].feed_forward.down_proj.weight
    with torch.no_grad():
        weight[2, 3] = torch.nextafter(weight[2, 3], torch.tensor(9.0))
    torch_impl.save_model(model, tmp_path / "c")
    verification = diptych.verify(a, tmp_path / "c")
    assert not verification.identical
    (found,) = verification.weights.different
    assert (found.name, found.first, found.max_ulp) == (
        "layers.0.feed_forward.down_proj.weight",
        (2, 3),
        1,
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("norm.eps", 1e-12),
        ("attention.num_heads", 2),
        pytest.param("feed_forward.activation", "gelu_tanh", marks=pytest.mark.slow),
        pytest.param("norm_placement", "pre", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_setting_shows_in_the_outputs(pair, tmp_path, field, value):
    a, b = pair
    config = json.loads((b / "config.json").read_text())
    *parts, name = field.split(".")
    functools.reduce(dict.__getitem__, parts, config["config"]["layer"])[name] = value
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "config.json").write_text(json.dumps(config))
    (wrong / "model.safetensors").write_bytes((b / "model.safetensors").read_bytes())
    verification = diptych.verify(a, wrong)
    assert verification.weights.identical
    assert not verification.identical
    assert any(not row.ok for row in verification.exact)
    assert f"layer.{field}" in str(verification)


def test_a_cast_is_compared_with_the_cast_source(pair, tmp_path):
    a, _ = pair
    diptych.convert_checkpoint(a, tmp_path / "half", to="flax", dtype="float16")
    verification = diptych.verify(a, tmp_path / "half")
    assert verification.identical, str(verification)
    assert "identical after the cast to F16" in str(verification)
    assert verification.to_dict()["cast"] == "F16"
    assert not diptych.diff_checkpoints(a, tmp_path / "half").identical


def test_weights_only_leaves_the_outputs_out(pair):
    verification = diptych.verify(*pair, weights_only=True)
    assert verification.identical
    assert not verification.complete
    assert "outputs: not run (--weights-only)" in str(verification)
    assert str(verification).endswith("weights identical, outputs not compared")


def test_a_missing_framework_is_said(pair, monkeypatch):
    monkeypatch.setattr(
        "diptych.parity.panels.find_spec", lambda name: None if name == "jax" else 1
    )
    verification = diptych.verify(*pair)
    assert not verification.complete
    assert "outputs: not run (jax missing: pip install 'diptych[all]')" in str(verification)


def test_the_manifest_names_a_damaged_file(pair):
    _, b = pair
    assert diptych.verify(b).identical
    data = bytearray((b / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (b / "model.safetensors").write_bytes(data)
    verification = diptych.verify(b)
    assert not verification.identical
    assert any("model.safetensors" in fault for fault in verification.faults)


def test_outputs_by_name_name_every_output():
    x, y = np.zeros(1), np.ones(2)
    stack = torch_impl.encoder.StackOutput(x, None, (x, y), None)
    assert [n for n, _ in panels.outputs_by_name(stack)] == [
        "output",
        "hidden_states[0]",
        "hidden_states[1]",
    ]
    assert [n for n, _ in panels.outputs_by_name((x, y))] == ["output", "attention_weights"]
    assert [n for n, _ in panels.outputs_by_name(x)] == ["output"]


def test_what_nothing_computes_in_is_said(pair, tmp_path):
    a, _ = pair
    tensors = load_file(a / "model.safetensors")
    name = "layers.0.feed_forward.up_proj.weight"
    tensors[name] = tensors[name].to(torch.float8_e4m3fn)
    float8 = tmp_path / "float8"
    float8.mkdir()
    save_file(tensors, float8 / "model.safetensors", {"format": "pt"})
    (float8 / "config.json").write_bytes((a / "config.json").read_bytes())
    diptych.convert_checkpoint(float8, tmp_path / "flax", to="flax")
    verification = diptych.verify(float8, tmp_path / "flax")
    assert verification.weights.identical
    assert f"outputs: not run ({name} is F8_E4M3" in str(verification)


@pytest.mark.parametrize("seed", [6, 8])
def test_saturated_models_are_judged_by_rounding_noise(tmp_path, seed):
    """Weights far from any that are trained: one panel's luck is no bound for the other's error."""
    torch.manual_seed(seed)
    model = torch_impl.Encoder.from_config(dataclasses.replace(ENCODER, num_layers=2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=2.0)
    torch_impl.save_model(model, tmp_path / "a")
    diptych.convert_checkpoint(tmp_path / "a", tmp_path / "b", to="flax")
    verification = diptych.verify(tmp_path / "a", tmp_path / "b")
    assert verification.identical, str(verification)


def test_a_setting_that_these_inputs_do_not_show_is_a_difference(pair, tmp_path):
    a, _ = pair
    config = json.loads((a / "config.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.safetensors").write_bytes((a / "model.safetensors").read_bytes())
    for field, value, verdict in (("dropout", 0.3, True), ("norm", {"eps": 1e-5 + 1e-12}, False)):
        changed = {**config["config"], "layer": config["config"]["layer"] | {field: value}}
        (other / "config.json").write_text(json.dumps(config | {"config": changed}))
        assert diptych.verify(a, other).identical == verdict


def test_a_configuration_that_is_refused_is_never_replaced(tmp_path):
    """A bare state dict borrows the other's; a folder with a configuration is read as it is."""
    save_tiny(CASES["llama"], tmp_path / "a")
    for name, text in (("broken", "{"), ("odd", None)):
        other = tmp_path / name
        shutil.copytree(tmp_path / "a", other)
        settings = json.loads((other / "config.json").read_text()) | {"query_scale": 3.0}
        (other / "config.json").write_text(json.dumps(settings) if text is None else text)
        for pair in ((tmp_path / "a", other), (other, tmp_path / "a")):
            with pytest.raises(CheckpointError, match=f"{name}/config.json"):
                diptych.verify(*pair)
    (other / "config.json").unlink()
    assert diptych.diff_checkpoints(tmp_path / "a", other / "model.safetensors").identical
