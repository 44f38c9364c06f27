"""Autocast switched off inside a function that chooses its own precision."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def without_autocast(function: F) -> F:
    """Return the function run outside ``torch.autocast``; its first parameter is ``query``."""

    @functools.wraps(function)
    def wrapped(query: Tensor, *args: Any, **kwargs: Any) -> Any:
        device = query.device.type
        if not torch.amp.is_autocast_available(device):
            return function(query, *args, **kwargs)
        # Autocast would round scores to 16 bits, whatever dtype they were promoted to.
        with torch.autocast(device, enabled=False):
            return function(query, *args, **kwargs)

    return cast(F, wrapped)
