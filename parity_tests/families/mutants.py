"""Corruptions of a family's table of rules: one wrong rule at a time."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from diptych.rules import Chain, Copy, Keep, Permute, Rule, Tie, Transpose
from diptych.spec import Leaf, Leaves


class Mutant(NamedTuple):
    """A table with one rule corrupted."""

    what: str
    rules: tuple[Rule, ...]


def mutants(rules: Sequence[Rule], leaves: Leaves) -> Iterator[Mutant]:
    """Yield every corruption of a table.

    Of each rule: left out; its result shifted by one along the first axis; a square matrix
    transposed; its transform forgotten; its targets in another order. Of two rules with results
    of one shape: the results exchanged.

    Args:
        rules: The table.
        leaves: What it makes.
    """
    rules = tuple(rules)
    groups: dict[tuple, list[int]] = {}
    for place, each in enumerate(rules):
        first = _leaf(each.target[0], leaves)
        groups.setdefault((first.shape, len(each.target), "{i}" in each.target[0]), []).append(
            place
        )
        for what, wrong in _corrupted(each, first):
            yield Mutant(f"{what}: {_shown(each)}", _with(rules, place, wrong))
    for (shape, *_), places in groups.items():
        if math.prod(shape) > 1:
            for a, b in pairwise(places):
                yield _exchanged(rules, a, b)


def _corrupted(each: Rule, leaf: Leaf) -> Iterator[tuple[str, Rule | None]]:
    shape, transform = leaf.shape, each.transform
    yield "left out", None
    if isinstance(transform, Copy):
        return
    if len(each.target) > 1:
        yield "targets in another order", replace(each, target=each.target[1:] + each.target[:1])
    else:
        if shape and shape[0] > 1:
            roll = Permute((*range(1, shape[0]), 0))
            yield "shifted", replace(each, transform=Chain((transform, roll)))
        if len(shape) == 2 and shape[0] == shape[1] > 1:
            yield "transposed", replace(each, transform=Chain((transform, Transpose())))
    if not isinstance(transform, Keep | Tie) and len(each.source) == len(each.target) == 1:
        yield "transform forgotten", replace(each, transform=Keep())


def _exchanged(rules: tuple[Rule, ...], a: int, b: int) -> Mutant:
    first = replace(rules[a], target=rules[b].target)
    second = replace(rules[b], target=rules[a].target)
    wrong = _with(_with(rules, a, first), b, second)
    return Mutant(f"exchanged: {_shown(rules[a])} and {_shown(rules[b])}", wrong)


def _with(rules: tuple[Rule, ...], place: int, wrong: Rule | None) -> tuple[Rule, ...]:
    return rules[:place] + (() if wrong is None else (wrong,)) + rules[place + 1 :]


def _leaf(template: str, leaves: Leaves) -> Leaf:
    pattern = re.escape(template).replace(r"\{i\}", r"\d+")
    return next(leaf for name, leaf in leaves.items() if re.fullmatch(pattern, name))


def _shown(each: Rule) -> str:
    return f"{', '.join(each.source)} -> {', '.join(each.target)}"
