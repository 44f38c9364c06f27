"""What every component config has in common: leaves, and the way to JSON and back."""

import dataclasses
from collections.abc import Mapping
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from .checks.sizes import Shape, nearest


class Leaf(NamedTuple):
    """One parameter: its shape as torch stores it, and the kind that its attribute name says.

    The kinds are ``proj`` (linear), ``norm``, ``embed``, ``conv`` (over images), ``conv1d`` (over
    time) and ``param`` (a raw parameter).
    """

    shape: Shape
    kind: str


Leaves = dict[str, Leaf]

COMPONENTS: dict[str, type["Config"]] = {}
"""Every component's config class by the name that its class has in both panels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the frozen component configs; ``component`` is the class name in both panels."""

    component: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        # Only a class that names a component itself: a part's config has none, and a user's
        # subclass of a component's config does not take its place.
        if "component" in vars(cls):
            COMPONENTS[cls.component] = cls

    def leaves(self) -> Leaves:
        """Return every parameter of the component by its canonical name."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; ``from_dict`` reads them back.

        Where a field takes one of several configs, an object of any but the first carries its
        class's name as "type".
        """
        hints = get_type_hints(type(self))
        fields = dataclasses.fields(self)
        return {f.name: _to_json(hints[f.name], getattr(self, f.name)) for f in fields}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build the config from JSON values.

        Raises:
            ValueError: If a field is unknown or missing, or its value is refused; names the field.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"{cls.__name__} must be an object, not {values!r}")
        hints = get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in values.keys() - fields.keys():
            raise ValueError(f"{cls.__name__} has no field {name!r}{nearest(name, fields)}")
        for name, field in fields.items():
            required = field.default is dataclasses.MISSING
            if required and field.default_factory is dataclasses.MISSING and name not in values:
                raise ValueError(f"{cls.__name__} needs the field {name!r}")
        return cls(**{name: _from_json(name, hints[name], value) for name, value in values.items()})


def linear_leaves(in_features: int, out_features: int, *, bias: bool = True) -> Leaves:
    """Return the leaves of one linear map, stored (out, in) as torch does."""
    leaves = {"weight": Leaf((out_features, in_features), "proj")}
    return leaves | ({"bias": Leaf((out_features,), "proj")} if bias else {})


def under(prefix: str, leaves: Leaves) -> Leaves:
    """Return the leaves with ``prefix.`` before every name."""
    return {f"{prefix}.{name}": leaf for name, leaf in leaves.items()}


def _to_json(hint: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(hint, part) for part in value]
    if isinstance(value, Real) and not isinstance(value, int | float):  # numpy's
        return int(value) if isinstance(value, Integral) else float(value)
    if not isinstance(value, Config):
        return value
    configs = _configs(hint)
    tag = {} if not configs or type(value) is configs[0] else {TYPE: _tag(type(value))}
    return tag | value.to_dict()


def _from_json(name: str, hint: Any, value: Any) -> Any:
    """Return the value of a field, whose JSON type must be one of those in the hint."""
    options = _options(hint)
    configs = [
        option for option in options if isinstance(option, type) and issubclass(option, Config)
    ]
    if configs and isinstance(value, Mapping):
        return _config_from_json(name, configs, value)
    for option in options:
        kind = get_origin(option) or option
        if kind is tuple and isinstance(value, list):
            part = (get_args(option) or (Any,))[0]
            if not _configs(part):
                return tuple(value)
            return tuple(_from_json(f"{name}[{i}]", part, v) for i, v in enumerate(value))
        accepted = (int, float) if kind is float else kind
        if isinstance(value, accepted) and (kind is bool or not isinstance(value, bool)):
            return value
    wanted = dict.fromkeys(_JSON_TYPES.get(get_origin(o) or o, "an object") for o in options)
    raise ValueError(f"{name}={value!r} must be {' or '.join(wanted)}")


def _config_from_json(name: str, configs: list[type[Config]], value: Mapping[str, Any]) -> Config:
    """Return the config that an object's "type" names, the first without one."""
    by_tag = {_tag(config): config for config in configs}
    tag = value.get(TYPE, _tag(configs[0]))
    if not isinstance(tag, str) or tag not in by_tag:
        raise ValueError(f"{name}: type {tag!r} must be one of {', '.join(map(repr, by_tag))}")
    try:
        return by_tag[tag].from_dict({key: part for key, part in value.items() if key != TYPE})
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from None


def _configs(hint: Any) -> list[type[Config]]:
    """Return the config classes in a hint, those of its tuples too, in order."""
    found = []
    for option in _options(hint):
        if isinstance(option, type) and issubclass(option, Config):
            found.append(option)
        elif get_origin(option) is tuple:
            found += [config for config in _configs(get_args(option)[0]) if config not in found]
    return found


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _tag(config: type[Config]) -> str:
    return config.__name__.removesuffix("Config")


TYPE = "type"
"""The key under which an object says which of several configs it is."""

_JSON_TYPES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    tuple: "a list",
    NoneType: "null",
}
