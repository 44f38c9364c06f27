"""A checkpoint resolved: container, layout, family, config, and every tensor accounted for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ..families import Family, Recreated, Variants
from ..families.settings import read_json
from ..formats import Container, contained, find_container
from ..spec import Config
from ..spec.errors import CheckpointError
from .companions import find_companions
from .layouts.foreign import read_foreign
from .layouts.leaf import LeafTensor, cast_leaf
from .layouts.native import is_native, read_native
from .layouts.panels import BUFFER_PREFIX
from .manifest import MANIFEST, read_manifest

CONFIGS = ("config.json", "params.json")
"""Names of a folder's configuration, the usual first; Meta writes params.json."""


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
    leaves: Mapping[str, LeafTensor]
    buffers: Mapping[str, LeafTensor] = field(default_factory=dict)
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
    def tensors(self) -> dict[str, LeafTensor]:
        """Return leaves and buffers by the names that they have in the layout "torch"."""
        buffers = {f"{BUFFER_PREFIX}{name}": buffer for name, buffer in self.buffers.items()}
        return {**self.leaves, **buffers}

    def cast(self, code: str) -> Self:
        """Return the checkpoint with its floating parameters cast when they are read."""
        leaves = {name: cast_leaf(leaf, code) for name, leaf in self.leaves.items()}
        return replace(self, leaves=leaves)


def open_checkpoint(
    src: str | Path,
    *,
    family: str | Family | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    key: str | None = None,
    ignore_settings: Collection[str] = (),
) -> Checkpoint:
    """Return a checkpoint, after accounting for every tensor from headers.

    Args:
        src: A folder or file.
        family: The family, where neither config nor names tell; a name or a ``Family``. For a
            panel's own layout, the family that "hf" will mean, where no manifest says it.
        config: A config.json, or its content, used in place of the folder's own.
        settings: Single settings that complete or replace those of the configuration.
        key: Path of the dictionary to read inside a training file.
        ignore_settings: Settings to accept although they are not understood.

    Raises:
        CheckpointError: If the checkpoint is damaged, ambiguous, or not wholly understood; its
            ``faults`` lists all causes.
    """
    path = Path(src)
    container = find_container(path)
    if key is not None:
        container = container.select(key)
    folder = path if path.is_dir() else None
    given, where = _configuration(folder, config, container)
    manifest = read_manifest(folder) if folder and (folder / MANIFEST).exists() else None
    companions = find_companions(folder, container) if folder else {}
    if is_native(given):
        if settings or ignore_settings:
            raise CheckpointError(f"{where}: holds the component's config: no setting can be given")
        parts = read_native(container, given, where, manifest, family)
        came_from = manifest.get("family") if manifest else None
        if came_from and parts["family"] and parts["family"].name != came_from:
            left_out = ", ".join(parts["buffers"]) or "nothing"
            parts["notes"] += (
                f"from {came_from}, taken as {parts['family'].name}: {left_out} left out",
            )
            parts["buffers"] = {}
        elif folder and (folder / "source_config.json").exists():
            source = contained(folder, "source_config.json", folder)
            parts["source_config"] = read_json(source)
    else:
        parts = read_foreign(
            container,
            given,
            where,
            family=family,
            settings=settings or {},
            ignored=ignore_settings,
            manifest=manifest,
        )
    parts.setdefault("container", container)
    dtype = manifest.get("dtype") if manifest else None
    return Checkpoint(path=path, companions=companions, dtype=dtype, **parts)


def has_configuration(src: str | Path) -> bool:
    """Return whether a configuration lies beside the weights."""
    return any((Path(src) / name).exists() for name in CONFIGS)


def _configuration(
    folder: Path | None, config: str | Path | Mapping[str, Any] | None, container: Container
) -> tuple[dict[str, Any], str]:
    """Return the configuration given, or {}, and the file to name where it is at fault."""
    if isinstance(config, Mapping):
        return dict(config), str(container.files[0])
    if config is not None:
        path = Path(config)
    else:
        names = [name for name in CONFIGS if folder is not None and (folder / name).exists()]
        if not names or folder is None:
            return {}, str(container.files[0])
        path = contained(folder, names[0], folder)
    return read_json(path), str(path)
