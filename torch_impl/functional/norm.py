"""Normalisation over the last axis."""

import torch
from torch import Tensor
from torch.nn import functional as nnf

from diptych.spec.checks import check_floating, check_width

from ._dtype import dtype_name


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float) -> Tensor:
    """Shift and scale every row to mean 0 and variance 1, then apply weight and bias.

    ``(x - mean) / sqrt(variance + eps) * weight + bias`` (Ba et al. 2016), the variance being the
    mean of the squared deviations. Statistics are computed in float32 at least.

    Args:
        x: Input (..., D).
        weight: Factor (D,), of any floating dtype.
        bias: Summand (D,), of any floating dtype.
        eps: Added to the variance.

    Returns:
        Output (..., D), in the dtype of ``x``.

    Raises:
        ValueError: If the last axis of ``x`` is not that of ``weight``.
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    check_width(tuple(x.shape), weight.shape[0])
    if x.dtype == weight.dtype == bias.dtype:
        return nnf.layer_norm(x, weight.shape, weight, bias, eps)
    dtype = torch.promote_types(torch.promote_types(x.dtype, weight.dtype), bias.dtype)
    dtype = torch.promote_types(dtype, torch.float32)
    normalised = nnf.layer_norm(x.to(dtype), weight.shape, weight.to(dtype), bias.to(dtype), eps)
    return normalised.to(x.dtype)
