"""Reading one position of a sequence, and comparing vectors."""

import functools

import torch
from torch import Tensor

from diptych.spec.checks.sizes import check_floating, check_sequence

from ._dtype import dtype_name


def first_highest(x: Tensor, scores: Tensor) -> Tensor:
    """Return the vector at the first of the highest scores, such as an end token's.

    Args:
        x: Vectors (..., T, D).
        scores: Integer or boolean (..., T).

    Returns:
        Vectors (..., D), in the dtype of ``x``.
    """
    place = scores.int().argmax(-1)  # (...)
    return torch.take_along_dim(x, place[..., None, None], -2)[..., 0, :]


def normalize(x: Tensor) -> Tensor:
    """Scale every vector to length 1: ``x / sqrt(sum(x^2))``, in float32 at least.

    Args:
        x: Vectors (..., D).

    Returns:
        Vectors (..., D), in the dtype of ``x``; NaN where a vector is 0.

    Raises:
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide / torch.sqrt(wide.square().sum(-1, keepdim=True))).to(x.dtype)


def similarity(x: Tensor, y: Tensor, log_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compare every vector with every other: ``exp(log_scale) * x . y + bias``.

    Radford et al. 2021, figure 3; the bias is of Zhai et al. 2023. In float32 at least, rounded
    once.

    Args:
        x: Vectors (..., I, E), of length 1.
        y: Vectors (..., J, E), of length 1.
        log_scale: Logarithm of the factor, ().
        bias: Summand, (), or None.

    Returns:
        Logits (..., I, J), in the dtype of ``x``.

    Raises:
        ValueError: If a shape does not fit.
        TypeError: If ``x`` or ``y`` is not floating.
    """
    check_floating(x=dtype_name(x), y=dtype_name(y))
    check_sequence(tuple(x.shape), tuple(y.shape)[-1] if y.ndim else 0)
    check_sequence(tuple(y.shape), tuple(x.shape)[-1])
    dtype = functools.reduce(torch.promote_types, [x.dtype, y.dtype], torch.float32)
    products = torch.einsum("...ie,...je->...ij", x.to(dtype), y.to(dtype))
    logits = products * torch.exp(log_scale.to(dtype))  # (..., I, J)
    return (logits if bias is None else logits + bias.to(dtype)).to(x.dtype)
