"""Families of foreign checkpoints: one file each, and this registry."""

from .bert import BERT
from .family import RECIPES, Family, Recreated, Variants, recreate
from .gpt2 import GPT2
from .llama import LLAMA
from .seed_encoder import SEED_ENCODER
from .seed_head import SEED_HEAD

FAMILIES: dict[str, Family] = {
    family.name: family for family in (BERT, GPT2, LLAMA, SEED_ENCODER, SEED_HEAD)
}
"""Every family by the name that ``--family`` takes."""


def named_family(family: str | Family) -> Family:
    """Return a family by name, or the family itself.

    Raises:
        ValueError: If there is none of that name.
    """
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        raise ValueError(f"family={family!r} must be one of {', '.join(FAMILIES)}")
    return FAMILIES[family]


__all__ = ["FAMILIES", "RECIPES", "Family", "Recreated", "Variants", "named_family", "recreate"]
