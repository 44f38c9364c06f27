"""An encoder, and a decoder that reads it.

T positions of the decoder   S positions of the encoder   D model width
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from flax import nnx
from jax import Array

from diptych.spec import AudioEncoderConfig, DecoderConfig, EncoderConfig, EncoderDecoderConfig

from ._keys import split
from .attention.projected_attention import KeyValue
from .audio import AudioEncoder
from .decoder import Decoder
from .encoder import Encoder
from .module import Module
from .stack import StackCache, StackOutput


class EncoderDecoderOutput(NamedTuple):
    """What an encoder-decoder returns.

    Attributes:
        encoded: What the encoder returns.
        decoded: What the decoder returns.
    """

    encoded: StackOutput
    decoded: StackOutput


class EncoderDecoder(Module):
    """An encoder, and a decoder whose layers attend to its output (Vaswani et al. 2017).

    Args:
        encoder: Config of the encoder.
        decoder: Config of the decoder, with cross-attention; where its embedding has shared tokens,
            it and a tied head read the encoder's token table.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If widths or vocabularies differ, or the decoder has no cross-attention.
        TypeError: If a module is given in place of its config.
    """

    def __init__(
        self,
        encoder: EncoderConfig | AudioEncoderConfig,
        decoder: DecoderConfig,
        *,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = EncoderDecoderConfig(encoder=encoder, decoder=decoder)
        kind: Any = AudioEncoder if isinstance(encoder, AudioEncoderConfig) else Encoder
        self.encoder = kind.from_config(encoder, rngs=rngs)
        self.decoder = Decoder.from_config(decoder, rngs=rngs)

    def __call__(
        self,
        inputs: Array,
        decoder_inputs: Array,
        *,
        key_mask: Array | None = None,
        decoder_key_mask: Array | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> EncoderDecoderOutput:
        """Encode a batch of sequences, and decode another that reads them.

        Args:
            inputs: The encoder's: token ids (..., S), vectors, or a spectrogram.
            decoder_inputs: The decoder's: token ids (..., T), or vectors.
            key_mask: True or not 0 at the encoder's real tokens: (..., S), S positions after the
                convolutions of a spectrogram.
            decoder_key_mask: True or not 0 at the decoder's real tokens: (..., T).
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            What both return.

        Raises:
            ValueError, TypeError, IndexError: As the encoder's and the decoder's.
        """
        needs: Any = {"need_weights": need_weights, "need_hidden_states": need_hidden_states}
        encoder_key, decoder_key = split(rng_key, 2)
        encoded = self.encoder(inputs, key_mask=key_mask, **needs, rng_key=encoder_key)
        decoded = self.decode(
            decoder_inputs,
            encoded.output,
            key_mask=decoder_key_mask,
            memory_mask=key_mask,
            rng_key=decoder_key,
            **needs,
        )
        return EncoderDecoderOutput(encoded, decoded)

    def decode(
        self,
        inputs: Array,
        memory: Array | Sequence[KeyValue],
        *,
        key_mask: Array | None = None,
        memory_mask: Array | None = None,
        cache: StackCache | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> StackOutput:
        """Decode a batch of sequences that read an encoder's output.

        Args:
            inputs: Token ids (..., T), or vectors.
            memory: The encoder's output (..., S, D), or what ``decoder.project`` made of it.
            key_mask: True or not 0 at real tokens: (..., T); with a cache padding comes last.
            memory_mask: True or not 0 where the memory may be attended to: (..., S).
            cache: Earlier positions, from ``decoder.new_cache`` or the last call.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            What the decoder returns.

        Raises:
            ValueError, TypeError, IndexError: As the decoder's.
        """
        # One table for both: the decoder holds none, so that it is stored and learnt once.
        shares = self.config.shares_tokens
        return self.decoder(
            inputs,
            key_mask=key_mask,
            memory=memory,
            memory_mask=memory_mask,
            cache=cache,
            token_embed=self.encoder.embedding.token_embed if shares else None,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
            rng_key=rng_key,
        )
