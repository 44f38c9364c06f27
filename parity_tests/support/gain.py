"""Whether 16-bit results are biased, which no single error shows."""

from collections.abc import Sequence

import numpy as np

from diptych.parity.compare import Comparison
from diptych.tensors.ulp import unit_roundoff


def compare_gain(
    values: Sequence[np.ndarray], references: Sequence[np.ndarray], *, name: str = ""
) -> Comparison:
    """Judge whether a 16-bit result is biased: its mean gain over many inputs is 1 within u/16.

    The gain of one input is ``sum(value reference) / sum(reference**2)``.

    Args:
        values: One 16-bit result per independent input.
        references: The float64 result of each.
        name: Of the tensor.
    """
    gains = [
        float((value.astype(np.float64) * reference).sum() / (reference**2).sum())
        for value, reference in zip(values, references, strict=True)
    ]
    bound = unit_roundoff(values[0].dtype) / 16
    difference = abs(float(np.mean(gains)) - 1.0)
    fault = "" if difference <= bound else f"mean gain off by {difference:.3g} > {bound:.3g}"
    return Comparison(name, sum(value.size for value in values), difference, bound, fault=fault)
