"""What an encoder with a projection is, and two that are compared."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_boolean, check_equal, check_kind, check_positive
from .config import Config, Leaf, Leaves, linear_leaves, under
from .encoder import EncoderConfig
from .vision import VisionEncoderConfig


@dataclass(frozen=True, kw_only=True)
class EncoderWithProjectionConfig(Config):
    """An encoder of text or images and a linear map of its pooled vector.

    Attributes:
        encoder: Config of the encoder, which has a pooled vector.
        projection_dim: Width of the result: of a space shared with another encoder, or the number
            of labels of a classifier.
        bias: Whether the map carries a bias.

    Raises:
        ValueError: If a size is refused, or the encoder has no pooled vector.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "EncoderWithProjection"
    encoder: EncoderConfig | VisionEncoderConfig
    projection_dim: int
    bias: bool = True

    def __post_init__(self):
        check_kind(EncoderConfig | VisionEncoderConfig, encoder=self.encoder)
        check_positive(projection_dim=self.projection_dim)
        check_boolean(bias=self.bias)
        self.pooled_dim  # read here so that an encoder without one is refused

    @property
    def pooled_dim(self) -> int:
        """Return the width of the encoder's pooled vector."""
        return _pooled_dim(self.encoder)

    def leaves(self) -> Leaves:
        projection = linear_leaves(self.pooled_dim, self.projection_dim, bias=self.bias)
        return under("encoder", self.encoder.leaves()) | under("output_proj", projection)


@dataclass(frozen=True, kw_only=True)
class DualEncoderConfig(Config):
    """An encoder of images and one of text, compared by their vectors (Radford et al. 2021).

    Attributes:
        image: Config of the encoder of images, with a projection or a pooled vector.
        text: Config of the encoder of text, likewise.
        logit_bias: Whether a learnt number is added to the logits.

    Raises:
        ValueError: If an encoder has no vector, is of the other kind, or widths differ.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "DualEncoder"
    image: EncoderWithProjectionConfig | VisionEncoderConfig
    text: EncoderWithProjectionConfig | EncoderConfig
    logit_bias: bool = False

    def __post_init__(self):
        check_kind(EncoderWithProjectionConfig | VisionEncoderConfig, image=self.image)
        check_kind(EncoderWithProjectionConfig | EncoderConfig, text=self.text)
        check_kind(VisionEncoderConfig, image=_without_projection(self.image))
        check_kind(EncoderConfig, text=_without_projection(self.text))
        check_boolean(logit_bias=self.logit_bias)
        check_equal("width of image", _width(self.image), "width of text", _width(self.text))

    def leaves(self) -> Leaves:
        leaves = under("image", self.image.leaves()) | under("text", self.text.leaves())
        leaves["logit_scale_param"] = Leaf((), "param")
        if self.logit_bias:
            leaves["logit_bias_param"] = Leaf((), "param")
        return leaves


def _without_projection(
    config: EncoderWithProjectionConfig | EncoderConfig | VisionEncoderConfig,
) -> EncoderConfig | VisionEncoderConfig:
    return config.encoder if isinstance(config, EncoderWithProjectionConfig) else config


def _width(config: EncoderWithProjectionConfig | EncoderConfig | VisionEncoderConfig) -> int:
    if isinstance(config, EncoderWithProjectionConfig):
        return config.projection_dim
    return _pooled_dim(config)


def _pooled_dim(config: EncoderConfig | VisionEncoderConfig) -> int:
    if config.pooled_dim is None:
        raise ValueError(f"the {config.component} has no pooled vector")
    return config.pooled_dim
