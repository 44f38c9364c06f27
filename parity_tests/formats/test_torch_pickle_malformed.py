"""torch checkpoints that are malformed: refused in one line, never run, never believed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.formats.find import find_container
from diptych.spec import CheckpointError

from .bomb_run import open_bombs
from .malformed_pickles import VALID, VALID_LEGACY, bombs, malformed_files
from .pickle_bytes import archive
from .pickle_files import error_of, write

MALFORMED = list(malformed_files())


def test_there_are_enough_malformed_files():
    assert len(MALFORMED) >= 100
    assert len({kind for kind, _, _ in MALFORMED}) == len(MALFORMED)


@pytest.mark.parametrize(("kind", "data", "words"), MALFORMED, ids=[case[0] for case in MALFORMED])
def test_a_malformed_file_is_refused_in_one_line(tmp_path, kind, data, words):
    path = tmp_path / "model.pt"
    path.write_bytes(data)
    assert words in error_of(path)


@pytest.fixture(scope="session")
def valid_files(tmp_path_factory) -> dict[str, bytes]:
    """A small file with 32-bit sizes, one with 64-bit sizes, and one without an archive."""
    folder = tmp_path_factory.mktemp("valid")
    write(folder, {"w": np.array([1.5, -2.0], np.float32)})
    return {"zip": VALID, "zip64": (folder / "model.pt").read_bytes(), "legacy": VALID_LEGACY}


KINDS = ("zip", "zip64", "legacy")


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_refused(tmp_path, valid_files, kind):
    valid = valid_files[kind]
    path = tmp_path / "model.pt"
    path.write_bytes(valid)
    assert find_container(path).tensors["w"].read().tolist() == [1.5, -2.0]
    for size in range(len(valid)):
        path.write_bytes(valid[:size])
        error_of(path)


def test_no_bomb_takes_memory_or_time(tmp_path):
    open_bombs(tmp_path, ".pt", bombs())


@given(st.data(), st.sampled_from(KINDS))
@settings(max_examples=500, deadline=None)
def test_a_mutated_file_is_refused_or_read(tmp_path_factory, valid_files, data, kind):
    changed = bytearray(valid_files[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("mutated") / "model.pt"
    path.write_bytes(changed)
    try:
        tensors = find_container(path).tensors
    except CheckpointError:
        error_of(path)
        return
    for stored in tensors.values():
        assert stored.read().nbytes <= len(changed)


@given(st.binary(max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_instructions_are_refused_or_read(tmp_path_factory, body):
    path = tmp_path_factory.mktemp("random") / "model.pt"
    path.write_bytes(archive(body))
    try:
        find_container(path)
    except CheckpointError:
        error_of(path)
