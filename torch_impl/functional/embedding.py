"""Looking up rows of a table by id, and the way back."""

import torch
from torch import Tensor
from torch.nn import functional as nnf

from diptych.spec.checks.attention import check_integer_dtype
from diptych.spec.checks.sizes import check_ids, check_width

from ._concrete import extremes, is_concrete
from ._dtype import dtype_name


def embed(ids: Tensor, table: Tensor) -> Tensor:
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
    ids = ids.long()
    if is_concrete(ids) and 0 not in ids.shape:
        check_ids(*extremes(ids), table.shape[0])
    if is_concrete(ids):
        return nnf.embedding(ids, table)
    # No error can be raised here, and another id's row would go unnoticed: NaN does not.
    inside = (ids >= 0) & (ids < table.shape[0])
    rows = nnf.embedding(torch.where(inside, ids, 0), table)
    return torch.where(inside[..., None], rows, float("nan"))


def unembed(x: Tensor, table: Tensor) -> Tensor:
    """Return the product of every vector with every row of the table.

    Args:
        x: Vectors (..., D).
        table: Rows (V, D), of the same dtype.

    Returns:
        Products (..., V), in that dtype.

    Raises:
        ValueError: If the last axis of ``x`` is not D.
    """
    check_width(tuple(x.shape), table.shape[-1])
    return nnf.linear(x, table)
