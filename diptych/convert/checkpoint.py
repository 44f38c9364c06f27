"""A checkpoint resolved: container, layout, family, config, and every tensor accounted for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ..families import Family, Recreated, Variants
from ..formats.container import Container
from ..spec import Config
from .layouts.lazy_tensors import BUFFER_PREFIX, LazyTensor, cast_tensor


@dataclass(frozen=True)
class ReadOptions:
    """What a user says of how a checkpoint is to be read: the arguments of ``open_checkpoint``."""

    family: str | Family | None = None
    config: str | Path | Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    ignore_settings: Collection[str] = ()


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, from headers only; no parameter has been read.

    Attributes:
        path: What was opened.
        container: Its files and stored tensors.
        layout: "hf" (a family's own names), "hf-flax" (the same in Linen), "torch" or "flax".
        family: The family it is of or came from; None where nothing says so.
        config: The component's config.
        leaves: Every parameter by canonical name, in the order of ``config.leaves()``.
        buffers: Stored tensors that are no parameters and that nothing recreates, by source name.
        recreated: Buffers that are left out because a recipe gives their bytes, by source name.
        variants: Spellings of the family that were found.
        spelling: The layout that they were found in, "hf" or "hf-flax".
        ignored: Settings that were accepted unread, with their values.
        source_config: The foreign configuration, as it was read.
        companions: Files that travel along, by their path in the folder.
        dtype: Code that floating parameters were cast to when it was written, None without a cast.
        notes: Lines for the user.
    """

    path: Path
    container: Container
    layout: str
    family: Family | None
    config: Config
    leaves: Mapping[str, LazyTensor]
    buffers: Mapping[str, LazyTensor] = field(default_factory=dict)
    recreated: Mapping[str, Recreated] = field(default_factory=dict)
    variants: Variants = ()
    spelling: str = "hf"
    ignored: Mapping[str, Any] = field(default_factory=dict)
    source_config: Mapping[str, Any] | None = None
    companions: Mapping[str, Path] = field(default_factory=dict)
    dtype: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def component(self) -> str:
        """Return the name that the component's class has in both panels."""
        return self.config.component

    @property
    def tensors(self) -> dict[str, LazyTensor]:
        """Return leaves and buffers by the names that they have in the layout "torch"."""
        buffers = {f"{BUFFER_PREFIX}{name}": buffer for name, buffer in self.buffers.items()}
        return {**self.leaves, **buffers}

    def cast(self, code: str) -> Self:
        """Return the checkpoint with its floating parameters cast when they are read."""
        leaves = {name: cast_tensor(leaf, code) for name, leaf in self.leaves.items()}
        return replace(self, leaves=leaves)


@dataclass(frozen=True)
class Opened:
    """What lies at a path, before anything is understood of it.

    Attributes:
        path: What was opened.
        container: Its files and stored tensors.
        given: The configuration, {} where there is none.
        where: The file to name where the configuration is at fault.
        manifest: What was written with it, None if nothing of ours was.
    """

    path: Path
    container: Container
    given: Mapping[str, Any]
    where: str
    manifest: Mapping[str, Any] | None
