"""Carrying checkpoints between layouts and containers, bit for bit.

Public names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint
    from .checkpoint import open_checkpoint as open_checkpoint
    from .converter import Report as Report
    from .converter import convert_checkpoint as convert_checkpoint
    from .diff import Diff as Diff
    from .diff import diff_checkpoints as diff_checkpoints
    from .diff import open_pair as open_pair
    from .families import FAMILIES as FAMILIES
    from .families import DecoderFamily as DecoderFamily
    from .families import Family as Family
    from .families import load_family as load_family
    from .inspection import Inspection as Inspection
    from .inspection import inspect_checkpoint as inspect_checkpoint
    from .layouts import layout_rules as layout_rules
    from .manifest import verify_manifest as verify_manifest
    from .models import LoadedModel as LoadedModel
    from .models import read_model as read_model
    from .models import write_model as write_model
    from .rules import Rule as Rule
    from .rules import convert_tensors as convert_tensors
    from .rules import inverse as inverse
    from .rules import rule as rule
    from .settings import Setting as Setting
    from .settings import SettingsTable as SettingsTable
    from .transforms import Chain as Chain
    from .transforms import Join as Join
    from .transforms import Keep as Keep
    from .transforms import Permute as Permute
    from .transforms import Split as Split
    from .transforms import Stack as Stack
    from .transforms import Transpose as Transpose
    from .transforms import Unstack as Unstack

_MODULES = {
    **dict.fromkeys(
        ("Chain", "Join", "Keep", "Permute", "Split", "Stack", "Transpose", "Unstack"), "transforms"
    ),
    "Checkpoint": "checkpoint",
    "DecoderFamily": "families",
    "Diff": "diff",
    "FAMILIES": "families",
    "Family": "families",
    "Inspection": "inspection",
    "LoadedModel": "models",
    "Report": "converter",
    "Rule": "rules",
    "Setting": "settings",
    "SettingsTable": "settings",
    "convert_checkpoint": "converter",
    "convert_tensors": "rules",
    "diff_checkpoints": "diff",
    "inspect_checkpoint": "inspection",
    "inverse": "rules",
    "layout_rules": "layouts",
    "load_family": "families",
    "open_checkpoint": "checkpoint",
    "open_pair": "diff",
    "read_model": "models",
    "rule": "rules",
    "verify_manifest": "manifest",
    "write_model": "models",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
