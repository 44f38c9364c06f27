"""What the embedding components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import (
    check_above_zero,
    check_boolean,
    check_choice,
    check_kind,
    check_not_negative,
    check_positive,
    check_rate,
)
from .config import Config, Leaf, Leaves, linear_leaves, under
from .norm import NormConfig


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
    """Token, learned position and token-type embeddings, summed and normalised.

    The defaults are BERT's input; every part but the tokens can be left out.

    Attributes:
        vocab_size: Number of tokens.
        d_model: Width.
        max_seq_len: Number of positions; None means there are no learned positions.
        num_token_types: Number of token types; 0 leaves them out.
        norm: Of the sum; None leaves it out.
        dropout: Rate on the result.
        scale: Factor on the token vectors, rounded to their dtype first.
        position_offset: Row of the first position.
        padding_id: Token id of padding: padding has the position of that number, and tokens count
            from the next; None counts from 0.
        embed_dim: Width of the token table, projected to d_model; None means d_model.
        embed_bias: Whether that projection carries a bias.
        embed_proj_of: What is projected: "sum" (all tables have that width, and the projection
            follows the norm) or "tokens" (the token vectors alone, before the rest is added).
        shared_tokens: Whether the token table is another module's, given in the call.

    Raises:
        ValueError: If a number is refused.
    """

    component: ClassVar[str] = "TextEmbedding"
    vocab_size: int
    d_model: int
    max_seq_len: int | None = 512
    num_token_types: int = 2
    norm: NormConfig | None = NormConfig()
    dropout: float = 0.1
    scale: float | None = None
    position_offset: int = 0
    padding_id: int | None = None
    embed_dim: int | None = None
    embed_bias: bool = True
    embed_proj_of: str = "sum"
    shared_tokens: bool = False

    def __post_init__(self):
        check_boolean(embed_bias=self.embed_bias, shared_tokens=self.shared_tokens)
        check_positive(vocab_size=self.vocab_size, d_model=self.d_model)
        if self.max_seq_len is not None:
            check_positive(max_seq_len=self.max_seq_len)
        check_not_negative(num_token_types=self.num_token_types)
        check_kind(NormConfig | None, norm=self.norm)
        check_rate(dropout=self.dropout)
        if self.scale is not None:
            check_above_zero(scale=self.scale)
        check_not_negative(position_offset=self.position_offset)
        if self.padding_id is not None:
            check_not_negative(padding_id=self.padding_id)
            if self.position_offset:
                raise ValueError(
                    f"position_offset={self.position_offset} beside padding_id={self.padding_id}: "
                    "positions count from one of them"
                )
        if self.max_seq_len is None and (self.position_offset or self.padding_id is not None):
            raise ValueError("max_seq_len=None: there are no learned positions to offset")
        if self.embed_dim is not None:
            check_positive(embed_dim=self.embed_dim)
        check_choice(("sum", "tokens"), embed_proj_of=self.embed_proj_of)
        if self.embed_dim is None and self.embed_proj_of == "tokens":
            raise ValueError("embed_proj_of='tokens', but embed_dim=None: nothing is projected")

    @property
    def width(self) -> int:
        """Return the width of the token table."""
        return self.embed_dim or self.d_model

    @property
    def sum_width(self) -> int:
        """Return the width of the other tables and of the norm."""
        return self.width if self.embed_proj_of == "sum" else self.d_model

    @property
    def num_positions(self) -> int:
        """Return the number of rows of the position table, 0 without one."""
        if self.max_seq_len is None:
            return 0
        return self.max_seq_len + self.first_position

    @property
    def first_position(self) -> int:
        """Return the row of the first position."""
        return self.position_offset if self.padding_id is None else self.padding_id + 1

    @property
    def lowest_position(self) -> int:
        """Return the row of padding, or of the first position where padding has none."""
        return self.position_offset if self.padding_id is None else self.padding_id

    def leaves(self) -> Leaves:
        tables = {
            "token_embed": (0 if self.shared_tokens else self.vocab_size, self.width),
            "position_embed": (self.num_positions, self.sum_width),
            "token_type_embed": (self.num_token_types, self.sum_width),
        }
        leaves: Leaves = {}
        for name, (size, width) in tables.items():
            if size:
                table = EmbeddingConfig(num_embeddings=size, d_model=width)
                leaves |= under(name, table.leaves())
        if self.norm is not None:
            leaves |= under("embed_norm", self.norm.of(self.sum_width).leaves())
        if self.embed_dim is not None:
            projection = linear_leaves(self.width, self.d_model, bias=self.embed_bias)
            leaves |= under("embed_proj", projection)
        return leaves
