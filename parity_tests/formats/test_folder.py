"""Which of a folder's files are its weights, and which links they may be."""

import shutil

import numpy as np
import pytest

from diptych.formats.find import find_container

from .test_shards import ARRAYS, EXPECTED, SECOND, error_of, values_of, write


def test_a_hub_cache_is_read_through_its_links(tmp_path):
    entry = tmp_path / "models--a--b"
    snapshot, blobs = entry / "snapshots" / "0123abcd", entry / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, name in enumerate(write(tmp_path / "plain")):
        shutil.move(tmp_path / "plain" / name, blobs / f"{number}")
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    assert values_of(snapshot) == EXPECTED
    foreign = tmp_path / "models--c--d" / "blobs"
    foreign.mkdir(parents=True)
    shutil.move(blobs / "1", foreign / "1")
    (snapshot / SECOND).unlink()
    (snapshot / SECOND).symlink_to(foreign / "1")
    assert f"{SECOND}: leads out of its folder, to {foreign / '1'}" in error_of(snapshot)


def test_blobs_elsewhere_are_no_hub_cache(tmp_path):
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    write(tmp_path / "source", max_shard_size=None)
    shutil.move(tmp_path / "source" / "model.safetensors", blobs / "0")
    (tmp_path / "source" / "model.safetensors").symlink_to("../blobs/0")
    assert "leads out of its folder" in error_of(tmp_path / "source")


def test_a_link_within_the_folder_is_fine(tmp_path):
    write(tmp_path)
    (tmp_path / SECOND).rename(tmp_path / "weights")
    (tmp_path / SECOND).symlink_to("weights")
    assert values_of(tmp_path) == EXPECTED


def test_safetensors_are_read_before_pickles_before_msgpack_and_the_rest_is_named(tmp_path):
    write(tmp_path, max_shard_size=None)
    write(tmp_path, "pt", {"other": np.ones(1)}, max_shard_size=None)
    write(tmp_path, "msgpack", {"other": np.ones(1)}, max_shard_size=None)
    (tmp_path / "tf_model.h5").write_bytes(b"")
    (tmp_path / "training_args.bin").write_bytes(b"")
    (tmp_path / "config.json").write_text("{}")
    container = find_container(tmp_path)
    assert set(container.tensors) == set(ARRAYS)
    others = "flax_model.msgpack, pytorch_model.bin, tf_model.h5"
    assert container.notes == (f"not read, beside model.safetensors: {others}",)
    (tmp_path / "model.safetensors").unlink()
    container = find_container(tmp_path)
    assert container.kind == "pt"
    note = "not read, beside pytorch_model.bin: flax_model.msgpack, tf_model.h5"
    assert container.notes == (note,)
    (tmp_path / "pytorch_model.bin").unlink()
    container = find_container(tmp_path)
    assert container.kind == "msgpack"
    assert container.notes == ("not read, beside flax_model.msgpack: tf_model.h5",)


def test_a_pickle_is_read_when_there_are_no_safetensors(tmp_path):
    write(tmp_path, "pt", max_shard_size=None)
    (tmp_path / "optimizer.pt").write_bytes(b"")
    container = find_container(tmp_path)
    assert values_of(tmp_path) == EXPECTED
    assert container.notes == ()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ((), "holds no weights that are read"),
        (("config.json",), "holds no weights"),
        (("tf_model.h5",), "holds no weights"),
        (("opt_state.msgpack",), "holds no weights"),
        (("a.msgpack", "b.msgpack"), "several files could be meant: a.msgpack, b.msgpack"),
        (("training_args.bin",), "holds no weights"),
        (("a.safetensors", "b.safetensors"), "several files could be meant: a.safetensors, b"),
        (("a.pt", "b.bin"), "several files could be meant: a.pt, b.bin"),
    ],
)
def test_a_folder_without_clear_weights_is_refused(tmp_path, files, words):
    for name in files:
        (tmp_path / name).write_bytes(b"")
    assert words in error_of(tmp_path)


@pytest.mark.parametrize("name", ["weights", "weights.dat"])
@pytest.mark.parametrize("kind", ["safetensors", "pt", "msgpack"])
def test_a_file_without_a_known_ending_is_known_by_its_start(tmp_path, kind, name):
    (written,) = write(tmp_path, kind, max_shard_size=None)
    (tmp_path / written).rename(tmp_path / name)
    assert find_container(tmp_path / name).kind == kind
    assert values_of(tmp_path / name) == EXPECTED
    (tmp_path / name).write_bytes(b"hello")
    assert "is no checkpoint that is read" in error_of(tmp_path / name)


@pytest.mark.parametrize("name", ["none", "x" * 300])
def test_a_path_to_nothing_is_refused(tmp_path, name):
    assert "cannot be opened" in error_of(tmp_path / name)
