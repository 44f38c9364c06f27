"""Multi-head attention.

B batch   T query positions   S key positions   D model width   C capacity
N query heads   K key/value heads   H head width
"""

from typing import Any

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    RotaryTable,
    ScoreConfig,
)
from diptych.spec.checks.cache import check_memory, check_projected
from diptych.spec.checks.sizes import check_sequence

from ..functional.cache import Cache, RollingCache
from ..functional.head_axis import split_heads
from ..linear import linear
from ..module import config_of
from ..norm import norm
from ..position import call_positions, rotate
from ..position_bias import distance_bias
from .projected_attention import KeyValue, ProjectedAttention


class MultiHeadAttention(ProjectedAttention):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2), also with grouped key/value heads.

    ``output = concat(head_1 .. head_N) W_out``, ``head_n = attention(query W_q, key W_k, value
    W_v)`` in the columns of head n; query head n reads key/value head n // (N / K) (Ainslie et al.
    2023). Queries and keys can be normalised, then rotated by their positions.

    Args:
        d_model: Width D of the queries' input and the output.
        num_heads: Number N of query heads.
        num_kv_heads: Number K of key/value heads, a divisor of N; None means N.
        head_dim: Width H of one head; None means D / N.
        kv_dim: Width of the keys' and values' input; None means D.
        qkv_bias: Whether the three input projections have a bias, or which of (q, k, v) do.
        out_bias: Whether the output projection has a bias.
        attention_dropout: Rate on the weights in training.
        score: How scores are made.
        rotary: How queries and keys are rotated by their positions, if they are.
        qk_norm: Norms of queries and keys, if they have any.
        position_bias: What is added to the scores for the distance of a key, if anything.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is below 1 or does not divide another, or the rate is outside [0, 1).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        kv_dim: int | None = None,
        qkv_bias: bool | tuple[bool, bool, bool] = True,
        out_bias: bool = True,
        attention_dropout: float = 0.0,
        score: ScoreConfig = ScoreConfig(),
        rotary: RotaryConfig | None = None,
        qk_norm: QKNormConfig | None = None,
        position_bias: RelativeBiasConfig | AlibiConfig | None = None,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(AttentionConfig, locals())
        N, K, H = config.sizes
        q_bias, k_bias, v_bias = config.biases
        self.q_proj = linear(d_model, N * H, bias=q_bias, rngs=rngs)
        self.k_proj = linear(config.key_width, K * H, bias=k_bias, rngs=rngs)
        self.v_proj = linear(config.key_width, K * H, bias=v_bias, rngs=rngs)
        self.out_proj = linear(N * H, d_model, bias=out_bias, rngs=rngs)
        if score.sinks:
            self.sinks_param = nnx.Param(jnp.zeros(N, jnp.float32))
        self.q_norm = (
            None if qk_norm is None else norm(qk_norm.norm, qk_norm.width(N, H), rngs=rngs)
        )
        self.k_norm = (
            None if qk_norm is None else norm(qk_norm.norm, qk_norm.width(K, H), rngs=rngs)
        )
        # A table beside the parameters: as one of them it would be cast, saved or trained.
        self.rotary = None if rotary is None else RotaryTable(rotary, H)
        self.position_bias = distance_bias(position_bias, N, rngs=rngs)

    def __call__(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        mask: Array | None = None,
        *,
        key_mask: Array | None = None,
        bias: Array | None = None,
        offset: int | Array = 0,
        segment_ids: Array | tuple[Array, Array] | None = None,
        position_ids: Array | tuple[Array, Array] | None = None,
        memory: KeyValue | None = None,
        cache: Cache | RollingCache | None = None,
        need_weights: bool = True,
        rng_key: Array | None = None,
    ) -> tuple[Array, Array | None] | tuple[Array, Array | None, Cache | RollingCache]:
        """Project, attend in each head, project back.

        Args:
            query: (..., T, D).
            key: (..., S, kv_dim); None means the query.
            value: (..., S, kv_dim); None means the key.
            mask: Boolean or integer, true or not 0 where a query may attend: (T, S), (..., T, S)
                for all heads, or (..., N, T, S), size 1 broadcasting.
            key_mask: Boolean or integer (..., S), the keys that may be attended to; with a cache
                (B, T), which of the new rows are real: those before the padding.
            bias: Floating, the shapes of ``mask``: added to the scores; -inf hides.
            offset: Position of the first query among the keys, an int or one per sample.
            segment_ids: Integer (..., T), or a pair (..., T), (..., S): a query sees the keys of
                its own segment.
            position_ids: Positions of queries and keys, integer (T,) or (..., T) if T == S, else a
                pair; None counts queries from ``offset`` and keys from 0. With a cache they are the
                new rows', and rotate alone.
            memory: What ``project`` returned, instead of key and value.
            cache: Earlier positions, from ``new_cache`` or the last call; the new rows follow them.
            need_weights: Whether to return the weights.
            rng_key: Key of the dropout's draw. In training, an attention dropout above 0 without
                it is a ValueError.

        Returns:
            Output (..., T, D) and weights (..., N, T, S), after the softmax, before dropout, or
            None; both in the dtype of the query. With a cache also the cache after the call, and
            the keys are its C slots, or, where it is rolling, its slots and the new rows.

        Raises:
            ValueError: If a shape does not fit, the cache has no room, or arguments exclude each
                other.
            TypeError: If a dtype does not fit.
        """
        check_sequence(query.shape, self.config.d_model)
        check_memory(
            memory=memory is not None,
            key=key is not None or value is not None,
            is_projected=isinstance(memory, KeyValue),
        )
        key = query if key is None else key
        value = key if value is None else value
        if memory is None:
            check_projected(key.shape, value.shape, self.config.key_width)
        S = key.shape[-2] if memory is None else memory.key.shape[-2]
        source = (key, value) if memory is None else memory
        return self._attend(
            query,
            source,
            S,
            mask=mask,
            key_mask=key_mask,
            bias=bias,
            offset=offset,
            segment_ids=segment_ids,
            position_ids=position_ids,
            cache=cache,
            need_weights=need_weights,
            rng_key=rng_key,
        )

    def project(
        self,
        key: Array,
        value: Array | None = None,
        *,
        position_ids: Array | None = None,
    ) -> KeyValue:
        """Project keys and values once, to be given as ``memory=`` any number of times.

        Args:
            key: (..., S, kv_dim).
            value: (..., S, kv_dim); None means the key.
            position_ids: Integer (S,) or (..., S); None counts from 0.

        Returns:
            Keys and values by head.

        Raises:
            ValueError: If a shape does not fit.
        """
        value = key if value is None else value
        check_projected(key.shape, value.shape, self.config.key_width)
        S = key.shape[-2]
        at = call_positions(key, S, offset=0, position_ids=position_ids)
        return self._entries((key, value), at.keys, S)

    def _queries(self, query: Array, positions: Array, length: int) -> Array:
        N = self.config.num_heads
        return self._heads(self.q_proj, self.q_norm, query, N, positions, length)

    def _entries(self, source: Any, positions: Array, length: int) -> KeyValue:
        if isinstance(source, KeyValue):
            return source
        key, value = source
        K = self.config.sizes[1]
        heads = self._heads(self.k_proj, self.k_norm, key, K, positions, length)  # (..., K, S, H)
        return KeyValue(heads, split_heads(self.v_proj(value), K))

    def _keys_and_values(self, *entries: Array) -> tuple[Array, Array]:
        key, value = entries
        N, K, _ = self.config.sizes
        if key.ndim == 3 and K < N:  # the function groups heads only beside a batch axis
            key, value = (jnp.repeat(x, N // K, -3) for x in entries)  # (N, S, H)
        return key, value

    def _heads(
        self, proj: Any, norm: Any, x: Array, number: int, positions: Array, length: int
    ) -> Array:
        """Project, normalise and rotate; return (..., number, T, H)."""
        x = proj(x)
        over = None if self.config.qk_norm is None else self.config.qk_norm.over
        if over == "head":
            # One weight of a head's width serves all heads.
            x = norm(x.reshape(*x.shape[:-1], number, x.shape[-1] // number)).reshape(x.shape)
        elif over == "width":
            x = norm(x)
        return rotate(split_heads(x, number), positions, self.rotary, length)
