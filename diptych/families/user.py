"""Families that live in a user's file."""

import runpy
from collections.abc import Callable
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Any

from ..rules import Rule
from ..spec import Config
from ..spec.errors import CheckpointError
from .family import Family
from .settings import MissingSettingError


def load_family(path: str | Path) -> Family:
    """Run a Python file and return the ``FAMILY`` that it makes.

    What goes wrong in its functions later, but for a ``ValueError``, which is a refusal, is a
    ``CheckpointError`` that names the file and the function.

    Raises:
        CheckpointError: If it cannot be run, or makes no ``Family`` of that name.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file of rules")
    try:
        family = runpy.run_path(str(path)).get("FAMILY")
    except (Exception, SystemExit) as error:
        raise CheckpointError(f"{path}: {type(error).__name__}: {error}") from error
    if not isinstance(family, Family):
        found = "nothing" if family is None else type(family).__name__
        raise CheckpointError(f"{path}: FAMILY: must be a diptych.convert.Family, is {found}")
    named = copy(family)
    # What stands in an instance goes before its class's methods.
    vars(named).update({name: _named(getattr(family, name), path, name) for name in _METHODS})
    return named


_METHODS = [name for name, value in vars(Family).items() if callable(value) and name[0] != "_"]
_RETURNS: dict[str, type] = {
    "find_variants": tuple,
    "usual_variants": tuple,
    "read_config": Config,
    "write_config": dict,
    "rules": tuple,
    "usual_buffers": dict,
}


def _named(function: Callable[..., Any], path: Path, name: str) -> Callable[..., Any]:
    """Return the function, its faults named; a plain ``ValueError`` is a refusal of its own."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            found = function(*args, **options)
        except (Exception, SystemExit) as error:
            if type(error) in (ValueError, MissingSettingError, CheckpointError):
                raise
            raise CheckpointError(f"{path}: {name}: {type(error).__name__}: {error}") from error
        cause = _fault_of(name, found)
        if cause:
            raise CheckpointError(f"{path}: {name}: {cause}")
        return found

    return call


def _fault_of(name: str, found: Any) -> str:
    """Return what is wrong with what a function returned, "" for nothing."""
    if name == "rules" and isinstance(found, tuple):
        odd = [type(each).__name__ for each in found if not isinstance(each, Rule)]
        return f"must return rules alone, found {odd[0]}" if odd else ""
    kind = _RETURNS.get(name, object)
    is_right = isinstance(found, kind)
    return "" if is_right else f"must return a {kind.__name__}, not a {type(found).__name__}"
