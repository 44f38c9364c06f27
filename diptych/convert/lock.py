"""One writer at a time for a destination."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..spec.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path, dst: Path) -> Iterator[None]:
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
