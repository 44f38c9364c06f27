"""Multi-head latent attention.

B batch   T query positions   S key positions   D model width   N heads   C capacity
R width of the latent of keys and values
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import LatentAttentionConfig, NormConfig, RotaryConfig, RotaryTable, ScoreConfig
from diptych.spec.checks.sizes import check_sequence

from ..functional.cache import Cache, RollingCache
from ..functional.head_axis import split_heads
from ..linear import linear
from ..module import config_of
from ..norm import norm as make_norm
from ..position import rotate
from .projected_attention import ProjectedAttention


class LatentAttention(ProjectedAttention):
    """Self-attention whose keys and values are made from one narrow latent vector per position.

    ``latent, k_rope = x W_down``, ``k, v = norm(latent) W_up``; the key of a head is ``k`` beside
    the rotated ``k_rope``, which all heads share, and its query has parts likewise (DeepSeek-V2,
    DeepSeek-AI 2024, section 2.1). A cache holds the latent and ``k_rope`` alone.

    Args:
        d_model: Width D of the input and the output.
        num_heads: Number N of heads.
        kv_rank: Width R of the latent of keys and values.
        nope_dim: Width of the part of a query and key that is not rotated.
        rope_dim: Width of the part that is, even.
        v_dim: Width of a head's values.
        q_rank: Width of the latent of queries; None projects queries at once.
        qkv_bias: Whether the projections down to the latents have a bias.
        out_bias: Whether the output projection has a bias.
        attention_dropout: Rate on the weights in training.
        norm: Of the latents.
        score: How scores are made; its scale defaults to 1 / sqrt(nope_dim + rope_dim).
        rotary: How the rotated parts are rotated.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is below 1 or the rotated width is odd.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        kv_rank: int,
        nope_dim: int,
        rope_dim: int,
        v_dim: int,
        q_rank: int | None = None,
        qkv_bias: bool = False,
        out_bias: bool = False,
        attention_dropout: float = 0.0,
        norm: NormConfig = NormConfig(kind="rms"),
        score: ScoreConfig = ScoreConfig(),
        rotary: RotaryConfig = RotaryConfig(interleaved=True),
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(LatentAttentionConfig, locals())
        N, q_width = num_heads, num_heads * (nope_dim + rope_dim)
        if q_rank is None:
            self.q_proj = linear(d_model, q_width, bias=False, rngs=rngs)
        else:
            self.q_down_proj = linear(d_model, q_rank, bias=qkv_bias, rngs=rngs)
            self.q_norm = make_norm(norm, q_rank, rngs=rngs)
            self.q_up_proj = linear(q_rank, q_width, bias=False, rngs=rngs)
        self.kv_down_proj = linear(d_model, kv_rank + rope_dim, bias=qkv_bias, rngs=rngs)
        self.kv_norm = make_norm(norm, kv_rank, rngs=rngs)
        self.kv_up_proj = linear(kv_rank, N * (nope_dim + v_dim), bias=False, rngs=rngs)
        self.out_proj = linear(N * v_dim, d_model, bias=out_bias, rngs=rngs)
        self.rotary = RotaryTable(rotary, rope_dim)
        self.position_bias = None

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
        cache: Cache | RollingCache | None = None,
        need_weights: bool = True,
        rng_key: Array | None = None,
    ) -> tuple[Array, Array | None] | tuple[Array, Array | None, Cache | RollingCache]:
        """Let every position attend to all, through their latents.

        Args:
            x: (..., T, D).
            mask: Boolean or integer, true or not 0 where a query may attend: (T, T), (..., T, T)
                for all heads, or (..., N, T, T), size 1 broadcasting.
            key_mask: Boolean or integer (..., T), the keys that may be attended to; with a cache
                (B, T), which of the new rows are real: those before the padding.
            bias: Floating, the shapes of ``mask``: added to the scores; -inf hides.
            offset: Position of the first query among the keys, an int or one per sample.
            segment_ids: Integer (..., T): a query sees the keys of its own segment.
            position_ids: Positions, integer (T,) or (..., T), that rotate; None counts queries from
                ``offset`` and keys from 0.
            cache: Earlier positions, from ``new_cache`` or the last call; the new rows follow them.
            need_weights: Whether to return the weights.
            rng_key: Key of the dropout's draw. In training, an attention dropout above 0 without
                it is a ValueError.

        Returns:
            Output (..., T, D) and weights (..., N, T, T), after the softmax, before dropout, or
            None; both in the dtype of ``x``. With a cache also the cache after the call, and the
            keys are its C slots, or, where it is rolling, its slots and the new rows.

        Raises:
            ValueError: If a shape does not fit, or the cache has no room.
            TypeError: If a dtype does not fit.
        """
        check_sequence(x.shape, self.config.d_model)
        return self._attend(
            x,
            x,
            x.shape[-2],
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

    def _queries(self, query: Array, positions: Array, length: int) -> Array:
        """Return the queries, their last channels rotated, (..., N, T, nope_dim + rope_dim)."""
        config = self.config
        if config.q_rank is None:
            query = self.q_proj(query)
        else:
            query = self.q_up_proj(self.q_norm(self.q_down_proj(query)))
        query = split_heads(query, config.num_heads)  # (..., N, T, nope_dim + rope_dim)
        plain, rotated = query[..., : config.nope_dim], query[..., config.nope_dim :]
        return jnp.concatenate([plain, rotate(rotated, positions, self.rotary, length)], -1)

    def _entries(self, source: Array, positions: Array, length: int) -> tuple[Array, Array]:
        """Return what is cached: the latent (..., T, R) and the rotated part (..., T, rope_dim)."""
        down = self.kv_down_proj(source)  # (..., T, R + rope_dim)
        latent, rotated = down[..., : self.config.kv_rank], down[..., self.config.kv_rank :]
        # All heads share this key; rotation expects their axis, so it comes and goes.
        rotated = rotate(rotated[..., None, :, :], positions, self.rotary, length)
        return self.kv_norm(latent), rotated[..., 0, :, :]

    def _keys_and_values(self, *entries: Array) -> tuple[Array, Array]:
        """Return keys (..., N, S, nope_dim + rope_dim) and values (..., N, S, v_dim)."""
        config, (latent, rotated) = self.config, entries
        # Made anew at every call: that the cache holds the narrow latent alone is the point.
        heads = split_heads(self.kv_up_proj(latent), config.num_heads)
        plain, value = heads[..., : config.nope_dim], heads[..., config.nope_dim :]
        shared = jnp.broadcast_to(rotated[..., None, :, :], (*plain.shape[:-1], config.rope_dim))
        return jnp.concatenate([plain, shared], -1), value
