"""Damaged and hostile Orbax directories are refused in one line, and nothing is made of them."""

import json
import os
import shutil

import numpy as np
import pytest

from diptych.convert import convert_checkpoint
from diptych.formats.find import find_container
from diptych.spec import CheckpointError

from .malformed_orbax import BIAS, KERNEL, TABLE, malformed_directories
from .orbax_directories import nested, save

CASES = list(malformed_directories())
TENSORS = {
    KERNEL: np.arange(12, dtype=np.float32).reshape(4, 3),
    BIAS: np.ones(3, np.float32),
    TABLE: np.zeros((64, 64), np.float32),
}
WAYS = {"files": {"use_ocdbt": False, "use_compression": False}, "database": {"use_ocdbt": True}}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A sound directory of each way of storing."""
    folder = tmp_path_factory.mktemp("sound")
    return {way: save(folder / way, nested(TENSORS), **options) for way, options in WAYS.items()}


def read_all(folder):
    for tensor in find_container(folder).tensors.values():
        tensor.read()


def test_there_are_enough_cases():
    assert len({case[0] for case in CASES}) == len(CASES) >= 80


@pytest.mark.parametrize("way", WAYS)
def test_a_sound_directory_is_read(sound, way):
    read_all(sound[way])
    assert find_container(sound[way]).tensors.keys() == TENSORS.keys()


@pytest.mark.parametrize(("name", "way", "damage", "words"), CASES, ids=[c[0] for c in CASES])
def test_refused_in_one_line(tmp_path, sound, name, way, damage, words):
    folder = tmp_path / "saved"
    shutil.copytree(sound[way], folder)
    damage(folder)
    beside = sorted(os.listdir(tmp_path))
    with pytest.raises(CheckpointError) as error:
        read_all(folder)
    line = str(error.value)
    assert words in line
    assert line.startswith(str(folder))
    assert line.isprintable()
    with pytest.raises(CheckpointError):
        convert_checkpoint(folder, tmp_path / "out", to="hf", family="bert")
    assert sorted(os.listdir(tmp_path)) == beside


def test_random_damage_of_a_database_never_ends_the_process(tmp_path, sound):
    folder = tmp_path / "saved"
    shutil.copytree(sound["database"], folder)
    random = np.random.default_rng(0)
    paths = [folder / "manifest.ocdbt", *(folder / "d").iterdir(), *folder.glob("ocdbt.*/d/*")]
    lines = []
    for path in paths:
        whole = path.read_bytes()
        for place in random.choice(len(whole), min(60, len(whole)), replace=False):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            try:
                read_all(folder)
            except CheckpointError as error:
                lines.append(str(error))
        path.write_bytes(whole)
    assert len(lines) >= 60
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("compressor", "rows"), [(None, 8), (None, 10**6), ({"id": "zstd"}, 10**6)]
)
def test_a_database_that_lies_about_a_chunk(tmp_path, sound, compressor, rows):
    import tensorstore

    folder = tmp_path / "saved"
    shutil.copytree(sound["database"], folder)
    base = f"file://{folder}/"
    database = tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()
    layout = json.loads(database.read(f"{KERNEL}/.zarray").result().value)
    sizes = {"shape": [rows, 3], "chunks": [rows, 3], "compressor": compressor}
    database.write(f"{KERNEL}/.zarray", json.dumps(layout | sizes).encode()).result()
    with pytest.raises(CheckpointError, match=f"{KERNEL}/0.0: truncated or corrupt: a chunk of"):
        read_all(folder)
