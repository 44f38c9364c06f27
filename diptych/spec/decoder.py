"""What a decoder stack is."""

from dataclasses import dataclass
from typing import ClassVar

from .block import BlockConfig
from .checks.sizes import check_equal, check_kind
from .config import Leaves, under
from .embedding import TextEmbeddingConfig
from .logits_head import LogitsHeadConfig
from .norm import NormConfig
from .position_bias import AlibiConfig, RelativeBiasConfig
from .stack import StackConfig, check_text_stack, text_stack_leaves
from .transformer_layer import TransformerDecoderLayerConfig


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(StackConfig):
    """Embeddings, N layers of causal attention, a final norm and a head of logits, each optional.

    Attributes:
        layer: Config of every layer, or of several that take turns: layer i is
            ``layer[i % len(layer)]``.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors (B, T, D) instead of ids.
        final_norm: Norm of the last layer's output; None leaves it out.
        position_bias: What is added to every layer's scores for the distance of a key, made once.
        dropout: Rate on the output, after the final norm.
        head: Config of the logits; None leaves them out.

    Raises:
        ValueError: If a size or rate is refused, widths differ, or a head is tied to no embedding.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "Decoder"
    layer: BlockConfig | TransformerDecoderLayerConfig | tuple[BlockConfig, ...]
    num_layers: int
    embedding: TextEmbeddingConfig | None = None
    final_norm: NormConfig | None = None
    position_bias: RelativeBiasConfig | AlibiConfig | None = None
    dropout: float = 0.0
    head: LogitsHeadConfig | None = None

    def __post_init__(self):
        super().__post_init__()
        check_text_stack(self)
        for i, layer in enumerate(self.layers):
            if not layer.attention.score.is_causal:
                raise ValueError(f"layer {i}: attention.score.is_causal=False: a decoder is causal")
            # Windows make rolling caches, whose slots are in no order that one bias could follow.
            if self.position_bias is not None and layer.attention.score.window is not None:
                raise ValueError(
                    f"layer {i} has a window: position_bias goes to each layer's attention then"
                )
            if (layer.cross_attention is None) != (self.layers[0].cross_attention is None):
                raise ValueError("cross_attention must be in all layers or in none")
        check_kind(LogitsHeadConfig | None, head=self.head)
        embedding = self.embedding
        if embedding is not None and embedding.padding_id is not None:
            raise ValueError(
                f"embedding.padding_id={embedding.padding_id}: a decoder counts every position"
            )
        if self.head is not None:
            check_equal("head.d_model", self.head.d_model, "layer.d_model", self.d_model)
            if self.head.tied:
                if embedding is None:
                    raise ValueError("head.tied=True, but embedding=None")
                check_equal(
                    "head.vocab_size",
                    self.head.vocab_size,
                    "embedding.vocab_size",
                    embedding.vocab_size,
                )
                check_equal(
                    "head.embed_dim",
                    self.head.embed_dim or self.d_model,
                    "embedding.embed_dim",
                    embedding.width,
                )

    def leaves(self) -> Leaves:
        head = under("head", self.head.leaves()) if self.head else {}
        return text_stack_leaves(self) | head
