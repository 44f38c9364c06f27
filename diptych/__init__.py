"""Diptych: one transformer library in two panels, and the hinge that proves them equal.

Public names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .convert import convert_checkpoint as convert_checkpoint
    from .convert import convert_tensors as convert_tensors
    from .convert import diff_checkpoints as diff_checkpoints
    from .convert import inspect_checkpoint as inspect_checkpoint
    from .parity.verify import verify as verify
    from .spec import CheckpointError as CheckpointError
    from .spec import OutputError as OutputError

__version__ = "0.1.0"

_HOMES = {
    "CheckpointError": ".spec",
    "OutputError": ".spec",
    "convert_checkpoint": ".convert",
    "convert_tensors": ".convert",
    "diff_checkpoints": ".convert",
    "inspect_checkpoint": ".convert",
    "verify": ".parity.verify",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
