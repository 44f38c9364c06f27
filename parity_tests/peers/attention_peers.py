"""What the attention modules of ``transformers`` are given, and ours beside them.

B batch   T positions   S memory positions   N query heads   K key/value heads   H head width
"""

from typing import Any

import numpy as np
import torch

from diptych.spec import Config, ScoreConfig
from parity_tests.components.case import ComponentCase
from parity_tests.support.peers import Tensors

B, T, S, N, K, H, D = 2, 7, 5, 6, 3, 8, 18
FUSED = N * H
"""Width of the models whose heads divide it."""
KEY_MASK = np.arange(T) < np.array([[T], [5]])  # so that a window of 3 leaves every row a key
CAUSAL = ScoreConfig(is_causal=True)


def attention_case(config: Config, *, memory: bool = False) -> ComponentCase:
    """Return a call of ours: over itself with hidden keys, or over a memory."""
    random = np.random.default_rng(4)
    query = random.normal(size=(B, T, config.d_model))
    if memory:
        return ComponentCase(config, {"query": query, "key": random.normal(size=(B, S, FUSED))})
    return ComponentCase(config, {"query": query}, {"key_mask": KEY_MASK})


def additive_mask(score: ScoreConfig) -> torch.Tensor:
    """Return what the models add to the scores, (B, 1, T, T): 0, or the least number."""
    distances = np.arange(T)[:, None] - np.arange(T)
    seen = distances >= 0 if score.is_causal else np.ones((T, T), bool)
    if score.window is not None:
        seen &= distances < score.window
    visible = torch.from_numpy(KEY_MASK[:, None, None] & seen)
    return torch.where(visible, 0.0, torch.finfo(torch.float64).min)


def named(output: Any, weights: Any) -> Tensors:
    """Name output and weights as ours are."""
    return {"[0]": output, "[1]": weights}


def thirds_of_heads(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """Split a fused projection whose every head holds its query, key and value."""
    if "query_key_value" not in name:
        return {name: array}
    parts = np.moveaxis(array.reshape(N, 3, H, *array.shape[1:]), 1, 0)
    return split_name(name, [part.reshape(FUSED, *array.shape[1:]) for part in parts])


def split_name(name: str, parts: Any) -> dict[str, np.ndarray]:
    """Name the parts of a fused projection."""
    letters = zip("qkv", parts, strict=True)
    return {name.replace("query_key_value", f"{letter}_proj"): part for letter, part in letters}
