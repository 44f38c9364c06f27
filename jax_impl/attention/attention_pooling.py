"""A sequence pooled to one vector by attention.

T positions   D model width   E width of the sequence
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp
from jax.nn.initializers import normal

from diptych.spec import AttentionConfig, AttentionPoolingConfig, FeedForwardConfig, NormConfig

from ..feed_forward import FeedForward
from ..module import Module, config_of
from ..norm import norm as new_norm
from .multi_head_attention import MultiHeadAttention


class AttentionPooling(Module):
    """One learnt query that reads a sequence, then a feed-forward network (Zhai et al. 2022).

    ``x = attention(query, sequence)``, ``pooled = x + feed_forward(norm(x))``.

    Args:
        attention: Config of the attention.
        feed_forward: Config of the network.
        norm: Which norm.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If widths differ.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        attention: AttentionConfig,
        feed_forward: FeedForwardConfig,
        *,
        norm: NormConfig = NormConfig(),
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(AttentionPoolingConfig, locals())
        D = attention.d_model
        self.query_param = nnx.Param(normal(0.02)(rngs.params(), (D,), jnp.float32))
        self.attention = MultiHeadAttention.from_config(attention, rngs=rngs)
        self.feed_forward_norm = new_norm(norm, D, rngs=rngs)
        self.feed_forward = FeedForward.from_config(feed_forward, rngs=rngs)

    def __call__(
        self, x: Array, *, key_mask: Array | None = None, rng_key: Array | None = None
    ) -> Array:
        """Read a sequence.

        Args:
            x: Vectors (..., T, E).
            key_mask: True or not 0 at the positions that are read: (..., T).
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            Pooled vectors (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If a shape does not fit.
            TypeError: If the mask is floating.
        """
        D = self.query_param.shape[0]
        query = jnp.broadcast_to(self.query_param[...], (*x.shape[:-2], 1, D))  # (..., 1, D)
        attended = self.attention(query, x, key_mask=key_mask, need_weights=False, rng_key=rng_key)
        pooled = attended[0][..., 0, :]  # (..., D)
        return pooled + self.feed_forward(self.feed_forward_norm(pooled))
