"""Reading and writing safetensors files.

A file is the header's length (8 bytes, little endian), the header (JSON: name -> dtype, shape and
data_offsets) and the values, without a gap: https://github.com/huggingface/safetensors#format.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..tensors.dtypes import item_size
from .container import Container
from .fault import fault
from .names import MOST_AXES, MOST_TENSORS, check_name, check_shape, find_twins
from .output import OutputFile, Planned, planned_arrays, to_bytes
from .recognise import recognise
from .source import FileSource
from .strict_json import JsonReader
from .tensor import Tensor

SUFFIX = ".safetensors"
_LONGEST_HEADER = 100_000_000
_ABSENT_FROM_FORMAT = "C128"


def read_safetensors(path: Path) -> Container:
    """The tensors of one file, from its header.

    Raises:
        CheckpointError: The file is damaged, is something else, or holds what is not read.
    """
    source = FileSource(path)
    header_bytes = _read_header(source)
    start = 8 + len(header_bytes)
    tensors: dict[str, Tensor] = {}
    metadata: dict[str, str] = {}
    key = None
    try:
        header = JsonReader(header_bytes.decode())
        for key in header.members():
            if key == "__metadata__":
                metadata = _read_metadata(header)
            else:
                tensors[key] = _read_entry(header, key, source, start)
                if len(tensors) > MOST_TENSORS:
                    raise ValueError(f"more than {MOST_TENSORS} tensors")
            key = None
        header.end()
    except ValueError as error:
        raise fault(path, f"header: {error}" if key is None else str(error), key) from error
    _check_layout(source, start, tensors)
    twins = find_twins(tensors)
    if twins is not None:
        raise fault(path, f"the same name as {twins[0]!a} in another spelling", twins[1])
    return Container("safetensors", (path,), tensors, metadata)


def write_safetensors(
    path: Path,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    metadata: Mapping[str, str],
) -> None:
    """Writes one file, one tensor in memory at a time, and syncs it.

    Args:
        path: The file, which must not exist.
        plan: Name, dtype and shape of every tensor.
        arrays: Name and values of every tensor, in the order of ``plan``.
        metadata: Texts for the header; "format" must be among them, since loaders ask for it.

    Raises:
        ValueError: The format has no such dtype, "format" is missing, or the arrays are not as
            planned.
        OSError: The disk.
    """
    if "format" not in metadata:
        raise ValueError('metadata must have "format", since loaders ask for it')
    for planned in plan:
        if planned.dtype == _ABSENT_FROM_FORMAT:
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


def _read_header(source: FileSource) -> bytes:
    start = source.read(0, 512)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or start[8:9] != b"{" or length > source.size - 8:
        kind = recognise(start, source.size)
        if kind is not None:
            raise fault(source.path, f"is {kind}")
    if len(start) < 8:
        raise fault(source.path, f"truncated: {source.size} bytes are no safetensors file")
    if length > _LONGEST_HEADER:
        raise fault(source.path, f"corrupt: a header of {length} bytes, over {_LONGEST_HEADER}")
    if length > source.size - 8:
        cause = f"truncated: a header of {length} bytes in a file of {source.size}"
        raise fault(source.path, cause)
    if start[8:9] != b"{":
        raise fault(source.path, "corrupt: the header does not begin with '{'")
    return source.read(8, length)


def _read_metadata(header: JsonReader) -> dict[str, str]:
    if header.next_is("null"):
        header.skip()
        return {}
    metadata = {}
    for key in header.members():
        metadata[key] = header.string()
        # A lone half of a surrogate pair is valid in JSON, but is no text that can be written.
        (key + metadata[key]).encode()
    return metadata


def _read_entry(header: JsonReader, name: str, source: FileSource, start: int) -> Tensor:
    check_name(name)
    dtype, shape, offsets = None, None, None
    for entry_key in header.members():
        if entry_key == "dtype":
            dtype = header.string()
        elif entry_key == "shape":
            shape = _read_integers(header, MOST_AXES)
        elif entry_key == "data_offsets":
            offsets = _read_integers(header, 2)
        else:
            raise ValueError(f"unknown field {entry_key!r}")
    if dtype is None or shape is None or offsets is None or len(offsets) != 2:
        raise ValueError("needs dtype, shape and two data_offsets")
    if dtype == _ABSENT_FROM_FORMAT:
        raise ValueError(f"safetensors has no dtype {dtype}")
    nbytes = check_shape(dtype, shape)
    begin, end = offsets
    if begin < 0 or end - begin != nbytes:
        raise ValueError(f"{dtype} {list(shape)} takes {nbytes} bytes, not those of {[begin, end]}")
    return Tensor(name, dtype, shape, source, start + begin)


def _read_integers(header: JsonReader, most: int) -> tuple[int, ...]:
    integers: list[int] = []
    for _ in header.items():
        if len(integers) == most:
            raise ValueError(f"more than {most} numbers in a list")
        integers.append(header.integer())
    return tuple(integers)


def _check_layout(source: FileSource, start: int, tensors: Mapping[str, Tensor]) -> None:
    """Refuses tensors that overlap, leave a hole, or do not end where the file does."""
    end = start
    for tensor in sorted(tensors.values(), key=lambda each: (each.position, each.nbytes)):
        if tensor.position != end:
            relation = "overlaps the tensor before it" if tensor.position < end else "leaves a hole"
            raise fault(source.path, f"corrupt: its data {relation}", tensor.name)
        end += tensor.nbytes
    if end > source.size:
        raise fault(source.path, f"truncated: {end} bytes promised, {source.size} there")
    if end < source.size:
        raise fault(source.path, f"corrupt: {source.size - end} bytes behind the last tensor")
