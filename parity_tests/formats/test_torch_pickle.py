"""torch checkpoints: read without unpickling, written so that torch reads them."""

import tracemalloc
import zipfile
from argparse import Namespace
from collections import OrderedDict

import numpy as np
import pytest
import torch

from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.output import Planned
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import CODES

from ..support.special_values import SPECIAL_ARRAYS, every_bit_pattern, same_bits
from .pickle_bytes import archive, call, dictionary, tensor, text
from .pickle_files import write


def torch_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("code", CODES)
def test_every_bit_pattern_is_written_for_torch_and_comes_back(tmp_path, code):
    array = every_bit_pattern(code)
    write(tmp_path, {"odd": np.array([1, 2, 3], np.uint8), "w": array})
    assert same_bits(find_container(tmp_path).tensors["w"].read(), array)
    for mapped in (False, True):
        loaded = torch.load(tmp_path / "model.pt", weights_only=True, mmap=mapped)
        assert type(loaded) is OrderedDict
        assert list(loaded) == ["odd", "w"]
        assert tuple(loaded["w"].shape) == array.shape
        assert torch_bytes(loaded["w"]) == array.tobytes()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("code", CODES)
def test_every_bit_pattern_of_torch_is_read(tmp_path, code, zipped):
    write(tmp_path, {"w": every_bit_pattern(code)})
    loaded = torch.load(tmp_path / "model.pt", weights_only=True)
    torch.save(loaded, tmp_path / "again.pt", _use_new_zipfile_serialization=zipped)
    read = find_container(tmp_path / "again.pt").tensors["w"].read()
    assert same_bits(read, every_bit_pattern(code))


@pytest.mark.parametrize("name", SPECIAL_ARRAYS)
def test_the_values_of_any_memory_layout_are_written(tmp_path, name):
    array = SPECIAL_ARRAYS[name]
    write(tmp_path, {"w": array})
    read = find_container(tmp_path).tensors["w"].read()
    assert read.shape == array.shape
    assert read.tolist() == array.tolist()
    loaded = torch.load(tmp_path / "model.pt", weights_only=True)["w"]
    assert loaded.tolist() == array.tolist()
    assert loaded.stride() == torch.empty(array.shape).stride()


def test_a_transposed_view_comes_back_as_its_values(tmp_path):
    write(tmp_path, {"w": np.arange(6).reshape(2, 3).T})
    assert find_container(tmp_path).tensors["w"].read().tolist() == [[0, 3], [1, 4], [2, 5]]


_BASE = torch.arange(120, dtype=torch.float32).reshape(2, 3, 4, 5)
VIEWS = {
    "transposed": _BASE[0, 0].T,
    "axes moved": _BASE.permute(2, 0, 3, 1),
    "channels last": _BASE.contiguous(memory_format=torch.channels_last),
    "a column": _BASE[:, 1, :, 3],
    "every second": _BASE[..., ::2],
    "a corner": _BASE[1, 2, 3, 4],
    "part": _BASE[1:, 1:, 1:, 1:],
    "one row expanded in name only": _BASE[:1].expand(1, -1, -1, -1),
    "no rows": _BASE[:0].transpose(1, 3),
    "a parameter": torch.nn.Parameter(_BASE.permute(3, 0, 1, 2)),
}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_storage_is_read_by_its_strides(tmp_path, name, zipped):
    view = VIEWS[name]
    saved = {"before": torch.ones(3), "w": view, "tied": view, "base": _BASE}
    torch.save(saved, tmp_path / "model.pt", _use_new_zipfile_serialization=zipped)
    tensors = find_container(tmp_path).tensors
    for key, value in saved.items():
        read = tensors[key].read()
        assert read.shape == tuple(value.shape)
        assert read.tolist() == value.tolist()
        assert read.flags.owndata
        assert read.flags.c_contiguous


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_a_view_wider_than_a_block_is_read_block_by_block(tmp_path, monkeypatch, axes):
    monkeypatch.setattr("diptych.formats.tensor._BLOCK", 64)
    base = torch.arange(37 * 23, dtype=torch.int16).reshape(37, 23)
    view = base[1::2, 3:].permute(axes)
    torch.save(
        {"w": view, "column": base[:, 4], "deep": _BASE.permute(3, 1, 0, 2)}, tmp_path / "a.pt"
    )
    tensors = find_container(tmp_path / "a.pt").tensors
    assert tensors["w"].read().tolist() == view.tolist()
    assert tensors["column"].read().tolist() == base[:, 4].tolist()
    assert tensors["deep"].read().tolist() == _BASE.permute(3, 1, 0, 2).tolist()


@pytest.mark.parametrize("columns", [2048, 1])
def test_reading_takes_no_more_than_the_tensor_and_a_block(tmp_path, columns):
    base = torch.zeros(6000, 2048, dtype=torch.int16)
    torch.save({"w": base[:, :columns].T, "plain": base}, tmp_path / "model.pt")
    tensors = find_container(tmp_path).tensors
    for stored in tensors.values():
        tracemalloc.start()
        values = stored.read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < values.nbytes + (17 << 20)
        assert values.shape == stored.shape


@pytest.mark.parametrize("kind", ["safetensors", "pt", "msgpack"])
def test_writing_takes_no_more_than_the_tensor(tmp_path, kind):
    array = np.zeros((1024, 4096), np.int16)
    plan = [Planned("w", "I16", array.shape), Planned("v", "I16", array.shape[::-1])]
    tracemalloc.start()
    arrays = iter([("w", array), ("v", array.T)])
    FORMATS[kind].write(tmp_path, plan, arrays, file_name="model", metadata={"format": "pt"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < array.nbytes + (1 << 20)


def test_a_big_endian_file_is_read(tmp_path):
    path = tmp_path / "model.pt"
    stored = {"0": np.array([1.5, -2.0], ">f4").tobytes()}
    body = dictionary(("w", tensor()))
    path.write_bytes(archive(body, stored, more={"archive/byteorder": b"big"}))
    assert find_container(path).tensors["w"].read().tolist() == [1.5, -2.0]
    assert torch.load(path, weights_only=True)["w"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize("zipped", [True, False])
def test_a_training_file_is_a_tree(tmp_path, zipped):
    weights = torch.nn.Linear(2, 3).state_dict()
    training = {
        "state_dict": weights,
        "step": np.float64(3),
        "array": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "args": Namespace(lr=0.1),
        "optimizer": {"state": {0: {"exp_avg": torch.ones(2)}}, "param_groups": [{"params": [0]}]},
        "losses": [0.5] * 5000,
        "name": "run\n1",
        "dtype": torch.float32,
        "done": True,
    }
    path = tmp_path / "model.ckpt"
    torch.save(training, path, _use_new_zipfile_serialization=zipped)
    container = find_container(path)
    assert container.tensors == {}
    assert set(container.tree) == {"", "state_dict", "optimizer.state.0"}
    root = container.tree[""]
    assert root.refused == {"args": "is an object of argparse.Namespace, which is never built"}
    assert root.tensors["array"].read().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert root.others == {
        "state_dict": "a dictionary of 2",
        "step": "numpy F64 3.0",
        "optimizer": "a dictionary of 2",
        "losses": "a list of 5000",
        "name": "text 'run\\\\n1'",
        "dtype": "torch.float32",
        "done": "True",
    }
    selected = container.select("state_dict").tensors
    for key, value in weights.items():
        assert selected[key].name == key
        assert selected[key].read().tolist() == value.tolist()
    assert container.select("optimizer.state.0").tensors["exp_avg"].read().tolist() == [1, 1]
    with pytest.raises(CheckpointError, match=r"model\.ckpt: args: is an object of argparse"):
        container.select("")
    with pytest.raises(
        CheckpointError, match=r"model\.ckpt: ema: no such dictionary.*'state_dict'"
    ):
        container.select("ema")


def test_the_only_dictionary_with_tensors_is_taken(tmp_path):
    torch.save({"model": {"w": torch.ones(2)}, "step": 3}, tmp_path / "model.pt")
    assert find_container(tmp_path).tensors["w"].read().tolist() == [1, 1]


def test_an_empty_state_dict_is_valid(tmp_path):
    write(tmp_path, {})
    assert dict(find_container(tmp_path).tensors) == {}
    assert torch.load(tmp_path / "model.pt", weights_only=True) == {}


def test_python_2_pairs_are_an_ordered_dictionary(tmp_path):
    pairs = b"](" + b"](" + text("w") + tensor() + b"e" + b"e"
    (tmp_path / "model.pt").write_bytes(archive(call("collections", "OrderedDict", pairs)))
    assert find_container(tmp_path).tensors["w"].read().tolist() == [1.5, -2.0]


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, {"w": np.arange(5.0), "b": np.arange(3, dtype=np.int8)})
    first, second = (tmp_path / folder / "model.pt" for folder in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as file:
        assert file.testzip() is None
        assert {member.compress_type for member in file.infolist()} == {zipfile.ZIP_STORED}


def test_what_was_not_planned_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="was to come"):
        FORMATS["pt"].write(
            tmp_path,
            [Planned("w", "F32", (2,))],
            iter([("w", np.zeros((2, 1), np.float32))]),
            file_name="model.pt",
            metadata={},
        )
