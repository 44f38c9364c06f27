"""Rules pair names of one layout with names of another; a table of rules converts checkpoints."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..spec.checks.sizes import nearest
from ..spec.errors import CheckpointError
from ..tensors.bits import contiguous
from .templates import TemplateIndex, fill_template, placeholders
from .transforms import Keep, Transform

MAX_SUGGESTIONS = 20  # of nearest names: one costs a pass over all known names


@dataclass(frozen=True)
class Rule:
    """Source names become target names through a transform.

    Attributes:
        source: Name templates (see ``templates``).
        target: Name templates with the same placeholders.
        transform: From the source tensors, in order, to the target tensors, in order.

    Raises:
        ValueError: If the templates do not all have the same placeholders.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    transform: Transform

    def __post_init__(self):
        found = {frozenset(placeholders(template)) for template in (*self.source, *self.target)}
        if len(found) > 1:
            raise ValueError(f"{self.source} and {self.target} need the same placeholders")

    @cached_property
    def inverse(self) -> "Rule":
        """Return the rule read backwards."""
        return Rule(self.target, self.source, self.transform.inverse)


@dataclass(frozen=True)
class Step:
    """A rule with its placeholders filled in: these tensors become those."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    transform: Transform


def rule(
    source: str | Sequence[str], target: str | Sequence[str], transform: Transform | None = None
) -> Rule:
    """Return a rule; one name may stand alone, and no transform means ``Keep``."""
    sources = (source,) if isinstance(source, str) else tuple(source)
    targets = (target,) if isinstance(target, str) else tuple(target)
    return Rule(sources, targets, transform or Keep())


def inverse(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the table read backwards."""
    return tuple(r.inverse for r in rules)


def convert_tensors(
    tensors: Mapping[str, np.ndarray], rules: Sequence[Rule]
) -> dict[str, np.ndarray]:
    """Return the tensors under their new names, in memory.

    Args:
        tensors: Arrays by source name; they are not changed, the results may share their memory.
        rules: The table; every name must be taken by exactly one rule.

    Returns:
        C-contiguous arrays by target name, dtypes as given.

    Raises:
        CheckpointError: If a name is taken by no rule or by several, a rule lacks a part, two
            names collide, or a shape does not fit; lists all.
    """
    steps, faults = assign_rules(tensors, rules)
    raise_faults(faults)
    converted: dict[str, np.ndarray] = {}
    for step in steps:
        try:
            outputs = step.transform.apply([tensors[name] for name in step.sources])
        except ValueError as error:
            faults.append(f"{', '.join(step.sources)}: {error}")
            continue
        converted.update(zip(step.targets, map(contiguous, outputs), strict=True))
    raise_faults(faults)
    return converted


def assign_rules(
    names: Iterable[str], rules: Sequence[Rule], *, known: Iterable[str] = ()
) -> tuple[list[Step], list[str]]:
    """Return the steps that take every name exactly once, and all faults.

    Args:
        names: Source names.
        rules: The table.
        known: Names to suggest from when none fits; by default the templates of the table.

    Returns:
        Steps in the order of their first name, and faults as ``NAME: CAUSE``.
    """
    names = list(names)
    known = list(known) or [template for r in rules for template in r.source]
    index = TemplateIndex(
        (template, (r, place)) for r in rules for place, template in enumerate(r.source)
    )
    faults = name_faults(names)
    groups: dict[tuple[Rule, tuple[tuple[str, str], ...]], dict[int, str]] = {}
    uncovered = 0
    for name in names:
        hits = index.find(name)
        if len(hits) == 1:
            ((r, place), values) = hits[0]
            groups.setdefault((r, tuple(sorted(values.items()))), {})[place] = name
        elif hits:
            several = " and ".join(r.source[place] for (r, place), _ in hits)
            faults.append(f"{name}: taken by several rules: {several}")
        else:
            uncovered += 1
            hint = nearest(name, known) if uncovered <= MAX_SUGGESTIONS else ""
            faults.append(f"{name}: no rule covers it{hint}")
    steps = []
    for (r, bound), parts in groups.items():
        filled = dict(bound)
        sources = tuple(fill_template(template, filled) for template in r.source)
        missing = [name for place, name in enumerate(sources) if place not in parts]
        if missing:
            faults.append(f"{', '.join(missing)}: missing beside {', '.join(parts.values())}")
            continue
        targets = tuple(fill_template(template, filled) for template in r.target)
        steps.append(Step(sources, targets, r.transform))
    faults += name_faults([target for step in steps for target in step.targets])
    return steps, faults


def name_faults(names: Collection[str]) -> list[str]:
    """Return a fault for every two names that mean one place in a tree: all pairs are refused.

    Those are one name twice, ``layer.01`` beside ``layer.1``, and a leaf beside its own children.
    """
    faults = []
    seen: dict[str, str] = {}
    for name in names:
        # "01" and "1" would be one place in a list, but are two keys of a dictionary.
        plain = re.sub(r"(?<![^.])0+(?=\d+(?:\.|$))", "", name)
        if plain in seen:
            faults.append(f"{name}: collides with {seen[plain]}")
        seen[plain] = name
    for plain, name in seen.items():
        parts = plain.split(".")
        for length in range(1, len(parts)):
            parent = ".".join(parts[:length])
            if parent in seen:
                faults.append(f"{name}: {seen[parent]} is a tensor and a folder of names")
    return faults


def raise_faults(faults: Sequence[str], *, where: str = "") -> None:
    """Raise CheckpointError with all faults, each with ``where`` before it, if there are any."""
    if faults:
        full = tuple(f"{where}: {fault}" if where else fault for fault in faults)
        raise CheckpointError(full[0], full)
