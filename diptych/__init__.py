"""Diptych: one transformer library in two panels, and the hinge that proves them equal."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diptych.convert import (
        convert_checkpoint,
        convert_tensors,
        diff_checkpoints,
        inspect_checkpoint,
    )
    from diptych.parity.verify import verify
    from diptych.spec import CheckpointError, OutputError

__version__ = "0.1.0"

_HOMES = {
    "CheckpointError": "diptych.spec",
    "OutputError": "diptych.spec",
    "convert_checkpoint": "diptych.convert",
    "convert_tensors": "diptych.convert",
    "diff_checkpoints": "diptych.convert",
    "inspect_checkpoint": "diptych.convert",
    "verify": "diptych.parity.verify",
}

__all__ = [
    "CheckpointError",
    "OutputError",
    "convert_checkpoint",
    "convert_tensors",
    "diff_checkpoints",
    "inspect_checkpoint",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'diptych' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
