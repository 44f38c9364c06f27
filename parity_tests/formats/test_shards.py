"""Checkpoints of several files, and which of a folder's files are its weights."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import flax.serialization
import numpy as np
import pytest
import safetensors.numpy
import torch
from transformers.utils.hub import get_checkpoint_shard_files

from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.output import Planned
from diptych.formats.shards import split_plan
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import code_of

INDEX = "model.safetensors.index.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
ARRAYS = {"a": np.arange(3.0), "b": np.arange(2, dtype=np.int16), "c": np.arange(4.0)}


def write(folder: Path, kind: str = "safetensors", arrays=ARRAYS, **options) -> tuple[str, ...]:
    folder.mkdir(exist_ok=True)
    plan = [Planned(name, code_of(array.dtype), array.shape) for name, array in arrays.items()]
    defaults = {
        "file_name": FORMATS[kind].name_in("hf"),
        "max_shard_size": 30,
        "metadata": {"format": "pt"},
    }
    return FORMATS[kind].write(folder, plan, iter(arrays.items()), **(defaults | options))


def values_of(path: Path) -> dict[str, list]:
    return {name: tensor.read().tolist() for name, tensor in find_container(path).tensors.items()}


EXPECTED = {name: array.tolist() for name, array in ARRAYS.items()}


def error_of(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        find_container(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    return message


def edit_index(folder: Path, **changes: object) -> None:
    """Changes the index's weight_map; a value of None removes the name."""
    path = folder / INDEX
    index = json.loads(path.read_text())
    index["weight_map"] |= changes
    index["weight_map"] = {key: value for key, value in index["weight_map"].items() if value}
    path.write_text(json.dumps(index))


@pytest.mark.parametrize("kind", ["safetensors", "pt", "msgpack"])
def test_shards_come_back_and_their_index_says_where_each_is(tmp_path, kind):
    names = write(tmp_path, kind)
    assert len(names) == 3
    assert sorted(names) == sorted(os.listdir(tmp_path))
    container = find_container(tmp_path)
    assert values_of(tmp_path) == EXPECTED
    assert values_of(tmp_path / names[-1]) == EXPECTED
    assert [path.name for path in container.files] == [names[-1], *names[:-1]]
    assert container.kind == kind
    index = json.loads((tmp_path / names[-1]).read_text())
    assert index["metadata"]["total_size"] == sum(array.nbytes for array in ARRAYS.values())
    for shard in names[:-1]:
        if kind == "pt":
            stored = torch.load(tmp_path / shard, weights_only=True)
        elif kind == "msgpack":
            stored = flax.serialization.msgpack_restore((tmp_path / shard).read_bytes())
        else:
            stored = safetensors.numpy.load_file(tmp_path / shard)
        assert {name for name, file in index["weight_map"].items() if file == shard} == set(stored)
    files, official = get_checkpoint_shard_files(tmp_path, tmp_path / names[-1])
    assert [Path(file).name for file in files] == list(names[:-1])
    assert set(official["all_checkpoint_keys"]) == set(ARRAYS)


def test_a_checkpoint_below_the_limit_is_one_file(tmp_path):
    assert write(tmp_path, max_shard_size=60) == ("model.safetensors",)
    assert values_of(tmp_path) == EXPECTED


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, [["a", "b", "c"]]),
        (60, [["a", "b", "c"]]),
        (59, [["a", "b"], ["c"]]),
        (28, [["a", "b"], ["c"]]),
        (27, [["a"], ["b"], ["c"]]),
        (1, [["a"], ["b"], ["c"]]),
    ],
)
def test_the_plan_is_cut_in_its_order(limit, expected):
    plan = [Planned("a", "F64", (3,)), Planned("b", "I16", (2,)), Planned("c", "F64", (4,))]
    shards = split_plan(plan, limit)
    assert [[planned.name for planned in shard] for shard in shards] == expected


def test_the_order_is_that_of_the_index(tmp_path):
    write(tmp_path)
    path = tmp_path / INDEX
    index = json.loads(path.read_text())
    index["weight_map"] = {name: index["weight_map"][name] for name in "cab"}
    path.write_text(json.dumps(index))
    assert list(find_container(tmp_path).tensors) == ["c", "a", "b"]


def add_to_shard(folder: Path, shard: str, **arrays: np.ndarray) -> None:
    stored = safetensors.numpy.load_file(folder / shard)
    safetensors.numpy.save_file(stored | arrays, folder / shard)


def rewrite_index(text: str | bytes) -> Callable[[Path], None]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / INDEX).write_bytes(data) and None


def lie_about_size(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["metadata"]["total_size"] += 1
    (folder / INDEX).write_text(json.dumps(index))


def link_outside(folder: Path) -> None:
    outside = folder.parent / "outside.safetensors"
    shutil.move(folder / SECOND, outside)
    (folder / SECOND).symlink_to(outside)


def link_in_a_circle(folder: Path) -> None:
    (folder / SECOND).unlink()
    (folder / SECOND).symlink_to(SECOND)


def remove_all_shards(folder: Path) -> None:
    (folder / FIRST).unlink()
    (folder / SECOND).unlink()


def copy_second_index(folder: Path) -> None:
    (folder / INDEX).rename(folder / "x.safetensors.index.json")
    shutil.copy(folder / "x.safetensors.index.json", folder / "y.safetensors.index.json")


TWICE = f'{{"weight_map": {{"a": "{FIRST}", "a": "{SECOND}"}}}}'
MALFORMED: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("a shard missing", lambda folder: (folder / SECOND).unlink(), f"missing shards: {SECOND}"),
    ("all shards missing", remove_all_shards, f"missing shards: {FIRST}, {SECOND}"),
    ("a path up", lambda folder: edit_index(folder, a="../x.safetensors"), "not the plain name"),
    ("far up", lambda folder: edit_index(folder, a="../../../etc/passwd"), "not the plain name"),
    ("absolute", lambda folder: edit_index(folder, a="/etc/passwd"), "/etc/passwd: is not the"),
    ("a drive", lambda folder: edit_index(folder, a="C:\\x"), "not the plain name"),
    ("a drive's file", lambda folder: edit_index(folder, a="C:x"), "not the plain name"),
    ("backslashes", lambda folder: edit_index(folder, a="..\\x"), "not the plain name"),
    ("down and up", lambda folder: edit_index(folder, a="a/../../x"), "not the plain name"),
    ("a subfolder", lambda folder: edit_index(folder, a="sub/x"), "not the plain name"),
    ("the folder", lambda folder: edit_index(folder, a="."), "not the plain name"),
    ("its parent", lambda folder: edit_index(folder, a=".."), "not the plain name"),
    ("a NUL", lambda folder: edit_index(folder, a="x\0y"), "x\\x00y: is not the plain name"),
    ("a long name", lambda folder: edit_index(folder, a="x" * 300), ""),
    ("a link outside", link_outside, "leads out of its folder"),
    ("a link to itself", link_in_a_circle, ""),
    (
        "a name not in its shard",
        lambda folder: edit_index(folder, d=SECOND),
        f"d: is not in shard {SECOND}",
    ),
    (
        "a name not in the index",
        lambda folder: edit_index(folder, b=None),
        f"b: is in shard {FIRST}, but not",
    ),
    (
        "the wrong shard",
        lambda folder: edit_index(folder, a=SECOND),
        f"a: is in shard {FIRST}, but",
    ),
    (
        "a name in two shards",
        lambda folder: add_to_shard(folder, SECOND, a=np.ones(3)),
        f"a: is in several shards: {FIRST}, {SECOND}",
    ),
    (
        "two spellings in two shards",
        lambda folder: (
            add_to_shard(folder, FIRST, **{"caf\u00e9": np.ones(1)}),
            add_to_shard(folder, SECOND, **{"cafe\u0301": np.ones(1)}),
            edit_index(folder, **{"caf\u00e9": FIRST, "cafe\u0301": SECOND}),
        ),
        "another spelling",
    ),
    ("a lie about the size", lie_about_size, "total_size is 61, but the tensors have 60"),
    ("a shard cut", lambda folder: os.truncate(folder / SECOND, 40), "truncated"),
    ("a shard that is a page", lambda folder: (folder / FIRST).write_text("<html>"), "a web page"),
    ("a key twice", rewrite_index(TWICE), "key 'a' stands twice"),
    ("an empty index", rewrite_index(""), "'{' expected"),
    ("an index cut", rewrite_index(TWICE[:40]), "is no index of shards"),
    ("an index without a map", rewrite_index("{}"), "no weight_map"),
    ("an empty map", rewrite_index('{"weight_map": {}}'), "no weight_map, or an empty one"),
    ("a list as map", rewrite_index('{"weight_map": ["a"]}'), "'{' expected"),
    ("numbers as files", rewrite_index('{"weight_map": {"a": 1}}'), "a string expected"),
    ("two maps", rewrite_index('{"weight_map": {}, "weight_map": {}}'), "twice"),
    ("a list as index", rewrite_index("[]"), "'{' expected"),
    ("a number as index", rewrite_index("3"), "'{' expected"),
    ("bad UTF-8", rewrite_index(b'{"a\xff": 1}'), "utf-8"),
    ("a deep index", rewrite_index('{"x": ' + "[" * 100_000), "nested deeper"),
    ("text behind", rewrite_index('{"weight_map": {"a": "x"}} x'), "the end expected"),
    (
        "a single file beside the index",
        lambda folder: write(folder, max_shard_size=None),
        f"holds both model.safetensors and {INDEX}",
    ),
    ("two indices", copy_second_index, "several files could be meant"),
    ("shards without an index", lambda folder: (folder / INDEX).unlink(), "several files could"),
)


@pytest.mark.parametrize(
    ("kind", "change", "words"), MALFORMED, ids=[case[0] for case in MALFORMED]
)
def test_a_malformed_folder_is_refused_in_one_line(tmp_path, kind, change, words):
    folder = tmp_path / "source"
    write(folder)
    change(folder)
    assert words in error_of(folder)


def test_every_missing_shard_is_named(tmp_path):
    write(tmp_path)
    names = {f"layer.{index}": f"model-{index:05d}-of-00030.safetensors" for index in range(30)}
    edit_index(tmp_path, **names)
    assert all(name in error_of(tmp_path) for name in names.values())


def test_every_fault_is_collected(tmp_path):
    write(tmp_path)
    edit_index(tmp_path, c=None, d=SECOND, e=FIRST)
    with pytest.raises(CheckpointError) as caught:
        find_container(tmp_path)
    assert [fault.split(": ")[1] for fault in caught.value.faults] == ["d", "e", "c"]


def test_pickles_may_miscount_their_size(tmp_path):
    names = write(tmp_path, "pt")
    index = json.loads((tmp_path / names[-1]).read_text())
    index["metadata"]["total_size"] += 1
    (tmp_path / names[-1]).write_text(json.dumps(index))
    container = find_container(tmp_path)
    assert values_of(tmp_path) == EXPECTED
    assert container.notes == ("total_size is 61, but the tensors have 60 bytes",)


@pytest.mark.parametrize("total_size", [60.0, "60", None])
def test_a_size_that_is_no_integer_promises_nothing(tmp_path, total_size):
    write(tmp_path)
    index = json.loads((tmp_path / INDEX).read_text())
    index["metadata"] = {"total_size": total_size, "more": [1, {"a": None}]}
    index["version"] = 1
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert values_of(tmp_path) == EXPECTED
