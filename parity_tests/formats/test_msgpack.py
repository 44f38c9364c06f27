"""Flax msgpack files: bit for bit there and back, the bytes that Flax writes, or refused."""

import time
from pathlib import Path

import flax.serialization
import jax.numpy as jnp
import msgpack
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.msgpack import writer as msgpack_writer
from diptych.formats.output import Planned
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import CODES, code_of

from ..support.special_values import SPECIAL_ARRAYS, every_bit_pattern, same_bits
from .bomb_run import open_bombs
from .malformed_msgpack import VALID, array, bombs, malformed_files, msgpack_file
from .test_safetensors import error_of

NAME = "flax_model.msgpack"


def write(folder: Path, arrays: dict[str, np.ndarray], **options) -> tuple[str, ...]:
    plan = [Planned(name, code_of(array.dtype), array.shape) for name, array in arrays.items()]
    options = {"file_name": NAME, "metadata": {}} | options
    return FORMATS["msgpack"].write(folder, plan, iter(arrays.items()), **options)


def read(path: Path) -> dict[str, np.ndarray]:
    return {name: tensor.read() for name, tensor in find_container(path).tensors.items()}


def flax_reads(path: Path) -> dict[str, np.ndarray]:
    return flatten_dict(flax.serialization.msgpack_restore(path.read_bytes()), sep=".")


def flax_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    return flax.serialization.msgpack_serialize(unflatten_dict(arrays, sep="."))


def same_trees(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(same_bits(a[name], np.asarray(b[name])) for name in a)


@pytest.mark.parametrize("code", CODES)
def test_every_bit_pattern_is_written_as_flax_does_and_comes_back(tmp_path, code):
    arrays = {"a.w": every_bit_pattern(code), "a.odd": np.array([1, 2, 3], np.uint8)}
    write(tmp_path, arrays)
    assert same_trees(read(tmp_path), arrays)
    assert (tmp_path / NAME).read_bytes() == flax_bytes(arrays)
    assert same_trees(flax_reads(tmp_path / NAME), arrays)


@pytest.mark.parametrize("code", CODES)
def test_every_bit_pattern_of_flax_is_read(tmp_path, code):
    pattern = every_bit_pattern(code)
    tree = {"b": {"w": pattern, "one": pattern[0, 0]}, "a": pattern[:0], "zero": pattern[0, :1][0]}
    (tmp_path / NAME).write_bytes(flax.serialization.to_bytes(tree))
    found = read(tmp_path)
    assert list(found) == ["b.w", "b.one", "a", "zero"]
    assert same_trees(found, flatten_dict(tree, sep="."))


@pytest.mark.parametrize("name", SPECIAL_ARRAYS)
def test_the_values_of_any_memory_layout_are_written(tmp_path, name):
    """ml-explore/mlx#369: broadcast arrays keep every row, in every writer."""
    array = SPECIAL_ARRAYS[name]
    write(tmp_path, {"w": array})
    found = find_container(tmp_path).tensors["w"].read()
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()
    assert flax_reads(tmp_path / NAME)["w"].tolist() == array.tolist()
    assert found.flags.c_contiguous
    assert found.flags.owndata
    assert found.flags.writeable


KEYS = st.text("ab1-_", min_size=1, max_size=40)
NAMES = st.lists(KEYS, min_size=1, max_size=4).map(".".join)
ONES = st.lists(st.just(1), max_size=8)
SHAPES = st.tuples(ONES, st.sampled_from([0, 1, 3, 127, 128, 255, 256, 300]), ONES).map(
    lambda parts: (*parts[0], parts[1], *parts[2])
)


@given(st.dictionaries(NAMES, st.tuples(st.sampled_from(list(CODES)), SHAPES), max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_tree_has_the_bytes_that_flax_writes(tmp_path_factory, headers):
    """Maps, texts, sizes and arrays around every length at which msgpack changes its form."""
    folder = tmp_path_factory.mktemp("tree")
    arrays = {name: np.zeros(shape, CODES[code]) for name, (code, shape) in headers.items()}
    parts = {name: name.split(".") for name in arrays}
    if any(a != b and parts[a] == parts[b][: len(parts[a])] for a in arrays for b in arrays):
        with pytest.raises(ValueError, match="a tensor and a folder of names"):
            write(folder, arrays)
        return
    write(folder, arrays)
    assert (folder / NAME).read_bytes() == flax_bytes(arrays)
    assert same_trees(read(folder), arrays)


@pytest.mark.parametrize("count", [15, 16, 40])
def test_lengths_at_which_msgpack_changes_its_form(tmp_path, count):
    arrays = {f"{index:05d}" + "x" * (index % 300): np.zeros(index) for index in range(count)}
    arrays |= {"n" * size: np.zeros(size, np.uint8) for size in (31, 32, 255, 256, 65_535, 65_536)}
    write(tmp_path, arrays)
    assert (tmp_path / NAME).read_bytes() == flax_bytes(arrays)
    assert same_trees(read(tmp_path), arrays)


@pytest.mark.parametrize("count", [0, 15, 16, 65_535, 65_536])
def test_heads_of_maps_are_those_of_msgpack(count):
    assert msgpack_writer._map(count) == msgpack.Packer().pack_map_header(count)


@pytest.mark.slow
def test_more_names_than_a_short_map_holds(tmp_path):
    arrays = {f"layers.{index}.bias": np.zeros(1, np.int8) for index in range(65_537)}
    write(tmp_path, arrays)
    assert (tmp_path / NAME).read_bytes() == flax_bytes(arrays)
    start = time.process_time()
    assert len(find_container(tmp_path).tensors) == 65_537
    assert time.process_time() - start < 8


@pytest.mark.parametrize("limit", [1, 8, 20, 100])
@pytest.mark.parametrize("code", ["F32", "BF16", "F8_E4M3", "I64", "C128"])
def test_large_arrays_are_in_chunks_as_flax_has_them(tmp_path, monkeypatch, limit, code):
    assert msgpack_writer.MOST_CHUNK_BYTES == flax.serialization.MAX_CHUNK_SIZE
    monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", limit)
    monkeypatch.setattr(msgpack_writer, "MOST_CHUNK_BYTES", limit)
    values = every_bit_pattern(code).reshape(-1)[:24]
    arrays = {"a.w": values.reshape(2, 3, 4), "a.v": values[:5], "b": values[:1].reshape(())}
    write(tmp_path, arrays)
    assert (tmp_path / NAME).read_bytes() == flax_bytes(arrays)
    assert same_trees(read(tmp_path), arrays)
    tensor = find_container(tmp_path).tensors["a.w"]
    assert b"".join(bytes(piece) for piece in tensor.pieces()) == arrays["a.w"].tobytes()


def test_chunks_are_read_in_numeric_order(tmp_path, monkeypatch):
    monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", 4)
    (tmp_path / NAME).write_bytes(flax_bytes({"w": np.arange(12, dtype=np.float32)}))
    assert read(tmp_path)["w"].tolist() == list(range(12))


@pytest.mark.slow
def test_an_array_over_one_gibibyte_is_written_and_read(tmp_path):
    values = np.arange((1 << 30) + 3, dtype=np.uint32).view(np.uint8)[: (1 << 30) + 3]
    write(tmp_path, {"w": values})
    restored = flax.serialization.msgpack_restore((tmp_path / NAME).read_bytes())["w"]
    assert np.array_equal(restored, values)
    assert np.array_equal(read(tmp_path)["w"], values)


def test_a_jax_array_of_flax_is_read(tmp_path):
    values = jnp.array([1.5, -2.25, jnp.nan, -0.0], jnp.bfloat16)
    (tmp_path / NAME).write_bytes(flax.serialization.to_bytes({"w": values}))
    assert same_bits(read(tmp_path)["w"], np.asarray(values))


def test_a_tree_without_arrays_is_valid(tmp_path):
    write(tmp_path, {})
    assert (tmp_path / NAME).read_bytes() == flax.serialization.to_bytes({}) == b"\x80"
    assert read(tmp_path) == {}


def test_what_was_not_planned_is_not_written(tmp_path):
    arrays = iter([("w", np.zeros((2, 1), np.float32))])
    with pytest.raises(ValueError, match="was to come"):
        FORMATS["msgpack"].write(
            tmp_path, [Planned("w", "F32", (2,))], arrays, file_name=NAME, metadata={}
        )


MALFORMED = list(malformed_files())


def test_there_are_enough_malformed_files():
    assert len(MALFORMED) >= 80
    assert len({kind for kind, _, _ in MALFORMED}) == len(MALFORMED)


@pytest.mark.parametrize(("kind", "data", "words"), MALFORMED, ids=[case[0] for case in MALFORMED])
def test_a_malformed_file_is_refused_in_one_line(tmp_path, kind, data, words):
    path = tmp_path / NAME
    path.write_bytes(data)
    assert words in error_of(path)


@pytest.mark.parametrize("size", range(len(VALID)))
def test_every_truncation_is_refused(tmp_path, size):
    path = tmp_path / NAME
    path.write_bytes(VALID[:size])
    error_of(path)


def test_no_bomb_takes_memory_or_time(tmp_path):
    open_bombs(tmp_path, ".msgpack", bombs())


def test_a_boolean_that_is_neither_is_refused(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(msgpack_file({"flag": array((2,), "bool", b"\1\2")}))
    tensor = find_container(path).tensors["flag"]
    with pytest.raises(CheckpointError, match=r"flax_model\.msgpack: flag: a boolean"):
        tensor.read()


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_a_mutated_file_is_refused_or_read_as_flax_does(tmp_path_factory, data):
    changed = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("mutated") / NAME
    path.write_bytes(changed)
    try:
        found = read(path)
    except CheckpointError:
        error_of(path)
        return
    official = flatten_dict(flax.serialization.msgpack_restore(bytes(changed)))
    arrays = {
        ".".join(keys).replace("/", "."): np.asarray(value)
        for keys, value in official.items()
        if isinstance(value, np.ndarray | np.generic)
    }
    assert same_trees(found, arrays)
