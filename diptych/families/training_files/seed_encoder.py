"""A hand-written encoder layer (``multi_head_attention.W_q``), any class inside it, or N layers.

Which component a state dict holds is told by its names: ``layers.{i}.`` before a layer's names is
an ``Encoder`` without an embedding.
"""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any

from ...rules.rules import Rule, rule
from ...spec import (
    AttentionConfig,
    Config,
    EncoderConfig,
    FeedForwardConfig,
    LayerNormConfig,
    PositionalEncodingConfig,
    TransformerEncoderLayerConfig,
)
from ...spec.checks.sizes import Shape
from ..encoders.parts import named_layer
from ..family import Family, Variants
from ..settings import Setting, SettingsTable, axis_sizes, check_layer_count, layer_count, require

_ATTENTION = {"W_q": "q_proj", "W_k": "k_proj", "W_v": "v_proj", "W_o": "out_proj"}
_FEED_FORWARD = {"linear1": "up_proj", "linear2": "down_proj"}
_LAYER = {
    **{f"multi_head_attention.{name}": f"attention.{ours}" for name, ours in _ATTENTION.items()},
    **{f"feed_forward.{name}": f"feed_forward.{ours}" for name, ours in _FEED_FORWARD.items()},
    "norm1": "attention_norm",
    "norm2": "feed_forward_norm",
}
_MODULES: dict[type[Config], dict[str, str]] = {
    EncoderConfig: {f"layers.{{i}}.{n}": f"layers.{{i}}.{ours}" for n, ours in _LAYER.items()},
    TransformerEncoderLayerConfig: _LAYER,
    AttentionConfig: _ATTENTION,
    FeedForwardConfig: _FEED_FORWARD,
    LayerNormConfig: {"": ""},
    PositionalEncodingConfig: {},
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
_SIZE = Setting(int)


def _find_variants(names: Collection[str]) -> Variants:
    return ()


def _usual_variants(config: Config) -> Variants:
    return ()


def _read_config(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> Config:
    given = {key: value for key, value in settings.items() if value is not None}
    first = next(iter(name for name in shapes if name != _TABLE), _TABLE)
    if first == _TABLE:
        _, length, width = axis_sizes(shapes, _TABLE, 3)
        return _build(PositionalEncodingConfig, {"d_model": width, "max_seq_len": length}, given)
    if first.startswith("layers."):
        num_layers = given.pop("num_layers", layer_count(shapes, "layers."))
        check_layer_count(num_layers, shapes, "num_layers")
        values = _values(TransformerEncoderLayerConfig, _layer_sizes(shapes, "layers.0."), given)
        return EncoderConfig(layer=TransformerEncoderLayerConfig(**values), num_layers=num_layers)
    if first.startswith(("multi_head_attention.", "feed_forward.", "norm")):
        return _build(TransformerEncoderLayerConfig, _layer_sizes(shapes, ""), given)
    if first.startswith("W_"):
        _, d_model = axis_sizes(shapes, "W_q.weight", 2)
        return _build(AttentionConfig, {"d_model": d_model}, given)
    if first.startswith("linear"):
        d_ff, d_model = axis_sizes(shapes, "linear1.weight", 2)
        return _build(FeedForwardConfig, {"d_model": d_model, "d_ff": d_ff}, given)
    (d_model,) = axis_sizes(shapes, "weight", 1)
    return _build(LayerNormConfig, {"d_model": d_model}, given)


def _write_config(config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {**(source or {}), "model_type": "seed_encoder"}
    if isinstance(config, EncoderConfig):
        layer = named_layer(config)
        if layer is None:
            raise ValueError("seed_encoder is an Encoder of TransformerEncoderLayer")
        if config != EncoderConfig(layer=layer, num_layers=config.num_layers):
            raise ValueError(
                "seed_encoder has no Encoder with an embedding, a pooler or more parts"
            )
        return settings | {"num_layers": config.num_layers} | layer.to_dict()
    if isinstance(config, AttentionConfig):
        plain = AttentionConfig(
            d_model=config.d_model,
            num_heads=config.num_heads,
            attention_dropout=config.attention_dropout,
        )
        if config.leaves() != plain.leaves() or config.score != plain.score:
            raise ValueError("seed_encoder has no attention with grouped heads or a score config")
        kept = ("d_model", "num_heads", "attention_dropout")
        return settings | {key: getattr(config, key) for key in kept}
    if type(config) not in _RULES:
        raise ValueError(f"seed_encoder has no {config.component}")
    values = config.to_dict()
    if not values.pop("bias", True):
        raise ValueError(f"seed_encoder has no {config.component} without biases")
    return settings | values


def _rules(config: Config, variants: Variants) -> tuple[Rule, ...]:
    return _RULES[type(config)]


def _layer_sizes(shapes: Mapping[str, Shape], prefix: str) -> dict[str, int | None]:
    d_ff, d_model = axis_sizes(shapes, f"{prefix}feed_forward.linear1.weight", 2)
    return {"d_model": d_model, "d_ff": d_ff}


def _build(
    component: type[Config], sizes: Mapping[str, int | None], given: Mapping[str, Any]
) -> Config:
    return component(**_values(component, sizes, given))


def _values(
    component: type[Config], sizes: Mapping[str, int | None], given: Mapping[str, Any]
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


SEED_ENCODER = Family(
    name="seed_encoder",
    summary="a hand-written encoder layer, its parts, or N (multi_head_attention.W_q, norm1)",
    model_types=("seed_encoder",),
    templates=(*(r.source[0] for rules in _RULES.values() for r in rules), _TABLE),
    settings=SettingsTable(
        understood={
            **dict.fromkeys(("d_model", "num_heads", "d_ff", "num_layers", "max_seq_len"), _SIZE),
            **dict.fromkeys(("dropout", "attention_dropout", "eps"), Setting((int, float))),
            **dict.fromkeys(("activation", "norm_placement"), Setting(str)),
        },
        bookkeeping=frozenset({"model_type"}),
    ),
    find_variants=_find_variants,
    usual_variants=_usual_variants,
    read_config=_read_config,
    write_config=_write_config,
    rules=_rules,
    buffers={_TABLE: None},
)
