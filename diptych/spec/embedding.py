"""What the embedding components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks import check_above_zero, check_positive, check_rate
from .config import Config, Leaf, Leaves, under
from .norm import LayerNormConfig


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig(Config):
    """A table of vectors looked up by id.

    Attributes:
        num_embeddings: Number of rows; ids are 0 .. num_embeddings - 1.
        d_model: Width of one row.
    """

    component: ClassVar[str] = "Embedding"
    num_embeddings: int
    d_model: int

    def __post_init__(self):
        check_positive(num_embeddings=self.num_embeddings, d_model=self.d_model)

    def leaves(self) -> Leaves:
        return {"weight": Leaf((self.num_embeddings, self.d_model), "embed")}


@dataclass(frozen=True, kw_only=True)
class TextEmbeddingConfig(Config):
    """Token, learned position and token-type embeddings, summed and normalised (BERT's input).

    Attributes:
        vocab_size: Number of tokens.
        d_model: Width.
        max_seq_len: Number of positions.
        num_token_types: Number of token types; 0 leaves them out.
        eps: Of the layer norm.
        dropout: Rate on the result.
    """

    component: ClassVar[str] = "TextEmbedding"
    vocab_size: int
    d_model: int
    max_seq_len: int = 512
    num_token_types: int = 2
    eps: float = 1e-5
    dropout: float = 0.1

    def __post_init__(self):
        check_positive(
            vocab_size=self.vocab_size, d_model=self.d_model, max_seq_len=self.max_seq_len
        )
        if self.num_token_types:
            check_positive(num_token_types=self.num_token_types)
        check_above_zero(eps=self.eps)
        check_rate(dropout=self.dropout)

    def leaves(self) -> Leaves:
        sizes = {"token_embed": self.vocab_size, "position_embed": self.max_seq_len}
        if self.num_token_types:
            sizes["token_type_embed"] = self.num_token_types
        leaves: Leaves = {}
        for name, size in sizes.items():
            table = EmbeddingConfig(num_embeddings=size, d_model=self.d_model)
            leaves |= under(name, table.leaves())
        return leaves | under("embed_norm", LayerNormConfig(d_model=self.d_model).leaves())
