"""Building attention and feeding its cache in either panel."""

from typing import Any

import numpy as np

from diptych.parity.compare import compare_exact
from diptych.spec import Config
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import jax_module, torch_module
from parity_tests.panels.cache_cases import B, D, T
from parity_tests.support.harness import random_arrays
from parity_tests.support.panels import TORCH, Panel, to_numpy

X = random_arrays(3, {"x": (B, T, D)})["x"]


def module_of(panel: Panel, config: Config) -> Any:
    """Return a module in float64, with the same parameters in both panels."""
    build = torch_module if panel is TORCH else jax_module
    return build(config, random_tensors(config))


def decode(
    panel: Panel,
    module: Any,
    x: np.ndarray,
    chunks: tuple[int, ...],
    *,
    capacity: int = T,
    counts: np.ndarray | None = None,
) -> tuple[list[np.ndarray], list[np.ndarray], Any]:
    """Return outputs and weights of every chunk and the last cache; counts are (chunks, B)."""

    def step(rows: Any, cache: Any, options: Any) -> Any:
        return module(rows, cache=cache, **options)

    step = panel.jit(step)
    with panel.wide():
        cache = module.new_cache(x.shape[0], capacity)
        outputs, weights, start = [], [], 0
        for i, number in enumerate(chunks):
            options: dict[str, Any] = {}
            if counts is not None:
                options["key_mask"] = panel.array(np.arange(number) < counts[i][:, None])
            rows = panel.array(x[:, start : start + number])
            output, attended, cache = step(rows, cache, options)
            outputs.append(to_numpy(output))
            weights.append(to_numpy(attended))
            start += number
        return outputs, weights, to_numpy(cache)


def assert_exact(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    comparison = compare_exact(ours, theirs, name=name)
    assert comparison.ok, str(comparison)
