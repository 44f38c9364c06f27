"""Continuing sequences of tokens.

B batch   T positions of the prompt   M new tokens   S positions of the memory
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from diptych.spec.checks.attention import check_mask_dtype
from diptych.spec.checks.cache import check_row_mask
from diptych.spec.checks.generation import (
    check_generating,
    check_prompt_lengths,
    check_sampling,
    check_uniform_range,
    check_uniforms,
)
from diptych.spec.checks.sizes import check_floating, check_kind

from .attention.projected_attention import KeyValue
from .decoder import Decoder
from .encoder_decoder import EncoderDecoder
from .functional._concrete import extremes, is_concrete
from .functional._dtype import dtype_name
from .functional.sampling import choose_token


class Generation(NamedTuple):
    """Tokens that continue a prompt.

    Attributes:
        tokens: (B, M), in the dtype of the prompt; after a stop, the first stop id.
        lengths: int32 (B,), the number of tokens up to the stop and with it.
    """

    tokens: Tensor
    lengths: Tensor


def generate(
    model: Decoder | EncoderDecoder,
    input_ids: Tensor,
    *,
    max_new_tokens: int,
    key_mask: Tensor | None = None,
    memory: Tensor | Sequence[KeyValue] | None = None,
    memory_mask: Tensor | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_ids: Sequence[int] = (),
    uniforms: Tensor | None = None,
) -> Generation:
    """Continue prompts token by token, each position computed once and held in a cache.

    Nothing is differentiated. Tokens are chosen as by ``functional.choose_token``.

    Args:
        model: A decoder with an embedding and a head, alone or behind an encoder, in evaluation
            mode.
        input_ids: Prompts, integer (B, T).
        max_new_tokens: M.
        key_mask: True or not 0 at the tokens of a prompt, (B, T); padding comes last.
        memory: What the cross-attentions read: an encoder's output (B, S, D), which is projected
            once, or what ``project`` returned.
        memory_mask: True or not 0 where the memory may be attended to: (B, S).
        temperature: Divides the logits; 0 takes the most likely token.
        top_k: Number of tokens to draw from; None means all.
        top_p: Probability to draw from; None means all.
        stop_ids: Tokens after which a sample is finished.
        uniforms: Floating (B, M), 0 <= u < 1, from which tokens are drawn; None draws them.

    Returns:
        The new tokens.

    Raises:
        ValueError: If a number or shape is refused, the prompt is empty or its padding not last,
            positions exceed the table, or the model is in training mode.
        TypeError: If ids are not integers.
        IndexError: If an id is outside the table.
    """
    check_kind(Decoder | EncoderDecoder, model=model)
    decoder = model.decoder if isinstance(model, EncoderDecoder) else model
    call: Any = model.decode if isinstance(model, EncoderDecoder) else model
    check_generating(
        decoder.config,
        tuple(input_ids.shape),
        dtype=dtype_name(input_ids),
        max_new_tokens=max_new_tokens,
        stop_ids=stop_ids,
        training=model.training,
        memory=memory is not None,
    )
    check_sampling(temperature=temperature, top_k=top_k, top_p=top_p, uniforms=uniforms is not None)
    (B, T), M = input_ids.shape, max_new_tokens
    if temperature and uniforms is None:
        uniforms = torch.rand(B, M, dtype=torch.float32, device=input_ids.device)
    _check_uniforms(uniforms, (B, M))
    check_prompt_lengths(
        _lengths(key_mask, (B, T)),
        max_new_tokens=M,
        max_seq_len=decoder.config.embedding.max_seq_len,
    )
    stops = torch.tensor(stop_ids, dtype=input_ids.dtype, device=input_ids.device)

    def choose(logits: Tensor, i: int, done: Tensor) -> tuple[Tensor, Tensor]:
        drawn = None if uniforms is None else uniforms[:, i]
        options: Any = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        token = choose_token(logits, drawn, **options).to(input_ids.dtype)
        if not stop_ids:
            return token, done
        # A finished sample is computed on, so that shapes stay; what it would say is replaced.
        token = torch.where(done, stop_ids[0], token)
        return token, done | (token[:, None] == stops).any(-1)

    with torch.no_grad():
        if isinstance(memory, Tensor):
            memory = decoder.project(memory)
        reading = {"memory": memory, "memory_mask": memory_mask}
        cache = decoder.new_cache(B, T + M)  # room for all: no shape changes from here
        # The prompt in one call, which fills the cache; from then on a call a token.
        prompt = call(input_ids, key_mask=key_mask, cache=cache, **reading)
        cache = prompt.cache
        done = torch.zeros(B, dtype=torch.bool, device=input_ids.device)
        token, done = choose(_last(prompt.logits, key_mask), 0, done)
        tokens, lengths = [token], torch.ones(B, dtype=torch.int32, device=input_ids.device)
        for i in range(1, M):
            step = call(token[:, None], cache=cache, **reading)  # logits (B, 1, V)
            cache, lengths = step.cache, lengths + ~done
            token, done = choose(step.logits[:, 0], i, done)
            tokens.append(token)
    return Generation(torch.stack(tokens, -1), lengths)  # (B, M)


def _check_uniforms(uniforms: Tensor | None, shape: tuple[int, int]) -> None:
    if uniforms is not None:
        check_floating(uniforms=dtype_name(uniforms))
        check_uniforms(tuple(uniforms.shape), shape)
        if is_concrete(uniforms) and 0 not in shape:
            check_uniform_range(*extremes(uniforms))


def _lengths(key_mask: Tensor | None, shape: tuple[int, int]) -> list[int]:
    """Return the length of every prompt, or of the longest where numbers cannot be looked at."""
    if key_mask is None:
        return [shape[1]]
    check_mask_dtype(key_mask=dtype_name(key_mask))
    check_row_mask(tuple(key_mask.shape), shape)
    return (key_mask != 0).sum(-1).tolist() if is_concrete(key_mask) else [shape[1]]


def _last(logits: Tensor, key_mask: Tensor | None) -> Tensor:
    """Return the logits (B, V) after every prompt's last token."""
    if key_mask is None:
        return logits[:, -1]
    last = (key_mask != 0).sum(-1) - 1  # (B,)
    return torch.take_along_dim(logits, last[:, None, None], 1)[:, 0]  # (B, V)
