"""State dicts of ``torch.nn.TransformerEncoder``, its layer, and ``torch.nn.MultiheadAttention``.

Variants: ``in_proj`` (queries, keys and values in one tensor, as where their widths are alike).
"""

from collections.abc import Collection, Mapping
from types import NoneType
from typing import Any

from ... import spec
from ...rules import Rule, Split, rule
from ...spec.checks.sizes import Shape
from ..family import Family, Part, Variants
from ..modules import module_rules, module_templates
from ..settings import NUMBER, SIZE, Setting, SettingsTable, require
from ..shapes import axis_sizes, check_layer_count, layer_count
from ..stacks import StackKind, expect

_OUT = {"out_proj": "out_proj"}
_APART = {f"{letter}_proj_weight": f"{letter}_proj.weight" for letter in "qkv"}
_LAYER = {
    "self_attn.out_proj": "attention.out_proj",
    "linear1": "feed_forward.up_proj",
    "linear2": "feed_forward.down_proj",
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
}
_STACK = {
    **{f"layers.{{i}}.{theirs}": f"layers.{{i}}.{ours}" for theirs, ours in _LAYER.items()},
    "norm": "final_norm",
}
_PLACES = {  # of the attention, in theirs and in ours
    spec.AttentionConfig: ("", ""),
    spec.TransformerEncoderLayerConfig: ("self_attn.", "attention."),
    spec.EncoderConfig: ("layers.{i}.self_attn.", "layers.{i}.attention."),
}
_MODULES: dict[type[spec.Config], Mapping[str, str]] = {
    spec.AttentionConfig: _OUT,
    spec.TransformerEncoderLayerConfig: _LAYER,
    spec.EncoderConfig: _STACK,
}


_STACK_KIND = StackKind(feed_forward=spec.FeedForwardConfig, embedding=NoneType)


def _names(*names: str) -> tuple[str, ...]:
    """Return names of the attention's tensors at every place that it may have."""
    return tuple(f"{theirs}{name}" for theirs, _ in _PLACES.values() for name in names)


class _TorchLayers(Family):
    def find_variants(self, names: Collection[str]) -> Variants:
        return ("in_proj",) if any(name.endswith("in_proj_weight") for name in names) else ()

    def usual_variants(self, config: spec.Config) -> Variants:
        if not isinstance(config, self.components):
            return ()
        attention = _attention(config)
        num_heads, num_kv_heads, _ = attention.sizes
        is_one_width = attention.kv_dim is None and num_heads == num_kv_heads
        return ("in_proj",) if is_one_width else ()

    def rules(self, config: spec.Config, variants: Variants) -> tuple[Rule, ...]:
        theirs, ours = _PLACES[type(config)]
        rules = module_rules(_MODULES[type(config)], config.leaves())
        weights = tuple(f"{ours}{letter}_proj.weight" for letter in "qkv")
        biases = tuple(f"{ours}{letter}_proj.bias" for letter in "qkv")
        if "in_proj" in variants:
            rules.append(rule(f"{theirs}in_proj_weight", weights, Split(3)))
        else:
            rules += [rule(f"{theirs}{name}", f"{ours}{to}") for name, to in _APART.items()]
        if all(_attention(config).biases):
            rules.append(rule(f"{theirs}in_proj_bias", biases, Split(3)))
        return tuple(rules)

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> spec.Config:
        place = "layers.0." if "layers.0.linear1.weight" in shapes else ""
        d_ff, d_model = axis_sizes(shapes, f"{place}linear1.weight", 2)
        if d_ff is None:
            return _read_attention(settings, shapes, variants)
        if f"{place}linear1.bias" not in shapes:
            raise ValueError(f"{place}linear1.bias: a layer without biases is not supported")
        layer = spec.TransformerEncoderLayerConfig(
            d_model=d_model or 0,
            num_heads=require(settings, "num_heads"),
            d_ff=d_ff,
            dropout=settings["dropout"],
            activation=settings["activation"],
            norm_placement="pre" if settings["norm_first"] else "post",
            eps=settings["layer_norm_eps"],
            attention_dropout=settings["dropout"],
        )
        if not place:
            return layer
        num_layers = settings["num_layers"] or layer_count(shapes, "layers.") or 0
        check_layer_count(num_layers, shapes, "num_layers")
        has_norm = "norm.weight" in shapes
        norm = spec.NormConfig(eps=settings["layer_norm_eps"]) if has_norm else None
        return spec.EncoderConfig(layer=layer, num_layers=num_layers, final_norm=norm)

    @property
    def components(self) -> tuple[type[spec.Config], ...]:
        return tuple(_MODULES)

    def parts(self, config: spec.Config) -> Mapping[str, Part]:
        return _STACK_KIND.parts(config) if isinstance(config, spec.EncoderConfig) else {}

    def write_settings(
        self, config: spec.Config, source: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if isinstance(config, spec.AttentionConfig):
            return {"num_heads": config.num_heads, "dropout": config.attention_dropout}
        layer = _block(config)
        return {
            "activation": layer.feed_forward.activation,
            "dropout": layer.dropout,
            "layer_norm_eps": layer.norm.of(1).eps,
            "norm_first": layer.norm_placement == "pre",
            "num_heads": layer.attention.num_heads,
        }


def _read_attention(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> spec.AttentionConfig:
    d_model, _ = axis_sizes(shapes, "out_proj.weight", 2)
    widths = [axis_sizes(shapes, f"{letter}_proj_weight", 2)[1] for letter in "kv"]
    if widths[0] != widths[1]:
        raise ValueError(f"v_proj_weight: width {widths[1]}, not that of the keys, {widths[0]}")
    has_bias = "in_proj_bias" in shapes
    return spec.AttentionConfig(
        d_model=d_model or 0,
        num_heads=require(settings, "num_heads"),
        kv_dim=None if "in_proj" in variants else widths[0],
        qkv_bias=has_bias,
        out_bias=has_bias,
        attention_dropout=settings["dropout"],
    )


def _block(config: spec.Config) -> spec.BlockConfig:
    if isinstance(config, spec.EncoderConfig):
        return config.layers[0]
    return expect(config, spec.TransformerEncoderLayerConfig).block


def _attention(config: spec.Config) -> spec.AttentionConfig:
    attention = config if isinstance(config, spec.AttentionConfig) else _block(config).attention
    return expect(attention, spec.AttentionConfig)


TORCH_LAYERS = _TorchLayers(
    name="torch_layers",
    summary="torch.nn.TransformerEncoder, its layer, MultiheadAttention: --set num_heads=...",
    model_types=("torch_layers",),
    extra_names=(
        *(name for modules in _MODULES.values() for name in module_templates(modules)),
        *_names("in_proj_weight", "in_proj_bias", *_APART),
    ),
    signature=_names("in_proj_weight", *_APART),
    settings=SettingsTable(
        understood={
            "activation": Setting(str, "relu"),
            "dropout": Setting(NUMBER, 0.1),
            "layer_norm_eps": Setting(NUMBER, 1e-5),
            "norm_first": Setting(bool, False),
            "num_heads": SIZE,
            "num_layers": SIZE,
        },
        bookkeeping=frozenset({"model_type"}),
    ),
    writes_all=True,
)
