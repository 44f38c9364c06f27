"""Continuing sequences of tokens.

B batch   T positions of the prompt   M new tokens   S positions of the memory
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax import Array
from jax import numpy as jnp

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
from .functional._concrete import extremes, is_concrete, on_host
from .functional._dtype import dtype_name
from .functional.sampling import choose_token


class Generation(NamedTuple):
    """Tokens that continue a prompt.

    Attributes:
        tokens: (B, M), in the dtype of the prompt; after a stop, the first stop id.
        lengths: int32 (B,), the number of tokens up to the stop and with it.
    """

    tokens: Array
    lengths: Array


def generate(
    model: Decoder | EncoderDecoder,
    input_ids: Array,
    *,
    max_new_tokens: int,
    key_mask: Array | None = None,
    memory: Array | Sequence[KeyValue] | None = None,
    memory_mask: Array | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_ids: Sequence[int] = (),
    uniforms: Array | None = None,
    rng_key: Array | None = None,
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
        rng_key: Key of that draw. Without it and without ``uniforms``, a temperature above 0 is a
            ValueError.

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
        input_ids.shape,
        dtype=dtype_name(input_ids),
        max_new_tokens=max_new_tokens,
        stop_ids=stop_ids,
        training=model.training,
        memory=memory is not None,
    )
    check_sampling(temperature=temperature, top_k=top_k, top_p=top_p, uniforms=uniforms is not None)
    (B, T), M = input_ids.shape, max_new_tokens
    if temperature and uniforms is None:
        uniforms = _draw(rng_key, (B, M), temperature)
    _check_uniforms(uniforms, (B, M))
    check_prompt_lengths(
        _lengths(key_mask, (B, T)),
        max_new_tokens=M,
        max_seq_len=decoder.config.embedding.max_seq_len,
    )
    stops = jnp.asarray(stop_ids, input_ids.dtype)

    def choose(logits: Array, i: Any, done: Array) -> tuple[Array, Array]:
        drawn = None if uniforms is None else uniforms[:, i]
        options: Any = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        token = choose_token(logits, drawn, **options).astype(input_ids.dtype)
        if not stop_ids:
            return token, done
        # A finished sample is computed on, so that shapes stay; what it would say is replaced.
        token = jnp.where(done, stops[0], token)
        return token, done | (token[:, None] == stops).any(-1)

    def advance(state: Any, i: Array) -> tuple[Any, Array]:
        token, done, lengths, cache = state
        step = call(token[:, None], cache=cache, **reading)  # logits (B, 1, V)
        lengths = lengths + ~done
        token, done = choose(step.logits[:, 0], i, done)
        return (token, done, lengths, step.cache), token

    if isinstance(memory, Array):
        memory = decoder.project(memory)
    reading = {"memory": memory, "memory_mask": memory_mask}
    cache = decoder.new_cache(B, T + M)  # room for all: no shape changes from here
    # The prompt in one call, which fills the cache; from then on a call a token.
    prompt = call(input_ids, key_mask=key_mask, cache=cache, **reading)
    token, done = choose(_last(prompt.logits, key_mask), 0, jnp.zeros(B, bool))
    state = (token, done, jnp.ones(B, jnp.int32), prompt.cache)
    (_, _, lengths, _), later = jax.lax.scan(advance, state, jnp.arange(1, M))
    return Generation(jnp.concatenate([token[:, None], later.T], -1), lengths)


def _draw(rng_key: Array | None, shape: tuple[int, int], temperature: float) -> Array:
    if rng_key is None:
        raise ValueError(f"temperature={temperature} needs rng_key= or uniforms=")
    return jax.random.uniform(rng_key, shape, jnp.float32)


def _check_uniforms(uniforms: Array | None, shape: tuple[int, int]) -> None:
    if uniforms is not None:
        check_floating(uniforms=dtype_name(uniforms))
        check_uniforms(uniforms.shape, shape)
        if is_concrete(uniforms) and 0 not in shape:
            check_uniform_range(*extremes(uniforms))


def _lengths(key_mask: Array | None, shape: tuple[int, int]) -> list[int]:
    """Return the length of every prompt, or of the longest where numbers cannot be looked at."""
    if key_mask is None:
        return [shape[1]]
    check_mask_dtype(key_mask=dtype_name(key_mask))
    check_row_mask(key_mask.shape, shape)
    return (on_host(key_mask) != 0).sum(-1).tolist() if is_concrete(key_mask) else [shape[1]]


def _last(logits: Array, key_mask: Array | None) -> Array:
    """Return the logits (B, V) after every prompt's last token."""
    if key_mask is None:
        return logits[:, -1]
    last = (key_mask != 0).sum(-1) - 1  # (B,)
    return jnp.take_along_axis(logits, last[:, None, None], 1)[:, 0]  # (B, V)
