"""Families that live in a user's file."""

import runpy
from collections.abc import Callable
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Any

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
    vars(named).update({name: _named(getattr(family, name), path, name) for name in _RETURNS})
    return named


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
    def call(*args: Any) -> Any:
        try:
            found = function(*args)
        except (Exception, SystemExit) as error:
            if type(error) in (ValueError, MissingSettingError, CheckpointError):
                raise
            raise CheckpointError(f"{path}: {name}: {type(error).__name__}: {error}") from error
        kind = _RETURNS[name]
        if not isinstance(found, kind):
            words = f"must return a {kind.__name__}, not a {type(found).__name__}"
            raise CheckpointError(f"{path}: {name}: {words}")
        return found

    return call
