"""The one line that says which file is at fault, where, and why."""

from os import PathLike

from ..spec import CheckpointError

_LONGEST_NAME = 200
_LONGEST_LINE = 4096


def printable(text: str, longest: int | None = _LONGEST_NAME) -> str:
    """Return a text that steers no terminal, cut where it is longer than ``longest``."""
    if longest is not None and len(text) > longest:
        text = text[:longest] + "..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def fault(path: str | PathLike[str], cause: str, key: str | None = None) -> CheckpointError:
    """Return the error ``FILE: KEY: CAUSE`` for a file that cannot be read.

    Args:
        path: The file.
        cause: What is wrong and, where there is something to do, what to do.
        key: The tensor or entry at fault, if it is one.
    """
    parts = [printable(str(path), _LONGEST_LINE), printable(cause, _LONGEST_LINE)]
    if key is not None:
        parts.insert(1, printable(key))
    return CheckpointError(": ".join(parts))
