"""Families that live in a user's file."""

import runpy
from pathlib import Path

from ...spec.errors import CheckpointError
from .family import Family


def load_family(path: str | Path) -> Family:
    """Run a Python file and return the ``FAMILY`` that it makes.

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
    return family
