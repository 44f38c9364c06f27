"""Settings of a foreign configuration: understood, bookkeeping, or refused by name."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..formats.json import parse_json
from ..spec.checks.sizes import nearest

NUMBER = (int, float)
"""What a number may be in JSON."""


class Setting(NamedTuple):
    """What one understood setting may be.

    Attributes:
        kind: Its type, or types.
        default: The value that a config.json without it means; None where there is no such value.
        nullable: Whether null is a value of its own where there is a default.
        above: What a number must be above, if anything.
    """

    kind: type | tuple[type, ...]
    default: Any = None
    nullable: bool = False
    above: float | None = None

    def fault(self, value: Any) -> str:
        """Return why a value cannot be this setting's, "" if it can."""
        if value is None:
            is_fine = self.nullable or self.default is None
            return (
                "" if is_fine else f"null is no value; left out, it is {json.dumps(self.default)}"
            )
        is_odd_bool = isinstance(value, bool) and self.kind is not bool
        if is_odd_bool or not isinstance(value, self.kind):
            return f"{json.dumps(value)} has the wrong type"
        if isinstance(value, int | float):
            if not -_HUGE < value < _HUGE:
                return f"{json.dumps(value)} must be below 2**63"
            if self.above is not None and value <= self.above:
                return f"{json.dumps(value)} must be above {self.above}"
        return ""


SIZE = Setting(int, above=0)
"""A size of the component, without a default."""

_HUGE = 2.0**63
"""No setting is as large, and arithmetic on smaller ones stays finite."""


@dataclass(frozen=True)
class SettingsTable:
    """Which settings a family knows.

    Attributes:
        understood: Settings that shape the component.
        bookkeeping: Settings that change no number of the forward pass.
        fixed: Settings that would change numbers, with the values that do not.
        nested: Tables of understood settings that hold settings themselves; one of theirs is
            called by both names, ``text_config.hidden_size``.
    """

    understood: Mapping[str, Setting]
    bookkeeping: frozenset[str] = frozenset({"architectures", "model_type", "pad_token_id"})
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    nested: Mapping[str, "SettingsTable"] = field(default_factory=dict)

    def faults(
        self, settings: Mapping[str, Any], ignored: Collection[str] = (), *, within: str = ""
    ) -> list[str]:
        """Return a fault, ``KEY: CAUSE``, for every setting that would be misread.

        Args:
            settings: By name.
            ignored: Names that are not looked at.
            within: What stands before their names.
        """
        known = {*self.understood, *self.bookkeeping, *self.fixed}
        faults = []
        for key, value in settings.items():
            name = f"{within}{key}"
            if name in ignored or key in self.bookkeeping:
                continue
            if key in self.understood:
                cause = self.understood[key].fault(value)
                if cause:
                    faults.append(f"{name}: {cause}")
                elif key in self.nested and isinstance(value, Mapping):
                    faults += self.nested[key].faults(value, ignored, within=f"{name}.")
            elif key not in self.fixed:
                faults.append(
                    f"{name}: setting not understood{nearest(key, known)}; "
                    f"--ignore-setting {name} accepts it"
                )
            elif value not in self.fixed[key]:
                allowed = " or ".join(json.dumps(choice) for choice in self.fixed[key])
                faults.append(f"{name}: {json.dumps(value)} is not supported, only {allowed}")
        return faults

    def values(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the understood settings, those not given at the value that their lack means."""
        return {key: settings.get(key, s.default) for key, s in self.understood.items()}


class MissingSettingError(ValueError):
    """A setting that neither the checkpoint nor the user gives."""

    def __init__(self, key: str):
        super().__init__(f"{key}: not in the checkpoint; give --set {key}=... or --config FILE")
        self.key = key


def without(settings: Mapping[str, Setting], *names: str) -> dict[str, Setting]:
    """Return the settings but those of some names."""
    return {name: setting for name, setting in settings.items() if name not in names}


def with_settings(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others in their place; ``text_config.hidden_size`` is one within."""
    found = {**given}
    for key, value in settings.items():
        outer, dot, inner = key.partition(".")
        if dot and isinstance(found.get(outer) or {}, Mapping):
            found[outer] = {**(found.get(outer) or {}), inner: value}
        else:
            found[key] = value
    return found


def parse_setting(text: str) -> tuple[str, Any]:
    """Return the key and value of ``K=V``; the value is JSON, or a string if it is none.

    Raises:
        ValueError: If there is no ``=``.
    """
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ValueError(f"--set {text!r} must have the form K=V")
    try:
        return key, parse_json(value.encode())
    except ValueError:
        return key, value


def require(values: Mapping[str, Any], key: str) -> Any:
    """Return a setting, or raise MissingSettingError, which says how to give it."""
    if values.get(key) is None:
        raise MissingSettingError(key)
    return values[key]
