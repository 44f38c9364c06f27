"""What an encoder stack is."""

from dataclasses import dataclass
from typing import ClassVar

from .block import BlockConfig
from .checks.sizes import check_boolean, check_choice, check_not_negative
from .config import Leaves, linear_leaves, under
from .embedding import TextEmbeddingConfig
from .norm import NormConfig
from .position_bias import AlibiConfig, RelativeBiasConfig
from .stack import StackConfig, check_text_stack, text_stack_leaves
from .transformer_layer import TransformerEncoderLayerConfig

POOLED_TOKENS = ("highest", "last")


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(StackConfig):
    """Embeddings, N layers and, if asked for, a final norm and a pooler.

    Attributes:
        layer: Config of every layer, or of several that take turns: layer i is
            ``layer[i % len(layer)]``.
        num_layers: Number of layers.
        embedding: Config of the input; None takes vectors (B, T, D) instead of ids.
        pooler: Whether ``pooled = tanh(linear(output[first position]))`` is computed.
        final_norm: Norm of the last layer's output; None leaves it out.
        position_bias: What is added to every layer's scores for the distance of a key, made once.
        dropout: Rate on the output, after the final norm.
        pooled_token: Token at which the output is the pooled vector: an id (where it comes first,
            or else the first position), "highest" (where the highest id comes first) or "last".

    Raises:
        ValueError: If a size or rate is refused, or widths differ.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "Encoder"
    layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...]
    num_layers: int
    embedding: TextEmbeddingConfig | None = None
    pooler: bool = False
    final_norm: NormConfig | None = None
    position_bias: RelativeBiasConfig | AlibiConfig | None = None
    dropout: float = 0.0
    pooled_token: int | str | None = None

    def __post_init__(self):
        check_boolean(pooler=self.pooler)
        super().__post_init__()
        check_text_stack(self)
        self._check_pooled_token()

    @property
    def pooled_dim(self) -> int | None:
        """Return the width of the pooled vector, None without one."""
        return self.d_model if self.pooler or self.pooled_token is not None else None

    def leaves(self) -> Leaves:
        leaves = text_stack_leaves(self)
        if self.pooler:
            leaves |= under("pooler_proj", linear_leaves(self.d_model, self.d_model))
        return leaves

    def _check_pooled_token(self) -> None:
        token = self.pooled_token
        if token is None:
            return
        if isinstance(token, str):
            check_choice(POOLED_TOKENS, pooled_token=token)
        else:
            check_not_negative(pooled_token=token)
        if self.pooler:
            raise ValueError(
                f"pooler=True beside pooled_token={token!r}: there is one pooled vector"
            )
        if token != "last" and self.embedding is None:
            raise ValueError(f"pooled_token={token!r} needs an embedding: it is found by its id")
