"""How far the output of attention may be from the truth, whatever plain code in its dtype does.

The bound needs what goes into the attention itself, so the attentions inside a call are recorded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from diptych.tensors.ulp import unit_roundoff
from parity_tests.attention import oracle
from parity_tests.support.harness import Arrays, Call

_NAMES = ("query", "key", "value", "bias", "sinks")


def guard(wide: Arrays, options: dict[str, Any], dtype: np.dtype) -> float:
    """Return the error that the output of correct attention never exceeds.

    ``V (2 sqrt(D + 2) a M + 2 a L + 2 sqrt(n + 4) a + [2u unless float32] + u)``, as the scores and
    the softmax are float32, the weights are cast once, and the product is cast.

    Args:
        wide: float64 query, key, value and, where there is one, bias.
        options: Of the call; ``scale`` is read.
        dtype: That the call runs in.
    """
    u = unit_roundoff(dtype)
    cast = 0.0 if dtype == np.float32 else 2 * u
    return float(np.abs(wide["value"]).max(initial=0.0)) * (
        _softmax_error(wide, options) + cast + u
    )


def weight_guard(weights: np.ndarray, wide: Arrays, options: dict[str, Any], dtype: Any) -> Any:
    """Return the error that each weight of correct attention never exceeds.

    The guard's terms in front of the product, relative to the weight: those of float32, and one
    rounding to the dtype.

    Args:
        weights: The true ones.
        wide: As in ``guard``, like all that follow.
        options: Of the call.
        dtype: That the call runs in.
    """
    smallest = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    return weights * (_softmax_error(wide, options) + unit_roundoff(dtype)) + smallest


class AttentionRecord:
    """Makes of a panel's call one whose outputs also tell of every attention inside it.

    Args:
        package: ``torch_impl`` or ``jax_impl``.
    """

    def __init__(self, package: ModuleType):
        self.functional = package.functional
        self.options: list[dict[str, Any]] = []

    def wrap(self, call: Call) -> Call:
        """Return the call with what goes into and comes out of its attentions as outputs."""

        def recorded(inputs: dict[str, Any]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            with self._recording(found):
                return call(inputs) | found

        return recorded

    def faults(self, outputs: Arrays) -> list[str]:
        """Take the record out of a run's outputs and return what exceeds the guard."""
        faults = []
        for i, options in enumerate(self.options):
            start = f"attention {i}: "
            names = [name for name in outputs if name.startswith(start)]
            own = {name[len(start) :]: outputs.pop(name) for name in names}
            dtype = own["query"].dtype
            wide = {name: x.astype(np.float64) for name, x in own.items()}
            output, weights = wide.pop("output"), wide.pop("weights")
            truth = oracle.attention(**wide, **options, mask=weights > 0)
            error, bound = np.abs(output - truth.output).max(), guard(wide, options, dtype)
            if not error <= bound:
                faults.append(f"attention {i}: output off by {error:.3g} > {bound:.3g}")
            excess = np.abs(weights - truth.weights) / weight_guard(
                truth.weights, wide, options, dtype
            )
            if not excess.max() <= 1.0:
                faults.append(f"attention {i}: a weight off by {excess.max():.3g} of its bound")
        return faults

    @contextmanager
    def _recording(self, found: dict[str, Any]) -> Iterator[None]:
        self.options.clear()
        attend = self.functional.scaled_dot_product_attention

        def recording(query: Any, key: Any, value: Any, **options: Any) -> tuple[Any, Any]:
            output, weights = attend(query, key, value, **(options | {"need_weights": True}))
            given = {"query": query, "key": key, "value": value} | options
            given |= {"output": output, "weights": weights}
            for name in (*_NAMES, "output", "weights"):
                if given.get(name) is not None:
                    found[f"attention {len(self.options)}: {name}"] = given[name]
            self.options.append({name: options.get(name) for name in ("scale", "softcap")})
            return output, weights if options.get("need_weights", True) else None

        self.functional.scaled_dot_product_attention = recording
        try:
            yield
        finally:
            self.functional.scaled_dot_product_attention = attend


def _softmax_error(wide: Arrays, options: dict[str, Any]) -> float:
    """Relative error of weights whose scores and softmax are float32."""
    query, key = wide["query"], wide["key"]
    group = query.shape[-3] // key.shape[-3] if query.ndim >= 4 else 1
    key = np.repeat(key, group, axis=-3) if group > 1 else key
    width, keys, a = query.shape[-1], key.shape[-2], 2.0**-24
    scale = options.get("scale") or width**-0.5
    bias = np.abs(wide.get("bias", np.zeros(1)))
    M = scale * (np.abs(query) @ np.abs(key).swapaxes(-1, -2)).max()
    L = scale * np.abs(query @ key.swapaxes(-1, -2)).max() + bias[np.isfinite(bias)].max()
    return float(2 * (width + 2) ** 0.5 * a * M + 2 * a * L + 2 * (keys + 4) ** 0.5 * a)
