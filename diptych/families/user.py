"""Families that live in a user's file."""

import runpy
from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any

from ..spec import Config
from ..spec.errors import CheckpointError
from .family import Family


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
    values = {field.name: getattr(family, field.name) for field in fields(family)}
    functions: dict[str, Any] = {
        name: _named(values[name], path, name) for name in _RETURNS if callable(values[name])
    }
    return replace(family, **functions)


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
            if type(error) in (ValueError, CheckpointError):
                raise
            raise CheckpointError(f"{path}: {name}: {type(error).__name__}: {error}") from error
        kind = _RETURNS[name]
        if not isinstance(found, kind):
            words = f"must return a {kind.__name__}, not a {type(found).__name__}"
            raise CheckpointError(f"{path}: {name}: {words}")
        return found

    return call
