"""Running a model of ``transformers`` in float64 all the way, its float32 casts included."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class LiftFloat32(TorchFunctionMode):
    """Makes float64 of every float32 that is asked for by name inside the ``with`` block.

    To be used around construction and around the call, with ``attn_implementation="eager"``:
    ``model.double()`` alone is no oracle, most families cast to float32 inside.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        lifted = {name: _lift(value) for name, value in (kwargs or {}).items()}
        return function(*map(_lift, args), **lifted)


@contextmanager
def float64_throughout() -> Iterator[None]:
    """Lift float32 asked for by name, and make float64 of what integers divide to."""
    torch.set_default_dtype(torch.float64)
    try:
        with LiftFloat32():
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def _lift(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
