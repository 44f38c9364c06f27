"""Folders of ``orbax.checkpoint.CheckpointManager``: steps, and the items of a step."""

import re
from pathlib import Path

from ..container import Branch, Container
from ..errors import fault, printable
from .files import CHECKPOINT_METADATA, list_files
from .metadata import METADATA
from .reader import UNFINISHED, read_item, select_only

_STEP = re.compile(r"(?:.*[_.-])?\d+")


def read_steps(folder: Path) -> Container | None:
    """Return the tensors of a step's folder, or of the one step in a manager's; None if neither.

    Several items of a step (``params``, ``state`` ...) become branches of that name.

    Raises:
        CheckpointError: If there are several steps, or an item is damaged.
    """
    if _is_step(folder):
        return _read_step(folder, ())
    folders = _folders(folder)
    steps = [path for path in folders if _STEP.fullmatch(path.name) and _is_saved(path)]
    unfinished = [path for path in folders if UNFINISHED in path.name]
    if len(steps) > 1:
        names = ", ".join(printable(path.name) for path in steps)
        raise fault(folder, f"several steps: {names}: give the path of one")
    if not steps and unfinished:
        raise fault(unfinished[0], "is a save of Orbax that was not finished")
    if not steps:
        return None
    return _read_step(steps[0], tuple(unfinished))


def _read_step(step: Path, unfinished: tuple[Path, ...]) -> Container:
    items = [step] if _is_item(step) else [path for path in _folders(step) if _is_item(path)]
    others = [path for path in _folders(step) if path not in items and step not in items]
    if not items:
        raise fault(step, "is a step of Orbax without an item that holds arrays")
    containers = {item.name: read_item(item) for item in items}
    tree: dict[str, Branch] = {}
    for name, container in containers.items():
        prefix = name if len(items) > 1 else ""
        for key, branch in container.tree.items():
            tree[".".join(filter(None, (prefix, key)))] = branch
    notes = [note for container in containers.values() for note in container.notes]
    left = [*others, *unfinished]
    if left:
        names = ", ".join(printable(path.name) for path in left)
        notes.append(f"not read, beside {', '.join(containers)}: {names}")
    files = [path for container in containers.values() for path in container.files]
    for path in (step, *unfinished):
        files += [file for file in list_files(path).values() if file not in files]
    return select_only(Container("orbax", tuple(files), {}, tree=tree, notes=tuple(notes)))


def _is_saved(folder: Path) -> bool:
    return _is_item(folder) or _is_step(folder)


def _is_step(folder: Path) -> bool:
    if (folder / CHECKPOINT_METADATA).is_file():
        return True
    return any(_is_item(path) and not _STEP.fullmatch(path.name) for path in _folders(folder))


def _is_item(folder: Path) -> bool:
    return (folder / METADATA).is_file()


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        raise fault(folder, f"cannot be listed: {error.strerror}") from error
