"""An encoder with a projection, and two that are compared.

T positions   D model width   E width of the vectors   I images   J texts
"""

import math
from typing import Any, NamedTuple

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    DualEncoderConfig,
    EncoderConfig,
    EncoderWithProjectionConfig,
    VisionEncoderConfig,
)

from . import functional
from ._keys import split
from .encoder import Encoder
from .linear import linear
from .module import Module, config_of
from .stack import StackOutput
from .vision import VisionEncoder


class ProjectionOutput(NamedTuple):
    """What an encoder with a projection returns.

    Attributes:
        encoded: What the encoder returns.
        projected: The map of its pooled vector, (..., E).
    """

    encoded: StackOutput
    projected: Array


class DualEncoderOutput(NamedTuple):
    """What two encoders that are compared return.

    Attributes:
        logits: Of every image with every text, (..., I, J).
        image_vectors: Vectors of the images, of length 1, (..., I, E).
        text_vectors: Vectors of the texts, of length 1, (..., J, E).
        image: What the encoder of images returns.
        text: What the encoder of text returns.
    """

    logits: Array
    image_vectors: Array
    text_vectors: Array
    image: StackOutput
    text: StackOutput


class EncoderWithProjection(Module):
    """An encoder of text or images and a linear map of its pooled vector.

    Args:
        encoder: Config of the encoder, which has a pooled vector.
        projection_dim: Width E of the result: of a space shared with another encoder, or the number
            of labels of a classifier.
        bias: Whether the map carries a bias.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is refused, or the encoder has no pooled vector.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        encoder: EncoderConfig | VisionEncoderConfig,
        projection_dim: int,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(EncoderWithProjectionConfig, locals())
        self.encoder = _new_encoder(encoder, rngs=rngs)
        self.output_proj = linear(config.pooled_dim, projection_dim, bias=bias, rngs=rngs)

    def __call__(
        self, inputs: Array, *, rng_key: Array | None = None, **options: Any
    ) -> ProjectionOutput:
        """Encode a batch and project every pooled vector.

        Args:
            inputs: What the encoder takes: token ids (..., T) or images (..., C, height, width).
            rng_key: Needed in training with a rate above 0, else a ValueError.
            **options: Of the encoder's call.

        Returns:
            What the encoder returns, and the projected vectors.

        Raises:
            ValueError, TypeError, IndexError: As the encoder's.
        """
        encoded = self.encoder(inputs, rng_key=rng_key, **options)
        return ProjectionOutput(encoded, self.output_proj(encoded.pooled))


class DualEncoder(Module):
    """An encoder of images and one of text, compared by their vectors.

    ``logits = exp(logit_scale) * image . text + logit_bias`` of vectors of length 1 (Radford et al.
    2021, figure 3; the bias is of Zhai et al. 2023).

    Args:
        image: Config of the encoder of images, with a projection or a pooled vector.
        text: Config of the encoder of text, likewise.
        logit_bias: Whether a learnt number is added to the logits.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If an encoder has no vector, is of the other kind, or widths differ.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        image: EncoderWithProjectionConfig | VisionEncoderConfig,
        text: EncoderWithProjectionConfig | EncoderConfig,
        *,
        logit_bias: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(DualEncoderConfig, locals())
        self.image = _new_encoder(image, rngs=rngs)
        self.text = _new_encoder(text, rngs=rngs)
        # CLIP's first temperature; as a logarithm the factor stays above 0 whatever is learnt.
        self.logit_scale_param = nnx.Param(jnp.array(math.log(1 / 0.07), jnp.float32))
        if logit_bias:
            self.logit_bias_param = nnx.Param(jnp.zeros((), jnp.float32))

    def __call__(
        self,
        images: Array,
        inputs: Array,
        *,
        patch_mask: Array | None = None,
        key_mask: Array | None = None,
        position_ids: Array | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> DualEncoderOutput:
        """Compare every image with every text.

        Args:
            images: Floating (..., I, C, height, width).
            inputs: Token ids (..., J, T).
            patch_mask: Boolean or integer, broadcasting to (..., I, number of patches), true or not
                0 where the mask token replaces a patch.
            key_mask: True or not 0 at real tokens, false at padding: (..., J, T).
            position_ids: Positions, broadcasting to (..., J, T); 0 .. T - 1 by default.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            The logits, the vectors that they compare, and what the encoders return.

        Raises:
            ValueError: As the encoders', or if there is no axis of images or texts.
            TypeError: As the encoders'.
            IndexError: As the encoder's of text.
        """
        wanted = {"need_weights": need_weights, "need_hidden_states": need_hidden_states}
        image_key, text_key = split(rng_key, 2)
        image, x = _encoded(self.image(images, patch_mask=patch_mask, **wanted, rng_key=image_key))
        text, y = _encoded(
            self.text(
                inputs, key_mask=key_mask, position_ids=position_ids, **wanted, rng_key=text_key
            )
        )
        x, y = functional.normalize(x), functional.normalize(y)  # (..., I, E), (..., J, E)
        bias = self.logit_bias_param[...] if self.config.logit_bias else None
        logits = functional.similarity(x, y, self.logit_scale_param[...], bias)  # (..., I, J)
        return DualEncoderOutput(logits, x, y, image, text)


def _new_encoder(config: Any, *, rngs: nnx.Rngs) -> Any:
    kinds: dict[Any, Any] = {
        EncoderConfig: Encoder,
        EncoderWithProjectionConfig: EncoderWithProjection,
        VisionEncoderConfig: VisionEncoder,
    }
    return kinds[type(config)].from_config(config, rngs=rngs)


def _encoded(result: Any) -> tuple[StackOutput, Array]:
    """Return what the encoder returned, and the vector that is compared."""
    if isinstance(result, ProjectionOutput):
        return result.encoded, result.projected
    return result, result.pooled
