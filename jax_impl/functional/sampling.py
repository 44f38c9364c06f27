"""Choosing a token from its logits.

B batch   V vocabulary
"""

import jax
from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.generation import check_choice_of_token
from diptych.spec.checks.sizes import check_floating

from ._dtype import dtype_name


def choose_token(
    logits: Array,
    uniforms: Array | None = None,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Array:
    """Return the most likely token, or one drawn by inverting the distribution function.

    Tokens are sorted by falling probability ``softmax(logits / temperature)``, equal ones by id;
    the ``top_k`` first are kept (Fan et al. 2018), of these the fewest whose probabilities sum to
    ``top_p`` (Holtzman et al. 2020). The token is the first at which their sum, divided by that of
    all that are kept, exceeds the uniform number. All is computed in float32 at least.

    Args:
        logits: (..., V), of any floating dtype.
        uniforms: Floating (...), 0 <= u < 1; needed with a temperature above 0.
        temperature: 0 takes the most likely token, of equal ones that with the lowest id.
        top_k: Number of tokens kept; None keeps all.
        top_p: Probability kept; None keeps all.

    Returns:
        Token ids, integer (...).

    Raises:
        ValueError: If a number is refused, or the uniform numbers are missing.
        TypeError: If the logits are not floating.
    """
    check_floating(logits=dtype_name(logits))
    check_choice_of_token(temperature=temperature, top_k=top_k, top_p=top_p)
    if not temperature:
        return _first_largest(logits)
    if uniforms is None:
        raise ValueError(f"temperature={temperature} needs uniforms=")
    dtype = jnp.promote_types(logits.dtype, jnp.float32)
    scores = logits.astype(dtype) / temperature
    ids = jnp.argsort(scores, axis=-1, descending=True, stable=True)
    scores = jnp.take_along_axis(scores, ids, -1)
    ranks = jnp.arange(scores.shape[-1])
    if top_k is not None:
        scores = jnp.where(ranks < top_k, scores, -jnp.inf)
    kept = jax.nn.softmax(scores, -1)
    if top_p is not None:
        # What counts is the sum before a token, so that the one that reaches top_p is kept.
        before = jnp.cumsum(kept, -1) - kept
        kept = jnp.where((before < top_p) | (ranks == 0), kept, 0.0)
    sums = jnp.cumsum(kept, -1)
    target = uniforms[..., None].astype(dtype) * sums.max(-1, keepdims=True)
    # Rounding of the sums must not lead past the last token that is kept.
    rank = jnp.minimum(((sums <= target) & (kept > 0)).sum(-1), (kept > 0).sum(-1) - 1)
    return jnp.take_along_axis(ids, rank[..., None].clip(min=0), -1)[..., 0]


def _first_largest(logits: Array) -> Array:
    """Return the lowest id of those with the largest logit; NaN counts as infinite."""
    V = logits.shape[-1]
    logits = jnp.where(jnp.isnan(logits), jnp.inf, logits)
    ids = jnp.arange(V)
    return jnp.where(logits < logits.max(-1, keepdims=True), V, ids).min(-1)
