"""Name templates: ``{i}`` stands for a list index, ``{*path}`` for any text.

A list index is decimal, without leading zeros, and a whole component of the name; the text may hold
dots and is at least one character.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TemplateIndex(Generic[Value]):
    """Values by template, found by name without trying every template.

    Args:
        entries: Templates with their values; one template may stand several times.
    """

    def __init__(self, entries: Iterable[tuple[str, Value]]):
        self._texts: list[tuple[str, Value]] = []
        self._keyed: dict[str, list[tuple[str, Value]]] = {}
        for template, value in entries:
            if "{*" in template:
                self._texts.append((template, value))
            else:
                # A template without indices is found by itself, one with them by their places.
                filled = re.sub(r"\{\w+\}", "0", template)
                key = template if filled == template else _with_places(filled)
                self._keyed.setdefault(key, []).append((template, value))

    def find(self, name: str) -> list[tuple[Value, dict[str, str]]]:
        """Return the value of every template that a name fits, and what its placeholders mean."""
        keys = {name, _with_places(name)}
        candidates = [entry for key in keys for entry in self._keyed.get(key, ())] + self._texts
        return [
            (value, values)
            for template, value in candidates
            if (values := match_template(template, name)) is not None
        ]


def match_template(template: str, name: str) -> dict[str, str] | None:
    """Return what the placeholders of a template stand for in a name, or None."""
    match = _pattern(template).match(name)
    return match.groupdict() if match else None


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Return the name that a template gives with its placeholders filled in."""
    return re.sub(r"\{\*?(\w+)\}", lambda match: values[match[1]], template)


def placeholders(template: str) -> list[str]:
    """Return the placeholders of a template, in order, ``*`` included."""
    return re.findall(r"\{(\*?\w+)\}", template)


def _with_places(name: str) -> str:
    return re.sub(r"(?<![^.])\d+(?![^.])", "#", name)


@lru_cache(maxsize=4096)
def _pattern(template: str) -> re.Pattern[str]:
    pattern = ""
    for literal, star, name in re.findall(r"([^{]+)|\{(\*?)(\w+)\}", template):
        wanted = ".+" if star else r"(?:0|[1-9]\d*)"
        pattern += re.escape(literal) if literal else f"(?P<{name}>{wanted})"
    return re.compile(pattern + r"\Z", re.DOTALL | re.ASCII)
