"""The inputs of verify: the component that they are drawn for accepts them, long and padded."""

import numpy as np
import pytest

import torch_impl
from diptych.convert import open_checkpoint
from diptych.parity.inputs import batches
from diptych.parity.panels import run_torch
from parity_tests.components.rooms import EXAMPLES

WITHOUT_PLAIN_INPUT = {
    "MaskedLMHead",
    "NextSentenceHead",
    "QuestionAnsweringHead",
    "SequenceClassificationHead",
    "TokenClassificationHead",
}


def test_only_heads_take_no_plain_input():
    without = {name for name, example in EXAMPLES.items() if not batches(example.config)}
    assert without == WITHOUT_PLAIN_INPUT


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - WITHOUT_PLAIN_INPUT))
def test_the_component_accepts_its_batches(name, tmp_path):
    config = EXAMPLES[name].config
    component = getattr(torch_impl, config.component)
    torch_impl.save_model(component.from_config(config), tmp_path / "model")
    drawn = batches(config)
    results = run_torch(open_checkpoint(tmp_path / "model"), drawn, "float32")
    assert len(results) == len(drawn)
    for outputs in results:
        assert "output" in outputs or any(name.endswith(".output") for name in outputs)
        assert all(np.isfinite(x).all() and x.dtype == np.float32 for x in outputs.values())


def test_the_same_seed_draws_the_same_inputs():
    config = EXAMPLES["Encoder"].config
    first, second, other = (batches(config, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first[0].args[0], second[0].args[0])
    assert not np.array_equal(first[0].args[0], other[0].args[0])
