"""A stack of causal transformer layers.

B batch   T positions   S positions of the memory   D model width   N heads   V vocabulary
"""

from collections.abc import Sequence
from typing import Any

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    AlibiConfig,
    BlockConfig,
    DecoderConfig,
    LogitsHeadConfig,
    NormConfig,
    RelativeBiasConfig,
    TextEmbeddingConfig,
    TransformerDecoderLayerConfig,
)
from diptych.spec.checks.attention import check_mask_dtype
from diptych.spec.checks.cache import check_row_mask
from diptych.spec.checks.sizes import check_sequence

from . import functional
from ._keys import split
from .attention.projected_attention import KeyValue
from .block import Block
from .embedding import Embedding, TextEmbedding
from .functional._dtype import dtype_name
from .logits_head import LogitsHead
from .module import Module, config_of
from .norm import norm
from .position import cached_positions, call_positions
from .position_bias import add_distances, distance_bias
from .stack import StackCache, StackOutput, check_cache, run_layers


class Decoder(Module):
    """Embeddings, N layers of causal attention, a final norm and a head of logits, each optional.

    Vaswani et al. 2017 with cross-attention; Radford et al. 2018 without.

    Args:
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors instead of ids.
        final_norm: Norm of the last layer's output; None leaves it out.
        position_bias: What is added to every layer's scores for the distance of a key, made once.
        dropout: Rate on the output, after the final norm.
        head: Config of the logits; None leaves them out.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size or rate is refused, widths differ, a layer is not causal, or a head is
            tied to no embedding.
        TypeError: If a module is given in place of its config.
    """

    def __init__(
        self,
        layer: BlockConfig | TransformerDecoderLayerConfig | tuple[BlockConfig, ...],
        num_layers: int,
        *,
        embedding: TextEmbeddingConfig | None = None,
        final_norm: NormConfig | None = None,
        position_bias: RelativeBiasConfig | AlibiConfig | None = None,
        dropout: float = 0.0,
        head: LogitsHeadConfig | None = None,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(DecoderConfig, locals())
        if embedding:
            self.embedding = TextEmbedding.from_config(embedding, rngs=rngs)
        self.position_bias = distance_bias(
            position_bias, config.layers[0].attention.num_heads, rngs=rngs
        )
        self.layers = nnx.List([Block.from_config(block, rngs=rngs) for block in config.layers])
        self.final_norm = (
            None if final_norm is None else norm(final_norm, config.d_model, rngs=rngs)
        )
        if head is not None:
            self.head = LogitsHead.from_config(head, rngs=rngs)

    def __call__(
        self,
        inputs: Array,
        *,
        key_mask: Array | None = None,
        mask: Array | None = None,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        segment_ids: Array | None = None,
        memory: Array | Sequence[KeyValue] | None = None,
        memory_mask: Array | None = None,
        cache: StackCache | None = None,
        token_embed: Embedding | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> StackOutput:
        """Decode a batch of sequences, or of what follows them in a cache.

        Args:
            inputs: Token ids (..., T) if there are embeddings, else vectors (..., T, D).
            key_mask: True or not 0 at real tokens, false at padding: (..., T); with a cache padding
                comes last.
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T); with a cache over its slots. Causality holds besides.
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, integer (T,) or (..., T); by default they follow those in the
                cache, or 0 .. T - 1.
            segment_ids: Integer (..., T): a query sees the keys of its own segment.
            memory: What the cross-attentions read, (..., S, kv_dim), or what ``project`` returned.
            memory_mask: True or not 0 where the memory may be attended to: (..., S).
            cache: Earlier positions, from ``new_cache`` or the last call; inputs (B, T) follow.
            token_embed: The token table, where the embedding has shared tokens.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            The output and what was asked for, the logits if there is a head, and the cache after
            the call if one was given.

        Raises:
            ValueError: If a shape does not fit, positions exceed a table or the cache, ids come
                without embeddings to look them up in, or the memory is missing.
            TypeError: If a mask is floating or ids are not integers.
            IndexError: If an id is outside its table.
        """
        config = self.config
        embedding_key, output_key, layer_key = split(rng_key, 3)
        if cache is not None:
            check_cache(cache, inputs, config.num_layers)
        x = inputs
        if config.embedding:
            x = self.embedding(
                inputs,
                token_type_ids=token_type_ids,
                position_ids=self._table_positions(inputs, position_ids, key_mask, cache),
                token_embed=token_embed,
                rng_key=embedding_key,
            )
        elif token_type_ids is not None or token_embed is not None:
            raise ValueError("token_type_ids or token_embed are given, but embedding=None")
        check_sequence(x.shape, config.d_model)
        result = run_layers(
            self.layers,
            x,
            final_norm=self.final_norm,
            mask=mask,
            key_mask=key_mask,
            bias=self._bias(x, position_ids, cache),
            segment_ids=segment_ids,
            position_ids=position_ids,
            memory=memory,
            memory_mask=memory_mask,
            cache=cache,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
            rng_key=layer_key,
        )
        x = functional.apply_dropout(
            result.output, config.dropout if self.training else 0.0, rng_key=output_key
        )
        if config.head is None:
            return result._replace(output=x)
        # A tied head reads the token table, which may be the encoder's.
        table: Any = None
        if config.head.tied:
            table = self.embedding.token_embed if token_embed is None else token_embed
        return result._replace(output=x, logits=self.head(x, table))

    def new_cache(self, batch_size: int, capacity: int) -> StackCache:
        """Return a cache without positions for every layer.

        Args:
            batch_size: B.
            capacity: Number of positions that it has room for.

        Returns:
            The caches, to be given as ``cache=``.

        Raises:
            ValueError: If a size is refused.
        """
        layers: Any = self.layers
        return tuple(layer.attention.new_cache(batch_size, capacity) for layer in layers)

    def project(self, memory: Array) -> tuple[KeyValue, ...]:
        """Project a memory once for every layer, to be given as ``memory=`` any number of times.

        Args:
            memory: (..., S, kv_dim).

        Returns:
            Keys and values of every layer.

        Raises:
            ValueError: If a shape does not fit.
        """
        layers: Any = self.layers
        return tuple(layer.cross_attention.project(memory) for layer in layers)

    def _table_positions(
        self,
        inputs: Array,
        position_ids: Array | None,
        key_mask: Array | None,
        cache: StackCache | None,
    ) -> Array | None:
        """Return positions for the learned table; past it, hidden rows have its last."""
        if self.config.embedding.max_seq_len is None:
            return None
        if position_ids is not None or cache is None:
            return position_ids
        positions = cached_positions(cache[0], inputs.shape[-1])  # (B, T)
        if key_mask is None:
            return positions
        check_mask_dtype(key_mask=dtype_name(key_mask))
        check_row_mask(key_mask.shape, inputs.shape)
        # Padding may stand past the table, where looking it up would be refused.
        last = self.config.embedding.max_seq_len - 1
        return jnp.where(key_mask != 0, positions, jnp.minimum(positions, last))  # (B, T)

    def _bias(self, x: Array, position_ids: Array | None, cache: StackCache | None) -> Array | None:
        """Return what is added to every layer's scores for the distance of a key."""
        if cache is None:
            at = call_positions(x, x.shape[-2], position_ids=position_ids)
            queries, keys = at.queries, at.keys
        else:
            queries = cached_positions(cache[0], x.shape[-2])
            keys = call_positions(x, cache[0].entries[0].shape[-2]).keys
        # x in place of heads (..., 1, T, D): its rank and dtype alone are read.
        return add_distances(None, self.position_bias, queries, keys, x[..., None, :, :])
