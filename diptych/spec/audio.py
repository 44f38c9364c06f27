"""What an encoder of audio is (Radford et al. 2022, Whisper)."""

from dataclasses import dataclass
from typing import ClassVar

from .block import BlockConfig
from .checks.sizes import check_kind, check_positive, check_rate
from .config import Leaf, Leaves, under
from .embedding import EmbeddingConfig
from .norm import NormConfig
from .stack import StackConfig, layer_leaves
from .transformer_layer import TransformerEncoderLayerConfig


@dataclass(frozen=True, kw_only=True)
class AudioEncoderConfig(StackConfig):
    """Two convolutions over time, the second halving it, learned positions, N layers, a final norm.

    Attributes:
        num_mel_bins: Number of channels of the spectrogram.
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        max_seq_len: Number of positions after the convolutions.
        final_norm: Norm of the last layer's output; None leaves it out.
        dropout: Rate on the first layer's input.

    Raises:
        ValueError: If a size or rate is refused.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "AudioEncoder"
    num_mel_bins: int
    layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...]
    num_layers: int
    max_seq_len: int = 1500
    final_norm: NormConfig | None = NormConfig()
    dropout: float = 0.0

    def __post_init__(self):
        check_positive(num_mel_bins=self.num_mel_bins, max_seq_len=self.max_seq_len)
        super().__post_init__()
        check_kind(NormConfig | None, final_norm=self.final_norm)
        check_rate(dropout=self.dropout)

    def leaves(self) -> Leaves:
        D = self.d_model
        leaves: Leaves = {
            "first_conv1d.weight": Leaf((D, self.num_mel_bins, 3), "conv1d"),
            "first_conv1d.bias": Leaf((D,), "conv1d"),
            "second_conv1d.weight": Leaf((D, D, 3), "conv1d"),
            "second_conv1d.bias": Leaf((D,), "conv1d"),
        }
        positions = EmbeddingConfig(num_embeddings=self.max_seq_len, d_model=D)
        leaves |= under("position_embed", positions.leaves())
        return leaves | layer_leaves(self)
