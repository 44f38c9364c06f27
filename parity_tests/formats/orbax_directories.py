"""Directories that ``orbax.checkpoint`` itself saves, for the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import orbax.checkpoint as ocp

from parity_tests import ROOT

DEVICES = "--xla_force_host_platform_device_count=8"


def save(folder, tree, **options):
    """Save a tree as Orbax does; options such as ``use_ocdbt`` are its handler's."""
    handler = ocp.PyTreeCheckpointHandler(**options) if options else ocp.StandardCheckpointHandler()
    with ocp.Checkpointer(handler) as checkpointer:
        checkpointer.save(Path(folder).resolve(), tree)
    return Path(folder)


def save_steps(folder, steps):
    """Save steps of items as a CheckpointManager does; a step without items is a bare tree."""
    with ocp.CheckpointManager(Path(folder).resolve()) as manager:
        for step, items in steps.items():
            saved = {name: ocp.args.StandardSave(tree) for name, tree in items.items()}
            manager.save(step, args=ocp.args.Composite(**saved))
        manager.wait_until_finished()
    return Path(folder)


def nested(tensors):
    """Return flat tensors as a tree, a dot in a name parting its keys."""
    root = {}
    for name, value in tensors.items():
        *parents, last = name.split(".")
        node = root
        for key in parents:
            node = node.setdefault(key, {})
        node[last] = value
    return root


def write_config(folder, config):
    """Write a config.json into a folder; return the folder."""
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def run_on_eight_devices(code, *arguments):
    """Run code in a process of its own, where JAX sees eight devices."""
    environment = {"XLA_FLAGS": DEVICES, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        check=True,
    )
