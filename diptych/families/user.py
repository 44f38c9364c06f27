"""Families that live in a user's file."""

import runpy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from ..rules.rules import Rule
from ..spec import Config
from ..spec.checks.sizes import Shape
from ..spec.errors import CheckpointError
from .family import Family, Recreated, Variants
from .settings import MissingSettingError

_Found = TypeVar("_Found")


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
    own = {each.name: getattr(family, each.name) for each in fields(Family)}
    return _FamilyOfFile(**own, path=path, family=family)


@dataclass(frozen=True, kw_only=True)
class _FamilyOfFile(Family):
    """A family whose faults name the file that it stands in.

    Attributes:
        path: Of the file.
        family: As the file makes it.
    """

    path: Path
    family: Family

    @property
    def prefixes(self) -> tuple[str, ...]:
        return self.family.prefixes

    @property
    def templates(self) -> tuple[str, ...]:
        return self.family.templates

    def find_variants(self, names: Collection[str]) -> Variants:
        return self._call("find_variants", tuple, names)

    def usual_variants(self, config: Config) -> Variants:
        return self._call("usual_variants", tuple, config)

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        return self._call("read_config", Config, settings, shapes, variants)

    def write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        return self._call("write_config", dict, config, source)

    def rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        return self._call("rules", tuple, config, variants)

    def usual_buffers(self, config: Config) -> dict[str, Recreated]:
        return self._call("usual_buffers", dict, config)

    def _call(self, name: str, kind: type[_Found], *arguments: Any) -> _Found:
        """Return what a method returns; a plain ``ValueError`` is a refusal of its own."""
        try:
            found = getattr(self.family, name)(*arguments)
        except (Exception, SystemExit) as error:
            if type(error) in (ValueError, MissingSettingError, CheckpointError):
                raise
            cause = f"{type(error).__name__}: {error}"
            raise CheckpointError(f"{self.path}: {name}: {cause}") from error
        if not isinstance(found, kind):
            words = f"must return a {kind.__name__}, not a {type(found).__name__}"
            raise CheckpointError(f"{self.path}: {name}: {words}")
        return found
