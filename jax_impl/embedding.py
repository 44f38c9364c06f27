"""Embeddings of ids, and the input of an encoder of text.

T positions   D model width   V number of rows
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp
from jax.nn.initializers import normal

from diptych.spec import EmbeddingConfig, NormConfig, TextEmbeddingConfig
from diptych.spec.checks.attention import check_integer_dtype
from diptych.spec.checks.sizes import check_broadcasts, check_given, check_ids_shape, check_length

from . import functional
from .functional._dtype import dtype_name
from .linear import linear
from .module import Module, config_of
from .norm import norm as make_norm


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
    """Token, learned position and token-type embeddings, summed and normalised.

    The defaults are BERT's input (Devlin et al. 2019, section 3); every part but the tokens can be
    left out.

    Args:
        vocab_size: Number of tokens.
        d_model: Width D.
        max_seq_len: Number of positions; None means there are no learned positions.
        num_token_types: Number of token types; 0 leaves them out.
        norm: Of the sum; None leaves it out.
        dropout: Rate on the result.
        scale: Factor on the token vectors, rounded to their dtype first (Gemma).
        position_offset: Row of the first position (OPT: 2).
        padding_id: Token id of padding: padding has the position of that number, and tokens count
            from the next (RoBERTa); None counts from 0.
        embed_dim: Width of the token table, projected to D; None means D.
        embed_bias: Whether that projection has a bias.
        embed_proj_of: What is projected: "sum" (all tables have that width, and the projection
            follows the norm: ALBERT) or "tokens" (the token vectors alone, before the rest is
            added: OPT).
        shared_tokens: Whether the token table is another module's, given in the call.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a number is refused.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        max_seq_len: int | None = 512,
        num_token_types: int = 2,
        norm: NormConfig | None = NormConfig(),
        dropout: float = 0.1,
        scale: float | None = None,
        position_offset: int = 0,
        padding_id: int | None = None,
        embed_dim: int | None = None,
        embed_bias: bool = True,
        embed_proj_of: str = "sum",
        shared_tokens: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(TextEmbeddingConfig, locals())
        if not shared_tokens:
            self.token_embed = Embedding(vocab_size, config.width, rngs=rngs)
        if config.num_positions:
            self.position_embed = Embedding(config.num_positions, config.sum_width, rngs=rngs)
        if num_token_types:
            self.token_type_embed = Embedding(num_token_types, config.sum_width, rngs=rngs)
        if norm is not None:
            self.embed_norm = make_norm(norm, config.sum_width, rngs=rngs)
        if embed_dim is not None:
            self.embed_proj = linear(embed_dim, d_model, bias=embed_bias, rngs=rngs)

    def __call__(
        self,
        input_ids: Array,
        *,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        token_embed: Embedding | None = None,
        rng_key: Array | None = None,
    ) -> Array:
        """Embed tokens with their positions and types.

        Args:
            input_ids: Token ids (..., T).
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, broadcasting to (..., T), without the offset, -1 for
                padding with a padding_id; by default 0 .. T - 1, or counted from the tokens that
                are not padding.
            token_embed: The token table, with shared tokens alone.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            Vectors (..., T, D), in the dtype of the parameters.

        Raises:
            ValueError: If T exceeds max_seq_len without ``position_ids``, types or positions are
                given where there are none, or a shape does not broadcast.
            TypeError: If ids are not integers.
            IndexError: If an id is outside its table.
        """
        config, shape = self.config, input_ids.shape
        check_ids_shape(shape)
        check_given("token_embed", token_embed is not None, "shared_tokens", config.shared_tokens)
        table = self.token_embed if token_embed is None else token_embed
        x = table(input_ids)
        if config.scale is not None:
            # In their dtype: a plain number would keep bits that Gemma's own code rounds off.
            x = x * jnp.asarray(config.scale, x.dtype)
        if config.embed_proj_of == "tokens":
            x = self.embed_proj(x)
        if config.num_token_types:
            if token_type_ids is None:
                token_type_ids = jnp.zeros(1, jnp.int32)
            check_broadcasts("token_type_ids", token_type_ids.shape, shape)
            x = x + self.token_type_embed(token_type_ids)
        elif token_type_ids is not None:
            raise ValueError("token_type_ids are given, but num_token_types=0")
        if config.max_seq_len is not None:
            x = x + self.position_embed(self._rows(input_ids, position_ids))
        elif position_ids is not None:
            raise ValueError("position_ids are given, but max_seq_len=None")
        x = x if config.norm is None else self.embed_norm(x)
        x = functional.apply_dropout(x, config.dropout if self.training else 0.0, rng_key=rng_key)
        if config.embed_dim is None or config.embed_proj_of == "tokens":
            return x
        return self.embed_proj(x)

    def _rows(self, input_ids: Array, position_ids: Array | None) -> Array:
        """Return the row of the position table for every token."""
        config, shape = self.config, input_ids.shape
        if position_ids is not None:
            check_integer_dtype(position_ids=dtype_name(position_ids))
            check_broadcasts("position_ids", position_ids.shape, shape)
            rows = position_ids + jnp.int32(config.first_position)
            # Below the first it becomes -1: outside the table, even where the offset has a row.
            return rows - (rows + 1) * (rows < config.lowest_position)
        check_length(shape[-1], config.max_seq_len)
        if config.padding_id is not None:
            return functional.positions_from_ids(input_ids, config.padding_id)
        return config.position_offset + jnp.arange(shape[-1])
