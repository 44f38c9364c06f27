"""Convolutions over time and over images.

B batch   C channels
"""

from torch import nn


def conv1d(
    in_channels: int, out_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0
) -> nn.Conv1d:
    """Return the framework's own convolution over time, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_channels kernel_size)``.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Number of positions that one output reads.
        stride: Step from one output to the next.
        padding: Number of zeros added at either end.

    Returns:
        A layer from (B, in_channels, length) to (B, out_channels, new length); input and parameters
        must have one floating dtype. PyTorch computes it in TF32 on a GPU unless
        ``torch.backends.cudnn.allow_tf32`` is off.
    """
    return nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)


def conv2d(
    in_channels: int, out_channels: int, kernel_size: int, *, stride: int = 1, bias: bool = True
) -> nn.Conv2d:
    """Return the framework's own convolution over images, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_channels kernel_size^2)``.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Height and width that one output reads.
        stride: Step from one output to the next, down and across.
        bias: Whether a bias is added.

    Returns:
        A layer from (B, in_channels, height, width) to (B, out_channels, new height, new width);
        input and parameters must have one floating dtype. PyTorch computes it in TF32 on a GPU
        unless ``torch.backends.cudnn.allow_tf32`` is off.
    """
    return nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, bias=bias)
