"""Which names and shapes a stored tensor may have, in every container."""

import math
import unicodedata
from collections.abc import Iterable
from os import PathLike

from ..spec import CheckpointError
from ..tensors.dtypes import item_size
from .errors import fault

MOST_TENSORS = 2_000_000
MOST_AXES = 32
_MOST_BYTES = 2**63 - 1


def check_name(name: str) -> None:
    """Refuse a name that could not be printed, or that a tool could take for a path.

    Raises:
        ValueError: If it is one; says which rule it breaks.
    """
    if not name:
        raise ValueError("the name is empty")
    if not name.isprintable():
        raise ValueError("the name has a control character or another unprintable one")
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
        raise ValueError("the name is a path that leaves its folder")


def check_shape(dtype: str, shape: tuple[int, ...]) -> int:
    """Refuse a shape that no array can have.

    Args:
        dtype: A code of ``diptych.tensors.dtypes``.
        shape: The sizes.

    Returns:
        The bytes of such a tensor.

    Raises:
        ValueError: If it is one, or the dtype is unknown; says which rule it breaks.
    """
    if len(shape) > MOST_AXES:
        raise ValueError(f"{len(shape)} axes are more than {MOST_AXES}")
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {list(shape)} has a negative size")
    width = item_size(dtype)
    if math.prod(size for size in shape if size) * width > _MOST_BYTES:
        raise ValueError(f"shape {list(shape)} does not fit into memory")
    return math.prod(shape) * width


def twin_faults(
    path: str | PathLike[str], names: Iterable[str], within: str = ""
) -> list[CheckpointError]:
    """Return a fault if two names print alike: equal once composed (NFC), but not the same.

    Args:
        path: The file that holds them.
        names: The names.
        within: The path of the dictionary that they are in.
    """
    composed: dict[str, str] = {}
    for name in names:
        if not name.isascii():
            form = unicodedata.normalize("NFC", name)
            if composed.setdefault(form, name) != name:
                cause = f"the same name as {composed[form]!a} in another spelling"
                return [fault(path, cause, f"{within}.{name}" if within else name)]
    return []


def check_twins(path: str | PathLike[str], names: Iterable[str], within: str = "") -> None:
    """Raise the CheckpointError of ``twin_faults``, if there is one."""
    for found in twin_faults(path, names, within):
        raise found
