"""An encoder of audio.

T positions   D model width   N heads
"""

import math

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import AudioEncoderConfig, BlockConfig, NormConfig, TransformerEncoderLayerConfig
from diptych.spec.checks.inputs import check_spectrogram
from diptych.spec.checks.sizes import check_floating

from . import functional
from ._keys import split
from .block import Block
from .conv import conv1d
from .embedding import Embedding
from .functional._dtype import dtype_name
from .module import Module, config_of
from .norm import norm
from .stack import StackOutput, run_layers


class AudioEncoder(Module):
    """Two convolutions over time, the second halving it, learned positions, N layers, a final norm.

    Radford et al. 2022 (Whisper), section 2.2: GELU after either convolution.

    Args:
        num_mel_bins: Number of channels of the spectrogram.
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        max_seq_len: Number of positions after the convolutions.
        final_norm: Norm of the last layer's output; None leaves it out.
        dropout: Rate on the first layer's input.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size or rate is refused.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        num_mel_bins: int,
        layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...],
        num_layers: int,
        *,
        max_seq_len: int = 1500,
        final_norm: NormConfig | None = NormConfig(),
        dropout: float = 0.0,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(AudioEncoderConfig, locals())
        D = config.d_model
        self.first_conv1d = conv1d(num_mel_bins, D, 3, padding=1, rngs=rngs)
        self.second_conv1d = conv1d(D, D, 3, stride=2, padding=1, rngs=rngs)
        self.position_embed = Embedding(max_seq_len, D, rngs=rngs)
        self.layers = nnx.List([Block.from_config(block, rngs=rngs) for block in config.layers])
        self.final_norm = None if final_norm is None else norm(final_norm, D, rngs=rngs)

    def __call__(
        self,
        features: Array,
        *,
        key_mask: Array | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> StackOutput:
        """Encode a batch of spectrograms.

        Args:
            features: Floating (..., num_mel_bins, 2 T), T at most max_seq_len.
            key_mask: True or not 0 where a position may be attended to: (..., T); the convolutions
                read the frames of every position.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned, before the final norm.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            The output (..., T, D) and what was asked for.

        Raises:
            ValueError: If there are other mel bins, an odd or too large number of frames, or the
                mask does not fit.
            TypeError: If the features are not floating or the mask is.
        """
        embedding_key, layer_key = split(rng_key, 2)
        x = self._embed(features, embedding_key)
        return run_layers(
            self.layers,
            x,
            key_mask=key_mask,
            final_norm=self.final_norm,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
            rng_key=layer_key,
        )

    def _embed(self, features: Array, rng_key: Array | None) -> Array:
        config = self.config
        check_spectrogram(tuple(features.shape), config.num_mel_bins, config.max_seq_len)
        check_floating(features=dtype_name(features))
        *batch, bins, frames = features.shape
        # Convolutions take one batch axis, not any number of them.
        x = features.reshape(math.prod(batch), bins, frames)  # (B, bins, 2 T)
        for conv in (self.first_conv1d, self.second_conv1d):
            x = functional.activate(conv(x), "gelu")
        _, D, T = x.shape
        x = jnp.swapaxes(x.reshape(*batch, D, T), -1, -2)  # (..., T, D)
        x = x + self.position_embed.embedding[:T]
        rate = config.dropout if self.training else 0.0
        return functional.apply_dropout(x, rate, rng_key=rng_key)
