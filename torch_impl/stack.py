"""What encoder and decoder stacks have in common.

B batch   T positions   S positions of the memory   D model width   N heads   V vocabulary
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from diptych.spec.checks.cache import check_stack_cache
from diptych.spec.checks.sizes import check_kind, check_stack_length

from .attention.projected_attention import KeyValue
from .functional.cache import Cache, RollingCache

StackCache = tuple[Cache | RollingCache, ...]
"""The cache of every layer."""


class StackOutput(NamedTuple):
    """What a stack of layers returns; None where it was not asked for.

    Attributes:
        output: Output of the last layer, normalised where there is a final norm, (..., T, D).
        pooled: Vector of the whole sequence (..., D), if there is a pooler.
        hidden_states: The first layer's input, then every layer's output, each (..., T, D).
        attention_weights: Every layer's weights (..., N, T, T).
        cross_attention_weights: Every layer's weights over the memory (..., N, T, S).
        cache: Every layer's cache after the call.
        logits: Scores of every token (..., T, V), if there is a head.
    """

    output: Tensor
    pooled: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attention_weights: tuple[Tensor, ...] | None = None
    cross_attention_weights: tuple[Tensor, ...] | None = None
    cache: StackCache | None = None
    logits: Tensor | None = None


def check_cache(cache: StackCache, inputs: Tensor, num_layers: int) -> None:
    """Raise unless there is a cache for every layer, which inputs (B, T) or (B, T, D) may follow.

    Args:
        cache: Every layer's cache.
        inputs: Ids or vectors, of which only the shape is read.
        num_layers: Number of layers.

    Raises:
        ValueError: If the number of layers or the batch size is another.
        TypeError: If one is no cache.
    """
    check_stack_length("cache", len(cache), num_layers)
    for i, layer in enumerate(cache):
        check_kind(Cache | RollingCache, **{f"cache[{i}]": layer})
    check_stack_cache([layer.length.shape[0] for layer in cache], tuple(inputs.shape))


def run_layers(
    layers: Any,
    x: Tensor,
    *,
    final_norm: Any = None,
    memory: Tensor | Sequence[KeyValue] | None = None,
    cache: StackCache | None = None,
    need_weights: bool = False,
    need_hidden_states: bool = False,
    **options: Any,
) -> StackOutput:
    """Run layers one after the other.

    Args:
        layers: The layers.
        x: Input of the first (..., T, D).
        final_norm: Norm of the last one's output, if there is one.
        memory: What the cross-attentions read, projected for each or the same for all.
        cache: Every layer's cache.
        need_weights: Whether every layer's attention weights are returned.
        need_hidden_states: Whether every layer's output is returned.
        **options: Of every layer's call.

    Returns:
        The last layer's output, normalised, and what was asked for.

    Raises:
        ValueError: If there is not one projected memory a layer.
    """
    projected = memory if isinstance(memory, tuple | list) else [memory] * len(layers)
    check_stack_length("memory", len(projected), len(layers))
    hidden_states, weights, cross_weights, caches = [x], [], [], []
    for i, layer in enumerate(layers):
        result = layer(
            x,
            memory=projected[i],
            cache=None if cache is None else cache[i],
            need_weights=need_weights,
            **options,
        )
        x = result.output
        hidden_states.append(x)
        weights.append(result.attention_weights)
        cross_weights.append(result.cross_attention_weights)
        caches.append(result.cache)
    # Either all layers have a cross-attention or none has.
    has_cross = need_weights and layers[0].config.cross_attention is not None
    return StackOutput(
        output=x if final_norm is None else final_norm(x),
        hidden_states=tuple(hidden_states) if need_hidden_states else None,
        attention_weights=tuple(weights) if need_weights else None,
        cross_attention_weights=tuple(cross_weights) if has_cross else None,
        cache=None if cache is None else tuple(caches),
    )
