"""The working tier of attention over a cache and over projected memory; see the variants' tests.

Outputs, weights and gradients of the input through every step are judged.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from diptych.spec import Config
from parity_tests.attention.guard import AttentionRecord
from parity_tests.attention.test_working import rounded
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import jax_module, torch_module
from parity_tests.components.test_working_variants import CALLS, PANELS
from parity_tests.models.cases import MODEL_CASES
from parity_tests.panels.cache_cases import CACHED, B, D, T
from parity_tests.support.harness import (
    Arrays,
    Call,
    Run,
    cotangents_of,
    judge_working,
    random_arrays,
    run_jax,
    run_torch,
)
from parity_tests.support.narrow import Narrow

CHUNKS = ((0, 3), (3, 4), (4, T))
MEMORY = MODEL_CASES["mllama cross: width of the memory, q/k norm, grouped"]


def step_wise(module: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Feed a cache three rows, then one, then one."""
    outputs, cache = {}, module.new_cache(B, T)
    for start, stop in CHUNKS:
        output, weights, cache = module(inputs["x"][:, start:stop], cache=cache)
        outputs |= {f"output from {start}": output, f"weights from {start}": weights}
    return outputs


def projected_once(module: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Attend twice to memory that is projected once."""
    memory, outputs = module.project(inputs["key"]), {}
    for name, query in {"first": inputs["query"], "second": inputs["query"][:, 1:]}.items():
        output, weights = module(query, memory=memory)
        outputs |= {f"{name} output": output, f"{name} weights": weights}
    return outputs


ROWS: dict[str, tuple[Config, Callable[..., dict[str, Any]], Arrays]] = {
    name: (CACHED[name], step_wise, random_arrays(3, {"x": (B, T, D)}))
    for name in ("grouped", "rotary, window 3", "everything", "latent")
}
ROWS["projected memory"] = (MEMORY.config, projected_once, MEMORY.arguments)


@pytest.mark.parametrize(("panel", "dtype"), CALLS)
@pytest.mark.parametrize("name", ROWS)
def test_attention_over_what_is_kept(name, panel, dtype):
    config, feed, arrays = ROWS[name]
    inputs, wide_inputs = rounded(arrays, dtype)
    tensors, wide_tensors = rounded(random_tensors(config), dtype)
    wide_module = torch_module(config, wide_tensors)
    wide_call = _call(feed, wide_module)
    cotangents, wide_cotangents = rounded(
        cotangents_of(run_torch(wide_call, wide_inputs, {}).outputs), dtype
    )
    truth = run_torch(wide_call, wide_inputs, wide_cotangents)
    with Narrow(getattr(torch, dtype)) as mode:
        mode.follow(wide_module.parameters())
        plain = run_torch(mode.following(wide_call), wide_inputs, wide_cotangents)
    yardstick = Run(*(rounded(found, dtype)[0] for found in (plain.outputs, plain.gradients)))

    record = AttentionRecord(PANELS[panel][0])
    if panel == "torch":
        call = record.wrap(_call(feed, torch_module(config, tensors)))
        found = run_torch(call, inputs, cotangents)
    else:
        call = record.wrap(_call(feed, jax_module(config, tensors)))
        found = run_jax(call, inputs, cotangents, x64=False)
    faults = record.faults(found.outputs)
    assert not faults, "\n".join(faults)
    judge_working(name, found, truth, yardstick)


def _call(feed: Callable[..., dict[str, Any]], module: Any) -> Call:
    return lambda inputs: feed(module, inputs)
