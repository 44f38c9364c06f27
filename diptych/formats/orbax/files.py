"""Which files of a folder are Orbax's, and whether each is what it seems."""

import os
from collections.abc import Collection
from pathlib import Path

from ..errors import fault
from ..paths import contained
from .metadata import METADATA

MANIFEST = "manifest.ocdbt"
CHECKPOINT_METADATA = "_CHECKPOINT_METADATA"
_FILES = (
    METADATA,
    MANIFEST,
    CHECKPOINT_METADATA,
    "_sharding",
    "_strings.json",
    "commit_success.txt",
)
_FOLDERS = ("array_metadatas", "d")
_PROCESS_FOLDER = "ocdbt.process_"


def list_files(folder: Path) -> dict[str, Path]:
    """Return every file in a folder and below, by its path there; a linked folder counts as a file.

    Raises:
        CheckpointError: If one of the folders cannot be listed.
    """
    found: dict[str, Path] = {}

    def refuse(error: OSError) -> None:
        raise fault(error.filename or folder, f"cannot be listed: {error.strerror}") from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in sorted((*names, *links)):
            path = Path(root, name)
            found[path.relative_to(folder).as_posix()] = path
    return found


def own_files(listed: dict[str, Path], arrays: Collection[str]) -> dict[str, Path]:
    """Return those of an item's files that Orbax wrote, by their path in it.

    Args:
        listed: All files of the item.
        arrays: Names of arrays, each of which may have a folder.

    Raises:
        CheckpointError: If one is no regular file, or a link that leads elsewhere.
    """
    files = {name: path for name, path in listed.items() if is_own(name, arrays)}
    for path in files.values():
        contained(path.parent, path.name, path.parent)
        if not path.is_file():  # a named pipe would be waited for
            raise fault(path, "is not a regular file")
    return files


def is_own(name: str, arrays: Collection[str] = ()) -> bool:
    """Return whether a path in an item's folder is one of Orbax's own files, or of an array."""
    parts = name.split("/")
    if parts[0] in _FOLDERS or parts[0].startswith(_PROCESS_FOLDER) or name in _FILES:
        return True
    return any("/".join(parts[:end]) in arrays for end in range(1, len(parts) + 1))
