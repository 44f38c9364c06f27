"""Writing safetensors files, whose form ``reader`` describes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...tensors.dtypes import item_size
from ..limits import check_shape
from ..output import OutputFile, Planned, planned_arrays, to_bytes
from .reader import ABSENT_FROM_FORMAT


def write_safetensors(
    path: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    metadata: Mapping[str, str],
) -> None:
    """Write one file, one tensor in memory at a time.

    Args:
        path: The file, which must not exist.
        plan: Name, dtype and shape of every tensor.
        arrays: Name and values of every tensor, in the order of ``plan``.
        metadata: Texts for the header; "format" must be among them, since loaders ask for it.

    Raises:
        ValueError: If the format has no such dtype, "format" is missing, or the arrays are not as
            planned.
        OSError: If the disk fails.
    """
    if "format" not in metadata:
        raise ValueError('metadata must have "format", since loaders ask for it')
    for planned in plan:
        if planned.dtype == ABSENT_FROM_FORMAT:
            raise ValueError(f"{planned.name}: safetensors has no dtype {planned.dtype}")
    # The widest elements first, so that every tensor is aligned, as loaders expect.
    ordered = sorted(plan, key=lambda planned: -item_size(planned.dtype))
    entries: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    places: dict[str, int] = {}
    end = 0
    for name, dtype, shape in ordered:
        places[name] = end
        end += check_shape(dtype, shape)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [places[name], end]}
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    with OutputFile(path) as file:
        file.write(len(header).to_bytes(8, "little") + header, 0)
        for planned, values in planned_arrays(plan, arrays):
            file.write(to_bytes(values), 8 + len(header) + places[planned.name])
