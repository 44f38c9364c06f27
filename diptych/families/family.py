"""What the converter knows of one family of foreign checkpoints."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..rules.rules import Rule
from ..rules.templates import TemplateIndex, match_template
from ..spec import Config
from ..spec.checks.sizes import Shape
from .settings import SettingsTable

Variants = tuple[str, ...]


class Recreated(NamedTuple):
    """A buffer that is not stored: its header, and the recipe that gives it."""

    dtype: str
    shape: Shape
    recipe: str


@dataclass(frozen=True)
class Family:
    """One family: names, settings and rules, each declared once and read in both directions.

    Attributes:
        name: What ``--family`` calls it.
        summary: One line for ``diptych families``.
        model_types: Values of ``model_type`` in its config.json.
        templates: Every source name that any variant may hold, buffers included.
        settings: The settings that it knows.
        find_variants: From the source names to the spellings found in them.
        usual_variants: From a component's config to the spelling that is written by default.
        read_config: From settings, source shapes and variants to the component's config; raises
            ValueError, ``KEY: CAUSE``, where a setting is missing or refused.
        write_config: From the component's config and the source's own settings, if there are any,
            to settings in the current spelling; raises ValueError if the family has no such model.
        rules: From config and variants to the rules from source names to canonical names.
        buffers: Templates of source names that are no parameters, with the name of what recreates
            them (``RECIPES``), or None where nothing does.
        usual_buffers: From a component's config to the buffers of the spelling that is written by
            default.
        linen_norm: What a norm's weight is called in the layout "hf-flax", "scale" or "weight".
        telling: Templates of which a bare state dict must hold one to be taken for the family's;
            none where any of its names will do.
        version: Of the tables; raised when a manifest of old would be read otherwise by the new.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    templates: tuple[str, ...]
    settings: SettingsTable
    find_variants: Callable[[Collection[str]], Variants]
    usual_variants: Callable[[Config], Variants]
    read_config: Callable[[Mapping[str, Any], Mapping[str, Shape], Variants], Config]
    write_config: Callable[[Config, Mapping[str, Any] | None], dict[str, Any]]
    rules: Callable[[Config, Variants], tuple[Rule, ...]]
    buffers: Mapping[str, str | None] = field(default_factory=dict)
    usual_buffers: Callable[[Config], dict[str, Recreated]] = lambda config: {}
    linen_norm: str = "scale"
    telling: tuple[str, ...] = ()
    version: int = 1

    def uncovered(self, names: Collection[str]) -> list[str]:
        """Return the names that are none of the family's."""
        index = TemplateIndex((template, None) for template in self.templates)
        return [name for name in names if not index.find(name)]

    def fits(self, names: Collection[str]) -> bool:
        """Return whether the names are all of the family's, and tell that they are."""
        index = TemplateIndex((template, None) for template in self.telling)
        is_told = not self.telling or any(index.find(name) for name in names)
        return is_told and not self.uncovered(names)

    def is_buffer(self, name: str) -> bool:
        """Return whether a source name is a buffer's."""
        return any(match_template(template, name) is not None for template in self.buffers)

    def recipe(self, name: str) -> str | None:
        """Return the name of what recreates a buffer, if anything does."""
        hits = [r for t, r in self.buffers.items() if match_template(t, name) is not None]
        return hits[0] if hits else None


def recreate(recipe: str, dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    """Return the buffer that a recipe gives, or None if it gives none of that shape."""
    return RECIPES[recipe](dtype, shape)


def _arange(dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    if len(shape) != 2 or shape[0] != 1:
        return None
    return np.arange(shape[1]).astype(dtype).reshape(shape)


def _zeros(dtype: np.dtype, shape: Shape) -> np.ndarray:
    return np.zeros(shape, dtype)


def _lower_triangle(dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    if len(shape) < 2 or shape[-1] != shape[-2] or set(shape[:-2]) - {1}:
        return None
    return np.tri(shape[-1], dtype=np.bool_).astype(dtype).reshape(shape)


RECIPES: dict[str, Callable[[np.dtype, Shape], np.ndarray | None]] = {
    "arange": _arange,
    "zeros": _zeros,
    "lower_triangle": _lower_triangle,
}
"""What recreates a buffer from its dtype and shape alone."""
