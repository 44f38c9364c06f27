"""Plain code in a narrow dtype for any call of the torch panel: float64, rounded at every step.

The panel's float64 code runs, and what every operation returns, forward and backward, is rounded to
the dtype at once, so that nothing is kept wider than plain code in that dtype keeps it: scores,
statistics, powers. What torch fuses is decomposed first; a sum and a product of matrices count as
one operation. What depends on no argument (angles, slopes, buckets) is exact.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from parity_tests.support.harness import Call

_aten = torch.ops.aten
_PLAIN = get_decompositions(
    [
        _aten.gelu,
        _aten.gelu_backward,
        _aten.native_layer_norm,
        _aten.native_layer_norm_backward,
        _aten._softmax,
        _aten._softmax_backward_data,
        _aten.silu,
        _aten.silu_backward,
    ]
)


class Narrow(TorchDispatchMode):
    """Rounds every float64 value that depends on the followed tensors, inside the ``with`` block.

    Args:
        dtype: To round to.
    """

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype
        # By storage, so that views count too; held, so that no storage is used twice.
        self.dependent: dict[int, torch.Tensor] = {}

    def follow(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take tensors as what the call depends on."""
        self.dependent |= {_storage(tensor): tensor for tensor in tensors}

    def following(self, call: Call) -> Call:
        """Return the call with its inputs followed."""

        def run(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            self.follow(inputs.values())
            return call(inputs)

        return run

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        if function in _PLAIN:
            with self:
                return _PLAIN[function](*args, **(kwargs or {}))
        output = function(*args, **(kwargs or {}))
        if any(_storage(x) in self.dependent for x in tree_leaves((args, kwargs)) if _is_wide(x)):
            for x in tree_leaves(output):
                is_view = _is_wide(x) and _storage(x) in self.dependent
                if _is_wide(x) and (function._schema.is_mutable or not is_view):
                    x.copy_(x.to(self.dtype))
                    self.follow([x])
        return output


def _is_wide(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype == torch.float64


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
