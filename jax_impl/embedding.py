"""Embeddings of ids, and the input of an encoder of text.

T positions   D model width   V number of rows
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp
from jax.nn.initializers import normal

from diptych.spec import EmbeddingConfig, TextEmbeddingConfig
from diptych.spec.checks import check_broadcasts, check_length

from . import functional
from .module import Module
from .norm import LayerNorm


class Embedding(Module, nnx.Embed):
    """A table of vectors looked up by id, drawn from normal(0, 0.02).

    Args:
        num_embeddings: Number V of rows.
        d_model: Width D of one row.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is below 1.
    """

    def __init__(self, num_embeddings: int, d_model: int, *, rngs: nnx.Rngs):
        config = EmbeddingConfig(num_embeddings=num_embeddings, d_model=d_model)
        super().__init__(num_embeddings, d_model, embedding_init=normal(0.02), rngs=rngs)
        self.config = config

    def __call__(self, ids: Array) -> Array:  # type: ignore[override]
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
        return functional.embed(ids, self.embedding[...])

    def attend(self, query: Array) -> Array:  # type: ignore[override]
        """Return the product of every vector with every row, the logits of a tied head.

        Args:
            query: Vectors (..., D), in the dtype of the table.

        Returns:
            Products (..., V), in that dtype.

        Raises:
            ValueError: If the last axis is not D.
        """
        return functional.unembed(query, self.embedding[...])


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
        rngs: Where the parameters are drawn from.

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
        rngs: nnx.Rngs,
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
        self.token_embed = Embedding(vocab_size, d_model, rngs=rngs)
        self.position_embed = Embedding(max_seq_len, d_model, rngs=rngs)
        if num_token_types:
            self.token_type_embed = Embedding(num_token_types, d_model, rngs=rngs)
        self.embed_norm = LayerNorm(d_model, eps=eps, rngs=rngs)

    def __call__(
        self,
        input_ids: Array,
        *,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        rng_key: Array | None = None,
    ) -> Array:
        """Embed tokens with their positions and types.

        Args:
            input_ids: Token ids (..., T).
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, broadcasting to (..., T); 0 .. T - 1 by default.
            rng_key: Needed in training with a dropout above 0, else a ValueError.

        Returns:
            Vectors (..., T, D), in the dtype of the parameters.

        Raises:
            ValueError: If T exceeds max_seq_len without ``position_ids``, types are given but
                num_token_types is 0, or a shape does not broadcast.
            TypeError: If ids are not integers.
            IndexError: If an id is outside its table.
        """
        shape = input_ids.shape
        x = self.token_embed(input_ids)
        if self.config.num_token_types:
            if token_type_ids is None:
                token_type_ids = jnp.zeros(1, jnp.int32)
            check_broadcasts("token_type_ids", token_type_ids.shape, shape)
            x = x + self.token_type_embed(token_type_ids)
        elif token_type_ids is not None:
            raise ValueError("token_type_ids are given, but num_token_types=0")
        if position_ids is None:
            check_length(shape[-1], self.config.max_seq_len)
            position_ids = jnp.arange(shape[-1])
        check_broadcasts("position_ids", position_ids.shape, shape)
        x = self.embed_norm(x + self.position_embed(position_ids))
        return functional.apply_dropout(
            x, self.config.dropout if self.training else 0.0, rng_key=rng_key
        )
