"""What a decoder stack is, and the head that makes logits of its output."""

from dataclasses import dataclass
from typing import ClassVar

from .block import BlockConfig, TransformerDecoderLayerConfig
from .checks.sizes import check_above_zero, check_boolean, check_equal, check_kind, check_positive
from .config import Config, Leaf, Leaves, linear_leaves, under
from .embedding import TextEmbeddingConfig
from .norm import NormConfig
from .position_bias import AlibiConfig, RelativeBiasConfig
from .stack import StackConfig, check_text_stack, text_stack_leaves


@dataclass(frozen=True, kw_only=True)
class LogitsHeadConfig(Config):
    """Vocabulary logits at every position: ``softcap(scale * (x table^T + bias))``.

    Attributes:
        d_model: Width of the hidden states.
        vocab_size: Number of tokens.
        tied: Whether the table is the token embedding, given in the call, instead of an own one.
        bias: Whether a bias is added.
        scale: Factor on the logits.
        softcap: Logits become ``softcap * tanh(logit / softcap)``; None means no cap.
        embed_dim: Width of the token embedding of a tied head, to which hidden states are
            projected; None means d_model.

    Raises:
        ValueError: If a number is refused.
    """

    component: ClassVar[str] = "LogitsHead"
    d_model: int
    vocab_size: int
    tied: bool = True
    bias: bool = False
    scale: float = 1.0
    softcap: float | None = None
    embed_dim: int | None = None

    def __post_init__(self):
        check_boolean(tied=self.tied, bias=self.bias)
        check_positive(d_model=self.d_model, vocab_size=self.vocab_size)
        check_above_zero(scale=self.scale)
        if self.softcap is not None:
            check_above_zero(softcap=self.softcap)
        if self.embed_dim is not None:
            check_positive(embed_dim=self.embed_dim)
            if not self.tied:
                raise ValueError(f"embed_dim={self.embed_dim} is of a tied head only")

    def leaves(self) -> Leaves:
        leaves: Leaves = {}
        if self.embed_dim is not None:
            leaves |= under("embed_proj", linear_leaves(self.d_model, self.embed_dim, bias=False))
        if not self.tied:
            leaves |= under(
                "vocab_proj", linear_leaves(self.d_model, self.vocab_size, bias=self.bias)
            )
        elif self.bias:
            leaves["vocab_bias_param"] = Leaf((self.vocab_size,), "param")
        return leaves


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
