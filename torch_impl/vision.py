"""An encoder of images.

C channels   T positions   D model width   N heads
"""

import torch
from torch import Tensor, nn

from diptych.spec import (
    AttentionPoolingConfig,
    BlockConfig,
    NormConfig,
    PatchEmbeddingConfig,
    TransformerEncoderLayerConfig,
    VisionEncoderConfig,
)

from .attention.attention_pooling import AttentionPooling
from .block import Block
from .linear import linear
from .module import Module, config_of
from .norm import norm
from .patch_embedding import PatchEmbedding
from .stack import StackOutput, run_layers


class VisionEncoder(Module):
    """Patches, N layers and, if asked for, a final norm and a pooled vector.

    Dosovitskiy et al. 2021, section 3.1; pooled as there ("class"), with the mean too (Oquab et al.
    2023), as in BERT ("tanh") or by attention (Zhai et al. 2022).

    Args:
        embedding: Config of the patches.
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        final_norm: Norm of the last layer's output; None leaves it out.
        pooling: "class" (the output at the class token), "class_mean" (it, then the mean of the
            patches), "tanh" (a linear map and tanh of it), "attention" (a learnt query reads the
            output) or None.
        attention_pooling: Config of the learnt query, with pooling="attention" only.

    Raises:
        ValueError: If a size or name is refused, widths differ, or the class token is missing.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        embedding: PatchEmbeddingConfig,
        layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...],
        num_layers: int,
        *,
        final_norm: NormConfig | None = NormConfig(),
        pooling: str | None = None,
        attention_pooling: AttentionPoolingConfig | None = None,
    ):
        super().__init__()
        self.config = config = config_of(VisionEncoderConfig, locals())
        D = config.d_model
        self.embedding = PatchEmbedding.from_config(embedding)
        self.layers = nn.ModuleList([Block.from_config(block) for block in config.layers])
        self.final_norm = None if final_norm is None else norm(final_norm, D)
        if pooling == "tanh":
            self.pooler_proj = linear(D, D)
        if attention_pooling is not None:
            self.attention_pooling = AttentionPooling.from_config(attention_pooling)

    def forward(
        self,
        images: Tensor,
        *,
        patch_mask: Tensor | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
    ) -> StackOutput:
        """Encode a batch of images.

        Args:
            images: Floating (..., C, height, width).
            patch_mask: Boolean or integer, broadcasting to (..., number of patches), true or not 0
                where the mask token replaces a patch.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned, before the final norm.

        Returns:
            The output (..., T, D), its pooled vector, and what was asked for.

        Raises:
            ValueError: If images are of another size or number of channels, or a mask is given
                without a mask token or does not fit.
            TypeError: If the images are not floating or the mask is.
        """
        x = self.embedding(images, patch_mask=patch_mask)
        result = run_layers(
            self.layers,
            x,
            final_norm=self.final_norm,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
        )
        return result._replace(pooled=self._pool(result.output))

    def _pool(self, output: Tensor) -> Tensor | None:
        match self.config.pooling:
            case "class":
                return output[..., 0, :]  # (..., D)
            case "class_mean":
                return torch.cat([output[..., 0, :], output[..., 1:, :].mean(-2)], -1)
            case "tanh":
                return torch.tanh(self.pooler_proj(output[..., 0, :]))
            case "attention":
                return self.attention_pooling(output)
        return None
