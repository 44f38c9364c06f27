"""Pure functions on arrays: the arithmetic of every component."""

from .activation import activate, gelu, gelu_tanh, relu, silu, tanh
from .attention import scaled_dot_product_attention
from .dropout import apply_dropout
from .embedding import embed, unembed
from .mask import causal_mask, combine_masks, mask_from_keys, padding_mask
from .norm import layer_norm
from .position import add_sinusoids

__all__ = [
    "activate",
    "add_sinusoids",
    "apply_dropout",
    "causal_mask",
    "combine_masks",
    "embed",
    "gelu",
    "gelu_tanh",
    "layer_norm",
    "mask_from_keys",
    "padding_mask",
    "relu",
    "scaled_dot_product_attention",
    "silu",
    "tanh",
    "unembed",
]
