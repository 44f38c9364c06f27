"""What the families of encoders of images with ViT's layout of files do alike.

Variants: ``prefix`` (names begin with ``vit.`` or the like, as in a model with a classifier).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

from ...rules import Chain, Rule, Transform, Unstack
from ...spec import Config, EncoderWithProjectionConfig, VisionEncoderConfig
from ...spec.checks.sizes import Shape
from .. import transformers_settings as hf
from ..family import Family, Part, Variants
from ..modules import PARTS, Modules, module_rules
from ..settings import require
from ..shapes import axis_sizes, check_layer_count, fill_sizes, layer_count
from ..stacks import StackKind, expect

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
class ImageFamily(Family):
    """One family of encoders of images, as a table and two functions.

    Attributes:
        architectures: Classes with and without a classifier, as ``architectures`` names them.
        sizes: Settings that a bare state dict shows: the tensor, without the prefix, and its axis.
        read: From settings, with "pooling" and "mask_token" as found, to the encoder; raises
            ValueError, ``KEY: CAUSE``, where a setting is missing or refused.
        write: From the encoder to settings in the current spelling.
        stack_kind: What its layers must be for ``write`` to read them.
        select: From the encoder to those of the modules that it has, where names alone do not tell.
        transforms: From their tensors to ours, by their name in ``modules``.
        head_pooling: What the classifier reads.
        pooling: From names without the prefix to the pooled vector of a model without a classifier.
        poolings: All that it may be.
    """

    architectures: tuple[str, str]
    sizes: Mapping[str, tuple[str, int]]
    read: Callable[[dict[str, Any]], VisionEncoderConfig]
    write: Callable[[VisionEncoderConfig], dict[str, Any]]
    stack_kind: StackKind
    transforms: Mapping[str, Transform]
    head_pooling: str
    pooling: Callable[[Collection[str]], str | None]
    poolings: tuple[str | None, ...]
    select: Callable[[VisionEncoderConfig], Modules] | None = None

    @property
    def head_names(self) -> tuple[str, ...]:
        return tuple(f"classifier.{part}" for part in PARTS)

    def usual_variants(self, config: Config) -> Variants:
        return ("prefix",) if isinstance(config, EncoderWithProjectionConfig) else ()

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        prefix = self.prefix_in(variants)
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
            encoder=encoder, projection_dim=hf.label_count(values, rows)
        )

    @property
    def components(self) -> tuple[type[Config], ...]:
        return VisionEncoderConfig, EncoderWithProjectionConfig

    def parts(self, config: Config) -> Mapping[str, Part]:
        if not isinstance(config, EncoderWithProjectionConfig):
            return self.stack_kind.parts(expect(config, VisionEncoderConfig))
        encoder = {"encoder": Part(config.encoder, VisionEncoderConfig)}
        return encoder | self.stack_kind.parts(config.encoder, "encoder.")

    def write_settings(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        encoder = _encoder(config)
        has_head = isinstance(config, EncoderWithProjectionConfig)
        poolings = (self.head_pooling,) if has_head else self.poolings
        if encoder.pooling not in poolings:
            known = " or ".join(map(repr, poolings))
            raise ValueError(f"pooling={encoder.pooling!r}, only {known}")
        wanted = self.write(encoder)
        if isinstance(config, EncoderWithProjectionConfig):
            labels = hf.label_count(self.settings.values(source or {}), None)
            if labels != config.projection_dim:
                wanted |= hf.label_settings(config.projection_dim)
        return wanted

    def read_back(self, config: Config, values: Mapping[str, Any]) -> Config:
        encoder = _encoder(config)
        found = {"pooling": encoder.pooling, "mask_token": encoder.embedding.mask_token}
        read = self.read({**values, **found})
        if isinstance(config, EncoderWithProjectionConfig):
            return self._with_head(read, values, None)
        return read

    def architecture(self, config: Config) -> str | None:
        return self.architectures[0 if isinstance(config, EncoderWithProjectionConfig) else 1]

    def rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        has_head = isinstance(config, EncoderWithProjectionConfig)
        rules = module_rules(
            self.select(_encoder(config)) if self.select else self.modules,
            config.leaves(),
            theirs=self.prefix_in(variants),
            ours="encoder." if has_head else "",
            transforms=self.transforms,
        )
        if has_head:
            rules += module_rules({"classifier": "output_proj"}, config.leaves())
        return tuple(rules)


def _encoder(config: Config) -> VisionEncoderConfig:
    encoder = config.encoder if isinstance(config, EncoderWithProjectionConfig) else config
    return expect(encoder, VisionEncoderConfig)


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
