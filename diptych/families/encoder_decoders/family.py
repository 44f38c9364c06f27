"""What every family of encoder-decoders does alike: prefix, token table, head, settings.

Variants: ``prefix`` (names begin with ``model.``, as in a model with a head), ``head_weight`` (the
output layer is stored, also where it is the token table), the names of further copies of the token
table that are stored, and ``no_`` with its first name where only copies are.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...rules.rules import Rule, rule
from ...rules.transforms import DELETE, Tie, Unstack
from ...spec import Config, DecoderConfig, EncoderDecoderConfig, LogitsHeadConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import SettingsTable, check_layer_count, layer_count
from ..transformers_settings import first_difference


class Size(NamedTuple):
    """Where a bare state dict shows a size: a tensor and its axis, which is longer by ``extra``."""

    name: str
    axis: int
    extra: int = 0


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderFamily:
    """One family of encoder-decoders, as a table and four functions; ``family`` makes the rest.

    Attributes:
        name: What ``--family`` calls it.
        summary: One line for ``diptych families``.
        model_types: Values of ``model_type`` in its config.json.
        architectures: Classes with and without a head, as ``architectures`` names them.
        encoder_architecture: Class of the encoder alone, if there is one.
        modules: Our modules by theirs, token table and head left out; theirs without the prefix.
        select: From a config to those of the modules that it has, where names alone do not tell.
        tables: Every name of the token table without the prefix; the first one is written.
        table: Our name of it.
        settings: The settings that it knows.
        sizes: Settings that a bare state dict shows, their tensors named without the prefix.
        layers: Their names of the lists of layers, and the settings of their numbers.
        read: From settings, sizes included, to the config without a head; raises ValueError,
            ``KEY: CAUSE``, where a setting is missing or refused.
        read_head: From settings, and whether a weight and a bias of the output layer are stored,
            to the config of the head.
        write: From the encoder's config, and the decoder's if there is one, to settings in the
            current spelling.
        always: Settings that are written whatever the source's config.json says in their place.
        prefix: Before the names of a model with a head.
        head: Their name of the output layer, outside the prefix.
        head_bias: Their name of its bias (1, V), if there is one.
        untie: What to do where the output layer differs from the token table.
        buffers: Names, without the prefix, of what is no parameter, with their recipe.
        linen_norm: The leaf name of norms in Flax files.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    architectures: tuple[str, str]
    encoder_architecture: str | None = None
    modules: Modules
    select: Callable[[Config], Modules] | None = None
    tables: tuple[str, ...]
    table: str = "encoder.embedding.token_embed"
    settings: SettingsTable
    sizes: Mapping[str, Size]
    layers: Mapping[str, str]
    read: Callable[[dict[str, Any]], EncoderDecoderConfig]
    read_head: Callable[[dict[str, Any], bool, bool], LogitsHeadConfig]
    write: Callable[[Any, DecoderConfig | None], dict[str, Any]]
    always: tuple[str, ...] = ()
    prefix: str = "model."
    head: str = "lm_head"
    head_bias: str | None = None
    untie: str = DELETE
    buffers: Mapping[str, str | None] = field(default_factory=dict)
    linen_norm: str = "scale"

    @property
    def family(self) -> Family:
        """Return the family as the converter takes it."""
        prefixes = ("", self.prefix) if self.prefix else ("",)
        return Family(
            name=self.name,
            summary=self.summary,
            model_types=self.model_types,
            templates=(
                *module_templates((*self.modules, *self.tables), prefixes),
                *(f"{prefix}{name}" for prefix in prefixes for name in self.buffers),
                f"{self.head}.weight",
                *((self.head_bias,) if self.head_bias else ()),
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
        has_prefix = bool(self.prefix) and any(name.startswith(self.prefix) for name in names)
        prefix = self.prefix if has_prefix else ""
        first, *copies = self.tables
        found = [name for name in copies if f"{prefix}{name}.weight" in names]
        if found and f"{prefix}{first}.weight" not in names:
            found.append(f"no_{first}")
        if f"{self.head}.weight" in names:
            found.append("head_weight")
        return ("prefix", *found) if has_prefix else tuple(found)

    def _usual_variants(self, config: Config) -> Variants:
        has_head = isinstance(config, EncoderDecoderConfig) and config.decoder.head is not None
        return ("prefix",) if has_head and self.prefix else ()

    def _read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        prefix = self.prefix if "prefix" in variants else ""
        values = {**settings}
        for key, size in self._places(shapes, prefix).items():
            if values[key] is None and size.name in shapes:
                values[key] = shapes[size.name][size.axis] - size.extra
        for layers, key in self.layers.items():
            if values[key] is None:
                values[key] = layer_count(shapes, f"{prefix}{layers}.")
            check_layer_count(values[key], shapes, key)
        config = self.read(values)
        has_decoder = any(name.startswith(f"{prefix}decoder.") for name in shapes)
        if self.encoder_architecture and not has_decoder:
            return config.encoder
        if not self._has_head(values, variants):
            return config
        stored = f"{self.head}.weight" in shapes, self.head_bias in shapes
        return _with_head(config, self.read_head(values, *stored))

    def _places(self, shapes: Mapping[str, Shape], prefix: str) -> dict[str, Size]:
        """Return where every size stands in these names."""
        tables = [f"{prefix}{name}.weight" for name in self.tables]
        table = next((name for name in tables if name in shapes), tables[0])
        places = {"vocab_size": Size(table, 0), "d_model": Size(table, 1)}
        for key, size in self.sizes.items():
            places[key] = size._replace(name=f"{prefix}{size.name}")
        return places

    def _has_head(self, values: Mapping[str, Any], variants: Variants) -> bool:
        """Return whether there are logits: a tied head has no tensor, and T5 no prefix."""
        names = values.get("architectures") or ()
        names = [names] if isinstance(names, str) else names
        with_head, without = self.architectures
        return (
            bool({"prefix", "head_weight"}.intersection(variants))
            or with_head in names
            or (not self.prefix and without not in names)
        )

    def _write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        is_whole = isinstance(config, EncoderDecoderConfig)
        if not is_whole and not self.encoder_architecture:
            raise ValueError(f"{self.name} has no {config.component}")
        model: Any = config
        encoder, decoder = (model.encoder, model.decoder) if is_whole else (model, None)
        try:
            wanted = self.write(encoder, decoder)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.name} has no such {config.component}: {error}") from None
        settings: dict[str, Any] = {**(source or {}), "model_type": self.model_types[0]}
        if source and source.get("model_type") in self.model_types:
            settings["model_type"] = source["model_type"]
        if not settings.get("architectures"):
            settings["architectures"] = [self._architecture(decoder)]
        if source and not self._difference(config, settings):
            known = self.settings.values(settings)
            changed = [key for key in self.always if wanted.get(key, known[key]) != known[key]]
            return settings | {key: wanted[key] for key in changed}
        settings |= wanted
        difference = self._difference(config, settings)
        if difference:
            raise ValueError(f"{self.name} has no such {config.component}: {difference}")
        return settings

    def _architecture(self, decoder: DecoderConfig | None) -> str | None:
        if decoder is None:
            return self.encoder_architecture
        return self.architectures[0 if decoder.head else 1]

    def _difference(self, config: Config, settings: Mapping[str, Any]) -> str:
        """Return where a config differs from what its settings would be read as."""
        values = self.settings.values(settings)
        try:
            read: Any = self.read(values)
            if not isinstance(config, EncoderDecoderConfig):
                read = read.encoder
            elif config.decoder.head is not None:
                head = config.decoder.head
                read = _with_head(read, self.read_head(values, not head.tied, head.bias))
        except (TypeError, ValueError) as error:
            return str(error)
        return first_difference(config, read)

    def _rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        prefix = self.prefix if "prefix" in variants else ""
        modules, leaves = self.select(config) if self.select else self.modules, config.leaves()
        head = config.decoder.head if isinstance(config, EncoderDecoderConfig) else None
        table = f"{self.table}.weight"
        if not isinstance(config, EncoderDecoderConfig):
            modules = {name: str(ours).removeprefix("encoder.") for name, ours in modules.items()}
            table = table.removeprefix("encoder.")
        rules = module_rules(modules, leaves, theirs=prefix)
        first, *copies = self.tables
        stored = [] if f"no_{first}" in variants else [first]
        stored += [name for name in copies if name in variants]
        names = [f"{prefix}{name}.weight" for name in stored]
        tie = Tie(len(names))
        if head is not None and head.tied and "head_weight" in variants:
            names.append(f"{self.head}.weight")
            tie = Tie(len(names), self.untie)
        rules.append(rule(names, table, tie if len(names) > 1 else None))
        if head is None:
            return tuple(rules)
        if not head.tied:
            rules += module_rules({self.head: "decoder.head.vocab_proj"}, leaves)
        if head.bias and self.head_bias:
            rules.append(rule(self.head_bias, "decoder.head.vocab_bias_param", Unstack(1)))
        return tuple(rules)


def _with_head(config: EncoderDecoderConfig, head: LogitsHeadConfig) -> EncoderDecoderConfig:
    return replace(config, decoder=replace(config.decoder, head=head))
