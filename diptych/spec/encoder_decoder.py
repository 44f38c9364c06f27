"""What an encoder and a decoder that reads it are."""

from dataclasses import dataclass
from typing import ClassVar

from .audio import AudioEncoderConfig
from .checks.sizes import check_equal, check_kind
from .config import Config, Leaves, under
from .decoder import DecoderConfig
from .encoder import EncoderConfig


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(Config):
    """An encoder, and a decoder whose layers attend to its output (Vaswani et al. 2017).

    Attributes:
        encoder: Config of the encoder.
        decoder: Config of the decoder, with cross-attention; where its embedding has shared tokens,
            it and a tied head read the encoder's token table.

    Raises:
        ValueError: If widths or vocabularies differ, or the decoder has no cross-attention.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "EncoderDecoder"
    encoder: EncoderConfig | AudioEncoderConfig
    decoder: DecoderConfig

    def __post_init__(self):
        check_kind(EncoderConfig | AudioEncoderConfig, encoder=self.encoder)
        check_kind(DecoderConfig, decoder=self.decoder)
        for i, layer in enumerate(self.decoder.layers):
            if layer.cross_attention is None:
                raise ValueError(
                    f"decoder layer {i}: cross_attention=None: it must read the encoder"
                )
            check_equal(
                f"decoder layer {i}: cross_attention.kv_dim",
                layer.cross_attention.key_width,
                "encoder.d_model",
                self.encoder.d_model,
            )
        ours = self.decoder.embedding
        if ours is not None and ours.shared_tokens:
            # An encoder of audio has no embedding, not even None.
            table = getattr(self.encoder, "embedding", None)
            if table is None or table.shared_tokens:
                raise ValueError("decoder.embedding.shared_tokens=True: the encoder has no tokens")
            check_equal(
                "decoder.embedding.vocab_size",
                ours.vocab_size,
                "encoder.embedding.vocab_size",
                table.vocab_size,
            )
            check_equal(
                "decoder.embedding.embed_dim",
                ours.width,
                "encoder.embedding.embed_dim",
                table.width,
            )

    @property
    def shares_tokens(self) -> bool:
        """Return whether the decoder reads the encoder's token table."""
        embedding = self.decoder.embedding
        return embedding is not None and embedding.shared_tokens

    def leaves(self) -> Leaves:
        return under("encoder", self.encoder.leaves()) | under("decoder", self.decoder.leaves())
