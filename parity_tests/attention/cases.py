"""The table of attention calls that the tiers run: every option, alone and together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity_tests.support.harness import Arrays, Call, random_arrays
from parity_tests.support.sizes import EMPTY_LENGTHS, GROUPED_K, GROUPED_N, LENGTHS, B, H, K, N, V


@dataclass(frozen=True)
class AttentionCase:
    """One call: arrays to differentiate (query, key, value, bias, sinks) and options."""

    name: str
    inputs: Arrays
    options: dict[str, Any]


def attention_case(variant: str, T: int, S: int, seed: int = 0) -> AttentionCase:
    """Build a call of one variant; the same arguments give the same arrays."""
    random = np.random.default_rng(seed)
    heads = {"grouped": (GROUPED_N, GROUPED_K), "together": (GROUPED_N, GROUPED_K)}
    n, k = heads.get(variant, (N, K))
    lead = {"no heads": ((B,), (B,)), "one sequence": ((), ())}.get(variant, ((B, n), (B, k)))
    shapes: dict[str, tuple[int, ...]] = {
        "query": (*lead[0], T, H),
        "key": (*lead[1], S, H),
        "value": (*lead[1], S, V),
    }
    options: dict[str, Any] = {}

    def coins(*shape: int) -> np.ndarray:
        return random.random(shape) < 0.7

    def segments(length: int) -> np.ndarray:
        return np.sort(random.integers(0, 3, (B, length)), axis=-1)

    match variant:
        case "mask":
            options["mask"] = coins(T, S)
        case "mask per sample":
            options["mask"] = coins(B, T, S).astype(np.int64)
        case "empty rows":
            options["mask"] = coins(B, n, T, S) & coins(B, n, T, 1)
        case "key mask":
            options["key_mask"] = np.arange(S) < np.array([[S], [S // 2]])
        case "bias":
            shapes["bias"] = (T, S)
        case "bias per head":
            shapes["bias"] = (1, n, T, S)
        case "causal":
            options["is_causal"] = True
        case "causal offset":
            options |= {"is_causal": True, "offset": S - T}
        case "causal offset per sample":
            options |= {"is_causal": True, "offset": np.array([2, -3])}
        case "window":
            options |= {"is_causal": True, "window": 3}
        case "window both sides":
            options |= {"window": (2, 1), "offset": 1}
        case "segments":
            options["segment_ids"] = (segments(T), segments(S))
        case "softcap":
            options |= {"softcap": 1.5, "scale": 0.9}
        case "sinks":
            shapes["sinks"] = (n,)
            options["mask"] = coins(B, 1, T, S) & coins(B, 1, T, 1)
        case "dropout":
            options |= {"dropout": 0.25, "keep": coins(B, n, T, S)}
        case "unseen nan":
            options["mask"] = coins(T, S) & (np.arange(S) != 2)
        case "nan in the bias":
            shapes["bias"] = (T, S)
        case "no heads":
            options["mask"] = coins(B, T, S)
        case "one sequence":
            options["is_causal"] = True
        case "together":
            shapes |= {"sinks": (n,), "bias": (B, T, S)}
            options |= {
                "mask": coins(T, S),
                "key_mask": coins(B, S),
                "is_causal": True,
                "offset": np.array([3, 1]),
                "window": (6, 0),
                "segment_ids": (segments(T), segments(S)),
                "softcap": 2.0,
                "scale": 0.5,
                "dropout": 0.25,
                "keep": coins(B, n, T, S),
            }
        case _:
            assert variant in ("plain", "grouped", "large scores"), variant
    inputs = random_arrays(seed, shapes, size=3.0 if variant == "large scores" else 1.0)
    if variant == "bias per head":
        inputs["bias"][coins(1, n, T, S)] = -np.inf
    if variant == "unseen nan":
        inputs["key"][..., 2:3, :], inputs["value"][..., 2:3, :] = np.nan, np.inf
    if variant == "nan in the bias":
        inputs["bias"][:1, :1] = np.nan
    return AttentionCase(f"{variant}, T={T} S={S}", inputs, options)


VARIANTS = (
    "plain",
    "mask",
    "mask per sample",
    "empty rows",
    "key mask",
    "bias",
    "bias per head",
    "causal",
    "causal offset",
    "causal offset per sample",
    "window",
    "window both sides",
    "segments",
    "softcap",
    "sinks",
    "dropout",
    "grouped",
    "large scores",
    "unseen nan",
    "nan in the bias",
    "no heads",
    "one sequence",
    "together",
)


QUICK = tuple((variant, *LENGTHS[name]) for variant in VARIANTS for name in ("T<S", "T>S")) + tuple(
    (variant, *lengths)
    for variant in ("plain", "together")
    for lengths in (LENGTHS["T=1"], *EMPTY_LENGTHS)
)
"""(variant, T, S): every variant with T < S and T > S; for some also T = 1, T = 0 and S = 0."""

LONG_TAIL = tuple(
    (variant, *lengths)
    for variant in VARIANTS
    if variant not in ("plain", "together")
    for lengths in (LENGTHS["T=1"], *EMPTY_LENGTHS)
)
"""(variant, T, S): what ``QUICK`` leaves out."""


def attention_call(
    attend: Callable[..., Any], to_panel: Callable[[Any], Any], options: Any
) -> Call:
    """Return the call of one panel's function with the options in that panel's arrays."""

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        output, weights = attend(**inputs, **to_panel(options))
        return {"output": output, "weights": weights}

    return call
