"""Run as a script: convert once per file-changing call and die, or fail, at that call.

Usage: ``interrupt.py HOW RENAME TO FORMAT SRC DST`` with HOW one of kill, term, full, RENAME one
of exchange, fallback, TO a layout, and FORMAT a container. Prints one JSON line per point: the exit
status, the destination's digest (None when absent), and what else lies beside it. Each point runs
in a fork, which is cheap here because neither framework is loaded.
"""

import errno
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from diptych.convert import commit, convert_checkpoint
from diptych.convert.commit import staged_folder
from diptych.spec import OutputError

CHANGING = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "ctypes.dlsym")


def tree_digest(folder):
    """Return the digest of all names and bytes in a folder, None when there is none."""
    if not folder.exists():
        return None
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class Point:
    """Counts file-changing calls under a folder and strikes at one of them."""

    def __init__(self, number, strike, folder):
        self.left, self.strike, self.folder = number, strike, str(folder)

    def reached(self, event, arguments):
        if event == "ctypes.dlsym" or (
            event in CHANGING and self.folder in os.fsdecode(str(arguments[0]))
        ):
            self.count()

    def count(self):
        self.left -= 1
        if self.left == 0:
            self.strike()


def strike_full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


STRIKES = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "term": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "full": strike_full,
}


def child(how, number, to, format, src, dst):
    """Convert in this process and strike at one call; return the exit status."""
    point = Point(number, STRIKES[how], dst.parent)
    # A killed process loses nothing that it has written, so the real sync would only cost time.
    os.fsync = lambda descriptor: point.count()
    if how != "full":
        sys.addaudithook(point.reached)
    try:
        convert_checkpoint(src, dst, to=to, format=format, overwrite=True)
    except OutputError as error:
        return 3 if str(dst) in str(error) and os.strerror(errno.ENOSPC) in str(error) else 70
    except SystemExit as stop:
        return stop.code
    return 0


def recover(dst):
    """Do what the next run on a destination does first."""
    try:
        with staged_folder(dst, overwrite=True):
            raise KeyError
    except KeyError:
        pass


def main(how, rename, to, format, src, dst):
    src, dst = Path(src), Path(dst)
    if rename == "fallback":
        commit._rename_in_one_step = lambda new, dst, flag: False
    number, status = 0, None
    while status != 0:
        number += 1
        process = os.fork()
        if not process:
            os._exit(child(how, number, to, format, src, dst))
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if rename == "fallback":
            recover(dst)
        beside = sorted(path.name for path in dst.parent.iterdir() if path != dst)
        print(json.dumps([status, tree_digest(dst), beside]))


if __name__ == "__main__":
    main(*sys.argv[1:])
