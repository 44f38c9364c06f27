"""A stack of transformer layers that reads a whole sequence at once.

T positions   D model width   N heads
"""

from typing import Any

import torch
from torch import Tensor, nn

from diptych.spec import (
    AlibiConfig,
    BlockConfig,
    EncoderConfig,
    NormConfig,
    RelativeBiasConfig,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)
from diptych.spec.checks.sizes import check_not_empty, check_sequence

from . import functional
from .block import Block
from .embedding import TextEmbedding
from .linear import linear
from .module import Module, config_of
from .norm import norm
from .position import call_positions
from .position_bias import add_distances, distance_bias
from .stack import StackOutput, run_layers


class Encoder(Module):
    """Embeddings, N layers and, if asked for, a final norm and BERT's pooler (Devlin et al. 2019).

    Args:
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors instead of ids.
        pooler: Whether ``pooled = tanh(linear(output[first position]))`` is computed.
        final_norm: Norm of the last layer's output; None leaves it out.
        position_bias: What is added to every layer's scores for the distance of a key, made once.
        dropout: Rate on the output, after the final norm.
        pooled_token: Token at which the output is the pooled vector: an id (where it comes first,
            or else the first position), "highest" (where the highest id comes first) or "last".

    Raises:
        ValueError: If there is no layer, the widths of embedding and layer differ, or
            ``pooled_token`` is refused.
        TypeError: If a module is given in place of its config.
    """

    def __init__(
        self,
        layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...],
        num_layers: int,
        *,
        embedding: TextEmbeddingConfig | None = None,
        pooler: bool = False,
        final_norm: NormConfig | None = None,
        position_bias: RelativeBiasConfig | AlibiConfig | None = None,
        dropout: float = 0.0,
        pooled_token: int | str | None = None,
    ):
        super().__init__()
        self.config = config = config_of(EncoderConfig, locals())
        if embedding:
            self.embedding = TextEmbedding.from_config(embedding)
        self.position_bias = distance_bias(position_bias, config.layers[0].attention.num_heads)
        self.layers = nn.ModuleList([Block.from_config(block) for block in config.layers])
        self.final_norm = None if final_norm is None else norm(final_norm, config.d_model)
        if pooler:
            self.pooler_proj = linear(config.d_model, config.d_model)

    def forward(
        self,
        inputs: Tensor,
        *,
        key_mask: Tensor | None = None,
        mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        segment_ids: Tensor | None = None,
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
            segment_ids: Integer (..., T): a query sees the keys of its own segment.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.

        Returns:
            The output and what was asked for.

        Raises:
            ValueError: If a shape does not fit, T exceeds max_seq_len, ids come without
                embeddings to look them up in, or T is 0 where there is a pooled vector.
            TypeError: If a mask is floating or ids are not integers.
            IndexError: If an id is outside its table.
        """
        config = self.config
        x = inputs
        if config.embedding:
            has_positions = config.embedding.max_seq_len is not None
            x = self.embedding(
                inputs,
                token_type_ids=token_type_ids,
                position_ids=position_ids if has_positions else None,
            )
        elif token_type_ids is not None:
            raise ValueError("token_type_ids are given, but embedding=None")
        layers: Any = self.layers
        check_sequence(tuple(x.shape), layers[0].config.d_model)
        # x goes in place of heads (..., 1, T, D) below: its rank and dtype alone are read.
        at = call_positions(x, x.shape[-2], position_ids=position_ids)
        result = run_layers(
            layers,
            x,
            final_norm=self.final_norm,
            mask=mask,
            key_mask=key_mask,
            bias=add_distances(None, self.position_bias, at.queries, at.keys, x[..., None, :, :]),
            segment_ids=segment_ids,
            position_ids=position_ids,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
        )
        x = functional.apply_dropout(result.output, config.dropout if self.training else 0.0)
        return result._replace(output=x, pooled=self._pool(x, inputs))

    def _pool(self, output: Tensor, inputs: Tensor) -> Tensor | None:
        config = self.config
        if config.pooler or config.pooled_token is not None:
            what = "pooler=True" if config.pooler else f"pooled_token={config.pooled_token!r}"
            check_not_empty(output.shape[-2], what)
        if config.pooler:
            return torch.tanh(self.pooler_proj(output[..., 0, :]))  # (..., D)
        match config.pooled_token:
            case None:
                return None
            case "last":
                return output[..., -1, :]  # (..., D)
            case "highest":
                return functional.first_highest(output, inputs)
        return functional.first_highest(output, inputs == config.pooled_token)
