"""Writing what ``orbax.checkpoint`` restores, without Orbax.

Every array is one zarr chunk, uncompressed, in a folder of its own: the layout that Orbax writes
with ``use_ocdbt=False``. Its databases hold random names, so that no two would be alike.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..limits import check_name
from ..output import OutputFile, Planned, planned_arrays, to_bytes
from .files import CHECKPOINT_METADATA, is_own
from .metadata import METADATA, render_metadata
from .zarr import render_zarr2

_LONGEST_NAME = 255
_CHECKPOINT: dict[str, object] = {
    "item_handlers": None,
    "metrics": {},
    "performance_metrics": {},
    "init_timestamp_nsecs": None,
    "commit_timestamp_nsecs": None,
    "custom_metadata": {},
}


def write_orbax(
    folder: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    *,
    is_state: bool,
) -> tuple[str, ...]:
    """Write an item, one tensor in memory at a time, a dot in a name parting its keys.

    Args:
        folder: Where to write.
        plan: Name, dtype and shape of every tensor.
        arrays: Name and values of every tensor, in the order of ``plan``.
        is_state: Whether each array becomes the ``value`` of a variable, as in an ``nnx.State``.

    Returns:
        The paths of the files written, in the folder.

    Raises:
        ValueError: If a name cannot be a path of keys, or the arrays are not as planned.
        OSError: If the disk fails.
    """
    paths = {planned.name: _keys(planned.name, is_state) for planned in plan}
    _check_paths(paths)
    _write(folder / METADATA, render_metadata(list(paths.values())))
    _write(folder / CHECKPOINT_METADATA, json.dumps(_CHECKPOINT).encode())
    written = [METADATA, CHECKPOINT_METADATA]
    for planned, values in planned_arrays(plan, arrays):
        name = ".".join(paths[planned.name])
        (folder / name).mkdir()
        _write(folder / name / ".zarray", render_zarr2(planned.dtype, planned.shape))
        written.append(f"{name}/.zarray")
        if values.size:
            chunk = ".".join("0" * values.ndim) or "0"
            _write(folder / name / chunk, to_bytes(values))
            written.append(f"{name}/{chunk}")
    return tuple(written)


def _keys(name: str, is_state: bool) -> tuple[str, ...]:
    check_name(name)
    keys = (*name.split("."), *(("value",) if is_state else ()))
    if "" in keys or "/" in name or "\\" in name:
        raise ValueError(f"{name}: Orbax can have no key of this name")
    if len(".".join(keys).encode()) > _LONGEST_NAME:
        raise ValueError(f"{name}: longer than a file's name can be")
    if is_own(".".join(keys)):
        raise ValueError(f"{name}: Orbax has a file of this name")
    return keys


def _check_paths(paths: dict[str, tuple[str, ...]]) -> None:
    found = set(paths.values())
    for name, keys in paths.items():
        for end in range(1, len(keys)):
            if keys[:end] in found:
                raise ValueError(f"{name}: {'.'.join(keys[:end])} is a tensor, no folder of names")


def _write(path: Path, data: bytes | memoryview) -> None:
    with OutputFile(path) as file:
        file.write(data, 0)
