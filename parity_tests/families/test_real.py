"""Every family beside ``transformers`` itself: there and back by bytes, then the numbers.

In float64 by the exact tier's rules, the float32 casts of ``transformers`` lifted; in float32 by 4
times its own measured error.
"""

import numpy as np
import pytest
import torch

from diptych.convert import convert_checkpoint, open_checkpoint, read_model
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import (
    run_component_jax,
    run_component_torch,
    torch_float32_noise,
)
from parity_tests.families.cases import CASES
from parity_tests.support.checkpoints import assert_same_tensors, stored_tensors
from parity_tests.support.harness import Run, judge_exact, judge_working
from parity_tests.support.tiny_transformers import FamilyCase, call_theirs, open_theirs, save_tiny

all_cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
quick_cases = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=pytest.mark.slow if case.slow else ())
        for name, case in CASES.items()
    ],
)
PANELS = {"torch": run_component_torch, "jax": run_component_jax}


@all_cases
def test_there_and_back_is_byte_for_byte(case: FamilyCase, tmp_path):
    save_tiny(case, tmp_path / "source")
    opened = open_checkpoint(tmp_path / "source")
    assert opened.family is not None
    assert opened.family.name == case.family
    source = stored_tensors(tmp_path / "source")
    for to in ("flax", "torch"):
        convert_checkpoint(tmp_path / "source", tmp_path / to, to=to)
        convert_checkpoint(tmp_path / to, tmp_path / f"back from {to}", to="hf")
        assert_same_tensors(stored_tensors(tmp_path / f"back from {to}"), source)
        open_theirs(case, tmp_path / f"back from {to}", torch.float32)


@quick_cases
def test_outputs_are_those_of_transformers(tally, case: FamilyCase, tmp_path):
    save_tiny(case, tmp_path / "source")
    convert_checkpoint(tmp_path / "source", tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    loaded = read_model(tmp_path / "source", layout="torch")
    exact = call_theirs(case, tmp_path / "back", torch.float64)
    theirs = call_theirs(case, tmp_path / "back", torch.float32)
    arguments = case.ours(case.inputs())
    places = ("inputs", "images", "features", "decoder_inputs")
    names = [name for name in arguments if name not in places]
    options = {name: arguments.pop(name) for name in names}
    options |= {"need_weights": True, "need_hidden_states": True}
    narrow_case = ComponentCase(loaded.config, arguments, options)
    rows = {}
    for panel, run in PANELS.items():
        wide = {name: array.astype(np.float64) for name, array in loaded.tensors.items()}
        inputs = {
            n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arguments.items()
        }
        found = run(ComponentCase(loaded.config, inputs, options), wide, {}).outputs
        ours = {name: found[name] for name in exact}
        judge_exact(tally, f"{case.family}, {panel}", Run(ours, {}), Run(exact, {}))
        rows[panel] = found
        narrow = run(
            narrow_case,
            loaded.tensors,
            {},
            **({"x64": False} if panel == "jax" else {}),
        ).outputs
        judge_working(
            f"{case.family}, {panel}",
            Run(narrow, {}),
            Run(exact, {}),
            Run(theirs, {}),
            lambda: torch_float32_noise(narrow_case, loaded.tensors),
        )
    judge_exact(tally, case.family, Run(rows["torch"], {}), Run(rows["jax"], {}))
