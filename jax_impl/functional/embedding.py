"""Looking up rows of a table by id, and the way back."""

from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.attention import check_integer_dtype
from diptych.spec.checks.sizes import check_ids, check_one_dtype, check_width

from ._concrete import extremes, is_concrete
from ._dtype import dtype_name
from ._precision import matmul_precision


def embed(ids: Array, table: Array) -> Array:
    """Return the row of every id.

    Where the ids cannot be looked at (compiled, vmap), an id outside the table gives a row of NaN.

    Args:
        ids: Integers (...), 0 .. V - 1.
        table: Rows (V, D).

    Returns:
        Rows (..., D), in the dtype of ``table``.

    Raises:
        TypeError: If the ids are not integers.
        IndexError: If an id is outside the table; names both.
    """
    check_integer_dtype(ids=dtype_name(ids))
    if is_concrete(ids) and 0 not in ids.shape:
        check_ids(*extremes(ids), table.shape[0])
    # No error can be raised under jit, and another id's row would go unnoticed: NaN does not.
    rows = jnp.asarray(table).at[jnp.asarray(ids)]
    return rows.get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)


def unembed(x: Array, table: Array) -> Array:
    """Return the product of every vector with every row of the table.

    Args:
        x: Vectors (..., D).
        table: Rows (V, D), of the same dtype.

    Returns:
        Products (..., V), in that dtype.

    Raises:
        ValueError: If the last axis of ``x`` is not D.
    """
    check_width(x.shape, table.shape[-1])
    check_one_dtype(x.dtype.name, table.dtype.name)
    return jnp.einsum("...d,vd->...v", x, table, precision=matmul_precision())
