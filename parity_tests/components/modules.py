"""Building and calling a component alike in both panels, on its example or another call."""

from typing import Any

import jax
import numpy as np
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.spec import Config
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import to_flax
from parity_tests.support.harness import from_torch, to_jax, to_torch

PANELS = {"torch": torch_impl, "jax": jax_impl}


def new(panel: str, config: Config, seed: int = 0) -> Any:
    """Build a component as a user does."""
    component = getattr(PANELS[panel], config.component)
    if panel == "torch":
        torch.manual_seed(seed)
        return component.from_config(config)
    rngs = {"rngs": nnx.Rngs(seed)} if config.leaves() else {}
    return component.from_config(config, **rngs)


def random_weights(config: Config) -> dict[str, np.ndarray]:
    """Return float32 parameters by canonical name."""
    return {name: array.astype(np.float32) for name, array in random_tensors(config).items()}


def in_layout(panel: str, config: Config, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return canonical weights in the names and shapes of a panel."""
    return weights if panel == "torch" else to_flax(config, weights)


def build(panel: str, config: Config, weights: dict[str, np.ndarray] | None = None) -> Any:
    """Build a component in evaluation mode, with random weights that are equal in both panels."""
    module = new(panel, config)
    weights = random_weights(config) if weights is None else weights
    PANELS[panel].load_state(module, in_layout(panel, config, weights))
    return module.eval()


def arrays(panel: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of an example in a panel: arrays, and modules for configs."""
    convert = to_torch if panel == "torch" else to_jax
    return tuple(
        build(panel, argument) if isinstance(argument, Config) else convert(argument)
        for argument in arguments
    )


def flat(result: Any) -> list[np.ndarray]:
    """Return every array of a result, in order, as numpy."""
    leaves = jax.tree.leaves(result)
    return [
        from_torch(leaf) if isinstance(leaf, torch.Tensor) else np.asarray(leaf) for leaf in leaves
    ]


def run(panel: str, config: Config, *arguments: Any, **keywords: Any) -> list[np.ndarray]:
    """Build a component, call it on numpy arguments and return every array that it returns."""
    convert = to_torch if panel == "torch" else to_jax
    module = build(panel, config)
    return flat(module(*arrays(panel, arguments), **{k: convert(v) for k, v in keywords.items()}))
