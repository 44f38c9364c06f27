"""A destination is the old or the new, whole, whatever happens; nothing is left beside it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diptych.convert import convert_checkpoint, write_model
from diptych.convert.commit import copy_file, staged_folder, write_file
from diptych.spec import CheckpointError, FeedForwardConfig, OutputError
from parity_tests import ROOT

from ..support.checkpoints import write_bert_folder
from .interrupt import tree_digest

SCRIPT = Path(__file__).with_name("interrupt.py")


@pytest.fixture
def source(tmp_path):
    return write_bert_folder(tmp_path / "source")


def run_points(how, rename, source, dst, to="flax", *, format=None):
    format = format or ("msgpack" if to == "hf-flax" else "safetensors")
    arguments = (how, rename, to, format, str(source), str(dst))
    run = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    ("to", "rename", "start"),
    [
        ("flax", "exchange", "fresh"),
        ("flax", "exchange", "overwrite"),
        ("flax", "fallback", "fresh"),
        ("flax", "fallback", "overwrite"),
        ("hf-flax", "exchange", "overwrite"),
    ],
)
def test_killed_at_every_change_the_destination_is_old_or_new(source, there, to, rename, start):
    dst, before = there / "out", tree_digest(source)
    convert_checkpoint(source, dst, to=to)
    new = tree_digest(dst)
    shutil.rmtree(dst)
    if start == "overwrite":
        convert_checkpoint(source, dst, to="torch")
    old = tree_digest(dst)
    points = run_points("kill", rename, source, dst, to)
    assert len(points) >= 30
    assert {status for status, _, _ in points} == {-signal.SIGKILL, 0}
    digests = [digest for _, digest, _ in points]
    assert set(digests) == {old, new}
    assert digests == sorted(digests, key=lambda digest: digest == new)
    assert points[-1] == [0, new, [".diptych-decoy"]]
    assert tree_digest(source) == before


def test_killed_at_every_change_of_an_orbax_directory(tmp_path, there):
    config = FeedForwardConfig(d_model=2, d_ff=3)
    tensors = {name: np.ones(leaf.shape, "f4") for name, leaf in config.leaves().items()}
    source, dst = tmp_path / "source", there / "out"
    write_model(source, component="FeedForward", config=config, tensors=tensors, layout="torch")
    convert_checkpoint(source, dst, to="flax", format="orbax")
    new = tree_digest(dst)
    convert_checkpoint(source, dst, to="torch", overwrite=True)
    old = tree_digest(dst)
    points = run_points("kill", "exchange", source, dst, format="orbax")
    assert len(points) >= 50
    digests = [digest for _, digest, _ in points]
    assert set(digests) == {old, new}
    assert digests == sorted(digests, key=lambda digest: digest == new)


def test_terminated_at_every_change_nothing_is_left_beside(source, there):
    dst = there / "out"
    convert_checkpoint(source, dst, to="torch")
    old = tree_digest(dst)
    points = run_points("term", "exchange", source, dst)
    new = points[-1][1]
    assert len(points) >= 30
    # Before its own handler is set and after it is taken back, the system's ends the process.
    assert {status for status, _, _ in points} == {143, -signal.SIGTERM, 0}
    for status, digest, beside in points:
        assert digest in (old, new)
        assert status == -signal.SIGTERM or beside == [".diptych-decoy"]


@pytest.mark.parametrize("to", ["flax", "hf-flax"])
def test_a_disk_that_fails_at_every_sync_leaves_the_old_and_nothing_beside(source, there, to):
    dst = there / "out"
    convert_checkpoint(source, dst, to="torch")
    old = tree_digest(dst)
    points = run_points("full", "exchange", source, dst, to)
    assert len(points) >= 8
    assert {status for status, _, _ in points} == {3, 0}
    assert all(beside == [".diptych-decoy"] for _, _, beside in points)
    assert {digest for _, digest, _ in points[:-2]} == {old}


def test_a_file_too_large_for_the_disk_leaves_nothing(source, there):
    code = (
        "import resource, signal, sys\n"
        "from diptych.convert import convert_checkpoint\n"
        "from diptych.spec import OutputError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    convert_checkpoint(sys.argv[1], sys.argv[2], to='flax')\n"
        "except OutputError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(source), str(there / "out")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert run.stdout == f"{there / 'out'}: File too large\n"
    assert os.listdir(there) == [".diptych-decoy"]


def test_too_little_room_is_refused_before_anything_is_written(there):
    with (
        pytest.raises(OutputError, match="bytes are needed"),
        staged_folder(there / "out", needed_bytes=1 << 62),
    ):
        pytest.fail("the block must not run")
    assert os.listdir(there) == [".diptych-decoy"]


def test_an_error_in_the_block_leaves_nothing(there):
    with pytest.raises(ZeroDivisionError), staged_folder(there / "out") as folder:
        write_file(folder / "deep/er/file", b"%d" % (1 // 0))
    assert os.listdir(there) == [".diptych-decoy"]


def test_a_second_writer_is_refused_with_the_first_ones_number(there):
    dst = there / "out"
    with (
        staged_folder(dst),
        pytest.raises(OutputError, match=f"{dst}: locked by pid {os.getpid()}"),
        staged_folder(dst),
    ):
        pytest.fail("the block must not run")
    assert dst.is_dir()


def test_two_writers_on_different_names_do_not_meet(there):
    with staged_folder(there / "a") as a, staged_folder(there / "b") as b:
        write_file(a / "f", b"a")
        write_file(b / "f", b"b")
    assert (there / "a/f").read_bytes() + (there / "b/f").read_bytes() == b"ab"


def test_a_foreign_folder_in_the_way_is_not_touched(there):
    with staged_folder(there / "out") as folder:
        stage = folder.parent.name
    shutil.rmtree(there / "out")
    (there / stage).mkdir()
    (there / stage / "theirs").write_text("x")
    with (
        pytest.raises(OutputError, match="is in the way and is not ours"),
        staged_folder(there / "out"),
    ):
        pytest.fail("the block must not run")
    assert (there / stage / "theirs").read_text() == "x"


def test_modes_follow_the_umask_and_an_old_folder_keeps_its_own(there):
    previous = os.umask(0o027)
    try:
        with staged_folder(there / "out") as folder:
            write_file(folder / "config.json", b"{}")
        assert (there / "out").stat().st_mode & 0o777 == 0o750
        assert (there / "out/config.json").stat().st_mode & 0o777 == 0o640
        os.chmod(there / "out", 0o711)
        with staged_folder(there / "out", overwrite=True):
            pass
        assert (there / "out").stat().st_mode & 0o777 == 0o711
    finally:
        os.umask(previous)


def test_readers_never_see_a_mixture_while_a_folder_is_replaced(there):
    dst = there / "out"
    for number in range(40):
        with staged_folder(dst, overwrite=True) as folder:
            for name in ("config.json", "b"):
                write_file(folder / name, b"%d" % number)
        descriptor = os.open(dst, os.O_RDONLY)
        seen = {
            os.read(os.open(name, os.O_RDONLY, dir_fd=descriptor), 9)
            for name in os.listdir(descriptor)
        }
        os.close(descriptor)
        assert seen == {b"%d" % number}


def test_a_companion_that_cannot_be_read_is_the_sources_fault(there):
    with (
        pytest.raises(CheckpointError, match=r"gone\.txt: cannot be read"),
        staged_folder(there / "out") as folder,
    ):
        copy_file(there / "gone.txt", folder / "gone.txt")
    assert os.listdir(there) == [".diptych-decoy"]


def test_only_the_commit_renames_or_deletes():
    words = ("os.rename", "os.replace", "unlink", "rmtree", "os.remove", "rmdir", "renameat")
    package = ROOT / "diptych"
    for path in package.rglob("*.py"):
        found = [word for word in words if word in path.read_text()]
        assert not found or path.name == "commit.py", (path, found)
