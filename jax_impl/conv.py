"""Convolutions over time and over images.

B batch   C channels
"""

import math
from typing import Any

import jax
from flax import nnx
from jax import Array, lax
from jax import numpy as jnp

from .functional._dtype import one_dtype
from .functional._precision import matmul_precision


def conv1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    *,
    stride: int = 1,
    padding: int = 0,
    rngs: nnx.Rngs,
) -> nnx.Conv:
    """Return the framework's own convolution over time, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_channels kernel_size)``.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Number of positions that one output reads.
        stride: Step from one output to the next.
        padding: Number of zeros added at either end.
        rngs: Where the parameters are drawn from.

    Returns:
        A layer from (B, in_channels, length) to (B, out_channels, new length); input and parameters
        must have one floating dtype. PyTorch computes it in TF32 on a GPU unless
        ``torch.backends.cudnn.allow_tf32`` is off.
    """
    size, pads = (kernel_size,), ((padding, padding),)
    return _Conv(
        in_channels, out_channels, size, strides=stride, padding=pads, use_bias=True, rngs=rngs
    )


def conv2d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    *,
    stride: int = 1,
    bias: bool = True,
    rngs: nnx.Rngs,
) -> nnx.Conv:
    """Return the framework's own convolution over images, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_channels kernel_size^2)``.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Height and width that one output reads.
        stride: Step from one output to the next, down and across.
        bias: Whether a bias is added.
        rngs: Where the parameters are drawn from.

    Returns:
        A layer from (B, in_channels, height, width) to (B, out_channels, new height, new width);
        input and parameters must have one floating dtype. PyTorch computes it in TF32 on a GPU
        unless ``torch.backends.cudnn.allow_tf32`` is off.
    """
    size, pads = (kernel_size, kernel_size), ((0, 0), (0, 0))
    return _Conv(
        in_channels, out_channels, size, strides=stride, padding=pads, use_bias=bias, rngs=rngs
    )


class _Conv(nnx.Conv):
    """A convolution of channels before positions."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], **options: Any
    ):
        fan_in = in_channels * math.prod(kernel_size)

        def uniform(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
            return jax.random.uniform(key, shape, dtype, -(fan_in**-0.5), fan_in**-0.5)

        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            kernel_init=uniform,
            bias_init=uniform,
            conv_general_dilated=_conv_general_dilated,
            promote_dtype=one_dtype,
            **options,
        )

    def __call__(self, inputs: Array, out_sharding: Any = None) -> Array:
        # Channels come last in flax; here they come first, as in PyTorch.
        axis = -1 - len(self.kernel_size)
        x = super().__call__(jnp.moveaxis(inputs, axis, -1), out_sharding)
        return jnp.moveaxis(x, -1, axis)


def _conv_general_dilated(
    lhs: Array, rhs: Array, strides: Any, padding: Any, *, precision: Any = None, **options: Any
) -> Array:
    precision = matmul_precision() if precision is None else precision
    return lax.conv_general_dilated(lhs, rhs, strides, padding, precision=precision, **options)
