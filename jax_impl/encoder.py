"""A stack of transformer layers.

T positions   D model width   N heads
"""

from typing import NamedTuple

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import EncoderConfig, TextEmbeddingConfig, TransformerEncoderLayerConfig
from diptych.spec.checks import check_not_empty

from ._keys import split
from .block import TransformerEncoderLayer
from .embedding import TextEmbedding
from .linear import linear
from .module import Module


class StackOutput(NamedTuple):
    """What a stack of layers returns; None where it was not asked for.

    Attributes:
        output: Output of the last layer (..., T, D).
        pooled: Vector of the whole sequence (..., D), if there is a pooler.
        hidden_states: The first layer's input, then every layer's output, each (..., T, D).
        attention_weights: Every layer's weights (..., N, T, T).
    """

    output: Array
    pooled: Array | None = None
    hidden_states: tuple[Array, ...] | None = None
    attention_weights: tuple[Array, ...] | None = None


class Encoder(Module):
    """Embeddings, N layers and, if asked for, BERT's pooler (Devlin et al. 2019).

    Args:
        layer: Config of every layer.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors instead of ids.
        pooler: Whether ``pooled = tanh(linear(output[first position]))`` is computed.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If there is no layer, or the widths of embedding and layer differ.
        TypeError: If a module is given in place of its config.
    """

    def __init__(
        self,
        layer: TransformerEncoderLayerConfig,
        num_layers: int,
        *,
        embedding: TextEmbeddingConfig | None = None,
        pooler: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = EncoderConfig(
            layer=layer, num_layers=num_layers, embedding=embedding, pooler=pooler
        )
        if embedding:
            self.embedding = TextEmbedding.from_config(embedding, rngs=rngs)
        self.layers = nnx.List(
            [TransformerEncoderLayer.from_config(layer, rngs=rngs) for _ in range(num_layers)]
        )
        if pooler:
            self.pooler_proj = linear(layer.d_model, layer.d_model, rngs=rngs)

    def __call__(
        self,
        inputs: Array,
        *,
        key_mask: Array | None = None,
        mask: Array | None = None,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> StackOutput:
        """Encode a batch of sequences.

        Args:
            inputs: Token ids (..., T) if there are embeddings, else vectors (..., T, D).
            key_mask: True or not 0 at real tokens, false at padding: (..., T).
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T).
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, broadcasting to (..., T); 0 .. T - 1 by default.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            The output and what was asked for.

        Raises:
            ValueError: If a shape does not fit, T exceeds max_seq_len, ids come without
                embeddings to look them up in, or T is 0 with a pooler.
            TypeError: If a mask is floating or ids are not integers.
            IndexError: If an id is outside its table.
        """
        embedding_key, *layer_keys = split(rng_key, 1 + self.config.num_layers)
        if self.config.embedding:
            x = self.embedding(
                inputs,
                token_type_ids=token_type_ids,
                position_ids=position_ids,
                rng_key=embedding_key,
            )
        elif token_type_ids is None and position_ids is None:
            x = inputs
        else:
            raise ValueError("token_type_ids or position_ids are given, but embedding=None")

        hidden_states, attention_weights = [x], []
        for layer, key in zip(self.layers, layer_keys, strict=True):
            result = layer(x, mask, key_mask=key_mask, need_weights=need_weights, rng_key=key)
            x, weights = result if isinstance(result, tuple) else (result, None)
            if weights is not None:
                attention_weights.append(weights)
            if need_hidden_states:
                hidden_states.append(x)

        return StackOutput(
            output=x,
            pooled=self._pool(x) if self.config.pooler else None,
            hidden_states=tuple(hidden_states) if need_hidden_states else None,
            attention_weights=tuple(attention_weights) if need_weights else None,
        )

    def _pool(self, output: Array) -> Array:
        check_not_empty(output.shape[-2], "pooler=True")
        return jnp.tanh(self.pooler_proj(output[..., 0, :]))
