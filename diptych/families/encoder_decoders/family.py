"""What every family of encoder-decoders does alike: prefix, token table, head, settings.

Variants: ``prefix`` (names begin with ``model.``, as in a model with a head), ``head_weight`` (the
output layer is stored, also where it is the token table), the names of further copies of the token
table that are stored, and ``no_`` with its first name where only copies are.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ... import spec
from ...rules import DELETE, Rule, Tie, Unstack, rule
from ...spec.checks.sizes import Shape
from ...spec.stack import StackConfig
from ..family import Family, Part, Variants
from ..modules import Modules, module_rules, module_templates
from ..shapes import axis_size, check_layer_count, layer_count
from ..stacks import ANY_STACK, StackKind, expect


class Size(NamedTuple):
    """Where a bare state dict shows a size: a tensor and its axis, which is longer by ``extra``."""

    name: str
    axis: int
    extra: int = 0


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderFamily(Family):
    """One family of encoder-decoders, as a table and three functions.

    Attributes:
        architectures: Classes with and without a head, as ``architectures`` names them.
        encoder_architecture: Class of the encoder alone, if there is one.
        encoder: Class of the encoder's config.
        stack_kind: What the parts of encoder and decoder must be for ``write`` to read them.
        select: From a config to those of the modules that it has, where names alone do not tell.
        tables: Every name of the token table without the prefix; the first one is written.
        table: Our name of it.
        sizes: Settings that a bare state dict shows, their tensors named without the prefix.
        layers: Their names of the lists of layers, and the settings of their numbers.
        read: From settings, sizes included, to the config without a head; raises ValueError,
            ``KEY: CAUSE``, where a setting is missing or refused.
        read_head: From settings, and whether a weight and a bias of the output layer are stored,
            to the config of the head.
        write: From the encoder's config, and the decoder's if there is one, to settings in the
            current spelling.
        always: Settings that are written whatever the source's config.json says in their place.
        head: Their name of the output layer, outside the prefix.
        head_bias: Their name of its bias (1, V), if there is one.
        untie: What to do where the output layer differs from the token table.
    """

    architectures: tuple[str, str]
    encoder_architecture: str | None = None
    encoder: type[spec.EncoderConfig] | type[spec.AudioEncoderConfig] = spec.EncoderConfig
    stack_kind: StackKind = ANY_STACK
    select: Callable[[spec.Config], Modules] | None = None
    tables: tuple[str, ...]
    table: str = "encoder.embedding.token_embed"
    sizes: Mapping[str, Size]
    layers: Mapping[str, str]
    read: Callable[[dict[str, Any]], spec.EncoderDecoderConfig]
    read_head: Callable[[dict[str, Any], bool, bool], spec.LogitsHeadConfig]
    write: Callable[[Any, spec.DecoderConfig | None], dict[str, Any]]
    always: tuple[str, ...] = ()
    prefix: str = "model."
    head: str = "lm_head"
    head_bias: str | None = None
    untie: str = DELETE

    @property
    def head_names(self) -> tuple[str, ...]:
        return (f"{self.head}.weight", *((self.head_bias,) if self.head_bias else ()))

    @property
    def templates(self) -> tuple[str, ...]:
        tables = module_templates(self.tables)
        return (*super().templates, *(f"{p}{name}" for p in self.prefixes for name in tables))

    def find_variants(self, names: Collection[str]) -> Variants:
        prefixed = super().find_variants(names)
        prefix = self.prefix_in(prefixed)
        first, *copies = self.tables
        found = [name for name in copies if f"{prefix}{name}.weight" in names]
        if found and f"{prefix}{first}.weight" not in names:
            found.append(f"no_{first}")
        if f"{self.head}.weight" in names:
            found.append("head_weight")
        return (*prefixed, *found)

    def usual_variants(self, config: spec.Config) -> Variants:
        has_head = isinstance(config, spec.EncoderDecoderConfig) and config.decoder.head is not None
        return ("prefix",) if has_head and self.prefix else ()

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> spec.Config:
        values, prefix = {**settings}, self.prefix_in(variants)
        for key, size in self._places(shapes, prefix).items():
            found = axis_size(shapes, size.name, size.axis)
            if values[key] is None and found is not None:
                values[key] = found - size.extra
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

    @property
    def components(self) -> tuple[type[spec.Config], ...]:
        alone = (self.encoder,) if self.encoder_architecture else ()
        return (spec.EncoderDecoderConfig, *alone)

    def parts(self, config: spec.Config) -> Mapping[str, Part]:
        if not isinstance(config, spec.EncoderDecoderConfig):
            return self.stack_kind.parts(expect(config, StackConfig))
        return (
            {"encoder": Part(config.encoder, self.encoder)}
            | self.stack_kind.parts(config.encoder, "encoder.")
            | self.stack_kind.parts(config.decoder, "decoder.")
        )

    def write_settings(
        self, config: spec.Config, source: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if isinstance(config, spec.EncoderDecoderConfig):
            return self.write(config.encoder, config.decoder)
        return self.write(config, None)

    def restated(self, settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
        known = self.settings.values(settings)
        changed = [key for key in self.always if wanted.get(key, known[key]) != known[key]]
        return {key: wanted[key] for key in changed}

    def architecture(self, config: spec.Config) -> str | None:
        if not isinstance(config, spec.EncoderDecoderConfig):
            return self.encoder_architecture
        return self.architectures[0 if config.decoder.head else 1]

    def read_back(self, config: spec.Config, values: Mapping[str, Any]) -> spec.Config:
        read = self.read({**values})
        if not isinstance(config, spec.EncoderDecoderConfig):
            return read.encoder
        head = config.decoder.head
        if head is None:
            return read
        return _with_head(read, self.read_head({**values}, not head.tied, head.bias))

    def rules(self, config: spec.Config, variants: Variants) -> tuple[Rule, ...]:
        prefix, leaves = self.prefix_in(variants), config.leaves()
        modules = self.select(config) if self.select else self.modules
        head = config.decoder.head if isinstance(config, spec.EncoderDecoderConfig) else None
        table = f"{self.table}.weight"
        if not isinstance(config, spec.EncoderDecoderConfig):
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


def _with_head(
    config: spec.EncoderDecoderConfig, head: spec.LogitsHeadConfig
) -> spec.EncoderDecoderConfig:
    return replace(config, decoder=replace(config.decoder, head=head))
