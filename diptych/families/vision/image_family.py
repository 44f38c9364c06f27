"""What the families of encoders of images with ViT's layout of files do alike.

Variants: ``prefix`` (names begin with ``vit.`` or the like, as in a model with a classifier).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

from ...rules.rules import Rule
from ...rules.transforms import Chain, Transform, Unstack
from ...spec import Config, EncoderWithProjectionConfig, VisionEncoderConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import (
    SettingsTable,
    axis_sizes,
    check_layer_count,
    fill_sizes,
    layer_count,
    require,
)
from ..transformers_settings import first_difference, label_count, label_settings, written_settings

_LAYER, _OURS = "encoder.layer.{i}", "layers.{i}"
_CONV = "embeddings.patch_embeddings.projection"
MODULES: Modules = {
    "embeddings.cls_token": "embedding.class_param",
    "embeddings.mask_token": "embedding.mask_param",
    "embeddings.position_embeddings": "embedding.position_embed.weight",
    _CONV: "embedding.patch_conv",
    f"{_LAYER}.attention.attention.query": f"{_OURS}.attention.q_proj",
    f"{_LAYER}.attention.attention.key": f"{_OURS}.attention.k_proj",
    f"{_LAYER}.attention.attention.value": f"{_OURS}.attention.v_proj",
    f"{_LAYER}.attention.output.dense": f"{_OURS}.attention.out_proj",
    "layernorm": "final_norm",
}
"""Our modules by the names that the families share."""

ROW = Chain((Unstack(1), Unstack(1)))
"""One vector, stored (1, 1, D)."""

TRANSFORMS: dict[str, Transform] = {
    "embeddings.cls_token": ROW,
    "embeddings.position_embeddings": Unstack(1),
}
SIZES = {
    "hidden_size": ("embeddings.cls_token", 2),
    "num_channels": (f"{_CONV}.weight", 1),
    "patch_size": (f"{_CONV}.weight", 2),
}
_POSITIONS, _BIAS = "embeddings.position_embeddings", "encoder.layer.0.attention.attention.query"


@dataclass(frozen=True, kw_only=True)
class ImageFamily:
    """One family of encoders of images, as a table and two functions; ``family`` makes the rest.

    Attributes:
        name: What ``--family`` calls it, and the prefix of a model with a classifier.
        summary: One line for ``diptych families``.
        architectures: Classes with and without a classifier, as ``architectures`` names them.
        modules: Our modules by theirs; theirs without the prefix.
        select: From the encoder to those of the modules that it has, where names alone do not tell.
        settings: The settings that it knows.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        read: From settings, with "pooling" and "mask_token" as found, to the encoder; raises
            ValueError, ``KEY: CAUSE``, where a setting is missing or refused.
        write: From the encoder to settings in the current spelling.
        transforms: From their tensors to ours, by their name in ``modules``.
        head_pooling: What the classifier reads.
        pooling: From names without the prefix to the pooled vector of a model without a classifier.
        poolings: All that it may be.
    """

    name: str
    summary: str
    architectures: tuple[str, str]
    modules: Modules
    settings: SettingsTable
    sizes: Mapping[str, tuple[str, int]]
    read: Callable[[dict[str, Any]], VisionEncoderConfig]
    write: Callable[[VisionEncoderConfig], dict[str, Any]]
    transforms: Mapping[str, Transform]
    head_pooling: str
    pooling: Callable[[Collection[str]], str | None]
    poolings: tuple[str | None, ...]
    select: Callable[[VisionEncoderConfig], Modules] | None = None

    @property
    def family(self) -> Family:
        """Return the family as the converter takes it."""
        return Family(
            name=self.name,
            summary=self.summary,
            model_types=(self.name,),
            templates=(
                *module_templates(self.modules, ("", f"{self.name}.")),
                "classifier.weight",
                "classifier.bias",
            ),
            settings=self.settings,
            find_variants=self._find_variants,
            usual_variants=self._usual_variants,
            read_config=self._read_config,
            write_config=self._write_config,
            rules=self._rules,
        )

    def _find_variants(self, names: Collection[str]) -> Variants:
        found = any(name.startswith(f"{self.name}.") for name in names)
        return ("prefix",) if found else ()

    def _usual_variants(self, config: Config) -> Variants:
        return ("prefix",) if isinstance(config, EncoderWithProjectionConfig) else ()

    def _read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        prefix = f"{self.name}." if "prefix" in variants else ""
        own = {name.removeprefix(prefix): shape for name, shape in shapes.items()}
        values = {**settings}
        fill_sizes(values, self.sizes, own)
        if values["num_hidden_layers"] is None:
            values["num_hidden_layers"] = layer_count(own, "encoder.layer.")
        check_layer_count(values["num_hidden_layers"], shapes, "num_hidden_layers")
        if values["image_size"] is None and values["patch_size"]:
            values["image_size"] = image_side(own.get(_POSITIONS, ())[-2:], 1, values["patch_size"])
        if values["qkv_bias"] is None:
            values["qkv_bias"] = f"{_BIAS}.bias" in own
        has_head = "classifier.weight" in own
        values["pooling"] = self.head_pooling if has_head else self.pooling(own)
        values["mask_token"] = "embeddings.mask_token" in own
        encoder = self.read(values)
        if not has_head:
            return encoder
        return self._with_head(encoder, values, axis_sizes(own, "classifier.weight", 2)[0])

    def _with_head(
        self, encoder: VisionEncoderConfig, values: Mapping[str, Any], rows: int | None
    ) -> EncoderWithProjectionConfig:
        return EncoderWithProjectionConfig(
            encoder=encoder, projection_dim=label_count(values, rows)
        )

    def _write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        encoder = config.encoder if isinstance(config, EncoderWithProjectionConfig) else config
        if not isinstance(encoder, VisionEncoderConfig):
            raise ValueError(f"{self.name} has no {config.component} of text")
        try:
            wanted = self.write(encoder)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.name} has no such VisionEncoder: {error}") from None
        has_head = isinstance(config, EncoderWithProjectionConfig)
        if isinstance(config, EncoderWithProjectionConfig):
            labels = label_count(self.settings.values(source or {}), None)
            wanted |= (
                label_settings(config.projection_dim) if labels != config.projection_dim else {}
            )
        return written_settings(
            self.name,
            source,
            {"model_type": self.name, "architectures": [self.architectures[not has_head]]},
            wanted,
            lambda settings: self._difference(config, encoder, settings),
        )

    def _difference(
        self, config: Config, encoder: VisionEncoderConfig, settings: Mapping[str, Any]
    ) -> str:
        """Return where a config differs from what its settings would be read as."""
        has_head = isinstance(config, EncoderWithProjectionConfig)
        poolings = (self.head_pooling,) if has_head else self.poolings
        if encoder.pooling not in poolings:
            return f"pooling={encoder.pooling!r}, only {' or '.join(map(repr, poolings))}"
        found = {"pooling": encoder.pooling, "mask_token": encoder.embedding.mask_token}
        try:
            values = self.settings.values(settings) | found
            read: Config = self.read(values)
            if isinstance(read, VisionEncoderConfig) and has_head:
                read = self._with_head(read, values, None)
        except (TypeError, ValueError) as error:
            return str(error)
        return first_difference(config, read)

    def _rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        has_head = isinstance(config, EncoderWithProjectionConfig)
        encoder: Any = config.encoder if isinstance(config, EncoderWithProjectionConfig) else config
        rules = module_rules(
            self.select(encoder) if self.select else self.modules,
            config.leaves(),
            theirs=f"{self.name}." if "prefix" in variants else "",
            ours="encoder." if has_head else "",
            transforms=self.transforms,
        )
        if has_head:
            rules += module_rules({"classifier": "output_proj"}, config.leaves())
        return tuple(rules)


def image_side(table: Shape, others: int, patch_size: int) -> int | None:
    """Return the side of the square images that a table of positions is for, if it is for such.

    Args:
        table: Shape of the table, (positions, D), or () where there is none.
        others: Number of positions that are no patch's.
        patch_size: Side of a patch.
    """
    if not table:
        return None
    side = isqrt(max(table[0] - others, 0))
    return side * patch_size if side * side + others == table[0] else None


def read_size(values: Mapping[str, Any], key: str) -> int | tuple[int, int]:
    """Return one size, or height and width where they differ.

    Raises:
        ValueError: If there is none, or a list of another length.
    """
    size = require(values, key)
    if not isinstance(size, list | tuple):
        return size
    if len(size) != 2 or not all(type(side) is int for side in size):
        raise ValueError(f"{key}: {size} must be one size or [height, width]")
    return size[0] if size[0] == size[1] else (size[0], size[1])


def read_square(values: Mapping[str, Any], key: str) -> int:
    """Return one size.

    Raises:
        ValueError: If there is none, or height and width differ.
    """
    size = read_size(values, key)
    if isinstance(size, tuple):
        raise ValueError(f"{key}: {list(size)} is not supported, only a square")
    return size


def write_size(size: int | tuple[int, int]) -> int | list[int]:
    """Return a size as their settings have it."""
    return list(size) if isinstance(size, tuple) else size
