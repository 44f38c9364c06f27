"""State dicts of ``torch.nn.TransformerEncoder``, its layer, and ``torch.nn.MultiheadAttention``.

Variants: ``in_proj`` (queries, keys and values in one tensor, as where their widths are alike).
"""

from collections.abc import Collection, Mapping
from typing import Any

from ...rules.rules import Rule, rule
from ...rules.transforms import Split
from ...spec import (
    AttentionConfig,
    Config,
    EncoderConfig,
    NormConfig,
    TransformerEncoderLayerConfig,
)
from ...spec.checks.sizes import Shape
from ..encoders.parts import named_layer
from ..family import Family, Variants
from ..modules import module_rules, module_templates
from ..settings import Setting, SettingsTable, axis_sizes, check_layer_count, layer_count, require
from ..transformers_settings import NUMBER, first_difference

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
    AttentionConfig: ("", ""),
    TransformerEncoderLayerConfig: ("self_attn.", "attention."),
    EncoderConfig: ("layers.{i}.self_attn.", "layers.{i}.attention."),
}
_MODULES: dict[type[Config], Mapping[str, str]] = {
    AttentionConfig: _OUT,
    TransformerEncoderLayerConfig: _LAYER,
    EncoderConfig: _STACK,
}


def _find_variants(names: Collection[str]) -> Variants:
    return ("in_proj",) if any(name.endswith("in_proj_weight") for name in names) else ()


def _usual_variants(config: Config) -> Variants:
    return ("in_proj",) if _is_one_width(_attention(config)) else ()


def _rules(config: Config, variants: Variants) -> tuple[Rule, ...]:
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


def _read_config(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> Config:
    place = "layers.0." if "layers.0.linear1.weight" in shapes else ""
    d_ff, d_model = axis_sizes(shapes, f"{place}linear1.weight", 2)
    if d_ff is None:
        return _read_attention(settings, shapes, variants)
    if f"{place}linear1.bias" not in shapes:
        raise ValueError(f"{place}linear1.bias: a layer without biases is not supported")
    layer = _layer(settings, d_model or 0, d_ff)
    if not place:
        return layer
    num_layers = settings["num_layers"] or layer_count(shapes, "layers.") or 0
    check_layer_count(num_layers, shapes, "num_layers")
    return _encoder(settings, layer, num_layers, has_norm="norm.weight" in shapes)


def _read_attention(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> AttentionConfig:
    d_model, _ = axis_sizes(shapes, "out_proj.weight", 2)
    widths = [axis_sizes(shapes, f"{letter}_proj_weight", 2)[1] for letter in "kv"]
    if widths[0] != widths[1]:
        raise ValueError(f"v_proj_weight: width {widths[1]}, not that of the keys, {widths[0]}")
    kv_dim = None if "in_proj" in variants else widths[0]
    return _heads(settings, d_model or 0, kv_dim, bias="in_proj_bias" in shapes)


def _layer(settings: Mapping[str, Any], d_model: int, d_ff: int) -> TransformerEncoderLayerConfig:
    return TransformerEncoderLayerConfig(
        d_model=d_model,
        num_heads=require(settings, "num_heads"),
        d_ff=d_ff,
        dropout=settings["dropout"],
        activation=settings["activation"],
        norm_placement="pre" if settings["norm_first"] else "post",
        eps=settings["layer_norm_eps"],
        attention_dropout=settings["dropout"],
    )


def _encoder(
    settings: Mapping[str, Any],
    layer: TransformerEncoderLayerConfig,
    num_layers: int,
    *,
    has_norm: bool,
) -> EncoderConfig:
    norm = NormConfig(eps=settings["layer_norm_eps"]) if has_norm else None
    return EncoderConfig(layer=layer, num_layers=num_layers, final_norm=norm)


def _heads(
    settings: Mapping[str, Any], d_model: int, kv_dim: int | None, *, bias: bool
) -> AttentionConfig:
    return AttentionConfig(
        d_model=d_model,
        num_heads=require(settings, "num_heads"),
        kv_dim=kv_dim,
        qkv_bias=bias,
        out_bias=bias,
        attention_dropout=settings["dropout"],
    )


def _write_config(config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {**(source or {}), "model_type": "torch_layers"}
    if isinstance(config, AttentionConfig):
        settings |= {"num_heads": config.num_heads, "dropout": config.attention_dropout}
        values = SETTINGS.values(settings)
        read: Config = _heads(values, config.d_model, config.kv_dim, bias=config.out_bias)
        return _agreed(settings, config, read)
    layer = named_layer(config) if isinstance(config, EncoderConfig) else config
    if not isinstance(layer, TransformerEncoderLayerConfig):
        raise ValueError(f"torch_layers has no {config.component} of other layers")
    settings |= {
        "activation": layer.activation,
        "dropout": layer.dropout,
        "layer_norm_eps": layer.eps,
        "norm_first": layer.norm_placement == "pre",
        "num_heads": layer.num_heads,
    }
    values = SETTINGS.values(settings)
    read = own = _layer(values, layer.d_model, layer.d_ff)
    if isinstance(config, EncoderConfig):
        has_norm = config.final_norm is not None
        read = _encoder(values, own, config.num_layers, has_norm=has_norm)
    return _agreed(settings, config, read)


def _agreed(settings: dict[str, Any], config: Config, read: Config) -> dict[str, Any]:
    """Return the settings, if reading them gives the config."""
    difference = first_difference(config, read)
    if difference:
        raise ValueError(f"torch_layers has no such {config.component}: {difference}")
    return settings


def _attention(config: Any) -> AttentionConfig:
    if isinstance(config, EncoderConfig):
        config = config.layers[0]
    return config if isinstance(config, AttentionConfig) else config.attention


def _is_one_width(attention: AttentionConfig) -> bool:
    num_heads, num_kv_heads, _ = attention.sizes
    return attention.kv_dim is None and num_heads == num_kv_heads


SETTINGS = SettingsTable(
    understood={
        "activation": Setting(str, "relu"),
        "dropout": Setting(NUMBER, 0.1),
        "layer_norm_eps": Setting(NUMBER, 1e-5),
        "norm_first": Setting(bool, False),
        "num_heads": Setting(int),
        "num_layers": Setting(int),
    },
    bookkeeping=frozenset({"model_type"}),
)
TORCH_LAYERS = Family(
    name="torch_layers",
    summary="torch.nn.TransformerEncoder, its layer, MultiheadAttention: --set num_heads=...",
    model_types=("torch_layers",),
    templates=(
        *module_templates(_OUT, [""]),
        *module_templates(_LAYER, [""]),
        *module_templates(_STACK, [""]),
        *(
            f"{theirs}{name}"
            for theirs, _ in _PLACES.values()
            for name in ("in_proj_weight", "in_proj_bias", *_APART)
        ),
    ),
    telling=tuple(
        f"{theirs}{name}" for theirs, _ in _PLACES.values() for name in ("in_proj_weight", *_APART)
    ),
    settings=SETTINGS,
    find_variants=_find_variants,
    usual_variants=_usual_variants,
    read_config=_read_config,
    write_config=_write_config,
    rules=_rules,
)
