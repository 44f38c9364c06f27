"""Choosing a token from its logits.

B batch   V vocabulary
"""

import torch
from torch import Tensor

from diptych.spec.checks.generation import check_choice_of_token
from diptych.spec.checks.sizes import check_floating

from ._dtype import dtype_name


def choose_token(
    logits: Tensor,
    uniforms: Tensor | None = None,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
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
    dtype = torch.promote_types(logits.dtype, torch.float32)
    scores, ids = torch.sort(logits.to(dtype) / temperature, dim=-1, descending=True, stable=True)
    ranks = torch.arange(scores.shape[-1], device=scores.device)
    if top_k is not None:
        scores = torch.where(ranks < top_k, scores, -torch.inf)
    kept = torch.softmax(scores, -1)
    if top_p is not None:
        # What counts is the sum before a token, so that the one that reaches top_p is kept.
        before = torch.cumsum(kept, -1) - kept
        kept = torch.where((before < top_p) | (ranks == 0), kept, 0.0)
    sums = torch.cumsum(kept, -1)
    target = uniforms[..., None].to(dtype) * sums.amax(-1, keepdim=True)
    # Rounding of the sums must not lead past the last token that is kept.
    rank = ((sums <= target) & (kept > 0)).sum(-1).minimum((kept > 0).sum(-1) - 1)
    return torch.take_along_dim(ids, rank[..., None].clamp(min=0), -1)[..., 0]


def _first_largest(logits: Tensor) -> Tensor:
    """Return the lowest id of those with the largest logit; NaN counts as infinite."""
    V = logits.shape[-1]
    logits = torch.where(logits.isnan(), torch.inf, logits)
    ids = torch.arange(V, device=logits.device)
    return torch.where(logits < logits.amax(-1, keepdim=True), V, ids).amin(-1)
