"""Pure functions on arrays: the arithmetic of every component."""

from .attention import scaled_dot_product_attention
from .dropout import apply_dropout
from .mask import causal_mask, combine_masks, mask_from_keys, padding_mask

__all__ = [
    "apply_dropout",
    "causal_mask",
    "combine_masks",
    "mask_from_keys",
    "padding_mask",
    "scaled_dot_product_attention",
]
