"""Settings of a foreign configuration: understood, bookkeeping, or refused by name."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..formats import FileSource
from ..spec.checks.sizes import Shape, nearest
from ..spec.errors import CheckpointError

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


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds.

    Raises:
        CheckpointError: If it is no regular file, no JSON object, or holds a key twice; names the
            file.
    """
    source = FileSource(path)
    text = source.read(0, source.size)
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: a JSON object expected, found {type(value).__name__}")
    return value


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
        return key, json.loads(value)
    except ValueError:
        return key, value


def require(values: Mapping[str, Any], key: str) -> Any:
    """Return a setting, or raise MissingSettingError, which says how to give it."""
    if values.get(key) is None:
        raise MissingSettingError(key)
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


def axis_size(shapes: Mapping[str, Shape], name: str, axis: int) -> int | None:
    """Return a tensor's size along an axis, None where there is no such tensor.

    Raises:
        ValueError: If it has no such axis.
    """
    shape = shapes.get(name)
    if shape is not None and len(shape) <= axis:
        raise ValueError(f"{name}: shape {shape} has no axis {axis}")
    return None if shape is None else shape[axis]


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
        if values[key] in (None, -1):
            found = axis_size(shapes, f"{prefix}{name}", axis)
            values[key] = values[key] if found is None else found


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


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice")
    return values


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")
