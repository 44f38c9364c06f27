"""The one line that says which file is at fault, where, and why."""

from os import PathLike

from diptych.spec import CheckpointError

_LONGEST = 200


def printable(text: str) -> str:
    """The text with every unprintable character escaped, and cut where it is very long."""
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def fault(path: str | PathLike[str], cause: str, key: str | None = None) -> CheckpointError:
    """The error ``FILE: KEY: CAUSE`` for a file that cannot be read.

    Args:
        path: The file.
        cause: What is wrong and, where there is something to do, what to do.
        key: The tensor or entry at fault, if it is one.
    """
    parts = [str(path), cause] if key is None else [str(path), key, cause]
    return CheckpointError(": ".join(printable(part) for part in parts))
