"""Every family's table of rules, one rule corrupted at a time: its own case must see each.

What the converter refuses is seen, and so is what changes an output, a hidden state or an attention
weight against ``transformers``, in float64 and in torch alone.
"""

import os
import random
import zlib

import numpy as np
import pytest
import torch

from diptych.convert import open_checkpoint
from diptych.convert.rules import Rule, convert_tensors
from diptych.parity.compare import compare_exact
from diptych.spec import CheckpointError, Config
from parity_tests.checkpoints import stored_tensors
from parity_tests.component_cases import ComponentCase
from parity_tests.component_runs import run_component_torch
from parity_tests.family_cases import CASES
from parity_tests.family_mutants import Mutant, mutants
from parity_tests.harness import Arrays
from parity_tests.tiny_transformers import FamilyCase, call_theirs, save_tiny

SEEN_PER_CASE = int(os.environ.get("N", 8))


@pytest.mark.parametrize("name", CASES)
def test_a_corrupted_rule_is_seen(name: str, tmp_path):
    case = CASES[name]
    save_tiny(case, tmp_path)
    opened = open_checkpoint(tmp_path)
    assert opened.family is not None
    rules = opened.family.rules(opened.config, opened.variants)
    stored = stored_tensors(tmp_path)
    source = {n: array for n, array in stored.items() if not opened.family.is_buffer(n)}
    exact = call_theirs(case, tmp_path, torch.float64)
    assert not is_seen(case, opened.config, source, rules, exact)
    found = list(mutants(rules, opened.config.leaves()))
    drawn = random.Random(zlib.crc32(name.encode())).sample(found, min(SEEN_PER_CASE, len(found)))
    print(len(found))
    survivors = [m.what for m in drawn if not is_seen(case, opened.config, source, m.rules, exact)]
    assert not survivors, "\n".join(survivors)


def is_seen(
    case: FamilyCase, config: Config, source: Arrays, rules: tuple[Rule, ...], exact: Arrays
) -> bool:
    """Return whether a table is refused or gives a model that differs from theirs."""
    try:
        tensors = convert_tensors(source, rules)
    except CheckpointError:
        return True
    leaves = config.leaves()
    if {n: array.shape for n, array in tensors.items()} != {n: x.shape for n, x in leaves.items()}:
        return True
    arguments = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array
        for name, array in case.ours(case.inputs()).items()
    }
    places = ("inputs", "images", "features", "decoder_inputs")
    options = {name: arguments.pop(name) for name in list(arguments) if name not in places}
    options |= {"need_weights": True, "need_hidden_states": True}
    wide = {name: array.astype(np.float64) for name, array in tensors.items()}
    found = run_component_torch(ComponentCase(config, arguments, options), wide, {}).outputs
    return any(not compare_exact(found[name], array).ok for name, array in exact.items())
