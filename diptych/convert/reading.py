"""Opening a checkpoint: its container, its configuration, its manifest, then its layout."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..families import Family
from ..formats.container import Container
from ..formats.find import find_container
from ..formats.json import read_json
from ..formats.paths import contained
from ..spec.errors import CheckpointError
from .checkpoint import Checkpoint, Opened, ReadOptions
from .companions import find_companions
from .layouts.read_family import read_family
from .layouts.read_panel import is_component, read_panel
from .manifest import MANIFEST, read_manifest

CONFIGS = ("config.json", "params.json")
"""Names of a folder's configuration, the usual first; Meta writes params.json."""


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
    return read_checkpoint(src, ReadOptions(family, config, settings or {}, key, ignore_settings))


def read_checkpoint(src: str | Path, options: ReadOptions) -> Checkpoint:
    """Return a checkpoint; as ``open_checkpoint``."""
    path = Path(src)
    folder = path if path.is_dir() else None
    container = open_container(path, options)
    given, where = _configuration(folder, options.config, container)
    manifest = read_manifest(folder) if folder and (folder / MANIFEST).exists() else None
    companions = find_companions(folder, container) if folder else {}
    opened = Opened(path, container, given, where, manifest)
    if not is_component(given):
        checkpoint = read_family(opened, options)
    elif options.settings or options.ignore_settings:
        raise CheckpointError(f"{where}: holds the component's config: no setting can be given")
    else:
        checkpoint = _with_source(read_panel(opened, options.family), folder, manifest or {})
    dtype = manifest.get("dtype") if manifest else None
    return replace(checkpoint, companions=companions, dtype=dtype)


def open_container(src: str | Path, options: ReadOptions) -> Container:
    """Return the stored tensors of a checkpoint, those of one dictionary where that is asked for.

    Raises:
        CheckpointError: If there is no checkpoint, it is damaged, or it is ambiguous.
    """
    container = find_container(Path(src))
    return container if options.key is None else container.select(options.key)


def has_configuration(src: str | Path) -> bool:
    """Return whether a configuration lies beside the weights."""
    return any((Path(src) / name).exists() for name in CONFIGS)


def _with_source(
    checkpoint: Checkpoint, folder: Path | None, manifest: Mapping[str, Any]
) -> Checkpoint:
    """Return a checkpoint of ours with the configuration of the family that it came from.

    Taken as of another family, it keeps neither that nor the buffers.
    """
    came_from, family = manifest.get("family"), checkpoint.family
    if came_from and family and family.name != came_from:
        left_out = ", ".join(checkpoint.buffers) or "nothing"
        note = f"from {came_from}, taken as {family.name}: {left_out} left out"
        return replace(checkpoint, buffers={}, notes=(*checkpoint.notes, note))
    if folder is None or not (folder / "source_config.json").exists():
        return checkpoint
    source = contained(folder, "source_config.json", folder)
    return replace(checkpoint, source_config=read_json(source))


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
