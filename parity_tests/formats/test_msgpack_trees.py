"""What a Flax tree is: names, lists, collections of parameters, training states, shards."""

import json
import os
from pathlib import Path

import flax.serialization
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from diptych.formats.find import find_container
from diptych.spec import CheckpointError

from .test_msgpack import NAME, flax_bytes, read, same_trees, write


def test_lists_keep_their_numeric_order(tmp_path):
    """google/flax#5030: eleven layers come back by index, however the list was saved."""
    layers = [np.full(2, index, np.float32) for index in range(11)]
    for save in (flax.serialization.to_bytes, flax.serialization.msgpack_serialize):
        (tmp_path / NAME).write_bytes(save({"layers": layers}))
        found = read(tmp_path)
        assert list(found) == [f"layers.{index}" for index in range(11)]
        assert [found[f"layers.{index}"][0] for index in range(11)] == list(range(11))


@pytest.mark.parametrize("separator", [".", "/"])
def test_a_tree_that_was_flattened_is_the_same_tree(tmp_path, separator):
    arrays = {"a.b.w": np.arange(3.0), "a.c": np.arange(2.0)}
    flat = {name.replace(".", separator): values for name, values in arrays.items()}
    (tmp_path / NAME).write_bytes(flax.serialization.msgpack_serialize(flat))
    assert same_trees(read(tmp_path), arrays)


def test_the_collection_of_parameters_is_the_model(tmp_path):
    """google/orbax#1305: parameters inside a training state are found, the rest is listed."""
    params = {"layer": {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}}
    moments = {"0": {"mu": {"params": params}, "count": np.int32(3)}}
    state = {"step": 7, "params": params, "opt_state": moments, "note": "a\nb"}
    for tree in (state, {"params": params}, {**state, "params": {"params": params}}):
        (tmp_path / NAME).write_bytes(flax.serialization.to_bytes(tree))
        assert same_trees(read(tmp_path), flatten_dict(params, sep="."))
    (tmp_path / NAME).write_bytes(flax.serialization.to_bytes(state))
    container = find_container(tmp_path)
    assert set(container.tree) == {"", "params", "opt_state"}
    assert container.tree[""].others == {"step": "the integer 7", "note": "a text of 3 bytes"}
    assert len(container.select("opt_state").tensors) == 3


def test_a_collection_that_a_model_may_need_is_not_left_out(tmp_path):
    tree = {"params": {"w": np.ones(2)}, "batch_stats": {"mean": np.ones(3)}}
    (tmp_path / NAME).write_bytes(flax.serialization.to_bytes(tree))
    container = find_container(tmp_path)
    assert list(container.tensors) == ["w", "batch_stats.mean"]
    assert list(container.select("params").tensors) == ["w"]


def test_of_two_collections_of_parameters_one_must_be_selected(tmp_path):
    tree = {name: {"params": {"w": np.full(2, index)}} for index, name in enumerate("ab")}
    (tmp_path / NAME).write_bytes(flax.serialization.to_bytes(tree))
    container = find_container(tmp_path)
    assert container.tensors == {}
    assert container.select("b.params").tensors["w"].read().tolist() == [1, 1]


def test_the_index_is_that_of_transformers(tmp_path):
    """transformers 4.57 joined the names in an index with slashes."""
    arrays = {"a.w": np.arange(3.0), "b.c.w": np.arange(4.0)}
    names = write(tmp_path, arrays, max_shard_size=30)
    first, second = "flax_model-00001-of-00002.msgpack", "flax_model-00002-of-00002.msgpack"
    assert names == (first, second, "flax_model.msgpack.index.json")
    index = json.loads((tmp_path / names[-1]).read_text())
    assert index == {"metadata": {"total_size": 56}, "weight_map": {"a/w": first, "b/c/w": second}}
    assert (tmp_path / first).read_bytes() == flax_bytes({"a.w": arrays["a.w"]})
    assert same_trees(read(tmp_path), arrays)
    index["weight_map"]["a.w"] = first
    (tmp_path / names[-1]).write_text(json.dumps(index))
    assert "a.w: two entries have this name" in error_of_index(tmp_path, names[-1])


def error_of_index(folder: Path, name: str) -> str:
    with pytest.raises(CheckpointError) as caught:
        find_container(folder)
    assert str(caught.value).startswith(f"{folder / name}: ")
    return str(caught.value)


def test_parameters_in_several_shards_are_one_collection(tmp_path):
    arrays = {"params.a.w": np.arange(3.0), "params.b.w": np.arange(4.0)}
    write(tmp_path, arrays, max_shard_size=30)
    assert list(read(tmp_path)) == ["a.w", "b.w"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": np.zeros(1), "a.b": np.zeros(1)}, "a is a tensor and a folder of names"),
        ({"a.b": np.zeros(1), "a": np.zeros(1)}, "a: is a tensor and a folder of names"),
        ({"a/b": np.zeros(1)}, "a/b: a slash"),
    ],
)
def test_names_that_make_no_tree_are_refused_before_a_file_is_made(tmp_path, arrays, words):
    with pytest.raises(ValueError, match=words):
        write(tmp_path, arrays)
    assert not os.listdir(tmp_path)
