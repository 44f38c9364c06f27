"""Flax files that are not just one whole model: the model is found in them, or they are refused."""

import json

import flax.serialization
import numpy as np
import pytest
from flax.traverse_util import unflatten_dict

from diptych.convert import convert_checkpoint, inspect_checkpoint, open_checkpoint, read_model
from diptych.spec import CheckpointError

from ..support.checkpoints import (
    BERT_CONFIG,
    assert_same_tensors,
    bert_tensors,
    stored_tensors,
    write_checkpoint,
)
from .test_linen import in_linen, write_linen

QUERY = "encoder.layer.0.attention.self.query"


def write_tree(folder, tree):
    folder.mkdir()
    (folder / "flax_model.msgpack").write_bytes(flax.serialization.to_bytes(tree))
    (folder / "config.json").write_text(json.dumps(BERT_CONFIG))
    return folder


def test_a_bare_file_is_read_with_settings(tmp_path):
    source = write_linen(tmp_path / "source", bert_tensors(prefix="bert."))
    (source / "config.json").unlink()
    file = source / "flax_model.msgpack"
    with pytest.raises(CheckpointError, match="num_attention_heads: not in the checkpoint"):
        open_checkpoint(file)
    checkpoint = open_checkpoint(file, settings={"num_attention_heads": 2})
    assert (checkpoint.layout, checkpoint.family.name) == ("hf-flax", "bert")


def test_parameters_inside_a_training_state_are_found(tmp_path):
    """google/orbax#1305, for msgpack: the model is read, the optimizer listed as not read."""
    params = unflatten_dict(in_linen(bert_tensors()), sep=".")
    state = {"step": 3, "params": params, "opt_state": {"0": {"mu": params}}}
    source = write_tree(tmp_path / "source", state)
    report = convert_checkpoint(source, tmp_path / "out", to="hf")
    (note,) = report.notes
    assert note.startswith("not read: 'opt_state' (")
    assert "'step' (the integer 3)" in note
    assert_same_tensors(stored_tensors(tmp_path / "out"), bert_tensors())
    seen = inspect_checkpoint(source)
    assert (seen.layout, seen.container, seen.notes) == ("hf-flax", "msgpack", (note,))


def test_a_collection_that_no_rule_takes_is_refused(tmp_path):
    params = unflatten_dict(in_linen(bert_tensors()), sep=".")
    tree = {"params": params, "batch_stats": {"mean": np.zeros(3)}}
    source = write_tree(tmp_path / "source", tree)
    with pytest.raises(CheckpointError, match=r"batch_stats\.mean: no rule covers it"):
        open_checkpoint(source)
    assert open_checkpoint(source, key="params").layout == "hf-flax"


def test_the_one_model_among_several_that_is_of_a_family_is_read(tmp_path):
    params = unflatten_dict(in_linen(bert_tensors()), sep=".")
    tree = {"a": {"params": {"w": np.zeros(3)}}, "b": {"params": params}}
    source = write_tree(tmp_path / "source", tree)
    assert_same_tensors(
        read_model(source, layout="torch").tensors,
        read_model(write_linen(tmp_path / "plain", bert_tensors()), layout="torch").tensors,
    )
    twice = write_tree(tmp_path / "twice", {"a": {"params": params}, "b": {"params": params}})
    with pytest.raises(CheckpointError, match=r"several dictionaries fit: .*: give --key"):
        open_checkpoint(twice)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({f"{QUERY}.kernel": None}, f"{QUERY}.kernel: missing"),
        ({"embeddings.LayerNorm.scale": None}, "embeddings.LayerNorm.scale: missing"),
        ({f"{QUERY[:-1]}.kernel": np.zeros((6, 6))}, f"(nearest: {QUERY}.kernel)"),
        (
            {f"{QUERY}.kernel": np.zeros((6, 7))},
            f"{QUERY}.kernel: shape (7, 6), expected (6, 6) in torch",
        ),
        ({f"{QUERY}.kernel": np.zeros(6)}, f"{QUERY}.kernel: shape (6,) is that of no kernel"),
        ({f"{QUERY}.weight": np.zeros((6, 6))}, f"{QUERY}.weight: stands beside {QUERY}.kernel"),
        ({f"{QUERY}.kernel": np.zeros((6, 6), int)}, f"{QUERY}.kernel: a parameter of dtype I64"),
        ({"embeddings.word_embeddings.embedding": np.zeros(6)}, "word_embeddings.embedding: shape"),
    ],
)
def test_a_fault_names_the_parameter_as_flax_does(tmp_path, change, words):
    """google-research/t5x#1196, google/flax#2436: every name whole, shapes, nothing left out."""
    linen = in_linen(bert_tensors()) | change
    linen = {name: values for name, values in linen.items() if values is not None}
    source = write_checkpoint(tmp_path / "source", linen, BERT_CONFIG, kind="msgpack")
    with pytest.raises(CheckpointError) as caught:
        convert_checkpoint(source, tmp_path / "out", to="flax")
    assert any(words in fault for fault in caught.value.faults), caught.value.faults
    assert not any(".weight: missing" in fault for fault in caught.value.faults)
    assert not (tmp_path / "out").exists()


def test_every_missing_name_is_listed_whole(tmp_path):
    """google-research/t5x#1196: the full path of each missing key, not of the first alone."""
    linen = in_linen(bert_tensors())
    gone = [name for name in linen if name.startswith("encoder.layer.1.")]
    kept = {name: values for name, values in linen.items() if name not in gone}
    source = write_checkpoint(tmp_path / "source", kept, BERT_CONFIG, kind="msgpack")
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(source)
    path = source / "flax_model.msgpack"
    assert set(caught.value.faults) == {f"{path}: {name}: missing" for name in gone}


def test_a_prefix_that_flax_had_is_kept_on_every_way(tmp_path):
    """An encoder alone, saved with its prefix: written so again, in both libraries' names."""
    tensors = bert_tensors(prefix="bert.")
    source = write_linen(tmp_path / "source", tensors)
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf-flax")
    assert_same_tensors(stored_tensors(tmp_path / "back"), in_linen(tensors))
    convert_checkpoint(tmp_path / "back", tmp_path / "hf", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "hf"), tensors)


def test_buffers_that_flax_never_had_are_made(tmp_path):
    random = np.random.default_rng(0)
    linen = {f"_{name}.kernel": random.random((6, 3)) for name in "qkv"}
    linen |= {f"_{name}.bias": random.random(3) for name in "qkv"}
    source = write_checkpoint(tmp_path / "source", linen, kind="msgpack")
    settings = {"max_seq_len": 4}
    convert_checkpoint(source, tmp_path / "hf", to="hf", family="seed_head", settings=settings)
    found = stored_tensors(tmp_path / "hf")
    assert found["_q.weight"].tolist() == linen["_q.kernel"].T.tolist()
    assert np.array_equal(found["_tril_mask"], np.tri(4))
