"""Which files a folder's index or its names may lead to."""

from os import PathLike
from pathlib import Path

from .errors import fault


def contained(folder: Path, name: str, said_by: str | PathLike[str]) -> Path:
    """Return the path of a file in a folder, once it is sure not to lead out of it.

    The files of a hub cache (``snapshots/REVISION/``) are links into the sibling folder ``blobs``
    of the same entry, which is as good as the folder itself.

    Args:
        folder: The folder.
        name: The file's name in it, no path.
        said_by: The file that gives the name, for the message.

    Returns:
        The path ``folder / name``, whether or not such a file exists.

    Raises:
        CheckpointError: If the name is a path, or the file is a link that leads elsewhere.
    """
    if name in ("", ".", "..") or any(char in name for char in "/\\:\0"):
        raise fault(said_by, "is not the plain name of a file in the same folder", name)
    path = folder / name
    try:
        target = path.resolve()
        home = folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise fault(said_by, f"cannot be followed: {error}", name) from error
    if target.parent != home and target.parent not in _blob_folders(home):
        raise fault(said_by, f"leads out of its folder, to {target}", name)
    return path


def _blob_folders(home: Path) -> list[Path]:
    parents = [home, *home.parents]
    return [
        parent.parent.parent / "blobs" for parent in parents if parent.parent.name == "snapshots"
    ]
