"""What every component config has in common: leaves, and the way to JSON and back."""

import dataclasses
from collections.abc import Mapping
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from .checks import Shape, nearest


class Leaf(NamedTuple):
    """One parameter: its shape as torch stores it, and the kind that its attribute name says.

    The kinds are ``proj`` (linear), ``norm``, ``embed``, ``conv`` and ``param`` (a raw parameter).
    """

    shape: Shape
    kind: str


Leaves = dict[str, Leaf]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the frozen component configs; ``component`` is the class name in both panels."""

    component: ClassVar[str] = ""

    def leaves(self) -> Leaves:
        """Return every parameter of the component by its canonical name."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; ``from_dict`` reads them back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build the config from JSON values.

        Raises:
            ValueError: If a field is unknown or missing, or its value is refused; names the field.
        """
        hints = get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in values.keys() - fields.keys():
            raise ValueError(f"{cls.__name__} has no field {name!r}{nearest(name, fields)}")
        for name, field in fields.items():
            required = field.default is dataclasses.MISSING
            if required and field.default_factory is dataclasses.MISSING and name not in values:
                raise ValueError(f"{cls.__name__} needs the field {name!r}")
        return cls(**{name: _from_json(hints[name], value) for name, value in values.items()})


def linear_leaves(in_features: int, out_features: int, *, bias: bool = True) -> Leaves:
    """Return the leaves of one linear map, stored (out, in) as torch does."""
    leaves = {"weight": Leaf((out_features, in_features), "proj")}
    return leaves | ({"bias": Leaf((out_features,), "proj")} if bias else {})


def under(prefix: str, leaves: Leaves) -> Leaves:
    """Return the leaves with ``prefix.`` before every name."""
    return {f"{prefix}.{name}": leaf for name, leaf in leaves.items()}


def _from_json(hint: Any, value: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return None
        for option in get_args(hint):
            if isinstance(option, type) and issubclass(option, Config):
                return _from_json(option, value)
        return tuple(value) if isinstance(value, list) else value
    if isinstance(hint, type) and issubclass(hint, Config) and isinstance(value, Mapping):
        return hint.from_dict(value)
    return tuple(value) if isinstance(value, list) else value
