"""Settings of a foreign configuration: understood, bookkeeping, or refused by name."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..spec.checks.sizes import Shape, nearest


class Setting(NamedTuple):
    """What one understood setting may be.

    Attributes:
        kind: Its type, or types.
        default: The value that a config.json without it means; None where there is no such value.
        nullable: Whether null is a value of its own where there is a default.
    """

    kind: type | tuple[type, ...]
    default: Any = None
    nullable: bool = False

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
        return ""


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
    bookkeeping: frozenset[str] = frozenset()
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
        return key, json.loads(value)
    except ValueError:
        return key, value


def require(values: Mapping[str, Any], key: str) -> Any:
    """Return a setting, or raise ValueError that says how to give it."""
    if values.get(key) is None:
        raise ValueError(f"{key}: not in the checkpoint; give --set {key}=... or --config FILE")
    return values[key]


def axis_sizes(shapes: Mapping[str, Shape], name: str, rank: int) -> tuple[int | None, ...]:
    """Return a tensor's sizes, None for each where there is no such tensor.

    Raises:
        ValueError: If it has another rank.
    """
    shape = shapes.get(name)
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise ValueError(f"{name}: shape {shape} must have rank {rank}")
    return shape


def fill_sizes(
    values: dict[str, Any],
    sizes: Mapping[str, tuple[str, int]],
    shapes: Mapping[str, Shape],
    prefix: str = "",
) -> None:
    """Set every size that is not given, None or -1, to that of a tensor.

    Args:
        values: Settings by name.
        sizes: By setting, a tensor's name without the prefix, and its axis.
        shapes: Shapes by name.
        prefix: Before the tensors' names.

    Raises:
        ValueError: If a tensor has no such axis.
    """
    for key, (name, axis) in sizes.items():
        shape = shapes.get(f"{prefix}{name}")
        if shape is None or values[key] not in (None, -1):
            continue
        if len(shape) <= axis:
            raise ValueError(f"{prefix}{name}: shape {shape} has no axis {axis}")
        values[key] = shape[axis]


def layer_count(shapes: Mapping[str, Shape], prefix: str) -> int | None:
    """Return how many layers, ``prefix`` and an index from 0 on, there are; None for none.

    Raises:
        ValueError: If an index is left out.
    """
    heads = {name[len(prefix) :].partition(".")[0] for name in shapes if name.startswith(prefix)}
    indices = {int(head) for head in heads if head.isdecimal()}
    if indices and max(indices) >= len(indices):
        raise ValueError(f"{prefix}{max(indices)}: there are only {len(indices)} layers")
    return len(indices) or None


def check_layer_count(num_layers: Any, shapes: Mapping[str, Shape], key: str) -> None:
    """Raise ValueError if there are more layers than tensors, before anything is made for each."""
    if isinstance(num_layers, int) and num_layers > len(shapes):
        raise ValueError(f"{key}: {num_layers} given, but there are only {len(shapes)} tensors")
