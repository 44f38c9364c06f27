"""What one causal attention head is."""

from dataclasses import dataclass
from typing import ClassVar

from ..checks.sizes import check_positive
from ..config import Config, Leaves, linear_leaves, under


@dataclass(frozen=True, kw_only=True)
class HeadAttentionConfig(Config):
    """One causal attention head without an output projection.

    Attributes:
        emb_size: Width of the input.
        head_size: Width of queries, keys and values.
        max_seq_len: Longest sequence accepted.
    """

    component: ClassVar[str] = "HeadAttention"
    emb_size: int
    head_size: int
    max_seq_len: int

    def __post_init__(self):
        check_positive(
            emb_size=self.emb_size, head_size=self.head_size, max_seq_len=self.max_seq_len
        )

    def leaves(self) -> Leaves:
        head = linear_leaves(self.emb_size, self.head_size)
        return under("q_proj", head) | under("k_proj", head) | under("v_proj", head)
