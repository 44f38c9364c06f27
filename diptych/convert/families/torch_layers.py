"""State dicts of ``torch.nn.TransformerEncoder``, its layer, and ``torch.nn.MultiheadAttention``.

Variants: ``in_proj`` (queries, keys and values in one tensor, as where their widths are alike).
"""

from collections.abc import Collection, Mapping
from typing import Any

from ...spec import (
    AttentionConfig,
    Config,
    EncoderConfig,
    NormConfig,
    TransformerEncoderLayerConfig,
)
from ...spec.checks import Shape
from ..rules import Rule, rule
from ..settings import Setting, SettingsTable, axis_sizes, check_layer_count, layer_count, require
from ..transforms import Split
from .common import NUMBER, first_difference
from .family import Family, Variants
from .names import module_rules, module_templates

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
    values = {**settings}
    num_heads = require(values, "num_heads")
    if not any(name.endswith("linear1.weight") for name in shapes):
        return _read_attention(values, shapes, variants)
    place = "layers.0." if "layers.0.linear1.weight" in shapes else ""
    d_ff, d_model = axis_sizes(shapes, f"{place}linear1.weight", 2)
    if f"{place}linear1.bias" not in shapes:
        raise ValueError(f"{place}linear1.bias: a layer without biases is not supported")
    assert d_model is not None
    assert d_ff is not None
    layer = TransformerEncoderLayerConfig(
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        dropout=values["dropout"],
        activation=values["activation"],
        norm_placement="pre" if values["norm_first"] else "post",
        eps=values["layer_norm_eps"],
        attention_dropout=values["dropout"],
    )
    if not place:
        return layer
    num_layers = values["num_layers"] or layer_count(shapes, "layers.")
    check_layer_count(num_layers, shapes, "num_layers")
    assert num_layers is not None
    has_norm = "norm.weight" in shapes
    return EncoderConfig(
        layer=layer,
        num_layers=num_layers,
        final_norm=NormConfig(eps=values["layer_norm_eps"]) if has_norm else None,
    )


def _read_attention(
    values: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> AttentionConfig:
    d_model, _ = axis_sizes(shapes, "out_proj.weight", 2)
    bias = "in_proj_bias" in shapes
    assert d_model is not None
    key_width, value_width = (
        axis_sizes(shapes, f"{letter}_proj_weight", 2)[1] or d_model for letter in "kv"
    )
    if key_width != value_width:
        raise ValueError(f"v_proj_weight: width {value_width}, not that of the keys, {key_width}")
    return AttentionConfig(
        d_model=d_model,
        num_heads=values["num_heads"],
        kv_dim=None if "in_proj" in variants else key_width,
        qkv_bias=bias,
        out_bias=bias,
        attention_dropout=values["dropout"],
    )


def _write_config(config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {**(source or {}), "model_type": "torch_layers"}
    if isinstance(config, AttentionConfig):
        settings |= {"num_heads": config.num_heads, "dropout": config.attention_dropout}
    elif isinstance(config, (TransformerEncoderLayerConfig, EncoderConfig)):
        layer = config.layer if isinstance(config, EncoderConfig) else config
        if not isinstance(layer, TransformerEncoderLayerConfig):
            raise ValueError("torch_layers is an Encoder of TransformerEncoderLayer")
        settings |= {
            "activation": layer.activation,
            "dropout": layer.dropout,
            "layer_norm_eps": layer.eps,
            "norm_first": layer.norm_placement == "pre",
            "num_heads": layer.num_heads,
        }
    else:
        raise ValueError(f"torch_layers has no {config.component}")
    variants = _usual_variants(config)
    try:
        shapes = _shapes(config, variants)
        read = _read_config(SETTINGS.values(settings), shapes, variants)
    except (AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"torch_layers has no such {config.component}: {error}") from None
    difference = first_difference(config, read)
    if difference:
        raise ValueError(f"torch_layers has no such {config.component}: {difference}")
    return settings


def _shapes(config: Config, variants: Variants) -> dict[str, Shape]:
    """Return what ``_read_config`` looks at, from the config."""
    leaves = {name: leaf.shape for name, leaf in config.leaves().items()}
    shapes: dict[str, Shape] = {}
    for name, shape in leaves.items():
        theirs = name
        for their_module, our_module in reversed(_LAYER.items()):
            theirs = theirs.replace(f"{our_module}.", f"{their_module}.")
        theirs = theirs.replace("final_norm.", "norm.")
        shapes[
            theirs.replace("_proj.weight", "_proj_weight") if "out" not in theirs else theirs
        ] = shape
    if "q_proj.bias" in leaves:
        shapes["in_proj_bias"] = (3 * leaves["q_proj.bias"][0],)
    return shapes


def _attention(config: Any) -> AttentionConfig:
    if isinstance(config, EncoderConfig):
        config = config.layers[0]
    return config if isinstance(config, AttentionConfig) else config.attention


def _is_one_width(attention: AttentionConfig) -> bool:
    num_heads, num_kv_heads, width = attention.sizes
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
    settings=SETTINGS,
    find_variants=_find_variants,
    usual_variants=_usual_variants,
    read_config=_read_config,
    write_config=_write_config,
    rules=_rules,
)
