"""What encoder and decoder stacks have in common."""

from dataclasses import dataclass
from typing import Any

from .block import BlockConfig
from .checks.sizes import check_equal, check_kind, check_positive, check_rate
from .config import Config, Leaves, under
from .embedding import TextEmbeddingConfig
from .norm import NormConfig
from .position_bias import PositionBiasConfig, RelativeBiasConfig
from .transformer_layer import TransformerDecoderLayerConfig, TransformerEncoderLayerConfig

MAX_LAYERS = 10_000
"""A config that names more is corrupt, and would be listed leaf by leaf."""

LayerConfig = TransformerEncoderLayerConfig | TransformerDecoderLayerConfig | BlockConfig


@dataclass(frozen=True, kw_only=True)
class StackConfig(Config):
    """A config with ``num_layers`` layers: ``layer``, or several that take turns."""

    layer: Any
    num_layers: int

    def __post_init__(self):
        """Check the layers, of one width, and hold named ones as the blocks that they are."""
        layer, num_layers = self.layer, self.num_layers
        check_positive(num_layers=num_layers)
        if num_layers > MAX_LAYERS:
            raise ValueError(f"num_layers={num_layers} must not exceed {MAX_LAYERS}")
        each = layer if isinstance(layer, tuple) else (layer,)
        if not 0 < len(each) <= num_layers:
            raise ValueError(
                f"layer has {len(each)} configs, expected 1 .. num_layers={num_layers}"
            )
        for i, one in enumerate(each):
            check_kind(LayerConfig, **{f"layer[{i}]" if isinstance(layer, tuple) else "layer": one})
            check_equal(
                f"layer[{i}].d_model", one.block.d_model, "layer[0].d_model", each[0].block.d_model
            )
        # Two ways to say one layer would make two unequal configs of one stack.
        blocks = tuple(one.block for one in each)
        object.__setattr__(self, "layer", blocks if isinstance(layer, tuple) else blocks[0])

    @property
    def layers(self) -> tuple[BlockConfig, ...]:
        """Return the config of every layer."""
        pattern = self.layer if isinstance(self.layer, tuple) else (self.layer,)
        return tuple(pattern[i % len(pattern)] for i in range(self.num_layers))

    @property
    def d_model(self) -> int:
        """Return the width D."""
        return self.layers[0].d_model


def check_text_stack(config: Any) -> None:
    """Raise unless a stack's embedding, final norm, position bias and dropout fit its layers."""
    check_kind(TextEmbeddingConfig | None, embedding=config.embedding)
    check_kind(NormConfig | None, final_norm=config.final_norm)
    check_kind(PositionBiasConfig | None, position_bias=config.position_bias)
    check_rate(dropout=config.dropout)
    if config.position_bias is not None:
        first = config.layers[0].attention.num_heads
        for i, layer in enumerate(config.layers):
            if layer.attention.num_heads != first:
                raise ValueError(
                    f"layer {i}: attention.num_heads={layer.attention.num_heads} must be {first}, "
                    "that of layer 0: position_bias is made once"
                )
    if config.embedding is not None:
        check_equal("embedding.d_model", config.embedding.d_model, "layer.d_model", config.d_model)


def text_stack_leaves(config: Any) -> Leaves:
    """Return the leaves of a stack's embedding, position bias, layers and final norm."""
    leaves: Leaves = under("embedding", config.embedding.leaves()) if config.embedding else {}
    if isinstance(config.position_bias, RelativeBiasConfig):
        num_heads = config.layers[0].attention.num_heads
        leaves |= under("position_bias", config.position_bias.of(num_heads).leaves())
    return leaves | layer_leaves(config)


def layer_leaves(config: Any) -> Leaves:
    """Return the leaves of a stack's layers and final norm."""
    leaves: Leaves = {}
    for i, layer in enumerate(config.layers):
        leaves |= under(f"layers.{i}", layer.leaves())
    if config.final_norm is not None:
        leaves |= under("final_norm", config.final_norm.of(config.d_model).leaves())
    return leaves
