"""What the families of encoders of text do alike: prefix, heads, tied copies, settings.

Variants: ``prefix`` (names begin with ``roberta.`` or the like, as in a model with a head),
``gamma_beta`` (a norm's parameters as old files call them), and what each of ``copies`` says of the
stored copy of a tied tensor.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, NamedTuple

from ...rules import Rule, Tie, Transform, rule
from ...spec import Config, EncoderConfig, EncoderWithHeadsConfig, SequenceClassificationHeadConfig
from ...spec.checks.sizes import Shape
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..family import Family, Part, Variants
from ..modules import Modules, module_rules, module_templates
from ..shapes import axis_sizes, check_layer_count, fill_sizes, layer_count
from ..stacks import ANY_STACK, StackKind, expect

_GAMMA_BETA = {"weight": "gamma", "bias": "beta"}
_CLASSIFIERS = ("sequence_classification", "token_classification")
"""Heads whose modules have the same names: only the class tells which one a file has."""


class Head(NamedTuple):
    """A head: modules and settings.

    Attributes:
        modules: Our modules of the head by theirs, which never have the prefix.
        read: From settings, and the number of rows of its first module where that is known, to its
            config.
    """

    modules: Modules
    read: Callable[[dict[str, Any], int | None], HeadConfig]


class TiedCopy(NamedTuple):
    """Where a tied tensor may be stored once more.

    Attributes:
        name: Of the copy.
        variant: What the variant that stores it is called; "": by that name.
        alone: What the variant that stores it alone is called; "": no file does.
    """

    name: str
    variant: str = ""
    alone: str = ""

    @property
    def stored(self) -> str:
        """Return what the variant that stores it is called."""
        return self.variant or self.name


@dataclass(frozen=True, kw_only=True)
class EncoderFamily(Family):
    """One family of encoders, as tables and functions.

    Attributes:
        architectures: Our heads by the class that has them, as ``architectures`` names it; of those
            with the same heads the first one is written.
        heads: By our names.
        read: From settings, sizes included, to the encoder without a pooler; raises ValueError,
            ``KEY: CAUSE``, where a setting is missing or refused.
        write: From the encoder, and its heads by our names, to settings in the current spelling.
        stack_kind: What an encoder's parts must be for ``write`` to read them.
        copies: By the name of a tied tensor without the prefix.
        old_norm: Their name of the norms whose parameters may be called gamma and beta.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        transforms: From their tensors to ours, by their name in ``modules``.
        extra_rules: From the encoder, the prefix and what stands before our names to rules that no
            table of modules gives.
        layers: Their name of the list of layers, None where it is not as long as ours, and the
            setting of their number.
    """

    architectures: Mapping[str, tuple[str, ...]]
    heads: Mapping[str, Head]
    read: Callable[[dict[str, Any]], EncoderConfig]
    write: Callable[[EncoderConfig, Mapping[str, HeadConfig]], dict[str, Any]]
    stack_kind: StackKind = ANY_STACK
    copies: Mapping[str, TiedCopy] = field(default_factory=dict)
    old_norm: str | None = None
    sizes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    transforms: Callable[[EncoderConfig], Mapping[str, Transform]] = lambda config: {}
    extra_rules: Callable[[EncoderConfig, str, str], list[Rule]] = lambda *_: []
    layers: tuple[str | None, str] = ("encoder.layer", "num_hidden_layers")
    # Made anew, no token is padding; the class's own default may lie outside the vocabulary.
    anew: Mapping[str, Any] = field(default_factory=lambda: {"pad_token_id": None})

    @property
    def head_names(self) -> tuple[str, ...]:
        modules = [name for head in self.heads.values() for name in head.modules]
        return (*module_templates(modules), *(copy.name for copy in self.copies.values()))

    @property
    def templates(self) -> tuple[str, ...]:
        names = super().templates
        return tuple(dict.fromkeys((*names, *map(self._in_gamma_beta, names))))

    def find_variants(self, names: Collection[str]) -> Variants:
        copies = {name: copy for name, copy in self.copies.items() if copy.name in names}
        alone = [
            copy.alone
            for name, copy in copies.items()
            if copy.alone and not {f"{prefix}{name}" for prefix in self.prefixes} & {*names}
        ]
        is_old = any(self.old_norm and name.endswith(f"{self.old_norm}.gamma") for name in names)
        return (
            *super().find_variants(names),
            *(["gamma_beta"] if is_old else []),
            *(copy.stored for copy in copies.values()),
            *alone,
        )

    def usual_variants(self, config: Config) -> Variants:
        return (self.prefix_variant,) if isinstance(config, EncoderWithHeadsConfig) else ()

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        values, prefix = {**settings}, self.prefix_in(variants)
        copies = {f"{prefix}{name}": copy.name for name, copy in self.copies.items()}
        copied = {name: shapes[copy] for name, copy in copies.items() if copy in shapes}
        fill_sizes(values, self.sizes, {**copied, **shapes}, prefix)
        layers, key = self.layers
        if layers is not None:
            if values[key] is None:
                values[key] = layer_count(shapes, f"{prefix}{layers}.")
            check_layer_count(values[key], shapes, key)
        poolers = (theirs for theirs, ours in self.modules.items() if ours == "pooler_proj")
        has_pooler = any(f"{prefix}{name}.weight" in shapes for name in poolers)
        encoder = replace(self.read(values), pooler=has_pooler)
        rows = {}
        for name in self._find_heads(values, shapes, has_pooler):
            first = next(iter(self.heads[name].modules))
            rows[name] = axis_sizes(shapes, f"{first}.weight", 2)[0]
        return self._with_heads(encoder, values, rows)

    def _find_heads(
        self, values: Mapping[str, Any], names: Collection[str], has_pooler: bool
    ) -> list[str]:
        """Return the heads that have tensors, one classifier at most."""
        found = []
        for name, head in self.heads.items():
            begin = tuple(f"{module}." for module in head.modules)
            if any(f"{each}.".startswith(begin) for each in names):
                found.append(name)
        if not {*_CLASSIFIERS} <= {*found}:
            return found
        classes = values["architectures"] or []
        first = classes if isinstance(classes, str) else next(iter(classes), None)
        told = next((heads for name, heads in self.architectures.items() if name == first), ())
        chosen = [name for name in _CLASSIFIERS if name in told]
        if not first and not has_pooler:
            chosen = ["token_classification"]
        if not chosen:
            usual = [self._class_with({name}) for name in _CLASSIFIERS]
            raise ValueError(
                f"architectures: {first!r} does not say what the classifier reads; give --set "
                f"architectures={usual[0]} (or {usual[1]})"
            )
        return [name for name in found if name not in _CLASSIFIERS or name in chosen]

    def _with_heads(
        self, encoder: EncoderConfig, values: dict[str, Any], rows: Mapping[str, int | None]
    ) -> Config:
        """Return the encoder with those heads whose number of rows, or None, is given."""
        heads: dict[str, Any] = {name: self.heads[name].read(values, rows[name]) for name in rows}
        return EncoderWithHeadsConfig(encoder=encoder, **heads) if heads else encoder

    @property
    def components(self) -> tuple[type[Config], ...]:
        return EncoderConfig, EncoderWithHeadsConfig

    def parts(self, config: Config) -> Mapping[str, Part]:
        encoder, heads = encoder_and_heads(config)
        place = "encoder." if heads else ""
        others = {name: head for name, head in heads.items() if name not in self.heads}
        return self.stack_kind.parts(encoder, place) | {
            name: Part(head, NoneType) for name, head in others.items()
        }

    def write_settings(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        encoder, heads = encoder_and_heads(config)
        if {*_CLASSIFIERS} <= heads.keys():
            raise ValueError(f"{' beside '.join(_CLASSIFIERS)}, only one of them")
        wanted = self.write(encoder, heads)
        for head in heads.values():
            if isinstance(head, SequenceClassificationHeadConfig):
                known = hf.label_count(self.settings.values(source or {}), None)
                wanted |= hf.label_settings(head.num_labels) if known != head.num_labels else {}
        return wanted

    def read_back(self, config: Config, values: Mapping[str, Any]) -> Config:
        encoder, heads = encoder_and_heads(config)
        has_pooler = encoder.pooler and "pooler_proj" in self.modules.values()
        read = replace(self.read({**values}), pooler=has_pooler)
        return self._with_heads(read, {**values}, dict.fromkeys(heads))

    def architecture(self, config: Config) -> str | None:
        return self._class_with(encoder_and_heads(config)[1].keys())

    def _class_with(self, heads: Collection[str]) -> str | None:
        fitting = (name for name, ours in self.architectures.items() if {*ours} == {*heads})
        return next(fitting, None)

    def rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        encoder, heads = encoder_and_heads(config)
        theirs, ours = self.prefix_in(variants), "encoder." if heads else ""
        leaves = config.leaves()
        transforms = self.transforms(encoder)
        rules = module_rules(self.modules, leaves, theirs=theirs, ours=ours, transforms=transforms)
        rules += self.extra_rules(encoder, theirs, ours)
        for name in heads:
            rules += module_rules(self.heads[name].modules, leaves, ours=f"{name}.")
        if "gamma_beta" in variants:
            rules = [replace(r, source=tuple(map(self._in_gamma_beta, r.source))) for r in rules]
        return tuple(self._with_copy(each, theirs, variants) for each in rules)

    def _with_copy(self, each: Rule, theirs: str, variants: Variants) -> Rule:
        copy = self.copies.get(each.source[0].removeprefix(theirs))
        if copy is None or copy.stored not in variants:
            return each
        if copy.alone in variants:
            return rule(copy.name, each.target)
        return rule((*each.source, copy.name), each.target, Tie(2))

    def _in_gamma_beta(self, name: str) -> str:
        """Return the name that a tensor has in old files, if it is a norm's with another there."""
        module, _, part = name.rpartition(".")
        is_norm = self.old_norm and module.endswith(self.old_norm) and part in _GAMMA_BETA
        return f"{module}.{_GAMMA_BETA[part]}" if is_norm else name


def encoder_and_heads(config: Config) -> tuple[EncoderConfig, dict[str, HeadConfig]]:
    """Return the encoder's config, and its heads by name."""
    if isinstance(config, EncoderWithHeadsConfig):
        return config.encoder, config.heads
    return expect(config, EncoderConfig), {}
