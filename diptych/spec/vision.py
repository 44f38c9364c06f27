"""What an encoder of images is (Dosovitskiy et al. 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from .attention.attention_pooling import AttentionPoolingConfig
from .block import BlockConfig
from .checks.sizes import check_choice, check_equal, check_kind
from .config import Leaves, linear_leaves, under
from .norm import NormConfig
from .patch_embedding import PatchEmbeddingConfig
from .stack import StackConfig, layer_leaves
from .transformer_layer import TransformerEncoderLayerConfig

POOLINGS = ("class", "class_mean", "tanh", "attention")


@dataclass(frozen=True, kw_only=True)
class VisionEncoderConfig(StackConfig):
    """Patches, N layers, a final norm and a pooled vector, the last two optional.

    Attributes:
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

    component: ClassVar[str] = "VisionEncoder"
    embedding: PatchEmbeddingConfig
    layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...]
    num_layers: int
    final_norm: NormConfig | None = NormConfig()
    pooling: str | None = None
    attention_pooling: AttentionPoolingConfig | None = None

    def __post_init__(self):
        check_kind(PatchEmbeddingConfig, embedding=self.embedding)
        super().__post_init__()
        check_kind(NormConfig | None, final_norm=self.final_norm)
        check_equal("embedding.d_model", self.embedding.d_model, "layer.d_model", self.d_model)
        check_kind(AttentionPoolingConfig | None, attention_pooling=self.attention_pooling)
        if self.pooling is not None:
            check_choice(POOLINGS, pooling=self.pooling)
        if self.pooling in POOLINGS[:-1] and not self.embedding.class_token:
            raise ValueError(f"pooling={self.pooling!r} needs embedding.class_token=True")
        if (self.pooling == "attention") != (self.attention_pooling is not None):
            raise ValueError("pooling='attention' and attention_pooling go together")
        if self.attention_pooling is not None:
            check_equal(
                "attention_pooling.attention.kv_dim",
                self.attention_pooling.attention.key_width,
                "layer.d_model",
                self.d_model,
            )

    @property
    def pooled_dim(self) -> int | None:
        """Return the width of the pooled vector, None without one."""
        if self.attention_pooling is not None:
            return self.attention_pooling.attention.d_model
        widths = {None: None, "class_mean": 2 * self.d_model}
        return widths.get(self.pooling, self.d_model)

    def leaves(self) -> Leaves:
        D = self.d_model
        leaves = under("embedding", self.embedding.leaves()) | layer_leaves(self)
        if self.pooling == "tanh":
            leaves |= under("pooler_proj", linear_leaves(D, D))
        if self.attention_pooling is not None:
            leaves |= under("attention_pooling", self.attention_pooling.leaves())
        return leaves
