"""A conversion needs the memory of two tensors and 64 MiB, whatever the checkpoint's size."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from diptych.convert import diff_checkpoints
from parity_tests import ROOT

from ..support.checkpoints import write_checkpoint


def run_limited(tmp_path, width, layers, options):
    """Convert layers of width x width float32 tensors under the memory that is promised."""
    random = np.random.default_rng(0)
    square, vector = random.random((width, width), np.float32), np.ones(width, np.float32)
    tensors = {}
    for layer in range(layers):
        prefix = f"layers.{layer}."
        names = [f"multi_head_attention.W_{letter}" for letter in "qkvo"]
        names += ["feed_forward.linear1", "feed_forward.linear2"]
        tensors |= {f"{prefix}{name}.weight": square for name in names}
        tensors |= {f"{prefix}{name}.bias": vector for name in names}
        tensors |= {f"{prefix}norm{n}.{leaf}": vector for n in "12" for leaf in ("weight", "bias")}
    source = write_checkpoint(tmp_path / "large", tensors, kind=options.pop("source_kind"))
    code = (
        "import json, resource, sys\n"
        "from diptych.convert.converter import convert_checkpoint\n"
        "status = open('/proc/self/status').read()\n"
        "data = 1024 * int(status.split('VmData:')[1].split()[0])\n"
        "limit = data + 2 * int(sys.argv[3]) + (64 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))\n"
        "convert_checkpoint(sys.argv[1], sys.argv[2], **json.loads(sys.argv[4]))\n"
        "assert not {'torch', 'jax'} & set(sys.modules)\n"
    )
    out = str(tmp_path / "out")
    arguments = [str(source), out, str(square.nbytes), json.dumps(options)]
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert diff_checkpoints(source, out).identical or options.get("dtype")


@pytest.mark.parametrize(
    "options",
    [
        {"to": "flax", "source_kind": "safetensors"},
        {"to": "torch", "format": "pt", "source_kind": "pt"},
        {"to": "hf-flax", "source_kind": "msgpack"},
        {"to": "flax", "dtype": "bfloat16", "source_kind": "safetensors"},
        {"to": "flax", "format": "orbax", "source_kind": "safetensors"},
    ],
)
def test_memory_stays_within_two_tensors_and_64_mib(tmp_path, options):
    # 120 MiB of 4 MiB tensors: whoever holds them all exceeds the 72 MiB allowed.
    settings = {"settings": {"num_heads": 2}}
    run_limited(tmp_path, 1024, 5, {**options, **settings})


@pytest.mark.slow
def test_two_gibibytes_of_64_mib_tensors_convert_within_the_bound(tmp_path):
    settings = {"settings": {"num_heads": 2}, "source_kind": "safetensors"}
    run_limited(tmp_path, 4096, 6, {"to": "flax", **settings})
