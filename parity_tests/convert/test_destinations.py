"""Which destinations are refused, in which words, and that they are left as they were."""

import pytest

from diptych.convert import convert_checkpoint
from diptych.spec import OutputError

from ..support.checkpoints import write_bert_folder
from .interrupt import tree_digest


@pytest.fixture
def source(tmp_path):
    return write_bert_folder(tmp_path / "source")


def make(there, kind):
    dst = there / "out"
    if kind == "link":
        (there / "real").mkdir()
        dst.symlink_to(there / "real")
    elif kind == "dangling link":
        dst.symlink_to(there / "nowhere")
    elif kind == "file":
        dst.write_text("x")
    elif kind == "documents":
        dst.mkdir()
        (dst / "thesis.txt").write_text("x")
    elif kind in ("checkpoint", "read-only"):
        dst.mkdir(mode=0o555 if kind == "read-only" else 0o755)
        if kind == "checkpoint":
            (dst / "config.json").write_text("{}")
    return dst


@pytest.mark.parametrize(
    ("kind", "overwrite", "error", "words"),
    [
        ("link", True, ValueError, "is a symbolic link"),
        ("dangling link", True, ValueError, "is a symbolic link"),
        ("file", True, ValueError, "exists and is no folder"),
        ("checkpoint", False, ValueError, "exists already; --overwrite replaces it"),
        ("documents", True, ValueError, "is no checkpoint"),
        ("read-only", True, OutputError, "is not writable"),
    ],
)
def test_destinations_that_are_refused(source, there, kind, overwrite, error, words):
    dst = make(there, kind)
    before = sorted(path.name for path in there.rglob("*"))
    with pytest.raises(error, match=words) as caught:
        convert_checkpoint(source, dst, to="flax", overwrite=overwrite)
    assert str(caught.value).startswith(f"{dst}: ")
    assert sorted(path.name for path in there.rglob("*")) == before


@pytest.mark.parametrize("place", ["", "inside", "inside/deeper", ".."])
def test_a_destination_that_touches_the_source_is_refused(source, place):
    before = tree_digest(source)
    if place == "inside/deeper":
        (source / "inside").mkdir()
    with pytest.raises(ValueError, match="is, holds, or lies in the source"):
        convert_checkpoint(source, source / place, to="flax", overwrite=True)
    assert tree_digest(source) == before


@pytest.mark.parametrize("name", ["", ".", "..", "a/.."])
def test_a_destination_needs_a_name(source, there, monkeypatch, name):
    monkeypatch.chdir(there)
    with pytest.raises(ValueError, match="is no destination"):
        convert_checkpoint(source, name, to="flax", overwrite=True)


def test_a_destination_is_named_as_it_was_given(source, there, monkeypatch):
    monkeypatch.chdir(there)
    convert_checkpoint(source, "out", to="flax")
    with pytest.raises(ValueError, match=r"^out: exists already"):
        convert_checkpoint(source, "out/", to="flax")


def test_a_name_too_long_for_the_disk_cannot_be_written(source, there):
    with pytest.raises(OutputError, match=r"aaa: File name too long"):
        convert_checkpoint(source, there / ("a" * 300), to="flax")


def test_a_missing_parent_is_named(source, there):
    with pytest.raises(OutputError, match=f"the folder {there / 'no'} does not exist"):
        convert_checkpoint(source, there / "no/out", to="flax")
