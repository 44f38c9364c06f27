"""Embeddings of ids, and the input of an encoder of text.

T positions   D model width   V number of rows
"""

import torch
from torch import Tensor, nn

from diptych.spec import EmbeddingConfig, TextEmbeddingConfig
from diptych.spec.checks import check_broadcasts, check_length

from . import functional
from .module import Module
from .norm import LayerNorm


class Embedding(Module, nn.Embedding):
    """A table of vectors looked up by id, drawn from normal(0, 0.02).

    Args:
        num_embeddings: Number V of rows.
        d_model: Width D of one row.

    Raises:
        ValueError: If a size is below 1.
    """

    def __init__(self, num_embeddings: int, d_model: int):
        config = EmbeddingConfig(num_embeddings=num_embeddings, d_model=d_model)
        super().__init__(num_embeddings, d_model)
        self.config = config
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the row of every id.

        Where the ids cannot be looked at (compiled, vmap), an id outside gives a row of NaN.

        Args:
            ids: Integers (...), 0 .. V - 1.

        Returns:
            Rows (..., D), in the dtype of the table.

        Raises:
            TypeError: If the ids are not integers.
            IndexError: If an id is outside the table; names both.
        """
        return functional.embed(ids, self.weight)

    def attend(self, query: Tensor) -> Tensor:
        """Return the product of every vector with every row, the logits of a tied head.

        Args:
            query: Vectors (..., D), in the dtype of the table.

        Returns:
            Products (..., V), in that dtype.

        Raises:
            ValueError: If the last axis is not D.
        """
        return functional.unembed(query, self.weight)


class TextEmbedding(Module):
    """Token, learned position and token-type embeddings, summed and normalised (BERT's input).

    Devlin et al. 2019, section 3.

    Args:
        vocab_size: Number of tokens.
        d_model: Width D.
        max_seq_len: Number of positions.
        num_token_types: Number of token types; 0 leaves them out.
        eps: Of the layer norm.
        dropout: Rate on the result.

    Raises:
        ValueError: If a size, eps or the rate is refused.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        max_seq_len: int = 512,
        num_token_types: int = 2,
        eps: float = 1e-5,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.config = TextEmbeddingConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            max_seq_len=max_seq_len,
            num_token_types=num_token_types,
            eps=eps,
            dropout=dropout,
        )
        self.token_embed = Embedding(vocab_size, d_model)
        self.position_embed = Embedding(max_seq_len, d_model)
        if num_token_types:
            self.token_type_embed = Embedding(num_token_types, d_model)
        self.embed_norm = LayerNorm(d_model, eps=eps)

    def forward(
        self,
        input_ids: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Embed tokens with their positions and types.

        Args:
            input_ids: Token ids (..., T).
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, broadcasting to (..., T); 0 .. T - 1 by default.

        Returns:
            Vectors (..., T, D), in the dtype of the parameters.

        Raises:
            ValueError: If T exceeds max_seq_len without ``position_ids``, types are given but
                num_token_types is 0, or a shape does not broadcast.
            TypeError: If ids are not integers.
            IndexError: If an id is outside its table.
        """
        shape = tuple(input_ids.shape)
        x = self.token_embed(input_ids)
        if self.config.num_token_types:
            if token_type_ids is None:
                token_type_ids = torch.zeros(1, dtype=torch.int64, device=input_ids.device)
            check_broadcasts("token_type_ids", tuple(token_type_ids.shape), shape)
            x = x + self.token_type_embed(token_type_ids)
        elif token_type_ids is not None:
            raise ValueError("token_type_ids are given, but num_token_types=0")
        if position_ids is None:
            check_length(shape[-1], self.config.max_seq_len)
            position_ids = torch.arange(shape[-1], device=input_ids.device)
        check_broadcasts("position_ids", tuple(position_ids.shape), shape)
        x = self.embed_norm(x + self.position_embed(position_ids))
        return functional.apply_dropout(x, self.config.dropout if self.training else 0.0)
