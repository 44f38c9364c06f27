"""Folders that appear whole or not at all: the only code that renames or deletes.

A folder is made beside its destination, inside a stage of ours (``.diptych-DIGEST.stage``, told by
its marker), and then takes the destination's place in one step. Where the system has no such step,
two renames are used, and the next run on that destination mends what a kill between them leaves.
"""

import ctypes
import errno
import hashlib
import os
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from ..spec.errors import CheckpointError, OutputError

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]

_MARKER = "diptych-stage"
_NEW, _OLD = "new", "old"
_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


@contextmanager
def staged_folder(
    dst: str | Path,
    *,
    overwrite: bool = False,
    sources: Iterable[str | Path] = (),
    needed_bytes: int = 0,
) -> Iterator[Path]:
    """Give an empty folder to fill; at the end of the block it becomes ``dst``, whole.

    An error or a signal inside the block leaves ``dst`` as it was and nothing beside it.

    Args:
        dst: The destination; its parent must exist.
        overwrite: Whether a checkpoint folder that is there may be replaced.
        sources: What is being read; ``dst`` must not be, hold, or lie in any of it.
        needed_bytes: Room that must be free.

    Raises:
        ValueError: If ``dst`` exists without ``overwrite``, is a link, is no checkpoint folder, or
            touches a source.
        OutputError: If it cannot be written, or another process is writing it; names the path.
    """
    dst = Path(os.path.normpath(dst))  # stays relative: messages name it as it was given
    with _output_errors(dst):
        _check_destination(dst, overwrite, sources)
    stem = f".diptych-{hashlib.sha256(os.fsencode(dst.name)).hexdigest()[:16]}"
    stage = dst.parent / f"{stem}.stage"
    with _output_errors(dst), _locked(dst.parent / f"{stem}.lock", dst), _terminable():
        _sweep(stage, dst)
        _check_destination(dst, overwrite, sources)
        _check_room(dst, needed_bytes)
        try:
            stage.mkdir()
            _write_synced(stage / _MARKER, os.fsencode(dst.name))
            (stage / _NEW).mkdir()
            yield stage / _NEW
            _sync_tree(stage / _NEW)
            _put_in_place(stage, dst)
        finally:
            with _uninterrupted():
                _sweep(stage, dst)


def write_file(path: Path, data: bytes) -> None:
    """Write and sync one new file, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_synced(path, data)


def copy_file(source: Path, path: Path) -> None:
    """Copy and sync one file's bytes, making the folder if need be.

    Raises:
        CheckpointError: If the source cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(source) as read, open(path, "xb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())


@contextmanager
def synced(paths: Iterable[Path]) -> Iterator[None]:
    """Sync files while the block runs, which may read them; at its end they are on the disk.

    Raises:
        OSError: If one could not be synced.
    """
    errors: list[OSError] = []

    def sync() -> None:
        try:
            for path in paths:
                _sync(path)
        except OSError as error:
            errors.append(error)

    worker = threading.Thread(target=sync)
    worker.start()
    try:
        yield
    finally:
        worker.join()
    if errors:
        raise errors[0]


def _check_destination(dst: Path, overwrite: bool, sources: Iterable[str | Path]) -> None:
    if dst.name in ("", ".."):
        raise ValueError(f"{dst}: is no destination; give the name of a folder")
    if dst.is_symlink():
        raise ValueError(f"{dst}: is a symbolic link; give the folder that it leads to")
    real = dst.resolve()
    for source in sources:
        origin = Path(source).resolve()
        if real == origin or real in origin.parents or origin in real.parents:
            raise ValueError(f"{dst}: is, holds, or lies in the source {source}")
    if not dst.parent.is_dir():
        raise OutputError(f"{dst}: the folder {dst.parent} does not exist")
    if not dst.exists():
        return
    if not dst.is_dir():
        raise ValueError(f"{dst}: exists and is no folder")
    if not overwrite:
        raise ValueError(f"{dst}: exists already; --overwrite replaces it")
    if any(dst.iterdir()) and not any((dst / n).is_file() for n in ("config.json", "diptych.json")):
        raise ValueError(f"{dst}: is no checkpoint (no config.json in it) and is not replaced")
    if not os.access(dst, os.W_OK) or not dst.stat().st_mode & 0o222:
        raise OutputError(f"{dst}: is not writable")


def _check_room(dst: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(dst.parent).free
    if needed_bytes > free:
        raise OutputError(f"{dst}: {needed_bytes} bytes are needed, {free} are free")


def _put_in_place(stage: Path, dst: Path) -> None:
    new = stage / _NEW
    is_there = dst.exists()
    if is_there:
        os.chmod(new, dst.stat().st_mode & 0o7777)
    # An exchange leaves no moment without a whole folder at the destination, whatever is killed.
    if not _rename_in_one_step(new, dst, _EXCHANGE if is_there else _NOREPLACE):
        if is_there:
            os.rename(dst, stage / _OLD)
        os.rename(new, dst)
    _sync(dst.parent)


def _rename_in_one_step(new: Path, dst: Path, flag: int) -> bool:
    """Return whether the system exchanged, or moved without replacing, in one step."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    paths = os.fsencode(new), os.fsencode(dst)
    if renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(dst))


def _sweep(stage: Path, dst: Path) -> None:
    """Mend and remove a stage of ours, left by a killed run or no longer needed."""
    if not stage.is_dir() or stage.is_symlink():
        return
    marker = stage / _MARKER
    # A kill may leave the stage empty, or its marker half written.
    if any(stage.iterdir()) and not (
        marker.is_file() and os.fsencode(dst.name).startswith(marker.read_bytes())
    ):
        raise OutputError(f"{dst}: {stage} is in the way and is not ours")
    if (stage / _OLD).is_dir() and not dst.exists():
        os.rename(stage / _OLD, dst)
        _sync(dst.parent)
    for name in (_NEW, _OLD):
        if (stage / name).is_dir():
            shutil.rmtree(stage / name)
    marker.unlink(missing_ok=True)
    stage.rmdir()


def _sync_tree(folder: Path) -> None:
    for root, _, _ in os.walk(folder, topdown=False):
        _sync(Path(root))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(source: Path) -> BinaryIO:
    try:
        return open(source, "rb")
    except OSError as error:
        raise CheckpointError(f"{source}: cannot be read: {error.strerror}") from None


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _output_errors(dst: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{dst}: {error.strerror or error}") from error


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the stack, as SIGINT does, so that the stage is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _exit_terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back while the stage is being removed."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    held = {signal.SIGINT, signal.SIGTERM}
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextmanager
def _locked(path: Path, dst: Path) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs, and remove it afterwards.

    The system drops the lock of a killed process, so a file that is left locks nothing.

    Raises:
        OutputError: If another process holds it; names the destination and the process.
    """
    descriptor = _acquire(path, dst)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, dst: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode(errors="replace") or "unknown"
            os.close(descriptor)
            raise OutputError(f"{dst}: locked by pid {owner}") from None
        # The file may have been removed by its last owner since it was opened here.
        if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)
