"""Pure functions on arrays: the arithmetic of every component."""

from .activation import activate, activate_gated, gelu, gelu_tanh, quick_gelu, relu, silu, tanh
from .attention import scaled_dot_product_attention
from .dropout import apply_dropout
from .embedding import embed, unembed
from .mask import (
    block_mask,
    causal_mask,
    combine_masks,
    mask_from_keys,
    padding_mask,
    prefix_mask,
    segment_mask,
    window_mask,
)
from .mixture import mix_experts, route
from .norm import layer_norm, rms_norm
from .position import add_sinusoids, positions_from_ids
from .position_bias import alibi_bias, relative_bias
from .rotary import apply_rotary
from .sampling import choose_token
from .similarity import first_highest, normalize, similarity

__all__ = [
    "activate",
    "activate_gated",
    "add_sinusoids",
    "alibi_bias",
    "apply_dropout",
    "apply_rotary",
    "block_mask",
    "causal_mask",
    "choose_token",
    "combine_masks",
    "embed",
    "first_highest",
    "gelu",
    "gelu_tanh",
    "layer_norm",
    "mask_from_keys",
    "mix_experts",
    "normalize",
    "padding_mask",
    "positions_from_ids",
    "prefix_mask",
    "quick_gelu",
    "relative_bias",
    "relu",
    "rms_norm",
    "route",
    "scaled_dot_product_attention",
    "segment_mask",
    "silu",
    "similarity",
    "tanh",
    "unembed",
    "window_mask",
]
