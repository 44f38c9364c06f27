"""The tree that Orbax saved, as branches of tensors."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..container import Branch
from ..errors import printable
from ..tensor import Tensor


@dataclass(frozen=True)
class Unread:
    """A leaf that gives no tensor.

    Attributes:
        what: What it is.
        is_fault: Whether it is an array, so that a model without it would lack something.
    """

    what: str
    is_fault: bool = False


Leaf: TypeAlias = Tensor | Unread
Node: TypeAlias = "dict[str, Node | Leaf]"
"""A dictionary of what was saved, by key."""

# What training libraries of JAX save beside the parameters, and what they wrap a state in.
_COLLECTIONS = frozenset(
    ("batch_stats", "ema_params", "opt_state", "optimizer", "optimizer_state", "params", "step")
)
_ENVELOPES = frozenset(("default", "model", "state", "target", "train_state"))
_RANDOM = "rngs"
_RANDOM_STREAM = {"count", "key"}
_VALUE = "value"


def build_tree(leaves: Mapping[tuple[str, ...], Leaf]) -> Node:
    """Return the tree that has each leaf at its path."""
    root: Node = {}
    for parts, leaf in leaves.items():
        node = root
        for part in parts[:-1]:
            inner = node.setdefault(part, {})
            assert isinstance(inner, dict)
            node = inner
        node[parts[-1]] = leaf
    return root


def take_random_state(node: Node, keys: Collection[str], path: str = "") -> list[str]:
    """Take the state of random generators out of a tree: it is no parameter.

    That is what lies under ``rngs``, all of it uint32, a pair ``key`` and ``count`` as
    ``nnx.RngStream`` has it, and every array of random keys.

    Args:
        node: The tree, which is changed.
        keys: Names of arrays that Orbax says are random keys.
        path: Where the tree hangs.

    Returns:
        The names of what was taken.
    """
    taken: list[str] = []
    for name, child in list(node.items()):
        full = _join(path, name)
        if isinstance(child, dict):
            if (name == _RANDOM and _is_random(child)) or _is_random_stream(child):
                taken += [_join(full, ".".join(parts)) for parts, _ in _leaves(child)]
                del node[name]
            else:
                taken += take_random_state(child, keys, full)
                if not child:
                    del node[name]
        elif full in keys:
            taken.append(full)
            del node[name]
    return taken


def make_branches(node: Node, path: str = "") -> dict[str, Branch]:
    """Return the branches of a tree, by path.

    A dictionary whose keys name collections (``params``, ``opt_state`` ...) is cut into one branch
    per key; any other is one branch, its tensors named by their paths.
    """
    if _COLLECTIONS.isdisjoint(node):
        branches = {path: _branch(node)}
        name = next(iter(node), "")
        child = node.get(name)
        # One envelope may be meant, or be part of the names.
        if len(node) == 1 and name in _ENVELOPES and isinstance(child, dict):
            branches |= make_branches(child, _join(path, name))
        return branches
    others = {}
    branches = {}
    for name, child in node.items():
        if isinstance(child, dict):
            branches |= make_branches(child, _join(path, name))
        elif isinstance(child, Tensor):
            others[printable(name)] = f"an array, {child.dtype} {list(child.shape)}"
        else:
            others[printable(name)] = child.what
    return {path: Branch(others=others), **branches}


def _branch(node: Node) -> Branch:
    leaves = dict(_leaves(node))
    wrapped = _all_wrapped(node)
    tensors: dict[str, Tensor] = {}
    others: dict[str, str] = {}
    refused: dict[str, str] = {}
    for parts, leaf in leaves.items():
        name = ".".join(parts[:-1] if wrapped and parts[-1] == _VALUE else parts)
        if isinstance(leaf, Tensor):
            tensors[name] = replace(leaf, name=name)
        elif leaf.is_fault:
            refused[name] = leaf.what
        else:
            others[printable(name)] = leaf.what
    return Branch(tensors, others, refused)


def _all_wrapped(node: Node) -> bool:
    """Return whether each array is the only ``value`` of a dictionary, as in an NNX state."""
    for child in node.values():
        if isinstance(child, dict):
            alone = child.get(_VALUE) if len(child) == 1 else None
            if (alone is None or isinstance(alone, dict)) and not _all_wrapped(child):
                return False
        elif isinstance(child, Tensor) or child.is_fault:
            return False
    return True


def _is_random_stream(node: Node) -> bool:
    return node.keys() == _RANDOM_STREAM and _is_random(node)


def _is_random(node: Node) -> bool:
    """Return whether a tree holds nothing but arrays of uint32."""
    return all(isinstance(leaf, Tensor) and leaf.dtype == "U32" for _, leaf in _leaves(node))


def _leaves(node: Node, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    for name, child in node.items():
        parts = (*above, name)
        if isinstance(child, dict):
            yield from _leaves(child, parts)
        else:
            yield parts, child


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
