"""What attentions that project have in common: positions, the cache, the way to the output.

B batch   T query positions   S key positions   D model width   C capacity
N query heads   K key/value heads   H head width   V value width
"""

from typing import Any, NamedTuple

from torch import Tensor

from diptych.spec import RotaryTable
from diptych.spec.checks.cache import check_cached_call, check_can_cache
from diptych.spec.checks.sizes import check_kind

from .. import functional
from ..functional.cache import Cache, RollingCache, append_rows, empty_cache, join_masks
from ..functional.head_axis import merge_heads
from ..module import Module
from ..position import call_positions
from ..position_bias import add_distances


class KeyValue(NamedTuple):
    """Keys and values of a sequence, projected once.

    Attributes:
        key: (..., K, S, H), normalised and rotated.
        value: (..., K, S, H).
    """

    key: Tensor
    value: Tensor


class ProjectedAttention(Module):
    """Attention between projections, over a cache too where it is causal."""

    out_proj: Any
    rotary: RotaryTable | None
    position_bias: Any
    sinks_param: Any

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
        config = self.config
        check_can_cache(is_causal=config.score.is_causal)
        return empty_cache(
            self.out_proj.weight, batch_size, capacity, config.cache_rows, config.score, self.rotary
        )

    def _attend(
        self,
        query: Tensor,
        source: Any,
        key_length: int,
        *,
        mask: Tensor | None,
        key_mask: Tensor | None,
        bias: Tensor | None,
        offset: int | Tensor,
        segment_ids: Tensor | tuple[Tensor, Tensor] | None,
        position_ids: Tensor | tuple[Tensor, Tensor] | None,
        cache: Cache | RollingCache | None,
        **options: Any,
    ) -> Any:
        """Project queries (..., T, D) and what keys are made of, attend, project back."""
        score, rows = self.config.score, None
        if cache is not None:
            check_kind(Cache | RollingCache, cache=cache)
            check_cached_call(
                is_causal=score.is_causal,
                batch_size=cache.length.shape[0],
                query=tuple(query.shape),
                key_length=key_length,
                memory=isinstance(source, KeyValue),
                offset=offset,
                segment_ids=segment_ids,
            )
        at: Any = call_positions(
            query, key_length, offset=offset, position_ids=position_ids, cache=cache
        )
        query = self._queries(query, at.queries, at.length)  # (..., N, T, H)
        entries = self._entries(source, at.keys, at.length)
        if cache is not None:
            rows = append_rows(cache, entries, key_mask=key_mask, window=score.window)
            entries, at = rows.entries, rows
            # Slots have positions of their own, by which rows.visible hides all that is to be.
            mask, key_mask = join_masks(rows.visible, mask, query), None
        key, value = self._keys_and_values(*entries)
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
            dropout=self.config.attention_dropout if self.training else 0.0,
            **options,
        )
        if rows is None:
            return self.out_proj(merge_heads(attended)), weights  # (..., T, D)
        # Rows that found no room become NaN: where nothing can be raised, they still show.
        return self.out_proj(merge_heads(rows.refuse(attended))), weights, rows.cache

    def _queries(self, query: Tensor, positions: Tensor, length: int) -> Tensor:
        """Return the heads of the queries (..., N, T, H)."""
        raise NotImplementedError

    def _entries(self, source: Any, positions: Tensor, length: int) -> tuple[Tensor, ...]:
        """Return what a cache holds of the keys' and values' source."""
        raise NotImplementedError

    def _keys_and_values(self, *entries: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys (..., K, S, H) and values (..., K, S, V) of what a cache holds."""
        raise NotImplementedError
