"""Opens hostile files in a process of its own that may take 64 MiB and no more."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_RUN = """
import resource, sys, time
from diptych.formats.find import find_container
from diptych.spec import CheckpointError
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = int(status["VmData"].split()[0]) * 1024 + (64 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for path in sys.argv[1:]:
    start = time.process_time()
    try:
        find_container(path)
        message = "accepted"
    except CheckpointError as error:
        message = str(error)
    print(f"{time.process_time() - start:.3f} {message}")
"""


def open_bombs(folder: Path, suffix: str, cases: Iterable[tuple[str, bytes, str]]) -> None:
    """Asserts that each file is refused in one line, within 64 MiB and 2 s of processor time."""
    kinds, contents, words = zip(*cases, strict=True)
    paths = [folder / f"{index}{suffix}" for index in range(len(kinds))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    run = subprocess.run(
        [sys.executable, "-c", _RUN, *paths],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    for kind, path, expected, line in zip(kinds, paths, words, lines, strict=True):
        seconds, message = line.split(" ", 1)
        assert message.startswith(f"{path}: "), kind
        assert expected in message, kind
        assert len(message) < 1000, kind
        assert float(seconds) < 2, kind
