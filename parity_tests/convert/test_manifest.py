"""The manifest catches every flipped bit, and is the same for the same input."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from diptych.convert import convert_checkpoint, open_checkpoint, verify_manifest
from diptych.convert.manifest import read_manifest, render_manifest, stored_digest, tensor_digest
from diptych.formats.find import find_container
from diptych.spec import CheckpointError
from parity_tests import ROOT

from ..support.checkpoints import write_checkpoint
from .interrupt import tree_digest

SETTINGS = {"num_heads": 2}


def tensors():
    random = np.random.default_rng(0)
    shapes = {f"W_{letter}.weight": (2, 2) for letter in "qkvo"}
    shapes |= {f"W_{letter}.bias": (2,) for letter in "qkvo"}
    return {name: random.random(shape).astype(np.float16) for name, shape in shapes.items()}


@pytest.fixture
def source(tmp_path):
    folder = write_checkpoint(tmp_path / "source", tensors())
    (folder / "vocab.txt").write_text("ab\n")
    return folder


@pytest.mark.parametrize("kind", ["safetensors", "pt", "msgpack"])
def test_every_flipped_bit_is_caught(tmp_path, source, kind):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="torch", settings=SETTINGS, format=kind)
    assert verify_manifest(out) == []
    random = np.random.default_rng(0)
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        # Every byte of the small files, a sample of the large ones, one random bit in each.
        places = range(len(whole))
        if len(whole) > 400:
            places = random.choice(len(whole), 400, replace=False)
        for place in places:
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            faults = verify_manifest(out)
            assert faults, (path.name, place)
            assert all("\n" not in fault for fault in faults)
        path.write_bytes(whole)
    assert verify_manifest(out) == []


def test_a_damaged_tensor_is_named(tmp_path, source):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", settings=SETTINGS)
    path = out / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    faults = verify_manifest(out)
    assert f"{path}: v_proj.kernel: its bytes are not those that were written" in faults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: (out / "vocab.txt").unlink(), "vocab.txt: missing"),
        (lambda out: (out / "diptych.json").unlink(), "diptych.json: "),
        (lambda out: (out / "diptych.json").write_text("{}"), "version: None is not 1"),
        (lambda out: (out / "diptych.json").write_text("[]"), "a JSON object expected"),
        (lambda out: (out / "diptych.json").write_text('{"a": 1, "a": 2}'), "stands twice"),
        (lambda out: (out / "model.safetensors").unlink(), "model.safetensors: missing"),
        (lambda out: (out / "config.json").write_text("{}"), "config.json: its bytes are not"),
    ],
)
def test_changes_are_named(tmp_path, source, change, words):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", settings=SETTINGS)
    change(out)
    assert any(words in fault for fault in verify_manifest(out)), verify_manifest(out)


def test_a_manifest_cannot_lead_out_of_its_folder(tmp_path, source):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", settings=SETTINGS)
    body = read_manifest(out)
    body["files"] = {"../source/vocab.txt": "0" * 64}
    (out / "diptych.json").write_bytes(render_manifest(body))
    assert any("leads out of its folder" in fault for fault in verify_manifest(out))


def test_a_damaged_manifest_is_not_read(tmp_path, source):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", settings=SETTINGS)
    path = out / "diptych.json"
    path.write_text(path.read_text().replace('"flax"', '"torch"'))
    with pytest.raises(CheckpointError, match="damaged: its own digest does not fit"):
        open_checkpoint(out)


def test_the_digest_tells_name_dtype_shape_and_bytes_apart():
    values = np.zeros((2, 3), np.float32)
    digests = {
        tensor_digest("a", "F32", (2, 3), values),
        tensor_digest("b", "F32", (2, 3), values),
        tensor_digest("a", "I32", (2, 3), values),
        tensor_digest("a", "F32", (3, 2), values),
        tensor_digest("a", "F32", (2, 3), values + 1),
        tensor_digest("a", "F32", (6,), values),
    }
    assert len(digests) == 6
    transposed = np.arange(6.0).reshape(3, 2).T
    assert tensor_digest("a", "F64", (2, 3), transposed) == tensor_digest(
        "a", "F64", (2, 3), transposed.copy()
    )


def test_the_same_input_gives_the_same_bytes_anywhere(tmp_path, source):
    code = (
        "import sys\n"
        "from diptych.convert import convert_checkpoint\n"
        "convert_checkpoint(sys.argv[1], sys.argv[2], to='flax', settings={'num_heads': 2})\n"
    )
    digests = set()
    for number, zone in enumerate(["UTC", "Asia/Tokyo"]):
        (tmp_path / str(number)).mkdir()
        shutil.copytree(source, tmp_path / str(number) / "in")
        out = tmp_path / str(number) / "out"
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONHASHSEED": str(number),
            "TZ": zone,
        }
        command = [sys.executable, "-c", code, str(tmp_path / str(number) / "in"), str(out)]
        subprocess.run(command, env=environment, cwd=tmp_path / str(number), check=True)
        digests.add(tree_digest(out))
    assert len(digests) == 1
    assert "time" not in json.loads((out / "diptych.json").read_text())


def test_a_manifest_of_other_tables_is_not_read(tmp_path, source):
    out = tmp_path / "out"
    convert_checkpoint(source, out, to="flax", settings=SETTINGS)
    body = read_manifest(out)
    (out / "diptych.json").write_bytes(render_manifest({**body, "family_version": 0}))
    with pytest.raises(CheckpointError, match="written by version 0 of seed_encoder, this is 1"):
        open_checkpoint(out)


def test_a_stored_tensor_has_the_digest_of_its_values(tmp_path):
    tensors = {
        "larger than a piece": torch.arange(300_001, dtype=torch.float64),
        "one piece": torch.arange(1 << 18, dtype=torch.float32),
        "transposed": torch.arange(6).reshape(2, 3).T,
        "boolean": torch.tensor([True, False]),
        "scalar": torch.tensor(1.5, dtype=torch.bfloat16),
        "empty": torch.zeros(0, 3),
    }
    torch.save(tensors, tmp_path / "a.pt")
    found = find_container(tmp_path / "a.pt").tensors
    assert found.keys() == tensors.keys()
    for name, tensor in found.items():
        expected = tensor_digest(name, tensor.dtype, tensor.shape, tensor.read())
        assert stored_digest(name, tensor) == expected
