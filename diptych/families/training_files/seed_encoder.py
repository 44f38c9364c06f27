"""A hand-written encoder layer (``multi_head_attention.W_q``), any class inside it, or N layers.

Which component a state dict holds is told by its names: ``layers.{i}.`` before a layer's names is
an ``Encoder`` without an embedding.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any

from ... import spec
from ...rules import Rule, rule
from ...spec.checks.sizes import Shape
from ..family import Family, Part, Variants
from ..settings import SIZE, Setting, SettingsTable, require
from ..shapes import axis_sizes, check_layer_count, layer_count
from ..stacks import StackKind

_ATTENTION = {"W_q": "q_proj", "W_k": "k_proj", "W_v": "v_proj", "W_o": "out_proj"}
_FEED_FORWARD = {"linear1": "up_proj", "linear2": "down_proj"}
_LAYER = {
    **{f"multi_head_attention.{name}": f"attention.{ours}" for name, ours in _ATTENTION.items()},
    **{f"feed_forward.{name}": f"feed_forward.{ours}" for name, ours in _FEED_FORWARD.items()},
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
}
_MODULES: dict[type[spec.Config], dict[str, str]] = {
    spec.EncoderConfig: {f"layers.{{i}}.{n}": f"layers.{{i}}.{ours}" for n, ours in _LAYER.items()},
    spec.TransformerEncoderLayerConfig: _LAYER,
    spec.AttentionConfig: _ATTENTION,
    spec.FeedForwardConfig: _FEED_FORWARD,
    spec.LayerNormConfig: {"": ""},
    spec.PositionalEncodingConfig: {},
}
_RULES = {
    component: tuple(
        rule(f"{theirs}.{leaf}".lstrip("."), f"{ours}.{leaf}".lstrip("."))
        for theirs, ours in modules.items()
        for leaf in ("weight", "bias")
    )
    for component, modules in _MODULES.items()
}
_TABLE = "pe"
_STACK_KIND = StackKind(feed_forward=spec.FeedForwardConfig, embedding=NoneType)


class _SeedEncoder(Family):
    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> spec.Config:
        given = {key: value for key, value in settings.items() if value is not None}
        first = next(iter(name for name in shapes if name != _TABLE), _TABLE)
        if first == _TABLE:
            _, length, width = axis_sizes(shapes, _TABLE, 3)
            sizes = {"d_model": width, "max_seq_len": length}
            return spec.PositionalEncodingConfig(
                **_values(spec.PositionalEncodingConfig, sizes, given)
            )
        if first.startswith("layers."):
            num_layers = given.pop("num_layers", layer_count(shapes, "layers."))
            check_layer_count(num_layers, shapes, "num_layers")
            layer = _read_layer(shapes, "layers.0.", given)
            return spec.EncoderConfig(layer=layer, num_layers=num_layers)
        if first.startswith(("multi_head_attention.", "feed_forward.", "norm")):
            return _read_layer(shapes, "", given)
        if first.startswith("W_"):
            _, d_model = axis_sizes(shapes, "W_q.weight", 2)
            return spec.AttentionConfig(
                **_values(spec.AttentionConfig, {"d_model": d_model}, given)
            )
        if first.startswith("linear"):
            d_ff, d_model = axis_sizes(shapes, "linear1.weight", 2)
            sizes = {"d_model": d_model, "d_ff": d_ff}
            return spec.FeedForwardConfig(**_values(spec.FeedForwardConfig, sizes, given))
        (d_model,) = axis_sizes(shapes, "weight", 1)
        return spec.LayerNormConfig(**_values(spec.LayerNormConfig, {"d_model": d_model}, given))

    @property
    def components(self) -> tuple[type[spec.Config], ...]:
        return tuple(_MODULES)

    def parts(self, config: spec.Config) -> Mapping[str, Part]:
        return _STACK_KIND.parts(config) if isinstance(config, spec.EncoderConfig) else {}

    def write_settings(
        self, config: spec.Config, source: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if isinstance(config, spec.EncoderConfig):
            return {"num_layers": config.num_layers} | _write_layer(config.layers[0])
        if isinstance(config, spec.TransformerEncoderLayerConfig):
            return _write_layer(config.block)
        if isinstance(config, spec.AttentionConfig):
            kept = ("d_model", "num_heads", "attention_dropout")
            return {key: getattr(config, key) for key in kept}
        return {key: value for key, value in config.to_dict().items() if key != "bias"}

    def rules(self, config: spec.Config, variants: Variants) -> tuple[Rule, ...]:
        return _RULES[type(config)]


def _write_layer(layer: spec.BlockConfig) -> dict[str, Any]:
    return {
        "d_model": layer.d_model,
        "num_heads": layer.attention.num_heads,
        "d_ff": layer.feed_forward.d_ff,
        "dropout": layer.dropout,
        "activation": layer.feed_forward.activation,
        "norm_placement": layer.norm_placement,
        "eps": layer.norm.of(1).eps,
        "attention_dropout": layer.attention.attention_dropout,
    }


def _read_layer(
    shapes: Mapping[str, Shape], prefix: str, given: Mapping[str, Any]
) -> spec.TransformerEncoderLayerConfig:
    d_ff, d_model = axis_sizes(shapes, f"{prefix}feed_forward.linear1.weight", 2)
    sizes = {"d_model": d_model, "d_ff": d_ff}
    return spec.TransformerEncoderLayerConfig(
        **_values(spec.TransformerEncoderLayerConfig, sizes, given)
    )


def _values(
    component: type[spec.Config], sizes: Mapping[str, int | None], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a config: sizes read from the shapes, and the settings given."""
    known = {field.name: field for field in fields(component)}
    for key in given.keys() - known.keys():
        raise ValueError(f"{key}: {component.component} has no such setting")
    values = {**sizes, **given}
    for key, field in known.items():
        if field.default is MISSING or key in sizes:
            require(values, key)
    return values


SEED_ENCODER = _SeedEncoder(
    name="seed_encoder",
    summary="a hand-written encoder layer, its parts, or N (multi_head_attention.W_q, norm1)",
    model_types=("seed_encoder",),
    extra_names=tuple(r.source[0] for rules in _RULES.values() for r in rules),
    settings=SettingsTable(
        understood={
            **dict.fromkeys(("d_model", "num_heads", "d_ff", "num_layers", "max_seq_len"), SIZE),
            **dict.fromkeys(("dropout", "attention_dropout", "eps"), Setting((int, float))),
            **dict.fromkeys(("activation", "norm_placement"), Setting(str)),
        },
        bookkeeping=frozenset({"model_type"}),
    ),
    buffers={_TABLE: None},
    writes_all=True,
)
