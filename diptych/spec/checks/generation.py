"""Checks of a call that generates tokens, on plain numbers and tuples."""

from collections.abc import Sequence

import numpy as np

from ..decoder import DecoderConfig
from .sizes import (
    Shape,
    check_given,
    check_kind,
    check_length,
    check_not_empty,
    check_positive,
    is_number,
)


def check_choice_of_token(
    *, temperature: float, top_k: int | None = None, top_p: float | None = None
) -> None:
    """Raise ValueError unless the numbers say how a token is chosen from its logits."""
    if not is_number(temperature) or not 0 <= temperature < 2.0**127:
        raise ValueError(f"temperature={temperature!r} must be at least 0 and below 2**127")
    if top_k is not None:
        check_positive(top_k=top_k)
    if top_p is not None and (not is_number(top_p) or not 0 < top_p <= 1):
        raise ValueError(f"top_p={top_p!r} must satisfy 0 < top_p <= 1")


def check_sampling(
    *, temperature: float, top_k: int | None, top_p: float | None, uniforms: bool
) -> None:
    """Raise ValueError if what belongs to sampling is given without a temperature above 0."""
    check_choice_of_token(temperature=temperature, top_k=top_k, top_p=top_p)
    if temperature:
        return
    given = {"top_k": top_k is not None, "top_p": top_p is not None, "uniforms": uniforms}
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} is given, but temperature=0 takes the most likely token")


def check_generating(
    config: DecoderConfig,
    input_shape: Shape,
    *,
    dtype: str,
    max_new_tokens: int,
    stop_ids: Sequence[int],
    training: bool,
    memory: bool,
) -> None:
    """Raise ValueError unless a decoder can continue prompts of a shape (B, T)."""
    if training:
        raise ValueError("generate needs a model in evaluation mode: call .eval() first")
    if config.embedding is None or config.head is None:
        raise ValueError("generate needs a decoder with an embedding and a head")
    check_given("memory", memory, "cross_attention", config.layers[0].cross_attention is not None)
    check_positive(max_new_tokens=max_new_tokens)
    check_kind(list | tuple, stop_ids=stop_ids)
    for stop in stop_ids:
        size = config.head.vocab_size
        if isinstance(stop, bool) or not isinstance(stop, int) or not 0 <= stop < size:
            raise ValueError(f"stop_ids={tuple(stop_ids)!r} must be ids of 0 .. {size - 1}")
    if len(input_shape) != 2:
        raise ValueError(f"input_ids have shape {input_shape}, expected (B, T)")
    check_not_empty(input_shape[1], "generate")
    check_holds(dtype, config.head.vocab_size)


def check_holds(dtype: str, vocab_size: int) -> None:
    """Raise ValueError if an integer dtype is too narrow for the ids of a vocabulary."""
    if "int" in dtype and np.iinfo(dtype).max < vocab_size - 1:
        raise ValueError(f"input_ids are {dtype}, too narrow for the ids of {vocab_size=}")


def check_uniforms(shape: Shape, expected: Shape) -> None:
    """Raise ValueError unless there is one uniform number for every token to choose."""
    if shape != expected:
        raise ValueError(f"uniforms have shape {shape}, expected {expected}")


def check_uniform_range(smallest: float, largest: float) -> None:
    """Raise ValueError unless uniform numbers lie in [0, 1); NaN does not."""
    if not (smallest >= 0 and largest < 1):
        raise ValueError(f"uniforms lie in [{smallest}, {largest}], expected 0 <= uniforms < 1")


def check_prompt_lengths(
    lengths: Sequence[int], *, max_new_tokens: int, max_seq_len: int | None
) -> None:
    """Raise ValueError if a prompt has no token, or passes the learned positions if continued."""
    for sample, length in enumerate(lengths):
        if not length:
            raise ValueError(f"key_mask hides the whole prompt of sample {sample}")
        if max_seq_len is not None:
            check_length(length + max_new_tokens - 1, max_seq_len)
