"""What an encoder stack is."""

from dataclasses import dataclass
from typing import ClassVar

from .block import TransformerEncoderLayerConfig
from .checks import check_kind, check_positive
from .config import Config, Leaves, linear_leaves, under
from .embedding import TextEmbeddingConfig


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(Config):
    """Embeddings, N layers and, if asked for, a pooler.

    Attributes:
        layer: Config of every layer.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors (B, T, D) instead of ids.
        pooler: Whether ``pooled = tanh(linear(output[first position]))`` is computed.
    """

    component: ClassVar[str] = "Encoder"
    layer: TransformerEncoderLayerConfig
    num_layers: int
    embedding: TextEmbeddingConfig | None = None
    pooler: bool = False

    def __post_init__(self):
        check_kind(TransformerEncoderLayerConfig, layer=self.layer)
        check_positive(num_layers=self.num_layers)
        if self.embedding is not None:
            check_kind(TextEmbeddingConfig, embedding=self.embedding)
        if self.embedding and self.embedding.d_model != self.layer.d_model:
            raise ValueError(
                f"embedding.d_model={self.embedding.d_model} must equal "
                f"layer.d_model={self.layer.d_model}"
            )

    def leaves(self) -> Leaves:
        leaves = under("embedding", self.embedding.leaves()) if self.embedding else {}
        for i in range(self.num_layers):
            leaves |= under(f"layers.{i}", self.layer.leaves())
        if self.pooler:
            d_model = self.layer.d_model
            leaves |= under("pooler_proj", linear_leaves(d_model, d_model))
        return leaves
