"""What families of stacks have in common: kinds of stacks, turns of layers, token tables, heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeVar

from .. import spec
from ..spec.stack import StackConfig
from .family import Part
from .settings import require

FULL, SLIDING = "full_attention", "sliding_attention"
"""Types of layers, as ``layer_types`` names them."""

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class StackKind:
    """What the parts of a family's stacks must be, for its functions to read them.

    Attributes:
        attention: Of every layer, the self-attention.
        rotary: Its rotation.
        feed_forward: Of every layer, the network.
        embedding: Of a stack of text.
        position_bias: Of one, too.
    """

    attention: type | UnionType = spec.AttentionConfig
    rotary: type | UnionType = object
    feed_forward: type | UnionType = spec.Config
    embedding: type | UnionType = spec.TextEmbeddingConfig
    position_bias: type | UnionType = object

    def parts(self, stack: StackConfig, place: str = "") -> dict[str, Part]:
        """Return the parts of a stack, by their place in the config of the component."""
        parts: dict[str, Part] = {}
        if isinstance(stack, spec.EncoderConfig | spec.DecoderConfig):
            parts[f"{place}embedding"] = Part(stack.embedding, self.embedding)
            parts[f"{place}position_bias"] = Part(stack.position_bias, self.position_bias)
        for i, layer in enumerate(stack.layers):
            each = f"{place}layers[{i}]"
            parts[f"{each}.attention"] = Part(layer.attention, self.attention)
            parts[f"{each}.attention.rotary"] = Part(layer.attention.rotary, self.rotary)
            parts[f"{each}.feed_forward"] = Part(layer.feed_forward, self.feed_forward)
        return parts


ANY_STACK = StackKind()


def expect(part: object, kind: type[Kind]) -> Kind:
    """Return a part of a config, which ``Family.parts`` has let in as one of this class."""
    assert isinstance(part, kind), f"{type(part).__name__} is no {kind.__name__}"
    return part


def shortest_cycle(
    layers: Sequence[spec.BlockConfig],
) -> spec.BlockConfig | tuple[spec.BlockConfig, ...]:
    """Return the fewest configs that, taking turns, are those of the layers."""
    length = 1
    for length in range(1, len(layers) + 1):
        if all(layer == layers[i % length] for i, layer in enumerate(layers)):
            break
    return layers[0] if length == 1 else tuple(layers[:length])


def token_embedding(vocab_size: int, d_model: int, **options: Any) -> spec.TextEmbeddingConfig:
    """Return the config of a table of tokens; what options do not give is left out."""
    options = {"max_seq_len": None, "num_token_types": 0, "norm": None, "dropout": 0.0} | options
    return spec.TextEmbeddingConfig(vocab_size=vocab_size, d_model=d_model, **options)


def read_decoder(
    values: Mapping[str, Any],
    layers: spec.BlockConfig | Sequence[spec.BlockConfig],
    *,
    norm: spec.NormConfig,
    embed_scale: float | None = None,
    embed_dropout: float = 0.0,
    **head: Any,
) -> spec.DecoderConfig:
    """Return a decoder of layers, or of one config for all, with a head.

    Args:
        values: Settings, among them ``hidden_size``, ``num_hidden_layers``, ``vocab_size`` and
            ``tie_word_embeddings``.
        layers: Configs of the layers.
        norm: Of the last layer's output.
        embed_scale: Factor on token vectors.
        embed_dropout: Rate on them.
        **head: More of the head.
    """
    d_model, vocab_size = values["hidden_size"], require(values, "vocab_size")
    num_layers = require(values, "num_hidden_layers")
    if isinstance(layers, spec.BlockConfig):
        layers = [layers]
    return spec.DecoderConfig(
        layer=shortest_cycle(layers),
        num_layers=num_layers,
        embedding=token_embedding(vocab_size, d_model, scale=embed_scale, dropout=embed_dropout),
        final_norm=norm,
        head=spec.LogitsHeadConfig(
            d_model=d_model, vocab_size=vocab_size, tied=values["tie_word_embeddings"], **head
        ),
    )


def write_ends(config: spec.DecoderConfig) -> dict[str, Any]:
    """Return the settings of the token table and, if there is a head, whether it is that table."""
    tied = {} if config.head is None else {"tie_word_embeddings": config.head.tied}
    return {"vocab_size": expect(config.embedding, spec.TextEmbeddingConfig).vocab_size, **tied}
