"""Reading safetensors files.

A file is the header's length (8 bytes, little endian), the header (JSON: name -> dtype, shape and
data_offsets) and the values, without a gap: https://github.com/huggingface/safetensors#format.
"""

from collections.abc import Mapping
from pathlib import Path

from ..container import Container
from ..errors import fault
from ..json import JsonReader
from ..limits import MOST_AXES, MOST_TENSORS, check_name, check_shape, check_twins
from ..signatures import identify
from ..source import FileSource
from ..tensor import Tensor

_LONGEST_HEADER = 100_000_000
ABSENT_FROM_FORMAT = "C128"


def read_safetensors(path: Path) -> Container:
    """Return the tensors of one file, from its header.

    Raises:
        CheckpointError: If the file is damaged, is something else, or holds what is not read.
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
    check_twins(path, tensors)
    return Container("safetensors", (path,), tensors, metadata)


def _read_header(source: FileSource) -> bytes:
    start = source.read(0, 512)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or start[8:9] != b"{" or length > source.size - 8:
        kind = identify(start, source.size)
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
    if dtype == ABSENT_FROM_FORMAT:
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
    """Refuse tensors that overlap, leave a hole, or do not end where the file does."""
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
