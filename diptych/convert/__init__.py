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
    from ..rules import Chain as Chain
    from ..rules import Join as Join
    from ..rules import Keep as Keep
    from ..rules import Permute as Permute
    from ..rules import Rule as Rule
    from ..rules import Split as Split
    from ..rules import Stack as Stack
    from ..rules import Transpose as Transpose
    from ..rules import Unstack as Unstack
    from ..rules import convert_tensors as convert_tensors
    from ..rules import inverse as inverse
    from ..rules import rule as rule
    from .checkpoint import Checkpoint as Checkpoint
    from .converter import Report as Report
    from .converter import convert_checkpoint as convert_checkpoint
    from .diff import Diff as Diff
    from .diff import diff_checkpoints as diff_checkpoints
    from .diff import open_pair as open_pair
    from .inspection import Inspection as Inspection
    from .inspection import inspect_checkpoint as inspect_checkpoint
    from .layouts.torch_to_flax import layout_rules as layout_rules
    from .manifest import verify_manifest as verify_manifest
    from .reading import open_checkpoint as open_checkpoint
    from .saved_model import LoadedModel as LoadedModel
    from .saved_model import read_model as read_model
    from .saved_model import write_model as write_model

_HOMES = {
    ".checkpoint": "Checkpoint",
    ".converter": "Report convert_checkpoint",
    ".diff": "Diff diff_checkpoints open_pair",
    ".inspection": "Inspection inspect_checkpoint",
    ".layouts.torch_to_flax": "layout_rules",
    ".manifest": "verify_manifest",
    ".reading": "open_checkpoint",
    ".saved_model": "LoadedModel read_model write_model",
    "..families": "DecoderFamily FAMILIES Family load_family",
    "..families.settings": "Setting SettingsTable",
    "..rules": "Chain Join Keep Permute Rule Split Stack Transpose Unstack "
    "convert_tensors inverse rule",
}
_MODULES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
