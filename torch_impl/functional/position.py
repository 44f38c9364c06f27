"""Absolute positions added to the input."""

import torch
from torch import Tensor

from diptych.spec import SinusoidTable
from diptych.spec.checks.attention import check_integer_dtype
from diptych.spec.checks.sizes import check_floating, check_length, check_offset, check_sequence

from ._dtype import dtype_name


def add_sinusoids(x: Tensor, table: SinusoidTable, *, offset: int = 0) -> Tensor:
    """Add the sinusoid of its position to every row.

    Args:
        x: Input (..., T, D).
        table: Sinusoids of at least ``offset + T`` positions, of width D.
        offset: Position of the first row.

    Returns:
        Output (..., T, D), in the dtype of ``x``.

    Raises:
        ValueError: If the table is too short or of another width, or the offset is negative.
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    check_sequence(tuple(x.shape), table.d_model)
    check_offset(offset)
    length = x.shape[-2]
    check_length(offset + length, table.max_seq_len)
    rows = torch.as_tensor(table.values[offset : offset + length])
    return x + rows.to(x.device, x.dtype)


def positions_from_ids(input_ids: Tensor, padding_id: int) -> Tensor:
    """Return positions counted from ``padding_id + 1`` over the tokens that are not padding.

    Padding has the position ``padding_id`` (RoBERTa, Liu et al. 2019, as fairseq counts).

    Args:
        input_ids: Token ids (..., T).
        padding_id: Token id of padding.

    Returns:
        Integer (..., T).

    Raises:
        TypeError: If the ids are not integer.
    """
    check_integer_dtype(input_ids=dtype_name(input_ids))
    is_token = input_ids != padding_id
    return is_token.cumsum(-1) * is_token + padding_id  # (..., T)
