"""Dropout."""

import torch
from torch import Tensor

from diptych.spec.checks.attention import check_keep, check_mask_dtype
from diptych.spec.checks.sizes import check_floating, check_rate

from ._draw import draw_kept
from ._dtype import dtype_name


def apply_dropout(x: Tensor, rate: float, *, keep: Tensor | None = None) -> Tensor:
    """Set each element to 0 with probability ``rate`` and scale the others by 1 / (1 - rate).

    A rate of 0 draws nothing. Srivastava et al. 2014, in the inverted form.

    Args:
        x: Any shape.
        rate: Probability of dropping, 0 <= rate < 1.
        keep: Boolean or integer, the shape of ``x``: what to keep, instead of a draw.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ValueError: If the rate is outside [0, 1), or ``keep`` has another shape.
        TypeError: If ``x`` is not floating, or ``keep`` is.
    """
    check_floating(x=dtype_name(x))
    check_rate(rate=rate)
    if keep is None:
        if rate == 0:
            return x
        kept = draw_kept(x, rate)
    else:
        check_mask_dtype(keep=dtype_name(keep))
        check_keep(tuple(keep.shape), tuple(x.shape))
        kept = keep != 0
    # A product, since XLA turns a division by a constant into one and torch would not.
    return torch.where(kept, x * (1 / (1 - rate)), 0.0)
