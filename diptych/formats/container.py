"""What a checkpoint's files hold, before any tensor is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .errors import fault
from .tensor import Tensor


@dataclass(frozen=True)
class Branch:
    """One dictionary of a pickle, of a Flax tree, or of a tree that Orbax saved.

    Attributes:
        tensors: Its tensors by name.
        others: What else it holds, by name, described: numbers, texts, further dictionaries.
        refused: What it holds that cannot be read, by name, with the reason.
        model_args: Settings of the model, where it holds a dictionary of that name with nothing but
            numbers and texts, as nanoGPT's training files do.
    """

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    model_args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """A checkpoint's tensors, from headers only.

    Attributes:
        kind: A key of ``FORMATS``.
        files: The files that were opened, the index first where there is one.
        tensors: The tensors by name; empty where a file has several dictionaries that hold
            tensors, of which ``select`` takes one.
        metadata: The texts that a safetensors file carries beside its tensors.
        tree: A file's dictionaries by path ("" is the outermost, "state_dict" one in it).
        notes: Lines for the user, such as which other weights in the folder were not read.
    """

    kind: str
    files: tuple[Path, ...]
    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, str] = field(default_factory=dict)
    tree: Mapping[str, Branch] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def model_args(self) -> Mapping[str, Any]:
        """Return the settings that lie beside the dictionary whose tensors these are, if any do."""
        for path, branch in self.tree.items():
            if path and branch.tensors is self.tensors:
                outer = self.tree.get(path.rpartition(".")[0])
                return outer.model_args if outer else {}
        return {}

    def select(self, key: str) -> "Container":
        """Return the same container with the tensors of one dictionary of its tree.

        Args:
            key: The dictionary's path.

        Raises:
            CheckpointError: If there is no such dictionary, or something in it cannot be read.
        """
        path = self.files[0]
        if key not in self.tree:
            known = ", ".join(repr(name) for name, branch in self.tree.items() if branch.tensors)
            raise fault(path, f"no such dictionary; those with tensors are {known or 'none'}", key)
        branch = self.tree[key]
        faults = [fault(path, cause, name) for name, cause in branch.refused.items()]
        if faults:
            raise type(faults[0])(str(faults[0]), tuple(str(each) for each in faults))
        return replace(self, tensors=branch.tensors)
