"""What encoder and decoder stacks have in common."""

from dataclasses import dataclass
from typing import Any

from .block import BlockConfig, TransformerDecoderLayerConfig, TransformerEncoderLayerConfig
from .checks import check_equal, check_kind, check_positive
from .config import Config, Leaves, under
from .position_bias import RelativeBiasConfig

LayerConfig = TransformerEncoderLayerConfig | TransformerDecoderLayerConfig | BlockConfig


@dataclass(frozen=True, kw_only=True)
class StackConfig(Config):
    """A config with ``num_layers`` layers: ``layer``, or several that take turns."""

    layer: Any
    num_layers: int

    @property
    def layers(self) -> tuple[BlockConfig, ...]:
        """Return the config of every layer's block."""
        pattern = self.layer if isinstance(self.layer, tuple) else (self.layer,)
        return tuple(pattern[i % len(pattern)].block for i in range(self.num_layers))

    @property
    def d_model(self) -> int:
        """Return the width D."""
        return self.layers[0].d_model


def check_layers(layer: LayerConfig | tuple[LayerConfig, ...], num_layers: int) -> None:
    """Raise unless the layers are configs of one width and there is one at least."""
    check_positive(num_layers=num_layers)
    each = layer if isinstance(layer, tuple) else (layer,)
    if not 0 < len(each) <= num_layers:
        raise ValueError(f"layer has {len(each)} configs, expected 1 .. num_layers={num_layers}")
    for i, config in enumerate(each):
        check_kind(LayerConfig, **{f"layer[{i}]" if isinstance(layer, tuple) else "layer": config})
        check_equal(
            f"layer[{i}].d_model", config.block.d_model, "layer[0].d_model", each[0].block.d_model
        )


def stack_leaves(config: Any) -> Leaves:
    """Return the leaves of a stack's embedding, layers, position bias and final norm."""
    leaves: Leaves = under("embedding", config.embedding.leaves()) if config.embedding else {}
    if isinstance(config.position_bias, RelativeBiasConfig):
        num_heads = config.layers[0].attention.num_heads
        leaves |= under("position_bias", config.position_bias.of(num_heads).leaves())
    for i, layer in enumerate(config.layers):
        leaves |= under(f"layers.{i}", layer.leaves())
    if config.final_norm is not None:
        leaves |= under("final_norm", config.final_norm.of(config.d_model).leaves())
    return leaves
