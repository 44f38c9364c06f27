"""One causal attention head: the state dict of the second seed document's ``HeadAttention``."""

from collections.abc import Collection, Mapping
from typing import Any

from ...rules.rules import Rule, rule
from ...spec import Config, HeadAttentionConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Recreated, Variants
from ..settings import Setting, SettingsTable, axis_sizes, require

_MASK = "_tril_mask"
_RULES = tuple(
    rule(f"_{letter}.{leaf}", f"{letter}_proj.{leaf}")
    for letter in "qkv"
    for leaf in ("weight", "bias")
)


def _find_variants(names: Collection[str]) -> Variants:
    return ()


def _usual_variants(config: Config) -> Variants:
    return ()


def _read_config(
    settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
) -> HeadAttentionConfig:
    head_size, emb_size = axis_sizes(shapes, "_q.weight", 2)
    rows, _ = axis_sizes(shapes, _MASK, 2)
    given = {key: value for key, value in settings.items() if value is not None}
    if rows is not None and given.get("max_seq_len", rows) != rows:
        raise ValueError(f"max_seq_len: {given['max_seq_len']} given, but {_MASK} has {rows} rows")
    values = {"emb_size": emb_size, "head_size": head_size, "max_seq_len": rows} | given
    return HeadAttentionConfig(**{key: require(values, key) for key in values})


def _write_config(config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(config, HeadAttentionConfig):
        raise ValueError(f"seed_head has no {config.component}")
    return {**(source or {}), "model_type": "seed_head", **config.to_dict()}


def _rules(config: Config, variants: Variants) -> tuple[Rule, ...]:
    return _RULES


def _usual_buffers(config: Config) -> dict[str, Recreated]:
    size = config.max_seq_len if isinstance(config, HeadAttentionConfig) else 0
    return {_MASK: Recreated("BOOL", (size, size), "lower_triangle")}


SEED_HEAD = Family(
    name="seed_head",
    summary="a hand-written causal head (_q, _k, _v, _tril_mask)",
    model_types=("seed_head",),
    templates=(*(r.source[0] for r in _RULES), _MASK),
    settings=SettingsTable(
        understood=dict.fromkeys(("emb_size", "head_size", "max_seq_len"), Setting(int)),
        bookkeeping=frozenset({"model_type"}),
    ),
    find_variants=_find_variants,
    usual_variants=_usual_variants,
    read_config=_read_config,
    write_config=_write_config,
    rules=_rules,
    buffers={_MASK: "lower_triangle"},
    usual_buffers=_usual_buffers,
)
