"""Mixtures of experts that a family stores as one linear map for each expert."""

from collections.abc import Iterable

from ..rules import Chain, Rule, Stack, Transpose, rule
from ..spec import Leaves
from .modules import leaf_templates


def expert_rules(
    theirs: str, ours: str, names: Iterable[tuple[str, str]], num_experts: int, leaves: Leaves
) -> list[Rule]:
    """Return the rules that stack every expert's linear maps, (out, in), as banks (E, in, out).

    Args:
        theirs: Their name of the list of experts, a template.
        ours: Our name of the mixture, a template.
        names: Their name of each linear map and ours of its bank.
        num_experts: E.
        leaves: The component's leaves.
    """
    # Stacked they are (E, out, in); our banks are (E, in, out).
    to_bank = Chain((Stack(num_experts), Transpose((0, 2, 1))))
    return [
        rule(
            [f"{theirs}.{expert}.{name}.weight" for expert in range(num_experts)],
            f"{ours}.experts.{bank}",
            to_bank,
        )
        for name, bank in names
        if f"{ours}.experts.{bank}" in leaf_templates(leaves)
    ]
