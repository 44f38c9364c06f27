"""Multi-head attention.

B batch   T query positions   S key positions   D model width   C capacity
N query heads   K key/value heads   H head width
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    RotaryTable,
    ScoreConfig,
)
from diptych.spec.checks.cache import (
    check_cached_call,
    check_can_cache,
    check_memory,
    check_projected,
)
from diptych.spec.checks.sizes import check_kind, check_sequence

from . import functional
from .functional.cache import Cache, RollingCache, append_rows, empty_cache, join_masks
from .functional.head_axis import merge_heads, split_heads
from .linear import linear
from .module import Module
from .norm import norm
from .position import call_positions, rotate
from .position_bias import add_distances, distance_bias


class KeyValue(NamedTuple):
    """Keys and values of a sequence, projected once.

    Attributes:
        key: (..., K, S, H), normalised and rotated.
        value: (..., K, S, H).
    """

    key: Tensor
    value: Tensor


class MultiHeadAttention(Module):
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
    ):
        super().__init__()
        self.config = config = AttentionConfig(
            d_model=d_model,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            kv_dim=kv_dim,
            qkv_bias=qkv_bias,
            out_bias=out_bias,
            attention_dropout=attention_dropout,
            score=score,
            rotary=rotary,
            qk_norm=qk_norm,
            position_bias=position_bias,
        )
        N, K, H = config.sizes
        q_bias, k_bias, v_bias = config.biases
        self.q_proj = linear(d_model, N * H, bias=q_bias)
        self.k_proj = linear(config.key_width, K * H, bias=k_bias)
        self.v_proj = linear(config.key_width, K * H, bias=v_bias)
        self.out_proj = linear(N * H, d_model, bias=out_bias)
        if score.sinks:
            self.sinks_param = nn.Parameter(torch.zeros(N))
        self.q_norm = None if qk_norm is None else norm(qk_norm.norm, qk_norm.width(N, H))
        self.k_norm = None if qk_norm is None else norm(qk_norm.norm, qk_norm.width(K, H))
        self.rotary = None if rotary is None else RotaryTable(rotary, H)
        self.position_bias = distance_bias(position_bias, N)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        bias: Tensor | None = None,
        offset: int | Tensor = 0,
        segment_ids: Tensor | tuple[Tensor, Tensor] | None = None,
        position_ids: Tensor | tuple[Tensor, Tensor] | None = None,
        memory: KeyValue | None = None,
        cache: Cache | RollingCache | None = None,
        need_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None] | tuple[Tensor, Tensor | None, Cache | RollingCache]:
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

        Returns:
            Output (..., T, D) and weights (..., N, T, S), after the softmax, before dropout, or
            None; both in the dtype of the query. With a cache also the cache after the call, and
            the keys are its C slots, or, where it is rolling, its slots and the new rows.

        Raises:
            ValueError: If a shape does not fit, the cache has no room, or arguments exclude each
                other.
            TypeError: If a dtype does not fit.
        """
        config, score = self.config, self.config.score
        N, K, _ = config.sizes
        check_sequence(tuple(query.shape), config.d_model)
        check_memory(
            memory=memory is not None,
            key=key is not None or value is not None,
            is_projected=isinstance(memory, KeyValue),
        )
        key = query if key is None else key
        value = key if value is None else value
        if memory is None:
            check_projected(tuple(key.shape), tuple(value.shape), config.key_width)
        S = key.shape[-2] if memory is None else memory.key.shape[-2]
        if cache is not None:
            check_kind(Cache | RollingCache, cache=cache)
            check_cached_call(
                is_causal=score.is_causal,
                batch_size=cache.length.shape[0],
                query=tuple(query.shape),
                key_length=S,
                memory=memory is not None,
                offset=offset,
                segment_ids=segment_ids,
            )
        at: Any = call_positions(query, S, offset=offset, position_ids=position_ids, cache=cache)
        query = self._heads(self.q_proj, self.q_norm, query, N, at.queries, at.length)
        if memory is None:
            memory = self._project(key, value, at.keys, at.length)
        (key, value), rows = memory, None
        if query.ndim == 3 and K < N:  # the function groups heads only beside a batch axis
            key, value = _repeat_heads(key, N // K), _repeat_heads(value, N // K)
        if cache is not None:
            rows = append_rows(cache, (key, value), key_mask=key_mask, window=score.window)
            (key, value), at = rows.entries, rows
            mask, key_mask = join_masks(rows.visible, mask, query), None
        attended, weights = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            mask=mask,
            key_mask=key_mask,
            bias=add_distances(bias, self.position_bias, at.queries, at.keys, query),
            is_causal=score.is_causal and rows is None,
            offset=offset,
            window=score.window if rows is None else None,
            segment_ids=segment_ids,
            scale=score.scale,
            softcap=score.softcap,
            sinks=self.sinks_param if score.sinks else None,
            dropout=config.attention_dropout if self.training else 0.0,
            need_weights=need_weights,
        )
        if rows is None:
            return self.out_proj(merge_heads(attended)), weights
        return self.out_proj(merge_heads(rows.refuse(attended))), weights, rows.cache

    def project(
        self,
        key: Tensor,
        value: Tensor | None = None,
        *,
        position_ids: Tensor | None = None,
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
        check_projected(tuple(key.shape), tuple(value.shape), self.config.key_width)
        S = key.shape[-2]
        at = call_positions(key, S, offset=0, position_ids=position_ids, cache=None)
        return self._project(key, value, at.keys, S)

    def new_cache(self, batch_size: int, capacity: int) -> Cache | RollingCache:
        """Return a cache without positions, in the dtype of the parameters.

        Args:
            batch_size: B.
            capacity: Number of positions that it has room for. Within a causal window the last
                ones alone are kept, in a rolling cache.

        Returns:
            The cache, to be given as ``cache=``.

        Raises:
            ValueError: If a size is refused or the attention is not causal.
        """
        score = self.config.score
        check_can_cache(is_causal=score.is_causal)
        _, K, H = self.config.sizes
        shapes = ((K, H), (K, H))
        return empty_cache(self.k_proj.weight, batch_size, capacity, shapes, score, self.rotary)

    def _project(self, key: Tensor, value: Tensor, positions: Tensor, length: int) -> KeyValue:
        K = self.config.sizes[1]
        heads = self._heads(self.k_proj, self.k_norm, key, K, positions, length)
        return KeyValue(heads, split_heads(self.v_proj(value), K))

    def _heads(
        self, proj: Any, norm: Any, x: Tensor, number: int, positions: Tensor, length: int
    ) -> Tensor:
        """Project, normalise and rotate; return (..., number, T, H)."""
        x = proj(x)
        over = None if self.config.qk_norm is None else self.config.qk_norm.over
        if over == "head":
            x = norm(x.reshape(*x.shape[:-1], number, x.shape[-1] // number)).reshape(x.shape)
        elif over == "width":
            x = norm(x)
        return rotate(split_heads(x, number), positions, self.rotary, length)


def _repeat_heads(x: Tensor, times: int) -> Tensor:
    return x.repeat_interleave(times, -3)
