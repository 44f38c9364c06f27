"""What every family of decoder-only language models does alike: prefix, head, buffers, settings.

Variants: ``prefix`` (names begin with ``model.`` or the like, as in a model with a head) and
``head_weight`` (the output layer is stored, also where it is the token table).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...rules import Rule, Tie, Transform, rule
from ...spec import Config, DecoderConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Part, Variants
from ..modules import PARTS, Modules, module_rules
from ..rope import ROPE_SPELLINGS
from ..shapes import check_layer_count, fill_sizes, layer_count
from ..stacks import ANY_STACK, StackKind, expect

_UNTIE = "to read both, give --set tie_word_embeddings=false"


@dataclass(frozen=True, kw_only=True)
class DecoderFamily(Family):
    """One family of decoders, as a table and two functions.

    Attributes:
        architectures: Classes with and without a head, as ``architectures`` names them, or "".
        read: From settings, sizes included, to the config of the model with a head; raises
            ValueError, ``KEY: CAUSE``, where a setting is missing or refused.
        write: From that config to settings in the current spelling.
        stack_kind: What a decoder's parts must be for ``write`` to read them.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        counts: Settings that a bare state dict shows as the length of a list, by its name.
        experts: Settings that number experts, each of which has tensors of its own; the first
            that is given counts.
        flags: Settings that it shows by a tensor that is there or not.
        select: From a config to those of the modules that it has, where names alone do not tell.
        transforms: From their tensors to ours, by their name in ``modules``.
        extra_rules: From a config and the prefix to rules that no table of modules gives.
        canonicalise: From a config to the one that its settings are read as: weights are reordered
            for what no setting says.
        layers: Their name of the list of layers, and the setting of their number.
        head: Their name of the output layer, outside the prefix.
    """

    architectures: tuple[str, str] = ("", "")
    read: Callable[[dict[str, Any]], DecoderConfig]
    write: Callable[[DecoderConfig], dict[str, Any]]
    stack_kind: StackKind = ANY_STACK
    sizes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    experts: tuple[str, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    select: Callable[[DecoderConfig], Modules] | None = None
    transforms: Callable[[DecoderConfig], Mapping[str, Transform]] = lambda config: {}
    extra_rules: Callable[[DecoderConfig, str], list[Rule]] = lambda config, prefix: []
    canonicalise: Callable[[DecoderConfig], DecoderConfig] = lambda config: config
    prefix: str = "model."
    layers: tuple[str, str] = ("layers", "num_hidden_layers")
    head: str = "lm_head"
    # Made anew, no token is padding; the class's own default may lie outside the vocabulary.
    anew: Mapping[str, Any] = field(default_factory=lambda: {"pad_token_id": None})

    @property
    def head_names(self) -> tuple[str, ...]:
        return tuple(f"{self.head}.{part}" for part in PARTS)

    def find_variants(self, names: Collection[str]) -> Variants:
        stored = ("head_weight",) if f"{self.head}.weight" in names else ()
        return (*super().find_variants(names), *stored)

    def usual_variants(self, config: Config) -> Variants:
        return ("prefix",) if isinstance(config, DecoderConfig) and config.head else ()

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        values = {**settings}
        prefix = self.prefix_in(variants)
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
        check_layer_count(values[key], shapes, key)
        config = self.read(values)
        for number in [name for name in self.experts if values[name] is not None][:1]:
            check_layer_count(values[number], shapes, number)
        return config if self._has_head(values, variants) else replace(config, head=None)

    def _has_head(self, values: Mapping[str, Any], variants: Variants) -> bool:
        """Return whether there are logits: old files lack the prefix, a tied head has no tensor."""
        names = values.get("architectures") or ()
        return bool(variants) or self.architectures[0] in (
            [names] if isinstance(names, str) else names
        )

    @property
    def components(self) -> tuple[type[Config], ...]:
        return (DecoderConfig,)

    def parts(self, config: Config) -> Mapping[str, Part]:
        return self.stack_kind.parts(expect(config, DecoderConfig))

    def write_settings(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        return self.write(expect(config, DecoderConfig))

    def read_back(self, config: Config, values: Mapping[str, Any]) -> Config:
        read = self.read({**values})
        return read if expect(config, DecoderConfig).head else replace(read, head=None)

    def architecture(self, config: Config) -> str | None:
        return self.architectures[0 if expect(config, DecoderConfig).head else 1]

    def restated(self, settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other spelling of the rotation, which files hold beside the source's."""
        return {k: wanted[k] for k in ROPE_SPELLINGS if k in wanted and k not in settings}

    def canonical(self, config: Config) -> Config:
        return self.canonicalise(expect(config, DecoderConfig))

    def rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        decoder = expect(config, DecoderConfig)
        prefix, leaves = self.prefix_in(variants), config.leaves()
        modules = self.select(decoder) if self.select else self.modules
        rules = module_rules(modules, leaves, theirs=prefix, transforms=self.transforms(decoder))
        rules += self.extra_rules(decoder, prefix)
        if decoder.head is None:
            return tuple(rules)
        if not decoder.head.tied:
            rules += module_rules({self.head: "head.vocab_proj"}, leaves)
            return tuple(rules)
        if decoder.head.bias:
            rules.append(rule(f"{self.head}.bias", "head.vocab_bias_param"))
        if "head_weight" in variants:
            rules = [self._with_copy(each) for each in rules]
        return tuple(rules)

    def _with_copy(self, table: Rule) -> Rule:
        if table.target != ("embedding.token_embed.weight",):
            return table
        return rule((*table.source, f"{self.head}.weight"), table.target, Tie(2, _UNTIE))
