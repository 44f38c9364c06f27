"""Every family's table of rules, one rule corrupted at a time: its own case must see each.

What the converter refuses is seen, and so is what changes an output, a hidden state or an attention
weight against ``transformers``, in float64 and in torch alone. What no output can show is seen by
value: a key's bias, which adds the same to every score of a query, and an unused mask token.
"""

import numpy as np
import pytest
import torch

from diptych.convert import open_checkpoint
from diptych.parity.compare import compare_exact
from diptych.rules import Rule, assign_rules, convert_tensors
from diptych.spec import CheckpointError, Config
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import run_component_torch
from parity_tests.families.cases import CASES
from parity_tests.families.mutants import mutants
from parity_tests.support.checkpoints import stored_tensors
from parity_tests.support.harness import Arrays
from parity_tests.support.tiny_transformers import FamilyCase, call_theirs, save_tiny

_UNSEEN = ("attention.k_proj.bias", "mask_param")
SHORT = {name: case for name, case in CASES.items() if "500 tokens" not in name}


@pytest.mark.parametrize("case", SHORT.values(), ids=SHORT)
def test_every_corrupted_rule_is_seen(case: FamilyCase, tmp_path):
    save_tiny(case, tmp_path)
    opened = open_checkpoint(tmp_path)
    assert opened.family is not None
    rules = opened.family.rules(opened.config, opened.variants)
    stored = stored_tensors(tmp_path)
    source = {name: array for name, array in stored.items() if not opened.family.is_buffer(name)}
    exact = call_theirs(case, tmp_path, torch.float64)
    assert not _is_seen(case, opened.config, source, rules, exact)
    found = list(mutants(rules, opened.config.leaves()))
    assert len(found) > len(rules)
    survivors = {m.what for m in found if not _is_seen(case, opened.config, source, m.rules, exact)}
    assert not survivors


def _is_seen(
    case: FamilyCase, config: Config, source: Arrays, rules: tuple[Rule, ...], exact: Arrays
) -> bool:
    """Return whether a table is refused or gives a model that differs from theirs."""
    try:
        tensors = convert_tensors(source, rules)
    except CheckpointError:
        return True
    leaves = {name: leaf.shape for name, leaf in config.leaves().items()}
    if {name: array.shape for name, array in tensors.items()} != leaves:
        return True
    for step in assign_rules(source, rules)[0]:
        if len(step.targets) == 1 and step.targets[0].endswith(_UNSEEN):
            array = tensors[step.targets[0]]
            if not np.array_equal(array, source[step.sources[0]].reshape(array.shape)):
                return True
    wide = {name: array.astype(np.float64) for name, array in tensors.items()}
    arguments = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array
        for name, array in case.ours(case.inputs()).items()
    }
    places = ("inputs", "images", "features", "decoder_inputs")
    options = {name: arguments.pop(name) for name in list(arguments) if name not in places}
    options |= {"need_weights": True, "need_hidden_states": True}
    found = run_component_torch(ComponentCase(config, arguments, options), wide, {}).outputs
    return any(not compare_exact(found[name], array).ok for name, array in exact.items())
