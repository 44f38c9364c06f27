"""Rules of a family from a table of its modules: ours by theirs."""

import re
from collections.abc import Iterable, Mapping

from ..rules import Rule, Transform, rule
from ..spec import Leaves

Modules = Mapping[str, str | tuple[str, ...]]
"""Our module, or raw parameter, by theirs; of one cut into several, all in order."""

PARTS = ("weight", "bias")


def module_rules(
    modules: Modules,
    leaves: Leaves,
    *,
    theirs: str = "",
    ours: str = "",
    transforms: Mapping[str, Transform] | None = None,
) -> list[Rule]:
    """Return a rule for each tensor of the modules that the component has.

    Args:
        modules: Our modules by theirs, templates.
        leaves: The component's leaves.
        theirs: What stands before every one of their names.
        ours: What stands before every one of ours.
        transforms: From their tensors to ours, by their tensor's name in ``modules``.
    """
    known = leaf_templates(leaves)
    transforms = transforms or {}
    rules = []
    for module, target in modules.items():
        targets = (target,) if isinstance(target, str) else target
        for part in ("", *PARTS):
            name = f"{module}.{part}" if part else module
            ends = tuple(f"{ours}{each}.{part}" if part else f"{ours}{each}" for each in targets)
            if known.intersection(ends):
                rules.append(rule(f"{theirs}{name}", ends, transforms.get(name)))
    return rules


def leaf_templates(leaves: Leaves) -> frozenset[str]:
    """Return the names of leaves with ``{i}`` in place of every list index."""
    return frozenset(re.sub(r"(?<![^.])\d+(?![^.])", "{i}", name) for name in leaves)


def module_templates(modules: Iterable[str]) -> tuple[str, ...]:
    """Return every name that tensors of the modules may have."""
    ends = ("", *(f".{part}" for part in PARTS))
    return tuple(f"{module}{end}" for module in modules for end in ends)
