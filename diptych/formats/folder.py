"""Which of a folder's files hold its weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .container import Container
from .containment import contained
from .fault import fault, printable
from .shards import INDEX_SUFFIX, read_sharded

_UNREAD_SUFFIXES = (".h5",)


@dataclass(frozen=True)
class Format:
    """How the weights of one kind of container are named and read.

    Args:
        kind: The container's kind.
        suffixes: The endings of its files.
        preferred: The names that weights usually have, best first.
        bookkeeping: Names with such an ending that are no weights.
        read: Reads one file.
        separator: What an index has between the parts of a name.
        pick: Takes the model out of all that was read.
    """

    kind: str
    suffixes: tuple[str, ...]
    preferred: tuple[str, ...]
    bookkeeping: frozenset[str]
    read: Callable[[Path], Container]
    separator: str = "."
    pick: Callable[[Container], Container] = lambda container: container

    def open(self, path: Path) -> Container:
        """The container of a file, or of an index and its files."""
        if path.name.endswith(INDEX_SUFFIX):
            return self.pick(read_sharded(path, self.read, self.separator))
        return self.pick(self.read(path))


def read_folder(
    folder: Path,
    formats: tuple[Format, ...],
    read_nested: Callable[[Path], Container | None],
) -> Container:
    """The container in a folder, of the first format that has files there.

    Args:
        folder: The folder.
        formats: The formats, best first.
        read_nested: Reads what lies in subfolders, where no format has files; None for nothing.

    Raises:
        CheckpointError: There is none, or it is not clear which files belong together.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise fault(folder, f"cannot be listed: {error.strerror}") from error
    for form in formats:
        chosen = _choose(folder, names, form)
        if chosen is None:
            continue
        path = contained(folder, chosen, folder)
        container = form.open(path)
        read = {path.name for path in container.files}
        left = [name for name in _weights(names, formats) if name not in read]
        if left:
            shown = ", ".join(printable(name) for name in left)
            note = f"not read, beside {printable(chosen)}: {shown}"
            container = replace(container, notes=(*container.notes, note))
        return container
    nested = read_nested(folder)
    if nested is not None:
        return nested
    suffixes = ", ".join(suffix for form in formats for suffix in form.suffixes)
    raise fault(folder, f"holds no weights that are read ({suffixes})")


def _weights(names: list[str], formats: tuple[Format, ...]) -> list[str]:
    suffixes = tuple(suffix for form in formats for suffix in form.suffixes) + _UNREAD_SUFFIXES
    bookkeeping = frozenset().union(*(form.bookkeeping for form in formats))
    return [name for name in names if name.endswith(suffixes) and name not in bookkeeping]


def _choose(folder: Path, names: list[str], form: Format) -> str | None:
    """The name of the file or index to read."""
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
