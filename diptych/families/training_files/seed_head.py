"""One causal attention head: the state dict of the second seed document's ``HeadAttention``."""

from collections.abc import Mapping
from typing import Any

from ...spec import Config, HeadAttentionConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Recreated, Variants
from ..settings import SIZE, SettingsTable, require
from ..shapes import axis_sizes

_MASK = "_tril_mask"


class _SeedHead(Family):
    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> HeadAttentionConfig:
        head_size, emb_size = axis_sizes(shapes, "_q.weight", 2)
        rows, _ = axis_sizes(shapes, _MASK, 2)
        given = {key: value for key, value in settings.items() if value is not None}
        if rows is not None and given.get("max_seq_len", rows) != rows:
            length = given["max_seq_len"]
            raise ValueError(f"max_seq_len: {length} given, but {_MASK} has {rows} rows")
        values = {"emb_size": emb_size, "head_size": head_size, "max_seq_len": rows} | given
        return HeadAttentionConfig(**{key: require(values, key) for key in values})

    @property
    def components(self) -> tuple[type[Config], ...]:
        return (HeadAttentionConfig,)

    def write_settings(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        return config.to_dict()

    def usual_buffers(self, config: Config) -> dict[str, Recreated]:
        if not isinstance(config, HeadAttentionConfig):
            return {}
        size = config.max_seq_len
        return {_MASK: Recreated("BOOL", (size, size), "lower_triangle")}


SEED_HEAD = _SeedHead(
    name="seed_head",
    summary="a hand-written causal head (_q, _k, _v, _tril_mask)",
    model_types=("seed_head",),
    modules={f"_{letter}": f"{letter}_proj" for letter in "qkv"},
    settings=SettingsTable(
        understood=dict.fromkeys(("emb_size", "head_size", "max_seq_len"), SIZE),
        bookkeeping=frozenset({"model_type"}),
    ),
    buffers={_MASK: "lower_triangle"},
    writes_all=True,
)
