"""What we write, Orbax restores, bit for bit, into the model that it came from."""

import json
import shutil
import subprocess
import sys

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import nnx

import jax_impl
from diptych.convert import (
    convert_checkpoint,
    diff_checkpoints,
    open_checkpoint,
    verify_manifest,
    write_model,
)
from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.output import Planned
from diptych.spec import CheckpointError, FeedForwardConfig
from diptych.tensors.dtypes import CODES, code_of, numpy_dtype

from ..convert.interrupt import tree_digest
from ..support.checkpoints import (
    BERT_CONFIG,
    assert_same_tensors,
    bert_tensors,
    stored_tensors,
    write_checkpoint,
)
from ..support.special_values import every_bit_pattern, same_bits
from .orbax_directories import ROOT, nested, run_on_eight_devices

FLOATING = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")


def write(folder, tensors, format="pt", **options):
    folder.mkdir()
    plan = [Planned(name, code_of(v.dtype), v.shape) for name, v in tensors.items()]
    metadata = {"format": format}
    items = iter(tensors.items())
    FORMATS["orbax"].write(folder, plan, items, file_name="_METADATA", metadata=metadata, **options)
    return folder


def restore(folder, target=None):
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(folder.resolve(), target)


@pytest.fixture
def source(tmp_path):
    folder = write_checkpoint(tmp_path / "source", bert_tensors(), BERT_CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "vocab.txt").write_text("a\n")
    return folder


@pytest.mark.parametrize("to", ["flax", "torch", "hf"])
def test_there_and_back(tmp_path, source, to):
    report = convert_checkpoint(source, tmp_path / "there", to=to, format="orbax")
    assert report.containers == ("safetensors", "orbax")
    assert verify_manifest(tmp_path / "there") == []
    assert diff_checkpoints(source, tmp_path / "there").identical
    found = open_checkpoint(tmp_path / "there")
    assert (found.layout, found.container.kind) == (to, "orbax")
    assert sorted(found.companions) == ["tokenizer.json", "vocab.txt"]
    convert_checkpoint(tmp_path / "there", tmp_path / "again", to=to, format="orbax")
    assert tree_digest(tmp_path / "again") == tree_digest(tmp_path / "there")
    convert_checkpoint(tmp_path / "there", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), stored_tensors(source))


@pytest.mark.parametrize("code", FLOATING)
def test_restored_into_a_fresh_model(tmp_path, code):
    config = FeedForwardConfig(d_model=3, d_ff=5)
    patterns = every_bit_pattern(code).reshape(-1)
    shapes = {name: leaf.shape for name, leaf in config.leaves().items()}
    tensors = {name: np.resize(patterns, shape) for name, shape in shapes.items()}
    write_model(
        tmp_path / "source", component="FeedForward", config=config, tensors=tensors, layout="torch"
    )
    convert_checkpoint(tmp_path / "source", tmp_path / "out", to="flax", format="orbax")
    with jax.enable_x64(code == "F64"):
        dtype = numpy_dtype(code)

        def build():
            model = jax_impl.FeedForward.from_config(config, rngs=nnx.Rngs(0))
            nnx.update(model, jax.tree.map(lambda x: x.astype(dtype), nnx.state(model)))
            return model

        graph, target = nnx.split(nnx.eval_shape(build))
        assert nnx.state(nnx.eval_shape(build), nnx.Param) == target
        model = nnx.merge(graph, restore(tmp_path / "out", target))
        loaded = jax_impl.export_state(jax_impl.load_model(tmp_path / "out"))
        restored = jax_impl.export_state(model)
    assert_same_tensors(restored, loaded)
    assert {str(value.dtype) for value in restored.values()} == {dtype.name}


@pytest.mark.parametrize("code", CODES)
def test_every_dtype_as_orbax_restores_it(tmp_path, code):
    values = {
        "all": every_bit_pattern(code),
        "scalar": every_bit_pattern(code)[-1, -1],
        "empty": np.zeros((0, 3), numpy_dtype(code)),
        "turned": every_bit_pattern(code).T,
    }
    folder = write(tmp_path / "out", values)
    restored, ours = restore(folder), stored_tensors(folder)
    for name, value in values.items():
        assert same_bits(np.asarray(restored[name]), value), name
        assert same_bits(ours[name], value), name


def test_restored_onto_eight_devices(tmp_path):
    values = np.arange(48, dtype=np.float32).reshape(16, 3)
    write(tmp_path / "out", {"layers.0.kernel": values}, "flax")
    code = """
import sys, jax, numpy as np, orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.make_mesh((8,), ("x",))
sharding = NamedSharding(mesh, PartitionSpec("x"))
leaf = {"value": jax.ShapeDtypeStruct((16, 3), np.float32, sharding=sharding)}
target = {"layers": {"0": {"kernel": leaf}}}
tree = ocp.StandardCheckpointer().restore(sys.argv[1], target)
array = tree["layers"]["0"]["kernel"]["value"]
assert len(array.sharding.device_set) == 8
assert np.array_equal(array, np.arange(48, dtype=np.float32).reshape(16, 3))
"""
    run_on_eight_devices(code, tmp_path / "out")


def test_trees_as_orbax_sees_them(tmp_path):
    tensors = {"layers.0.kernel": np.ones((2, 3), np.float32), "norm": np.ones(2, np.float32)}
    plain, state = write(tmp_path / "plain", tensors), write(tmp_path / "state", tensors, "flax")
    wrapped = {f"{name}.value": value for name, value in tensors.items()}
    for folder, expected in ((plain, nested(tensors)), (state, nested(wrapped))):
        assert jax.tree.structure(restore(folder)) == jax.tree.structure(expected)
        with ocp.PyTreeCheckpointer() as checkpointer:
            found = checkpointer.restore(folder.resolve())
        jax.tree.map(np.testing.assert_array_equal, found, expected)
        with ocp.StandardCheckpointer() as checkpointer:
            described = checkpointer.metadata(folder.resolve()).item_metadata.tree
        shapes = jax.tree.map(lambda leaf: leaf.shape, expected)
        assert jax.tree.map(lambda leaf: leaf.shape, described) == shapes
    with pytest.raises(ValueError, match="mismatch"):
        restore(plain, nested(wrapped))


def test_nothing_but_numpy_is_needed(tmp_path, source):
    code = """
import sys
sys.modules.update(dict.fromkeys(("jax", "orbax", "tensorstore")))
from diptych.convert import convert_checkpoint, verify_manifest
convert_checkpoint(sys.argv[1], sys.argv[2], to="flax", format="orbax")
assert verify_manifest(sys.argv[2]) == []
"""
    arguments = [sys.executable, "-c", code, str(source), str(tmp_path / "out")]
    subprocess.run(arguments, cwd=ROOT, check=True)


def test_every_flipped_bit_is_caught(tmp_path, source):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", format="orbax")
    random = np.random.default_rng(0)
    paths = sorted(path for path in out.rglob("*") if path.is_file())
    assert {".zarray", "0.0", "0", "_METADATA", "_CHECKPOINT_METADATA", "config.json"} <= {
        path.name for path in paths
    }
    for path in paths:
        whole = path.read_bytes()
        for place in random.choice(len(whole), min(len(whole), 8), replace=False):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            assert verify_manifest(out), (path, place)
        path.write_bytes(whole)
    for path in paths:
        path.rename(tmp_path / "away")
        assert verify_manifest(out), path
        (tmp_path / "away").rename(path)
    shutil.copytree(out / "pooler_proj.bias.value", out / "another.value")
    assert find_container(out).notes == ("not read, since _METADATA lacks them: another.value",)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.b", "a"], "a is a tensor, no folder of names"),
        (["a..b"], "no key of this name"),
        (["a/b"], "no key of this name"),
        (["../a"], "leaves its folder"),
        (["/etc/a"], "leaves its folder"),
        (["a\0"], "control character"),
        ([".".join(["long"] * 60)], "longer than a file's name"),
        (["_METADATA"], "has a file of this name"),
        (["d"], "has a file of this name"),
        (["manifest.ocdbt"], "has a file of this name"),
    ],
)
def test_names_that_orbax_cannot_have(tmp_path, names, words):
    with pytest.raises(ValueError, match=words):
        write(tmp_path / "out", {name: np.ones(2, np.float32) for name in names})
    assert not list((tmp_path / "out").iterdir())


def test_shards_are_refused(tmp_path, source):
    with pytest.raises(ValueError, match="max_shard_size"):
        convert_checkpoint(
            source, tmp_path / "out", to="flax", format="orbax", max_shard_size="1MB"
        )
    assert not (tmp_path / "out").exists()


def test_buffers_travel(tmp_path):
    tensors = bert_tensors() | {"embeddings.position_ids": np.arange(5)[None] + 1}
    source = write_checkpoint(tmp_path / "source", tensors, BERT_CONFIG)
    convert_checkpoint(source, tmp_path / "there", to="flax", format="orbax")
    convert_checkpoint(tmp_path / "there", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)


def test_the_source_is_not_taken_for_the_destination(tmp_path, source):
    convert_checkpoint(source, tmp_path / "there", to="flax", format="orbax")
    inside = tmp_path / "there/inside"
    with pytest.raises(ValueError, match="lies in the source"):
        convert_checkpoint(tmp_path / "there", inside, to="hf")
    (tmp_path / "there/_METADATA").write_text(json.dumps({"tree_metadata": {}}))
    with pytest.raises(CheckpointError, match="holds no arrays"):
        find_container(tmp_path / "there")
