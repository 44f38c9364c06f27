"""Checkpoints of several files with an index that says which tensor is in which."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..spec import CheckpointError
from .container import Container
from .errors import fault
from .json import JsonReader, render_json
from .limits import twin_faults
from .output import OutputFile, Planned
from .paths import contained
from .source import FileSource
from .tensor import Tensor

INDEX_SUFFIX = ".index.json"
"""The ending of an index of shards, behind that of the files that it names."""

_LONGEST_INDEX = 1 << 27


def read_sharded(
    index: Path, read_file: Callable[[Path], Container], separator: str = "."
) -> Container:
    """Return the tensors of all files that an index names.

    Args:
        index: The index, JSON with ``weight_map`` (tensor name -> file name beside the index).
        read_file: Reads one file.
        separator: What the index has between the parts of a name, where files have a dot.

    Raises:
        CheckpointError: If the index or a file is damaged, or they contradict each other.
    """
    weight_map, total_size = _read_index(index)
    if separator != ".":
        weight_map = _with_dots(index, weight_map, separator)
    names = sorted(set(weight_map.values()))
    paths = {name: contained(index.parent, name, index) for name in names}
    missing = [name for name, path in paths.items() if not os.path.exists(path)]
    if missing:
        raise fault(index, f"missing shards: {', '.join(missing)}")
    containers = {name: read_file(path) for name, path in paths.items()}
    tensors, faults = _join(index, weight_map, containers)
    if faults:
        raise CheckpointError(str(faults[0]), tuple(str(each) for each in faults))
    kind = containers[names[0]].kind
    notes = []
    found = sum(tensor.nbytes for tensor in tensors.values())
    if total_size not in (None, found):
        cause = f"total_size is {total_size}, but the tensors have {found} bytes"
        if kind == "safetensors":
            raise fault(index, f"{cause}: a shard is stale, or the number must be corrected")
        # The writers of sharded pickles counted tied tensors once or twice, and booleans as bits.
        notes.append(cause)
    metadata: dict[str, str] = {}
    for container in containers.values():
        metadata |= container.metadata
    files = (index, *paths.values())
    return Container(kind, files, tensors, metadata, notes=tuple(notes))


def write_sharded(
    folder: Path,
    file_name: str,
    plan: Sequence[Planned],
    arrays: Iterable[tuple[str, np.ndarray]],
    max_shard_size: int | None,
    write_file: Callable[[Path, Sequence[Planned], Iterable[tuple[str, np.ndarray]]], None],
    separator: str = ".",
) -> tuple[str, ...]:
    """Write one file, or several with an index when one would be larger than allowed.

    Args:
        folder: Where to write; the files must not exist.
        file_name: The name of a single file, such as "model.safetensors".
        plan: Name, dtype and shape of every tensor, in the order of ``arrays``.
        arrays: Name and values of every tensor.
        max_shard_size: The most bytes of tensors in a file; a larger tensor has one of its own.
        write_file: Writes one file.
        separator: What the index gets between the parts of a name.

    Returns:
        The names of the files written.
    """
    shards = split_plan(plan, max_shard_size)
    remaining = iter(arrays)
    if len(shards) == 1:
        write_file(folder / file_name, shards[0], remaining)
        return (file_name,)
    stem, suffix = Path(file_name).stem, Path(file_name).suffix
    weight_map: dict[str, str] = {}
    names = []
    for number, shard in enumerate(shards, start=1):
        names.append(f"{stem}-{number:05d}-of-{len(shards):05d}{suffix}")
        write_file(folder / names[-1], shard, remaining)
        keys = (planned.name.replace(".", separator) for planned in shard)
        weight_map |= dict.fromkeys(keys, names[-1])
    total = sum(planned.nbytes for planned in plan)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    names.append(file_name + INDEX_SUFFIX)
    with OutputFile(folder / names[-1]) as file:
        file.write(render_json(index), 0)
    return tuple(names)


def split_plan(plan: Sequence[Planned], max_shard_size: int | None) -> list[list[Planned]]:
    """Return the plan cut, in its order, into shards of at most ``max_shard_size`` bytes."""
    shards: list[list[Planned]] = [[]]
    size = 0
    for planned in plan:
        if max_shard_size is not None and shards[-1] and size + planned.nbytes > max_shard_size:
            shards.append([])
            size = 0
        shards[-1].append(planned)
        size += planned.nbytes
    return shards


def _read_index(index: Path) -> tuple[dict[str, str], int | None]:
    source = FileSource(index)
    if source.size > _LONGEST_INDEX:
        raise fault(index, f"an index of {source.size} bytes, over {_LONGEST_INDEX}")
    text = source.read(0, source.size)
    weight_map: dict[str, str] | None = None
    total_size = None
    try:
        reader = JsonReader(text.decode())
        for key in reader.members():
            if key == "weight_map":
                weight_map = {name: reader.string() for name in reader.members()}
            elif key == "metadata":
                total_size = _read_total_size(reader)
            else:
                reader.skip()
        reader.end()
    except ValueError as error:
        raise fault(index, f"is no index of shards: {error}") from error
    if not weight_map:
        raise fault(index, "is no index of shards: it has no weight_map, or an empty one")
    return weight_map, total_size


def _with_dots(index: Path, weight_map: Mapping[str, str], separator: str) -> dict[str, str]:
    dotted: dict[str, str] = {}
    for name, file in weight_map.items():
        plain = name.replace(separator, ".")
        if plain in dotted:
            raise fault(index, "two entries have this name", plain)
        dotted[plain] = file
    return dotted


def _read_total_size(reader: JsonReader) -> int | None:
    total_size = None
    for key in reader.members():
        # Some writers stored a rounded float here; only an integer is a promise.
        if key == "total_size" and reader.next_is_integer():
            total_size = reader.integer()
        else:
            reader.skip()
    return total_size


def _join(
    index: Path, weight_map: Mapping[str, str], containers: Mapping[str, Container]
) -> tuple[dict[str, Tensor], list[CheckpointError]]:
    holders: dict[str, list[str]] = {name: [] for name in weight_map}
    for shard, container in containers.items():
        for name in container.tensors:
            holders.setdefault(name, []).append(shard)
    tensors: dict[str, Tensor] = {}
    faults = []
    for name, found in holders.items():
        if not found:
            cause = f"is not in shard {weight_map[name]}, as the index says"
        elif len(found) > 1:
            cause = f"is in several shards: {', '.join(found)}"
        elif name not in weight_map:
            cause = f"is in shard {found[0]}, but not in the index"
        elif found[0] != weight_map[name]:
            cause = f"is in shard {found[0]}, but the index says {weight_map[name]}"
        else:
            tensors[name] = containers[found[0]].tensors[name]
            continue
        faults.append(fault(index, cause, name))
    return tensors, faults + twin_faults(index, holders)
