"""What the families of encoders with a masked LM head do alike.

Variants: ``prefix`` (names begin with ``roberta.`` or the like, as in a model with a head), and the
name of every stored copy of a tied tensor, such as ``lm_head.decoder.weight``.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...rules.rules import Rule, rule
from ...rules.transforms import Tie, Transform
from ...spec import Config, EncoderConfig, EncoderWithHeadsConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import SettingsTable, check_layer_count, fill_sizes, layer_count
from ..transformers_settings import first_difference


@dataclass(frozen=True, kw_only=True)
class EncoderFamily:
    """One family of encoders, as tables and functions; ``family`` makes the rest.

    Attributes:
        name: What ``--family`` calls it.
        summary: One line for ``diptych families``.
        model_types: Values of ``model_type`` in its config.json.
        architectures: Classes with and without the masked LM head.
        modules: Our modules of the encoder by theirs, without the prefix.
        heads: Our modules of the heads by theirs.
        copies: By the name of a tied tensor without the prefix, where else it may be stored.
        settings: The settings that it knows.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        read: From settings, sizes included, to the encoder with its masked LM head.
        write: From that config to settings in the current spelling.
        pooler: Their name of the pooler, if there may be one.
        transforms: From their tensors to ours, by their name in ``modules``.
        extra_rules: From the encoder, the prefix and what stands before our names to rules that no
            table of modules gives.
        extra_names: The names that these may take, templates without the prefix.
        prefix: Before the names of a model with a head.
        layers: Their name of the list of layers, None where it is not as long as ours, and the
            setting of their number.
        buffers: Names, without the prefix, of what is no parameter, with their recipe.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    architectures: tuple[str, str]
    modules: Modules
    heads: Modules
    copies: Mapping[str, str]
    settings: SettingsTable
    sizes: Mapping[str, tuple[str, int]]
    read: Callable[[dict[str, Any]], EncoderWithHeadsConfig]
    write: Callable[[EncoderConfig, EncoderWithHeadsConfig | None], dict[str, Any]]
    prefix: str
    pooler: str | None = None
    transforms: Callable[[EncoderConfig], Mapping[str, Transform]] = lambda config: {}
    extra_rules: Callable[[EncoderConfig, str, str], list[Rule]] = lambda *_: []
    extra_names: tuple[str, ...] = ()
    layers: tuple[str | None, str] = ("encoder.layer", "num_hidden_layers")
    buffers: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """Return the family as the converter takes it."""
        prefixes = ("", self.prefix)
        pooler = () if self.pooler is None else (self.pooler,)
        return Family(
            name=self.name,
            summary=self.summary,
            model_types=self.model_types,
            templates=(
                *module_templates([*self.modules, *pooler], prefixes),
                *(f"{p}{name}" for p in prefixes for name in (*self.buffers, *self.extra_names)),
                *module_templates(self.heads, [""]),
                *self.copies.values(),
            ),
            settings=self.settings,
            find_variants=self._find_variants,
            usual_variants=self._usual_variants,
            read_config=self._read_config,
            write_config=self._write_config,
            rules=self._rules,
            buffers={f"{p}{name}": r for p in prefixes for name, r in self.buffers.items()},
        )

    def _find_variants(self, names: Collection[str]) -> Variants:
        is_prefixed = any(name.startswith(self.prefix) for name in names)
        copies = [copy for copy in self.copies.values() if copy in names]
        return (*(("prefix",) if is_prefixed else ()), *copies)

    def _usual_variants(self, config: Config) -> Variants:
        return ("prefix",) if isinstance(config, EncoderWithHeadsConfig) else ()

    def _read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        values = {**settings}
        prefix = self.prefix if "prefix" in variants else ""
        fill_sizes(values, self.sizes, shapes, prefix)
        layers, key = self.layers
        if values[key] is None and layers is not None:
            values[key] = layer_count(shapes, f"{prefix}{layers}.")
        if layers is not None:
            check_layer_count(values[key], shapes, key)
        config = self.read(values)
        has_pooler = self.pooler is not None and f"{prefix}{self.pooler}.weight" in shapes
        encoder = replace(config.encoder, pooler=has_pooler)
        has_head = any(name.startswith(tuple(self.heads)) for name in shapes)
        return replace(config, encoder=encoder) if has_head else encoder

    def _write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        heads = config if isinstance(config, EncoderWithHeadsConfig) else None
        encoder = config.encoder if isinstance(config, EncoderWithHeadsConfig) else config
        if not isinstance(encoder, EncoderConfig) or encoder.embedding is None:
            raise ValueError(f"{self.name} is an Encoder with an embedding")
        try:
            wanted = self.write(encoder, heads)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.name} has no such {config.component}: {error}") from None
        # Made anew, no token is padding; the class's own default may lie outside the vocabulary.
        settings: dict[str, Any] = {**(source or {"pad_token_id": None})}
        if settings.get("model_type") not in self.model_types:
            settings["model_type"] = self.model_types[0]
        if not settings.get("architectures"):
            settings["architectures"] = [self.architectures[0 if heads else 1]]
        if source and not self._difference(encoder, heads, settings):
            return settings
        settings |= wanted
        difference = self._difference(encoder, heads, settings)
        if difference:
            raise ValueError(f"{self.name} has no such {config.component}: {difference}")
        return settings

    def _difference(
        self,
        encoder: EncoderConfig,
        heads: EncoderWithHeadsConfig | None,
        settings: Mapping[str, Any],
    ) -> str:
        """Return where a config differs from what its settings would be read as."""
        try:
            read = self.read(self.settings.values(settings))
        except (TypeError, ValueError) as error:
            return str(error)
        if encoder.pooler and self.pooler is None:
            return "pooler=True"
        own = replace(read.encoder, pooler=encoder.pooler)
        if heads is None:
            return first_difference(encoder, own)
        return first_difference(heads, replace(read, encoder=own))

    def _rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        heads = config if isinstance(config, EncoderWithHeadsConfig) else None
        encoder = config.encoder if isinstance(config, EncoderWithHeadsConfig) else config
        assert isinstance(encoder, EncoderConfig)
        theirs = self.prefix if "prefix" in variants else ""
        ours = "encoder." if heads else ""
        leaves = config.leaves()
        pooler = {} if self.pooler is None else {self.pooler: "pooler_proj"}
        modules = {**self.modules, **pooler}
        transforms = self.transforms(encoder)
        rules = module_rules(modules, leaves, theirs=theirs, ours=ours, transforms=transforms)
        rules += self.extra_rules(encoder, theirs, ours)
        rules += module_rules(self.heads, leaves)
        return tuple(self._with_copy(each, theirs, variants) for each in rules)

    def _with_copy(self, each: Rule, theirs: str, variants: Variants) -> Rule:
        name = each.source[0].removeprefix(theirs)
        copy = self.copies.get(name)
        if copy is None or copy not in variants or len(each.source) > 1:
            return each
        return rule((*each.source, copy), each.target, Tie(2))
