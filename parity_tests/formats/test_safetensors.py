"""safetensors files: bit for bit there and back, as the official library reads them, or refused."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.output import Planned
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import CODES, code_of

from ..support.special_values import SPECIAL_ARRAYS, every_bit_pattern, same_bits
from .bomb_run import open_bombs
from .malformed_safetensors import DATA, ENTRY, VALID, bombs, malformed_files, safetensors_file

OFFICIAL_CODES = [code for code in CODES if code != "C128"]


def write(folder: Path, arrays: dict[str, np.ndarray], **options) -> tuple[str, ...]:
    plan = [Planned(name, code_of(array.dtype), array.shape) for name, array in arrays.items()]
    options = {"file_name": "model.safetensors", "metadata": {"format": "pt"}} | options
    return FORMATS["safetensors"].write(folder, plan, iter(arrays.items()), **options)


def error_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        find_container(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message


@pytest.mark.parametrize("code", OFFICIAL_CODES)
def test_every_bit_pattern_comes_back(tmp_path, code):
    array = every_bit_pattern(code)
    write(tmp_path, {"w": array})
    tensor = find_container(tmp_path).tensors["w"]
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == (code, array.shape, array.nbytes)
    assert same_bits(tensor.read(), array)


@pytest.mark.parametrize("code", OFFICIAL_CODES)
def test_torch_reads_every_bit_pattern(tmp_path, code):
    array = every_bit_pattern(code)
    write(tmp_path, {"odd": np.array([1, 2, 3], np.uint8), "w": array})
    loaded = safetensors.torch.load_file(tmp_path / "model.safetensors")["w"]
    assert loaded.view(torch.uint8).numpy().tobytes() == array.tobytes()


@pytest.mark.parametrize("name", SPECIAL_ARRAYS)
def test_the_values_of_any_memory_layout_are_written(tmp_path, name):
    array = SPECIAL_ARRAYS[name]
    write(tmp_path, {"w": array})
    read = find_container(tmp_path).tensors["w"].read()
    assert read.shape == array.shape
    assert read.tolist() == array.tolist()
    assert (
        safetensors.numpy.load_file(tmp_path / "model.safetensors")["w"].tolist() == read.tolist()
    )
    assert read.flags.c_contiguous
    assert read.flags.owndata
    assert read.flags.writeable
    assert read.dtype.isnative


def test_a_transposed_view_comes_back_as_its_values(tmp_path):
    write(tmp_path, {"w": np.arange(6).reshape(2, 3).T})
    assert find_container(tmp_path).tensors["w"].read().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_bfloat16_of_torch_comes_back_bit_for_bit(tmp_path):
    values = torch.tensor([1.5, -2.25, 3.3895e38, float("nan"), -0.0], dtype=torch.bfloat16)
    safetensors.torch.save_file({"w": values}, tmp_path / "model.safetensors")
    read = find_container(tmp_path).tensors["w"].read()
    assert read.view(np.int16).tolist() == values.view(torch.int16).tolist()


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"format": "flax"}])
def test_any_metadata_of_the_official_writer_is_read(tmp_path, metadata):
    array = np.arange(3.0)
    safetensors.numpy.save_file({"w": array}, tmp_path / "model.safetensors", metadata=metadata)
    container = find_container(tmp_path)
    assert container.metadata == (metadata or {})
    assert container.tensors["w"].read().tolist() == [0, 1, 2]


def test_null_metadata_is_none(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file({"__metadata__": None, "w": ENTRY}))
    assert find_container(path).metadata == {}


@pytest.mark.parametrize("tag", ["pt", "flax"])
def test_the_format_is_always_written(tmp_path, tag):
    write(tmp_path, {"w": np.zeros(1)}, metadata={"format": tag, "other": "caf\u00e9"})
    with safetensors.safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": tag, "other": "caf\u00e9"}
    with pytest.raises(ValueError, match="format"):
        write(tmp_path, {"w": np.zeros(1)}, metadata={})


def test_a_file_without_tensors_is_valid(tmp_path):
    write(tmp_path, {})
    container = find_container(tmp_path)
    assert dict(container.tensors) == {}
    assert container.metadata == {"format": "pt"}
    assert safetensors.numpy.load_file(tmp_path / "model.safetensors") == {}


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, {"w": np.arange(5.0), "b": np.arange(3, dtype=np.int8)})
    first, second = (tmp_path / folder / "model.safetensors" for folder in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert int.from_bytes(first.read_bytes()[:8], "little") % 8 == 0


@pytest.mark.parametrize(
    ("given_name", "given_array"),
    [
        ("v", np.zeros(2, np.float32)),
        ("w", np.zeros(3, np.float32)),
        ("w", np.zeros((2, 1), np.float32)),
        ("w", np.zeros(2, np.float64)),
    ],
)
def test_what_was_not_planned_is_not_written(tmp_path, given_name, given_array):
    with pytest.raises(ValueError, match="was to come"):
        FORMATS["safetensors"].write(
            tmp_path,
            [Planned("w", "F32", (2,))],
            iter([(given_name, given_array)]),
            file_name="model.safetensors",
            metadata={"format": "pt"},
        )


def test_every_tensor_is_aligned(tmp_path):
    arrays = {f"w{size}": np.zeros(3, f"u{size}") for size in (1, 2, 4, 8, 1)}
    write(tmp_path, arrays | {"b": np.zeros(3, np.complex64)})
    for tensor in find_container(tmp_path).tensors.values():
        assert tensor.position % CODES[tensor.dtype].itemsize == 0


def test_a_dtype_that_the_format_lacks_is_refused_before_a_file_is_made(tmp_path):
    with pytest.raises(ValueError, match="w: safetensors has no dtype C128"):
        write(tmp_path, {"w": np.zeros(2, np.complex128)})
    assert not os.listdir(tmp_path)


def test_a_file_is_never_overwritten(tmp_path):
    write(tmp_path, {"w": np.zeros(1)})
    with pytest.raises(FileExistsError):
        write(tmp_path, {"w": np.zeros(1)})


MALFORMED = list(malformed_files())


def test_there_are_enough_malformed_files():
    assert len(MALFORMED) >= 80
    assert len({kind for kind, _, _ in MALFORMED}) == len(MALFORMED)


@pytest.mark.parametrize(("kind", "data", "words"), MALFORMED, ids=[case[0] for case in MALFORMED])
def test_a_malformed_file_is_refused_in_one_line(tmp_path, kind, data, words):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    assert words in error_of(path)


@pytest.mark.parametrize("size", range(len(VALID)))
def test_every_truncation_is_refused(tmp_path, size):
    path = tmp_path / "model.safetensors"
    path.write_bytes(VALID[:size])
    error_of(path)


def test_no_bomb_takes_memory_or_time(tmp_path):
    open_bombs(tmp_path, ".safetensors", bombs())


def test_a_boolean_that_is_neither_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    entry = {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}
    path.write_bytes(safetensors_file({"flag": entry}, b"\1\2"))
    tensor = find_container(path).tensors["flag"]
    with pytest.raises(CheckpointError, match=r"model\.safetensors: flag: a boolean"):
        tensor.read()


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_file_is_refused_or_read_as_the_official_library_does(tmp_path_factory, data):
    changed = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("mutated") / "model.safetensors"
    path.write_bytes(changed)
    try:
        tensors = find_container(path).tensors
    except CheckpointError:
        error_of(path)
        return
    official = safetensors.deserialize(bytes(changed))
    assert {name: entry["shape"] for name, entry in official} == {
        name: list(tensor.shape) for name, tensor in tensors.items()
    }
    for name, entry in official:
        assert tensors[name].dtype == entry["dtype"]
        assert bytes(entry["data"]) == tensors[name].read().tobytes()


def test_thirty_thousand_names_open_in_seconds(tmp_path):
    header = {
        f"layers.{index}.attention.q_proj.weight": {
            "dtype": "U8",
            "shape": [1],
            "data_offsets": [index, index + 1],
        }
        for index in range(30_000)
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file(header, bytes(30_000)))
    start = time.process_time()
    assert len(find_container(path).tensors) == 30_000
    assert time.process_time() - start < 4


def test_offsets_count_from_the_data(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file({"w": ENTRY}, np.array([1.5, -2.0], "<f4").tobytes()))
    assert find_container(path).tensors["w"].read().tolist() == [1.5, -2.0]
    assert len(DATA) == ENTRY["data_offsets"][1]
