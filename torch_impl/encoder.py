"""A stack of transformer layers.

T positions   D model width   N heads
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from diptych.spec import EncoderConfig, TextEmbeddingConfig, TransformerEncoderLayerConfig
from diptych.spec.checks import check_not_empty

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

    output: Tensor
    pooled: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attention_weights: tuple[Tensor, ...] | None = None


class Encoder(Module):
    """Embeddings, N layers and, if asked for, BERT's pooler (Devlin et al. 2019).

    Args:
        layer: Config of every layer.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors instead of ids.
        pooler: Whether ``pooled = tanh(linear(output[first position]))`` is computed.

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
    ):
        super().__init__()
        self.config = EncoderConfig(
            layer=layer, num_layers=num_layers, embedding=embedding, pooler=pooler
        )
        if embedding:
            self.embedding = TextEmbedding.from_config(embedding)
        self.layers = nn.ModuleList(
            [TransformerEncoderLayer.from_config(layer) for _ in range(num_layers)]
        )
        if pooler:
            self.pooler_proj = linear(layer.d_model, layer.d_model)

    def forward(
        self,
        inputs: Tensor,
        *,
        key_mask: Tensor | None = None,
        mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
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

        Returns:
            The output and what was asked for.

        Raises:
            ValueError: If a shape does not fit, T exceeds max_seq_len, ids come without
                embeddings to look them up in, or T is 0 with a pooler.
            TypeError: If a mask is floating or ids are not integers.
            IndexError: If an id is outside its table.
        """
        if self.config.embedding:
            x = self.embedding(inputs, token_type_ids=token_type_ids, position_ids=position_ids)
        elif token_type_ids is None and position_ids is None:
            x = inputs
        else:
            raise ValueError("token_type_ids or position_ids are given, but embedding=None")

        hidden_states, attention_weights = [x], []
        for layer in self.layers:
            result = layer(x, mask, key_mask=key_mask, need_weights=need_weights)
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

    def _pool(self, output: Tensor) -> Tensor:
        check_not_empty(output.shape[-2], "pooler=True")
        return torch.tanh(self.pooler_proj(output[..., 0, :]))
