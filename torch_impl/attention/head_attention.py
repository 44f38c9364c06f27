"""One causal attention head without an output projection.

T positions   H head width
"""

from torch import Tensor

from diptych.spec import HeadAttentionConfig
from diptych.spec.checks.sizes import check_length, check_sequence

from .. import functional
from ..linear import linear
from ..module import Module, config_of


class HeadAttention(Module):
    """One causal attention head without an output projection.

    Args:
        emb_size: Width of the input.
        head_size: Width H of queries, keys and values.
        max_seq_len: Longest sequence accepted.

    Raises:
        ValueError: If a size is below 1.
    """

    def __init__(self, emb_size: int, head_size: int, max_seq_len: int):
        super().__init__()
        self.config = config_of(HeadAttentionConfig, locals())
        self.q_proj = linear(emb_size, head_size)
        self.k_proj = linear(emb_size, head_size)
        self.v_proj = linear(emb_size, head_size)

    def get_attention_weights(self, x: Tensor) -> Tensor:
        """Return the weights with which each position reads itself and those before it.

        Args:
            x: (..., T, emb_size).

        Returns:
            (..., T, T) in the dtype of ``x``.

        Raises:
            ValueError: If T exceeds ``max_seq_len``, or the width is not ``emb_size``.
        """
        return self(x, need_weights=True)[1]

    def forward(self, x: Tensor, *, need_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from each position to itself and those before it.

        Args:
            x: (..., T, emb_size).
            need_weights: Whether to return the weights (..., T, T) too.

        Returns:
            Output (..., T, head_size) in the dtype of ``x``, or the pair of output and weights.

        Raises:
            ValueError: If T exceeds ``max_seq_len``, or the width is not ``emb_size``.
        """
        check_sequence(tuple(x.shape), self.config.emb_size)
        check_length(x.shape[-2], self.config.max_seq_len)
        output, weights = functional.scaled_dot_product_attention(
            self.q_proj(x),
            self.k_proj(x),
            self.v_proj(x),
            is_causal=True,
            need_weights=need_weights,
        )
        return output if weights is None else (output, weights)
