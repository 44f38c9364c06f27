"""One transformer layer of any kind.

B batch   T positions   S positions of the memory   D model width   N heads
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LatentAttentionConfig,
    MixtureOfExpertsConfig,
    NormConfig,
)
from diptych.spec.checks.attention import check_mask_dtype
from diptych.spec.checks.cache import check_memory_mask
from diptych.spec.checks.sizes import check_given

from . import functional
from ._keys import split
from .attention.latent_attention import LatentAttention
from .attention.multi_head_attention import MultiHeadAttention
from .attention.projected_attention import KeyValue
from .feed_forward import FeedForward, GatedFeedForward
from .functional._dtype import dtype_name
from .functional.cache import Cache, RollingCache
from .mixture import MixtureOfExperts
from .module import Module, config_of
from .norm import norm as make_norm


class BlockOutput(NamedTuple):
    """What a block returns; None where it was not asked for.

    Attributes:
        output: (..., T, D).
        attention_weights: Of the self-attention (..., N, T, T), or over a cache's keys.
        cross_attention_weights: (..., N, T, S).
        cache: The cache after the call.
    """

    output: Array
    attention_weights: Array | None = None
    cross_attention_weights: Array | None = None
    cache: Cache | RollingCache | None = None


class Layer(Module):
    """What all transformer layers are made of; their configs name the block that they are."""

    attention_norm: Any
    feed_forward_norm: Any

    def _build(self, config: BlockConfig, rngs: nnx.Rngs) -> None:
        self.block = config
        attention, feed_forward = (
            _MODULES[type(config.attention)],
            _MODULES[type(config.feed_forward)],
        )
        self.attention: Any = attention.from_config(config.attention, rngs=rngs)
        if config.cross_attention is not None:
            self.cross_attention = MultiHeadAttention.from_config(config.cross_attention, rngs=rngs)
        self.feed_forward: Any = feed_forward.from_config(config.feed_forward, rngs=rngs)
        # The placement says which norms there are.
        for name in config.norms:
            setattr(self, name, make_norm(config.norm, config.d_model, rngs=rngs))
        if config.layer_scale is not None:
            for name in config.branches:
                scale = jnp.full((config.d_model,), config.layer_scale, jnp.float32)
                setattr(self, f"{name}_scale_param", nnx.Param(scale))

    def _run(
        self,
        x: Array,
        *,
        memory: Array | KeyValue | None = None,
        memory_mask: Array | None = None,
        cache: Cache | RollingCache | None = None,
        need_weights: bool = False,
        rng_key: Array | None = None,
        **options: Any,
    ) -> BlockOutput:
        """Run the branches; what is not named here goes to the self-attention."""
        config = self.block
        check_given(
            "memory", memory is not None, "cross_attention", config.cross_attention is not None
        )
        if memory_mask is not None:
            check_given("memory_mask", True, "cross_attention", config.cross_attention is not None)
        attention_key, attended_key, cross_key, crossed_key, hidden_key = split(rng_key, 5)

        def attend(x: Array) -> tuple[Array, Any]:
            attended, *rest = self.attention(
                x, cache=cache, need_weights=need_weights, rng_key=attention_key, **options
            )
            return attended, rest

        def cross_attend(x: Array) -> Any:
            given = {"memory": memory} if isinstance(memory, KeyValue) else {"key": memory}
            if memory_mask is not None:
                check_mask_dtype(memory_mask=dtype_name(memory_mask))
                key: Any = memory.key if isinstance(memory, KeyValue) else memory
                check_memory_mask(memory_mask.shape, (*x.shape[:-2], *key.shape[-2:-1]))
            return self.cross_attention(
                x, key_mask=memory_mask, need_weights=need_weights, rng_key=cross_key, **given
            )

        def feed_forward(x: Array) -> tuple[Array, None]:
            return self.feed_forward(x), None

        crossed = None
        # Both branches of a parallel block read its input, so that neither waits for the other.
        if config.is_parallel:
            inner = self.attention_norm(x)
            attended, rest = attend(inner)
            is_shared = config.norm_placement == "parallel_shared"
            hidden = self.feed_forward(inner if is_shared else self.feed_forward_norm(x))
            x = x + self._drop("attention", attended, attended_key)
            x = x + self._drop("feed_forward", hidden, hidden_key)
        else:
            x, rest = self._residual("attention", x, attend, attended_key)
            if config.cross_attention is not None:
                x, crossed = self._residual("cross_attention", x, cross_attend, crossed_key)
            x, _ = self._residual("feed_forward", x, feed_forward, hidden_key)
        return BlockOutput(x, rest[0], crossed, rest[1] if cache is not None else None)

    def _residual(
        self,
        name: str,
        x: Array,
        branch: Callable[[Array], tuple[Array, Any]],
        rng_key: Array | None,
    ) -> tuple[Array, Any]:
        """Return the input plus a branch of it, normed where the placement says, and the rest."""
        placement = self.block.norm_placement
        norm: Any = getattr(self, f"{name}_norm", None)
        is_first = placement in ("pre", "sandwich") and norm is not None
        y, rest = branch(norm(x) if is_first else x)
        if placement == "sandwich":
            y = getattr(self, f"{name}_out_norm")(y)
        elif placement == "branch":
            y = norm(y)
        x = x + self._drop(name, y, rng_key)
        return norm(x) if placement == "post" else x, rest

    def _drop(self, name: str, y: Array, rng_key: Array | None) -> Array:
        """Return a branch's result times its layer scale, with dropout."""
        config = self.block
        if config.layer_scale is not None:
            y = y * getattr(self, f"{name}_scale_param")[...]
        return functional.apply_dropout(
            y, config.dropout if self.training else 0.0, rng_key=rng_key
        )


class Block(Layer):
    """Self-attention, perhaps cross-attention, and a feed-forward network, each a residual branch.

    With f a branch, "post" is ``norm(x + f(x))`` (Vaswani et al. 2017), "pre" ``x + f(norm(x))``
    (Xiong et al. 2020), "sandwich" ``x + out_norm(f(norm(x)))`` (Ding et al. 2021; Gemma 2),
    "branch" ``x + norm(f(x))`` (OLMo 2, 2024), "parallel" ``x + attention(attention_norm(x)) +
    feed_forward(feed_forward_norm(x))`` (GPT-NeoX, Black et al. 2022), and "parallel_shared" the
    same with one norm (GPT-J, Wang, Komatsuzaki 2021).

    Args:
        attention: Config of the self-attention.
        feed_forward: Config of the feed-forward network.
        norm: Which norm, at every place.
        norm_placement: "post", "pre", "sandwich", "branch", "parallel" or "parallel_shared".
        cross_attention: Config of an attention to a memory, between the two others.
        dropout: Rate on the residual branches.
        layer_scale: First value of the learnt factors on each branch's channels (Touvron et al.
            2021); None: none.
        attention_norm: Whether the self-attention has its norm, with "pre".
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If widths differ, or a part does not go with the placement.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        attention: AttentionConfig | LatentAttentionConfig,
        feed_forward: FeedForwardConfig | GatedFeedForwardConfig | MixtureOfExpertsConfig,
        *,
        norm: NormConfig = NormConfig(),
        norm_placement: str = "pre",
        cross_attention: AttentionConfig | None = None,
        dropout: float = 0.0,
        layer_scale: float | None = None,
        attention_norm: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(BlockConfig, locals())
        self._build(self.config, rngs=rngs)

    def __call__(
        self,
        x: Array,
        mask: Array | None = None,
        *,
        key_mask: Array | None = None,
        bias: Array | None = None,
        offset: int | Array = 0,
        segment_ids: Array | None = None,
        position_ids: Array | None = None,
        memory: Array | KeyValue | None = None,
        memory_mask: Array | None = None,
        cache: Cache | RollingCache | None = None,
        need_weights: bool = False,
        rng_key: Array | None = None,
    ) -> BlockOutput:
        """Let every position attend, to the memory too if there is one, then transform each.

        Args:
            x: Input (..., T, D).
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T); with a cache over its slots.
            key_mask: True or not 0 where a key may be attended to: (..., T); with a cache, which
                of the new rows are real.
            bias: Floating, the shapes of ``mask``: added to the scores.
            offset: Position of the first query among the keys.
            segment_ids: Integer (..., T): a query sees the keys of its own segment.
            position_ids: Positions, integer (T,) or (..., T).
            memory: What the cross-attention reads, (..., S, kv_dim), or projected by its
                ``project``; needed exactly where there is a cross-attention.
            memory_mask: True or not 0 where the memory may be attended to: (..., S).
            cache: Earlier positions, of ``attention.new_cache`` or the last call.
            need_weights: Whether the attention weights are returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            The output and what was asked for.

        Raises:
            ValueError: If a shape does not fit, the cache has no room, or the memory is missing.
            TypeError: If a mask is floating or dtypes differ.
        """
        return self._run(
            x,
            mask=mask,
            key_mask=key_mask,
            bias=bias,
            offset=offset,
            segment_ids=segment_ids,
            position_ids=position_ids,
            memory=memory,
            memory_mask=memory_mask,
            cache=cache,
            need_weights=need_weights,
            rng_key=rng_key,
        )


_MODULES: dict[type, Any] = {
    AttentionConfig: MultiHeadAttention,
    LatentAttentionConfig: LatentAttention,
    FeedForwardConfig: FeedForward,
    GatedFeedForwardConfig: GatedFeedForward,
    MixtureOfExpertsConfig: MixtureOfExperts,
}
