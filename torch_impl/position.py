"""Absolute positions."""

from torch import Tensor

from diptych.spec import PositionalEncodingConfig, SinusoidTable

from . import functional
from .module import Module


class PositionalEncoding(Module):
    """Sinusoidal positions added to the input (Vaswani et al. 2017, section 3.5).

    Args:
        d_model: Width D of the input, odd ones included.
        max_seq_len: Longest sequence accepted.

    Raises:
        ValueError: If a size is below 1.
    """

    def __init__(self, d_model: int, max_seq_len: int = 512):
        super().__init__()
        self.config = PositionalEncodingConfig(d_model=d_model, max_seq_len=max_seq_len)
        self.table = SinusoidTable(max_seq_len, d_model)

    def forward(self, x: Tensor, *, offset: int = 0) -> Tensor:
        """Add the sinusoid of its position to every row.

        Args:
            x: Input (..., T, D).
            offset: Position of the first row.

        Returns:
            Output (..., T, D), in the dtype of ``x``.

        Raises:
            ValueError: If ``offset + T`` exceeds max_seq_len, the offset is negative or the last
                axis is not D.
            TypeError: If ``x`` is not floating.
        """
        return functional.add_sinusoids(x, self.table, offset=offset)
