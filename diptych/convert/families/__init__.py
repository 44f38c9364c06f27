"""Families of foreign checkpoints: one file each, and this registry."""

from .bert import BERT
from .family import RECIPES, Family, Variants, recreate
from .seed_encoder import SEED_ENCODER
from .seed_head import SEED_HEAD

FAMILIES: dict[str, Family] = {family.name: family for family in (BERT, SEED_ENCODER, SEED_HEAD)}
"""Every family by the name that ``--family`` takes."""

__all__ = ["FAMILIES", "RECIPES", "Family", "Variants", "recreate"]
