"""An encoder, and a decoder that reads it.

T positions of the decoder   S positions of the encoder   D model width
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from diptych.spec import AudioEncoderConfig, DecoderConfig, EncoderConfig, EncoderDecoderConfig

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

    Raises:
        ValueError: If widths or vocabularies differ, or the decoder has no cross-attention.
        TypeError: If a module is given in place of its config.
    """

    def __init__(self, encoder: EncoderConfig | AudioEncoderConfig, decoder: DecoderConfig):
        super().__init__()
        self.config = EncoderDecoderConfig(encoder=encoder, decoder=decoder)
        kind: Any = AudioEncoder if isinstance(encoder, AudioEncoderConfig) else Encoder
        self.encoder = kind.from_config(encoder)
        self.decoder = Decoder.from_config(decoder)

    def forward(
        self,
        inputs: Tensor,
        decoder_inputs: Tensor,
        *,
        key_mask: Tensor | None = None,
        decoder_key_mask: Tensor | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
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

        Returns:
            What both return.

        Raises:
            ValueError, TypeError, IndexError: As the encoder's and the decoder's.
        """
        needs: Any = {"need_weights": need_weights, "need_hidden_states": need_hidden_states}
        encoded = self.encoder(inputs, key_mask=key_mask, **needs)
        decoded = self.decode(
            decoder_inputs,
            encoded.output,
            key_mask=decoder_key_mask,
            memory_mask=key_mask,
            **needs,
        )
        return EncoderDecoderOutput(encoded, decoded)

    def decode(
        self,
        inputs: Tensor,
        memory: Tensor | Sequence[KeyValue],
        *,
        key_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: StackCache | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
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
        )
