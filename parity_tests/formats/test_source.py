"""A source is only read, and it must stay the same while it is read."""

import os
from pathlib import Path

import pytest

from diptych.formats.find import find_container
from diptych.formats.source import FileSource
from diptych.spec import CheckpointError

from .malformed_safetensors import VALID
from .test_safetensors import error_of


def rewrite(path: Path) -> None:
    path.write_bytes(VALID[:-1] + b"\1")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(VALID)
    os.utime(other, ns=(0, 0))
    other.replace(path)


def truncate(path: Path) -> None:
    os.truncate(path, len(VALID) - 4)


@pytest.mark.parametrize("change", [rewrite, replace, truncate, Path.unlink])
def test_a_file_that_changes_is_noticed(tmp_path, change):
    path = tmp_path / "model.safetensors"
    path.write_bytes(VALID)
    os.utime(path, ns=(0, 0))
    tensor = find_container(path).tensors["w"]
    tensor.read()
    change(path)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: (changed|cannot be opened)"):
        tensor.read()


@pytest.mark.parametrize("change", [rewrite, replace, truncate, Path.unlink])
def test_a_file_that_changes_while_it_is_open_is_noticed(tmp_path, change):
    path = tmp_path / "model.safetensors"
    path.write_bytes(VALID)
    os.utime(path, ns=(0, 0))
    source = FileSource(path)
    if change in (rewrite, truncate):
        with pytest.raises(CheckpointError, match="changed while reading"), source.opened():
            change(path)
    else:
        # The open file is still the first one; the next use meets the other.
        with source.opened():
            change(path)
        with pytest.raises(CheckpointError, match=r"changed while reading|cannot be opened"):
            source.read(0, 8)


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    assert "not a regular file" in error_of(tmp_path / "model.safetensors")
    assert "No such file" in error_of(tmp_path / "none.safetensors")


def test_the_source_is_not_touched(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(VALID)
    path.chmod(0o400)
    before = path.stat()
    find_container(path).tensors["w"].read()
    after = path.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert path.read_bytes() == VALID
