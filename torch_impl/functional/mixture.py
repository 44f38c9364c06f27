"""Routing tokens to experts, and the experts.

D model width   F hidden width   E experts   G groups of experts
"""

import torch
from torch import Tensor

from diptych.spec import RouterConfig
from diptych.spec.checks.sizes import check_floating, check_width

from ._dtype import dtype_name
from .activation import activate_gated


def route(
    logits: Tensor, *, top_k: int, router: RouterConfig, choice_bias: Tensor | None = None
) -> Tensor:
    """Return the weight of every expert for every token, 0 for those that are not chosen.

    The scores are the softmax or the sigmoid of the logits; the ``top_k`` best are chosen, the
    lower index where scores are equal (Shazeer et al. 2017; Fedus et al. 2021). With a choice bias
    and groups, experts are chosen by score plus bias within the groups whose two best are best
    (DeepSeek-V3, 2024, section 2.1.2). Weights are normalised by their sum plus 1e-20, as in
    DeepSeek's code, so that scores that all underflow give 0. Computed in float32 at least.

    Args:
        logits: (..., E).
        top_k: Number of experts chosen.
        router: How scores and weights are made.
        choice_bias: (E,), added to the scores that choose.

    Returns:
        Weights (..., E), in float32 at least.

    Raises:
        TypeError: If the logits are not floating.
    """
    check_floating(logits=dtype_name(logits))
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if router.scoring == "sigmoid":
        scores = torch.sigmoid(logits)
    elif router.scoring == "softmax":
        scores = torch.softmax(logits, -1)
    else:
        scores = logits
    choice = scores if choice_bias is None else scores + choice_bias.to(scores.dtype)
    if router.num_groups > 1:
        choice = _best_groups(choice, router)
    chosen = _best(choice, top_k)
    if router.scoring == "softmax_of_top":
        weights = torch.softmax(torch.where(chosen, scores, float("-inf")), -1)
    else:
        weights = torch.where(chosen, scores, 0.0)
    if router.normalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * router.scale


def mix_experts(
    x: Tensor,
    weights: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
    *,
    gate_bias: Tensor | None = None,
    up_bias: Tensor | None = None,
    down_bias: Tensor | None = None,
    activation: str = "silu",
) -> Tensor:
    """Return the sum of the gated networks of all experts, each times its weight.

    Every expert computes every token, and its maps are 0 where it is not chosen, so that no token
    is dropped, no shape depends on the routing, and an expert that overflows reaches only the
    outputs and gradients of those who chose it. The sum is in the wider dtype of outputs and
    weights.

    Args:
        x: Tokens (..., D).
        weights: (..., E), 0 where an expert is not chosen.
        gate: (E, D, F), in the dtype of ``x``.
        up: (E, D, F).
        down: (E, F, D).
        gate_bias: (E, F).
        up_bias: (E, F).
        down_bias: (E, D).
        activation: Of the gate, as in ``activate_gated``.

    Returns:
        Output (..., D), in the dtype of ``x``.

    Raises:
        ValueError: If a width does not fit.
    """
    check_width(tuple(x.shape), gate.shape[1])
    check_width(tuple(weights.shape), gate.shape[0])
    chosen = (weights != 0)[..., None]  # (..., E, 1)
    inputs = torch.where(chosen, x[..., None, :], 0.0)  # (..., E, D)
    hidden_gate = _product("...ed,edf->...ef", inputs, gate, gate_bias, chosen)  # (..., E, F)
    hidden_up = _product("...ed,edf->...ef", inputs, up, up_bias, chosen)
    hidden = activate_gated(hidden_gate, hidden_up, activation)
    outputs = _product("...ef,efd->...ed", hidden, down, down_bias, chosen)  # (..., E, D)
    return (outputs * weights[..., None]).sum(-2).to(x.dtype)  # (..., D)


def _product(
    equation: str, x: Tensor, kernel: Tensor, bias: Tensor | None, chosen: Tensor
) -> Tensor:
    """Return the map of every expert, 0 where it is not chosen: no infinity, no gradient there."""
    product = torch.einsum(equation, x, kernel)
    return torch.where(chosen, product if bias is None else product + bias, 0.0)


def _best(scores: Tensor, number: int) -> Tensor:
    """Return where the best scores stand, boolean (..., E); of equal ones the first."""
    order = torch.argsort(scores, dim=-1, descending=True, stable=True)
    # Sorting the order inverts it: the rank at which each expert stands.
    ranks = torch.argsort(order, dim=-1)
    return ranks < number


def _best_groups(choice: Tensor, router: RouterConfig) -> Tensor:
    """Return the scores that choose, -inf outside of the best groups."""
    *leading, E = choice.shape
    groups = choice.reshape(*leading, router.num_groups, E // router.num_groups)  # (..., G, E/G)
    two_best = torch.sort(groups, -1, descending=True).values[..., :2]  # (..., G, 2)
    best = _best(two_best.sum(-1), router.top_groups)[..., None]
    return torch.where(best, groups, float("-inf")).reshape(*leading, E)
