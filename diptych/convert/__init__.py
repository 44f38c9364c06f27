"""Carrying checkpoints between layouts and containers, bit for bit.

Public names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..families import FAMILIES as FAMILIES
    from ..families import DecoderFamily as DecoderFamily
    from ..families import Family as Family
    from ..families import load_family as load_family
    from ..families.settings import Setting as Setting
    from ..families.settings import SettingsTable as SettingsTable
    from ..rules.rules import Rule as Rule
    from ..rules.rules import convert_tensors as convert_tensors
    from ..rules.rules import inverse as inverse
    from ..rules.rules import rule as rule
    from ..rules.transforms import Chain as Chain
    from ..rules.transforms import Join as Join
    from ..rules.transforms import Keep as Keep
    from ..rules.transforms import Permute as Permute
    from ..rules.transforms import Split as Split
    from ..rules.transforms import Stack as Stack
    from ..rules.transforms import Transpose as Transpose
    from ..rules.transforms import Unstack as Unstack
    from .checkpoint import Checkpoint as Checkpoint
    from .checkpoint import open_checkpoint as open_checkpoint
    from .converter import Report as Report
    from .converter import convert_checkpoint as convert_checkpoint
    from .diff import Diff as Diff
    from .diff import diff_checkpoints as diff_checkpoints
    from .diff import open_pair as open_pair
    from .in_memory import LoadedModel as LoadedModel
    from .in_memory import read_model as read_model
    from .in_memory import write_model as write_model
    from .inspection import Inspection as Inspection
    from .inspection import inspect_checkpoint as inspect_checkpoint
    from .layouts.panels import layout_rules as layout_rules
    from .manifest import verify_manifest as verify_manifest

_HOMES = {
    ".checkpoint": ("Checkpoint", "open_checkpoint"),
    ".converter": ("Report", "convert_checkpoint"),
    ".diff": ("Diff", "diff_checkpoints", "open_pair"),
    ".in_memory": ("LoadedModel", "read_model", "write_model"),
    ".inspection": ("Inspection", "inspect_checkpoint"),
    ".layouts.panels": ("layout_rules",),
    ".manifest": ("verify_manifest",),
    "..families": ("FAMILIES", "DecoderFamily", "Family", "load_family"),
    "..families.settings": ("Setting", "SettingsTable"),
    "..rules.rules": ("Rule", "convert_tensors", "inverse", "rule"),
    "..rules.transforms": (
        "Chain",
        "Join",
        "Keep",
        "Permute",
        "Split",
        "Stack",
        "Transpose",
        "Unstack",
    ),
}
_MODULES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
