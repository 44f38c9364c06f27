"""What the position components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_positive
from .config import Config


@dataclass(frozen=True, kw_only=True)
class PositionalEncodingConfig(Config):
    """Sinusoidal positions added to the input; no parameters.

    Attributes:
        d_model: Width of the input, odd ones included.
        max_seq_len: Longest sequence accepted.
    """

    component: ClassVar[str] = "PositionalEncoding"
    d_model: int
    max_seq_len: int = 512

    def __post_init__(self):
        check_positive(d_model=self.d_model, max_seq_len=self.max_seq_len)
