"""The examples run, and say what they should."""

import os
import re
import subprocess
import sys

import pytest

from parity_tests import ROOT


def run(program, cwd):
    """Run Python code or a file without warnings and return its lines."""
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()


def test_the_quick_starts_print_the_same(tmp_path):
    in_torch, in_jax = (
        run([ROOT / "examples" / f"quickstart_{panel}.py"], tmp_path) for panel in ("torch", "jax")
    )
    assert in_torch == in_jax
    assert in_torch[-1] == "saved and loaded True"
    assert "nothing to see 0.0 0.0" in in_torch


@pytest.mark.parametrize("panel", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_training_learns_to_sort(panel, tmp_path):
    lines = run([ROOT / "examples" / f"train_{panel}.py"], tmp_path)
    first, last = (float(line.split()[-1]) for line in (lines[0], lines[-2]))
    assert last < first / 4
    given, guess = re.fullmatch(r"sort (\[.*\]) -> (\[.*\])", lines[-1]).groups()
    assert sorted(given.strip("[]").split(", ")) == guess.strip("[]").split(", ")


def test_linen_users_have_an_example(tmp_path):
    lines = run([ROOT / "examples" / "linen.py"], tmp_path)
    assert lines == ["gradients 16", "the same twice True"]
