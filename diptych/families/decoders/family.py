"""What every family of decoder-only language models does alike: prefix, head, buffers, settings.

Variants: ``prefix`` (names begin with ``model.`` or the like, as in a model with a head) and
``head_weight`` (the output layer is stored, also where it is the token table).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...rules.rules import Rule, rule
from ...rules.transforms import Tie, Transform
from ...spec import Config, DecoderConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import SettingsTable, check_layer_count, fill_sizes, layer_count
from ..transformers_settings import first_difference
from .rope import ROPE_SPELLINGS

_UNTIE = "to read both, give --set tie_word_embeddings=false"


@dataclass(frozen=True, kw_only=True)
class DecoderFamily:
    """One family of decoders, as a table and three functions; ``family`` makes the rest.

    Attributes:
        name: What ``--family`` calls it.
        summary: One line for ``diptych families``.
        model_types: Values of ``model_type`` in its config.json.
        architectures: Classes with and without a head, as ``architectures`` names them.
        modules: Our modules by theirs; theirs without the prefix.
        select: From a config to those of the modules that it has, where names alone do not tell.
        settings: The settings that it knows.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        counts: Settings that a bare state dict shows as the length of a list, by its name.
        experts: Settings that number experts, each of which has tensors of its own.
        flags: Settings that it shows by a tensor that is there or not.
        read: From settings, sizes included, to the config of the model with a head; raises
            ValueError, ``KEY: CAUSE``, where a setting is missing or refused.
        write: From that config to settings in the current spelling.
        transforms: From their tensors to ours, by their name in ``modules``.
        extra_rules: From a config and the prefix to rules that no table of modules gives.
        extra_names: The names that these may take, templates without the prefix.
        settled: From a config to the one that its settings are read as: weights are reordered for
            what no setting says.
        prefix: Before the names of a model with a head.
        layers: Their name of the list of layers, and the setting of their number.
        head: Their name of the output layer, outside the prefix.
        buffers: Names, without the prefix, of what is no parameter, with their recipe.
        linen_norm: The leaf name of norms in Flax files.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    architectures: tuple[str, str]
    modules: Modules
    settings: SettingsTable
    sizes: Mapping[str, tuple[str, int]]
    read: Callable[[dict[str, Any]], DecoderConfig]
    write: Callable[[DecoderConfig], dict[str, Any]]
    counts: Mapping[str, str] = field(default_factory=dict)
    experts: tuple[str, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    select: Callable[[DecoderConfig], Modules] | None = None
    transforms: Callable[[DecoderConfig], Mapping[str, Transform]] = lambda config: {}
    extra_rules: Callable[[DecoderConfig, str], list[Rule]] = lambda config, prefix: []
    extra_names: tuple[str, ...] = ()
    settled: Callable[[DecoderConfig], DecoderConfig] = lambda config: config
    prefix: str = "model."
    layers: tuple[str, str] = ("layers", "num_hidden_layers")
    head: str = "lm_head"
    buffers: Mapping[str, str | None] = field(default_factory=dict)
    linen_norm: str = "scale"

    @property
    def family(self) -> Family:
        """Return the family as the converter takes it."""
        prefixes = ("", self.prefix)
        return Family(
            name=self.name,
            summary=self.summary,
            model_types=self.model_types,
            templates=(
                *module_templates(self.modules, prefixes),
                *(f"{p}{name}" for p in prefixes for name in (*self.buffers, *self.extra_names)),
                *(f"{self.head}.{part}" for part in ("weight", "bias")),
            ),
            settings=self.settings,
            find_variants=self._find_variants,
            usual_variants=self._usual_variants,
            read_config=self._read_config,
            write_config=self._write_config,
            rules=self._rules,
            buffers={f"{p}{name}": r for p in prefixes for name, r in self.buffers.items()},
            linen_norm=self.linen_norm,
        )

    def _find_variants(self, names: Collection[str]) -> Variants:
        found = {
            "prefix": any(name.startswith(self.prefix) for name in names),
            "head_weight": f"{self.head}.weight" in names,
        }
        return tuple(name for name, is_found in found.items() if is_found)

    def _usual_variants(self, config: Config) -> Variants:
        return ("prefix",) if isinstance(config, DecoderConfig) and config.head else ()

    def _read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        values = {**settings}
        prefix = self.prefix if "prefix" in variants else ""
        fill_sizes(values, self.sizes, shapes, prefix)
        for key, (name, axis) in self.sizes.items():
            shape = shapes.get(f"{prefix}{name}", ())
            if len(shape) > axis and values[key] != shape[axis]:
                raise ValueError(f"{key}: {values[key]}, but {prefix}{name} has {shape[axis]}")
        layers, key = self.layers
        for counted, name in {**self.counts, key: layers}.items():
            if values[counted] is None:
                values[counted] = layer_count(shapes, f"{prefix}{name}.")
        for flag, name in self.flags.items():
            if values[flag] is None:
                values[flag] = f"{prefix}{name}" in shapes
        for number in (key, *self.experts):
            check_layer_count(values[number], shapes, number)
        config = self.read(values)
        return config if self._has_head(values, variants) else replace(config, head=None)

    def _has_head(self, values: Mapping[str, Any], variants: Variants) -> bool:
        """Return whether there are logits: old files lack the prefix, a tied head has no tensor."""
        names = values.get("architectures") or ()
        return bool(variants) or self.architectures[0] in (
            [names] if isinstance(names, str) else names
        )

    def _write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        if not isinstance(config, DecoderConfig) or config.embedding is None:
            raise ValueError(f"{self.name} is a Decoder with an embedding")
        try:
            wanted = self.write(config)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.name} has no such Decoder: {error}") from None
        # Made anew, no token is padding; the class's own default may lie outside the vocabulary.
        settings: dict[str, Any] = {**(source or {"pad_token_id": None})}
        if settings.get("model_type") not in self.model_types:
            settings["model_type"] = self.model_types[0]
        if not settings.get("architectures"):
            settings["architectures"] = [self.architectures[0 if config.head else 1]]
        both = {key: wanted[key] for key in ROPE_SPELLINGS if key in wanted and key not in settings}
        if source and not self._difference(config, settings | both):
            return settings | both
        settings |= wanted
        difference = self._difference(config, settings)
        if difference:
            raise ValueError(f"{self.name} has no such Decoder: {difference}")
        return settings

    def _difference(self, config: DecoderConfig, settings: Mapping[str, Any]) -> str:
        """Return where a config differs from what its settings would be read as."""
        try:
            read = self.read(self.settings.values(settings))
        except (TypeError, ValueError) as error:
            return str(error)
        config = self.settled(config)
        return first_difference(config, read if config.head else replace(read, head=None))

    def _rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        assert isinstance(config, DecoderConfig)
        prefix = self.prefix if "prefix" in variants else ""
        modules = self.select(config) if self.select else self.modules
        rules = module_rules(
            modules, config.leaves(), theirs=prefix, transforms=self.transforms(config)
        )
        rules += self.extra_rules(config, prefix)
        if config.head is None:
            return tuple(rules)
        if not config.head.tied:
            rules += module_rules({self.head: "head.vocab_proj"}, config.leaves())
            return tuple(rules)
        if config.head.bias:
            rules.append(rule(f"{self.head}.bias", "head.vocab_bias_param"))
        if "head_weight" in variants:
            rules = [self._with_copy(each) for each in rules]
        return tuple(rules)

    def _with_copy(self, table: Rule) -> Rule:
        if table.target != ("embedding.token_embed.weight",):
            return table
        return rule((*table.source, f"{self.head}.weight"), table.target, Tie(2, _UNTIE))
