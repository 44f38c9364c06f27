"""What the converter knows of one family of foreign checkpoints."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args

import numpy as np

from ..rules import Rule, TemplateIndex, assign_rules, inverse, match_template, raise_faults
from ..spec import Config
from ..spec.checks.sizes import Shape
from ..spec.stack import StackConfig
from ..tensors.bits import TensorSpec
from .modules import Modules, module_rules, module_templates
from .settings import MissingSettingError, SettingsTable

Variants = tuple[str, ...]
LEFT_OUT = object()
"""The value, in ``write_settings``, of a setting that is not written."""


class Recreated(NamedTuple):
    """A buffer that is not stored: its header, and the recipe that gives it."""

    dtype: str
    shape: Shape
    recipe: str


class Part(NamedTuple):
    """A part of a component's config, and the class, or one of several, that it must be of."""

    config: object
    kind: type | UnionType


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family: names, settings and rules, each declared once and read in both directions.

    A kind of family is a subclass. It reads a config from settings (``read_config``), says what is
    to be written for one (``write_settings``) and what that would be read as (``read_back``);
    ``write_config`` stands here, for all: what it returns has been read back.

    Attributes:
        name: What ``--family`` calls it.
        summary: One line for ``diptych families``.
        model_types: Values of ``model_type`` in its config.json; the first one is written.
        settings: The settings that it knows.
        modules: Our modules by theirs; theirs without the prefix.
        extra_names: Names that no table of modules gives, templates without the prefix.
        buffers: Names, without the prefix, of what is no parameter, with the name of what recreates
            it (``RECIPES``), or None where nothing does.
        prefix: Before the names of a model with a head, in files with that variant.
        prefix_variant: What manifests call that variant.
        linen_norm: What a norm's weight is called in the layout "hf-flax", "scale" or "weight".
        signature: Templates of which a bare state dict must hold one to be taken for the family's;
            none where any of its names will do.
        anew: Settings that one starts from where there is no source's config.json.
        writes_all: Whether all settings are written where a source's own say the same, too.
        version: Of the tables; raised when a manifest of old would be read otherwise by the new.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    settings: SettingsTable
    modules: Modules = field(default_factory=dict)
    extra_names: tuple[str, ...] = ()
    buffers: Mapping[str, str | None] = field(default_factory=dict)
    prefix: str = ""
    prefix_variant: str = "prefix"
    linen_norm: str = "scale"
    signature: tuple[str, ...] = ()
    anew: Mapping[str, Any] = field(default_factory=dict)
    writes_all: bool = False
    version: int = 1

    # Names.

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return what may stand before its names."""
        return ("", self.prefix) if self.prefix else ("",)

    @property
    def head_names(self) -> tuple[str, ...]:
        """Return the names that never have the prefix, templates."""
        return ()

    @property
    def templates(self) -> tuple[str, ...]:
        """Return every source name that any variant may hold, buffers included."""
        names = (*module_templates(self.modules), *self.buffers, *self.extra_names)
        return (*(f"{prefix}{n}" for prefix in self.prefixes for n in names), *self.head_names)

    def uncovered(self, names: Collection[str]) -> list[str]:
        """Return the names that are none of the family's."""
        index = TemplateIndex((template, None) for template in self.templates)
        return [name for name in names if not index.find(name)]

    def fits(self, names: Collection[str]) -> bool:
        """Return whether the names are all of the family's, one of its signature among them."""
        index = TemplateIndex((template, None) for template in self.signature)
        is_signed = not self.signature or any(index.find(name) for name in names)
        return is_signed and not self.uncovered(names)

    def is_buffer(self, name: str) -> bool:
        """Return whether a source name is a buffer's."""
        return self._buffer(name) is not None

    def recipe(self, name: str) -> str | None:
        """Return the name of what recreates a buffer, if anything does."""
        template = self._buffer(name)
        return None if template is None else self.buffers[template]

    def _buffer(self, name: str) -> str | None:
        """Return the template among ``buffers`` that a source name has, if it has one."""
        for prefix in self.prefixes:
            for template in self.buffers:
                if match_template(f"{prefix}{template}", name) is not None:
                    return template
        return None

    # Reading.

    def find_variants(self, names: Collection[str]) -> Variants:
        """Return the spellings that are found in source names."""
        found = bool(self.prefix) and any(name.startswith(self.prefix) for name in names)
        return (self.prefix_variant,) if found else ()

    def prefix_in(self, variants: Variants) -> str:
        """Return what stands before the names in these spellings."""
        return self.prefix if self.prefix_variant in variants else ""

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        """Return the component's config.

        Args:
            settings: Every understood setting, None or its default where none is given.
            shapes: By source name.
            variants: Spellings found.

        Raises:
            ValueError: ``KEY: CAUSE``, if a setting is missing or refused.
        """
        raise NotImplementedError

    def rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        """Return the rules from source names in these spellings to canonical names."""
        return tuple(module_rules(self.modules, config.leaves(), theirs=self.prefix_in(variants)))

    # Writing.

    def usual_variants(self, config: Config) -> Variants:
        """Return the spellings that are written where no source says otherwise."""
        return ()

    def usual_buffers(self, config: Config) -> dict[str, Recreated]:
        """Return the buffers that are written where no source says otherwise."""
        return {}

    def write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return settings that are read as a component's config.

        The source's own are kept where they say the same, and those that are bookkeeping always.

        Args:
            config: The component's.
            source: Settings of the source, if there are any.

        Raises:
            ValueError: If the family has no such component; says the first difference.
        """
        self._check_component(config)
        try:
            wanted = self.write_settings(config, source)
        except ValueError as error:
            raise self._refusal(config, str(error)) from None
        settings = {**(source or self.anew)}
        if settings.get("model_type") not in self.model_types:
            settings["model_type"] = self.model_type(config)
        names = settings.get("architectures") or self.architecture(config)
        if names:
            settings["architectures"] = [names] if isinstance(names, str) else names
        kept = settings | self.restated(settings, wanted)
        if source and not self._difference(config, kept):
            return kept
        stated = {key: value for key, value in wanted.items() if value is not LEFT_OUT}
        settings |= stated
        left_out = settings.keys() & (wanted.keys() - stated.keys())
        # What the source states stays where it means what would be read without it.
        if left_out and self._difference(config, settings):
            settings = {key: v for key, v in settings.items() if key not in left_out}
        difference = self._difference(config, settings)
        if difference:
            raise self._refusal(config, difference)
        return settings

    @property
    def components(self) -> tuple[type[Config], ...]:
        """Return the classes of config that it may have."""
        return (Config,)

    def parts(self, config: Config) -> Mapping[str, Part]:
        """Return the parts of a config that the family's functions will read, by their place."""
        return {}

    def write_settings(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the settings of a config in the current spelling.

        Args:
            config: Of one of ``components``, with ``parts`` that are as they must be.
            source: Settings of the source, if there are any.

        Raises:
            ValueError: If the family has no such component: what it has not, and what it has.
        """
        raise NotImplementedError

    def read_back(self, config: Config, values: Mapping[str, Any]) -> Config:
        """Return the config that settings are read as, beside the tensors that ``config`` has."""
        variants = self.usual_variants(config)
        leaves = config.leaves()
        steps, faults = assign_rules(leaves, inverse(self.rules(config, variants)))
        raise_faults(faults)
        shapes: dict[str, Shape] = {}
        for step in steps:
            specs = [TensorSpec("F32", leaves[name].shape) for name in step.sources]
            outputs = step.transform.outputs(specs)
            shapes |= {name: s.shape for name, s in zip(step.targets, outputs, strict=True)}
        return self.read_config(values, shapes, variants)

    def model_type(self, config: Config) -> str:
        """Return the ``model_type`` of a component."""
        return self.model_types[0]

    def architecture(self, config: Config) -> str | None:
        """Return the name of a component's class in ``architectures``, if there is one."""
        return None

    def restated(self, settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted settings that are written where a source's own say the same, too."""
        return {**wanted} if self.writes_all else {}

    def canonical(self, config: Config) -> Config:
        """Return the config that its settings are read as: for what no setting says, one way."""
        return config

    def _check_component(self, config: Config) -> None:
        """Raise ValueError unless what the family's functions will read of a config is there."""
        if not isinstance(config, self.components):
            known = " or ".join(kind.component for kind in self.components)
            raise ValueError(f"{self.name} has no {config.component}, only {known}")
        for place, (part, kind) in self.parts(config).items():
            if not isinstance(part, kind):
                known = " or ".join(map(_kind_name, get_args(kind) or (kind,)))
                raise self._refusal(config, f"{place}={_shown(part)}, only {known}")

    def _refusal(self, config: Config, difference: str) -> ValueError:
        return ValueError(f"{self.name} has no such {config.component}: {difference}")

    def _difference(self, config: Config, settings: Mapping[str, Any]) -> str:
        """Return where a config differs from what its settings would be read as."""
        # A source's may be those of another family, which gives their names another type.
        for key, setting in self.settings.understood.items():
            cause = setting.fault(settings[key]) if key in settings else ""
            if cause:
                return f"{key}: {cause}"
        try:
            read = self.read_back(config, self.settings.values(settings))
        except MissingSettingError as error:
            return f"there is nothing to write for {error.key}"
        except ValueError as error:
            return str(error)
        return first_difference(self.canonical(config), read)


def first_difference(ours: Any, theirs: Any, place: str = "") -> str:
    """Return the first place where two configs differ, with both values; "" if there is none.

    Of stacks the layers are compared one by one, however their configs take turns.
    """
    if ours == theirs:
        return ""
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        found = (first_difference(a, b, f"{place}[{i}]") for i, (a, b) in pairs)
        return next(filter(None, found), "")
    if isinstance(ours, Config) and type(ours) is type(theirs):
        names = [each.name for each in fields(ours)]
        if isinstance(ours, StackConfig):
            others = [name for name in names if name not in ("num_layers", "layer")]
            names = ["num_layers", "layers", *others]
        dot = f"{place}." if place else ""
        found = (first_difference(getattr(ours, n), getattr(theirs, n), dot + n) for n in names)
        return next(filter(None, found), "")
    shown = f"{place}={_shown(ours)}" if place else _shown(ours)
    return f"{shown}, only {_shown(theirs)}"


def _shown(value: object) -> str:
    return type(value).__name__ if isinstance(value, Config) else repr(value)


def _kind_name(kind: type) -> str:
    return "None" if kind is NoneType else kind.__name__


def recreate(recipe: str, dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    """Return the buffer that a recipe gives, or None if it gives none of that shape."""
    return RECIPES[recipe](dtype, shape)


def _arange(dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    if len(shape) != 2 or shape[0] != 1:
        return None
    return np.arange(shape[1]).astype(dtype).reshape(shape)  # (1, T)


def _zeros(dtype: np.dtype, shape: Shape) -> np.ndarray:
    return np.zeros(shape, dtype)


def _lower_triangle(dtype: np.dtype, shape: Shape) -> np.ndarray | None:
    if len(shape) < 2 or shape[-1] != shape[-2] or set(shape[:-2]) - {1}:
        return None
    return np.tri(shape[-1], dtype=np.bool_).astype(dtype).reshape(shape)  # (1, 1, T, T) or less


RECIPES: dict[str, Callable[[np.dtype, Shape], np.ndarray | None]] = {
    "arange": _arange,
    "zeros": _zeros,
    "lower_triangle": _lower_triangle,
}
"""What recreates a buffer from its dtype and shape alone."""
