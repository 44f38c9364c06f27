"""What Orbax saved is read: every form of tree, every way to store it, whatever mesh saved it."""

import shutil
from dataclasses import replace

import jax
import numpy as np
import pytest
from flax import nnx

import jax_impl
from diptych.convert import (
    convert_checkpoint,
    diff_checkpoints,
    inspect_checkpoint,
    open_checkpoint,
)
from diptych.formats.find import find_container
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import CODES

from ..support.checkpoints import BERT_CONFIG, bert_tensors, stored_tensors, write_checkpoint
from ..support.special_values import every_bit_pattern, same_bits
from .orbax_directories import nested, run_on_eight_devices, save, save_steps, write_config

WAYS = {
    "database": {},
    "files": {"use_ocdbt": False},
    "zarr 3": {"use_zarr3": True},
    "zarr 3 in files": {"use_zarr3": True, "use_ocdbt": False},
    "uncompressed": {"use_compression": False},
    "uncompressed files": {"use_compression": False, "use_ocdbt": False},
}


class Layers(nnx.Module):
    """Eleven layers in a list, so that "10" sorts before "2", and dropout with random state."""

    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(1, 2, use_bias=False, rngs=rngs) for _ in range(11)])
        for index, layer in enumerate(self.layers):
            layer.kernel.set_value(jax.numpy.full((1, 2), index, "float32"))
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.rngs = rngs


def config_of(module):
    return {"component": module.config.component, "config": module.config.to_dict()}


@pytest.fixture(scope="module")
def model():
    return jax_impl.FeedForward(3, 5, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("way", WAYS)
def test_every_dtype_bit_for_bit_in_every_way_of_storing(tmp_path, way):
    values = {code.lower(): every_bit_pattern(code) for code in CODES}
    values |= {"scalar": np.array(3.5, np.float32)}
    if "3" in way:  # zarr 3 has no such dtype
        values.pop("f8_e8m0")
    found = stored_tensors(save(tmp_path / "saved", values, **WAYS[way]))
    assert found.keys() == values.keys()
    for name, expected in values.items():
        assert same_bits(found[name], expected), name


@pytest.mark.parametrize("form", ["state", "pure dictionary", "split"])
def test_forms_of_a_model(tmp_path, model, form):
    state = nnx.split(model)[1] if form == "split" else nnx.state(model)
    tree = nnx.to_pure_dict(state) if form == "pure dictionary" else state
    folder = write_config(save(tmp_path / "saved", tree), config_of(model))
    checkpoint = open_checkpoint(folder)
    assert (checkpoint.layout, checkpoint.container.kind) == ("flax", "orbax")
    loaded = jax_impl.load_model(folder)
    jax.tree.map(np.testing.assert_array_equal, nnx.state(loaded), nnx.state(model))


def test_layers_by_number_and_random_state_left_out(tmp_path):
    for name, tree in {
        "state": nnx.state(Layers(nnx.Rngs(0))),
        "pure": nnx.to_pure_dict(nnx.state(Layers(nnx.Rngs(params=0, dropout=1)))),
    }.items():
        container = find_container(save(tmp_path / name, tree))
        assert len(container.tensors) == 11
        for index in range(11):
            assert (container.tensors[f"layers.{index}.kernel"].read() == index).all()
        (note,) = container.notes
        assert note.startswith("random state left out: dropout.rngs.count")
        assert "rngs.params" in note or name == "state"


def test_a_random_key_under_any_name_is_left_out(tmp_path):
    tree = {"noise": jax.random.key(0), "weight": np.ones(2, np.float32)}
    container = find_container(save(tmp_path / "saved", tree))
    assert list(container.tensors) == ["weight"]
    assert container.notes == ("random state left out: noise",)


def test_lists_tuples_scalars_texts_and_nothing(tmp_path):
    array = np.ones(2, np.float32)
    tree = {"a": [array, (array, 3)], "s": "text", "n": None, "e": {}, "mlp/~/linear": {"w": array}}
    container = find_container(save(tmp_path / "saved", tree, use_ocdbt=True))
    assert sorted(container.tensors) == ["a.0", "a.1.0", "mlp/~/linear.w"]
    others = container.tree[""].others
    assert others == {
        "a.1.1": "saved as scalar",
        "e": "an empty Dict",
        "n": "an empty None",
        "s": "saved as string",
    }


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tree: tree,
        lambda tree: {"params": tree},
        lambda tree: {"model": tree},
        lambda tree: {"model": {"params": tree}, "opt_state": [tree, tree], "step": np.int32(3)},
        lambda tree: {"params": tree, "batch_stats": {"mean": np.ones(2)}, "step": 7},
    ],
)
def test_the_model_in_what_was_saved_with_it(tmp_path, wrap):
    tensors = bert_tensors()
    folder = save(tmp_path / "saved", wrap(nested(tensors)))
    write_config(folder, BERT_CONFIG)
    source = write_checkpoint(tmp_path / "source", tensors, BERT_CONFIG)
    assert diff_checkpoints(folder, source).identical
    notes = " ".join(open_checkpoint(folder).notes)
    tree = wrap({})
    for name in ("opt_state", "batch_stats", "step"):
        assert (f"'{name}'" in notes) == (name in tree), notes


def test_a_train_state_of_ours_beside_its_optimizer(tmp_path, model):
    state = nnx.state(model)
    tree = {"model": state, "opt_state": {"mu": state, "count": np.int32(3)}, "step": np.int32(3)}
    folder = write_config(save(tmp_path / "saved", tree), config_of(model))
    notes = open_checkpoint(folder).notes
    assert notes == ("not read: 'opt_state' (5 tensors), 'step' (an array, I32 [])",)
    twice = write_config(save(tmp_path / "twice", {"params": state, "ema_params": state}), {})
    write_config(twice, config_of(model))
    with pytest.raises(CheckpointError, match="several dictionaries fit: 'ema_params', 'params'"):
        open_checkpoint(twice)
    assert open_checkpoint(twice, key="ema_params").leaves.keys() == model.config.leaves().keys()


def test_saved_by_eight_devices(tmp_path):
    code = """
import sys, jax, numpy as np, orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"))
whole = np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
put = lambda spec: jax.device_put(whole, NamedSharding(mesh, spec))
tree = {"both": put(P("x", "y")), "rows": put(P("x"))}
tree |= {"columns": put(P(None, "y")), "all": put(P())}
ways = {"database": {}, "files": {"use_ocdbt": False}, "three": {"use_zarr3": True}}
for name, options in ways.items():
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as checkpointer:
        checkpointer.save(sys.argv[1] + "/" + name, tree)
"""
    run_on_eight_devices(code, tmp_path)
    whole = np.arange(16 * 6, dtype=np.float32).reshape(16, 6)
    for name in ("database", "files", "three"):
        tensors = find_container(tmp_path / name).tensors
        assert sorted(tensors) == ["all", "both", "columns", "rows"]
        for tensor in tensors.values():
            assert np.array_equal(tensor.read(), whole)
            assert b"".join(map(bytes, tensor.pieces())) == whole.tobytes()
            turned = replace(tensor, shape=(6, 16), strides=(1, 6))
            assert np.array_equal(turned.read(), whole.T)


def test_edges_of_chunks_and_chunks_of_zeros_left_out(tmp_path):
    import tensorstore

    folder = save(tmp_path / "saved", {"w": np.ones((5, 3), np.float32)}, use_ocdbt=False)
    shutil.rmtree(folder / "w")
    metadata = {"shape": [5, 3], "chunks": [2, 2], "dtype": "<f4", "order": "F"}
    metadata |= {"fill_value": 0, "compressor": None}
    spec = {"driver": "zarr", "kvstore": f"file://{folder / 'w'}/", "metadata": metadata}
    values = np.arange(15, dtype=np.float32).reshape(5, 3)
    values[:2, :2] = 0
    tensorstore.open(spec, create=True).result().write(values).result()
    with pytest.raises(CheckpointError, match="w: truncated: 1 of its chunks are missing"):
        find_container(folder)
    text = (folder / "_METADATA").read_text()
    flag = '"store_array_data_equal_to_fill_value": true, '
    assert flag in text
    (folder / "_METADATA").write_text(text.replace(flag, ""))
    assert np.array_equal(find_container(folder).tensors["w"].read(), values)


def test_steps_of_a_manager(tmp_path):
    tensors = bert_tensors()
    items = {"params": nested(tensors), "state": {"step": np.int32(3), "loss": np.ones(2)}}
    folder = write_config(save_steps(tmp_path / "run", {3: items}), BERT_CONFIG)
    (folder / "vocab.txt").write_text("a")
    source = write_checkpoint(tmp_path / "source", tensors, BERT_CONFIG)
    assert diff_checkpoints(folder, source).identical
    assert diff_checkpoints(write_config(folder / "3", BERT_CONFIG), source).identical
    checkpoint = open_checkpoint(folder)
    assert list(checkpoint.companions) == ["vocab.txt"]
    assert (
        "not read: 'state.loss' (an array, F64 [2]), 'state.step' (an array, I32 [])"
        in checkpoint.notes
    )
    save_steps(folder, {7: items})
    with pytest.raises(CheckpointError, match=r"several steps: 3, 7: give the path of one"):
        open_checkpoint(folder)
    (folder / "7").rename(folder / "7.orbax-checkpoint-tmp")
    container = find_container(folder)
    assert "not read, beside params, state: 7.orbax-checkpoint-tmp" in container.notes
    with pytest.raises(CheckpointError, match="not finished"):
        find_container(folder / "7.orbax-checkpoint-tmp/params")
    single = save_steps(tmp_path / "single", {5: {"default": nested(tensors)}})
    assert stored_tensors(single).keys() == tensors.keys()


def test_safetensors_come_first_and_orbax_is_named(tmp_path):
    folder = write_checkpoint(tmp_path / "both", {"w": np.ones(2, np.float32)})
    saved = save(tmp_path / "saved", {"v": np.ones(3, np.float32)})
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    container = find_container(folder)
    assert list(container.tensors) == ["w"]
    assert container.notes == ("not read, beside model.safetensors: _METADATA, manifest.ocdbt",)


def test_inspected_and_converted_without_being_told(tmp_path):
    tensors = bert_tensors()
    folder = write_config(save(tmp_path / "saved", nested(tensors)), BERT_CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    found = inspect_checkpoint(folder)
    assert (found.container, found.layout, found.family) == ("orbax", "hf", "bert")
    convert_checkpoint(folder, tmp_path / "out", to="hf")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "config.json",
        "diptych.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert stored_tensors(tmp_path / "out").keys() == tensors.keys()


def test_changed_while_reading(tmp_path):
    tree = {"w": np.ones(2, np.float32)}
    for name, options in {"database": {}, "files": {"use_ocdbt": False}}.items():
        folder = save(tmp_path / name, tree, **options)
        tensor = find_container(folder).tensors["w"]
        shutil.rmtree(folder)
        save(folder, tree, **options)
        with pytest.raises(CheckpointError, match=r"changed while reading|cannot be opened"):
            tensor.read()


def test_without_tensorstore_the_extra_is_named(tmp_path, monkeypatch):
    folder = save(tmp_path / "saved", {"w": np.ones(2, np.float32)})
    monkeypatch.setitem(__import__("sys").modules, "tensorstore", None)
    with pytest.raises(CheckpointError, match=r"pip install 'diptych\[orbax\]'"):
        find_container(folder)


def test_what_is_called_rngs_but_holds_numbers_is_kept(tmp_path):
    tree = {"rngs": {"table": np.ones(2, np.float32)}, "stream": {"key": np.ones(2, np.float32)}}
    container = find_container(save(tmp_path / "saved", tree))
    assert sorted(container.tensors) == ["rngs.table", "stream.key"]
    assert container.notes == ()
