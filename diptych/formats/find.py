"""Finding the one checkpoint that a path means."""

import os
from dataclasses import replace
from pathlib import Path

from . import FORMATS
from .container import Container
from .errors import fault, printable
from .format import Format
from .paths import contained
from .shards import INDEX_SUFFIX
from .signatures import identify
from .source import FileSource

_UNREAD_SUFFIXES = (".h5",)


def find_container(path: Path) -> Container:
    """Return the tensors of a checkpoint, from headers only.

    Args:
        path: A file, an index of shards, or a folder, in which the first of ``FORMATS`` that has
            files there is read.

    Raises:
        CheckpointError: If there is no checkpoint, it is damaged, or it is ambiguous.
    """
    path = Path(path)
    if os.path.isdir(path):
        return _read_folder(path)
    name = path.name.removesuffix(INDEX_SUFFIX)
    for form in FORMATS.values():
        if name.endswith(form.suffixes):
            return form.open(path)
    source = FileSource(path)
    start = source.read(0, 512)
    for form in FORMATS.values():
        if form.sniff(start, source.size):
            return form.pick(form.reader()(path))
    kind = identify(start, source.size)
    raise fault(path, f"is {kind}" if kind else "is no checkpoint that is read")


def _read_folder(folder: Path) -> Container:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise fault(folder, f"cannot be listed: {error.strerror}") from error
    for form in FORMATS.values():
        chosen = _choose(folder, names, form)
        if chosen is None:
            continue
        container = form.open(contained(folder, chosen, folder))
        read = {path.name for path in container.files}
        left = [name for name in _weights(names) if name not in read]
        if left:
            shown = ", ".join(printable(name) for name in left)
            note = f"not read, beside {printable(chosen)}: {shown}"
            container = replace(container, notes=(*container.notes, note))
        return container
    for form in FORMATS.values():
        nested = form.open_subfolders(folder)
        if nested is not None:
            return nested
    suffixes = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
    raise fault(folder, f"holds no weights that are read ({suffixes})")


def _weights(names: list[str]) -> list[str]:
    """Return all names that are of weights, whatever their kind."""
    suffixes = tuple(suffix for form in FORMATS.values() for suffix in form.suffixes)
    bookkeeping = frozenset().union(*(form.bookkeeping for form in FORMATS.values()))
    return [
        name
        for name in names
        if name.endswith(suffixes + _UNREAD_SUFFIXES) and name not in bookkeeping
    ]


def _choose(folder: Path, names: list[str], form: Format) -> str | None:
    """Return the name of the file or index to read, None where there is none."""
    indices = [
        name
        for name in names
        if name.endswith(INDEX_SUFFIX) and name.removesuffix(INDEX_SUFFIX).endswith(form.suffixes)
    ]
    files = [
        name for name in names if name.endswith(form.suffixes) and name not in form.bookkeeping
    ]
    for index in indices:
        single = index.removesuffix(INDEX_SUFFIX)
        if single in files:
            raise fault(folder, f"holds both {single} and {index}: remove the one that is stale")
    for name in form.preferred:
        for candidate in (name, name + INDEX_SUFFIX):
            if candidate in names:
                return candidate
    candidates = indices or files
    if len(candidates) > 1:
        some = ", ".join(candidates[:5])
        raise fault(folder, f"several files could be meant: {some}: give the path of one")
    return candidates[0] if candidates else None
