"""Absolute positions added to the input."""

from jax import Array
from jax import numpy as jnp

from diptych.spec import SinusoidTable
from diptych.spec.checks.attention import check_integer_dtype
from diptych.spec.checks.sizes import check_floating, check_length, check_offset, check_sequence

from ._dtype import dtype_name


def add_sinusoids(x: Array, table: SinusoidTable, *, offset: int = 0) -> Array:
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
    check_sequence(x.shape, table.d_model)
    check_offset(offset)
    length = x.shape[-2]
    check_length(offset + length, table.max_seq_len)
    rows = table.values[offset : offset + length]
    # PyTorch too rounds to float32 on the way from float64 to 16 bits.
    return x + jnp.asarray(rows, jnp.promote_types(x.dtype, jnp.float32)).astype(x.dtype)


def positions_from_ids(input_ids: Array, padding_id: int) -> Array:
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
