"""Constant tables, made once in a constructor and only sliced and converted in a call.

Equality and hash are those of the arguments, so that ``jax.jit`` may treat a table as static; the
array is float64 numpy, never written.
"""

from dataclasses import dataclass, field

import numpy as np

Values = np.ndarray
"""The numbers of a table."""


@dataclass(frozen=True)
class SinusoidTable:
    """Sine and cosine of positions at geometric wavelengths (Vaswani et al. 2017, section 3.5).

    ``values[p, 2j] = sin(p / base**(2j / d_model))`` and ``values[p, 2j + 1]`` is the cosine of the
    same angle; an odd ``d_model`` ends on a sine.

    Attributes:
        max_seq_len: Number of rows.
        d_model: Number of columns.
        base: Longest wavelength over 2 pi.
        values: float64 array (max_seq_len, d_model).
    """

    max_seq_len: int
    d_model: int
    base: float = 10000.0
    values: np.ndarray = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        exponents = np.arange(0, self.d_model, 2) / self.d_model
        angles = np.arange(self.max_seq_len)[:, None] / self.base**exponents
        values = np.empty((self.max_seq_len, self.d_model))
        values[:, 0::2] = np.sin(angles)
        values[:, 1::2] = np.cos(angles[:, : self.d_model // 2])
        object.__setattr__(self, "values", values)
