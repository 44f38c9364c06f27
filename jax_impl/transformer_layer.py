"""The layers of the original transformer.

T positions   S positions of the memory   D model width   N heads
"""

from flax import nnx
from jax import Array

from diptych.spec import TransformerDecoderLayerConfig, TransformerEncoderLayerConfig

from .block import Layer
from .module import config_of


class _OriginalLayer(Layer):
    """What both layers are built from: their sizes, where a block has a config for every part."""

    _config: type[TransformerEncoderLayerConfig]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int = 2048,
        dropout: float = 0.1,
        *,
        activation: str = "relu",
        norm_placement: str = "post",
        eps: float = 1e-5,
        attention_dropout: float = 0.0,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(self._config, locals())
        self._build(self.config.block, rngs=rngs)


class TransformerEncoderLayer(_OriginalLayer):
    """Self-attention and a feed-forward network, each a residual branch with a layer norm.

    Post-norm, ``norm(x + dropout(branch(x)))``, as Vaswani et al. 2017; or pre-norm,
    ``x + dropout(branch(norm(x)))``, as Xiong et al. 2020.

    Args:
        d_model: Width D.
        num_heads: Number N of heads, a divisor of D.
        d_ff: Hidden width of the feed-forward network.
        dropout: Rate on the residual branches.
        activation: Of the feed-forward network.
        norm_placement: "post" or "pre".
        eps: Of the layer norms.
        attention_dropout: Rate on the attention weights.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size, a rate, eps or a name is refused.
    """

    _config = TransformerEncoderLayerConfig

    def __call__(
        self,
        x: Array,
        mask: Array | None = None,
        *,
        key_mask: Array | None = None,
        bias: Array | None = None,
        need_weights: bool = False,
        rng_key: Array | None = None,
    ) -> Array | tuple[Array, Array]:
        """Let every position attend, then apply the feed-forward network to each.

        Args:
            x: Input (..., T, D).
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T).
            key_mask: True or not 0 where a key may be attended to: (..., T).
            bias: Added to the scores, shaped like ``mask``.
            need_weights: Whether the attention weights are returned too.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            Output (..., T, D), in the dtype of ``x``; with ``need_weights`` a pair of it and the
            weights (..., N, T, T).

        Raises:
            ValueError: If a mask or the bias does not fit.
            TypeError: If a mask is floating.
        """
        result = self._run(
            x, mask=mask, key_mask=key_mask, bias=bias, need_weights=need_weights, rng_key=rng_key
        )
        weights = result.attention_weights
        return result.output if weights is None else (result.output, weights)


class TransformerDecoderLayer(_OriginalLayer):
    """Causal self-attention, attention to a memory, and a feed-forward network.

    Each is a residual branch with a layer norm, post-norm as Vaswani et al. 2017, or pre-norm.

    Args:
        d_model: Width D.
        num_heads: Number N of heads, a divisor of D.
        d_ff: Hidden width of the feed-forward network.
        dropout: Rate on the residual branches.
        activation: Of the feed-forward network.
        norm_placement: "post" or "pre".
        eps: Of the layer norms.
        attention_dropout: Rate on the attention weights.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size, a rate, eps or a name is refused.
    """

    _config = TransformerDecoderLayerConfig

    def __call__(
        self,
        x: Array,
        memory: Array,
        mask: Array | None = None,
        *,
        key_mask: Array | None = None,
        bias: Array | None = None,
        memory_mask: Array | None = None,
        need_weights: bool = False,
        rng_key: Array | None = None,
    ) -> Array | tuple[Array, Array, Array]:
        """Let every position attend to those before it, then to the memory, then transform each.

        Args:
            x: Input (..., T, D).
            memory: What the cross-attention reads, (..., S, D).
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T); causality holds besides.
            key_mask: True or not 0 where a key may be attended to: (..., T).
            bias: Added to the scores of the self-attention, shaped like ``mask``.
            memory_mask: True or not 0 where the memory may be attended to: (..., S).
            need_weights: Whether the attention weights are returned too.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            Output (..., T, D), in the dtype of ``x``; with ``need_weights`` three: it, the weights
            (..., N, T, T) and the cross-attention's (..., N, T, S).

        Raises:
            ValueError: If a mask or the bias does not fit.
            TypeError: If a mask is floating.
        """
        result = self._run(
            x,
            mask=mask,
            key_mask=key_mask,
            bias=bias,
            memory=memory,
            memory_mask=memory_mask,
            need_weights=need_weights,
            rng_key=rng_key,
        )
        weights, cross_weights = result.attention_weights, result.cross_attention_weights
        if weights is None or cross_weights is None:
            return result.output
        return result.output, weights, cross_weights
