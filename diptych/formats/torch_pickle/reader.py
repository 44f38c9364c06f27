"""Reading what ``torch.save`` wrote, without torch and without unpickling.

Since torch 1.6 such a file is a zip archive: ``NAME/data.pkl`` is a pickle in which each storage is
a persistent id, and ``NAME/data/KEY`` has that storage's bytes.
"""

from pathlib import Path

from ...spec import CheckpointError
from ..container import Branch, Container
from ..errors import fault
from ..signatures import identify, is_safetensors
from ..source import FileSource, Source
from .globals import storage_of
from .legacy import read_legacy
from .machine import PickleMachine, PickleStream
from .tree import PickleTree
from .values import Storage
from .zip_reader import Record, read_records

_LONGEST_PICKLE = 1 << 26
_MOST_STEPS = 600_000
_MOST_VISITS = 250_000
_STEPS_PER_STORAGE = 64


def read_torch_pickle(path: Path) -> Container:
    """Return the tensors of one file, from its pickle.

    Raises:
        CheckpointError: If the file is damaged, is something else, or holds what is not read.
    """
    source = FileSource(path)
    start = source.read(0, 512)
    try:
        if start.startswith(b"PK\x03\x04"):
            branches = _read_zip(source)
        elif start.startswith(b"\x80") and not is_safetensors(start, source.size):
            branches = read_legacy(source)
        else:
            kind = identify(start, source.size)
            raise ValueError(f"is {kind}" if kind else "is neither a zip archive nor a pickle")
    except CheckpointError:
        raise
    except ValueError as error:
        raise fault(path, str(error)) from error
    container = Container("pt", (path,), {}, tree=branches)
    with_tensors = [key for key, branch in branches.items() if branch.tensors]
    refused = [key for key, branch in branches.items() if branch.refused]
    if len(with_tensors) > 1:
        return container
    if not with_tensors and not refused and branches[""].others:
        raise fault(path, "holds no tensors")
    return container.select((with_tensors or refused or [""])[0])


def _read_zip(source: FileSource) -> dict[str, Branch]:
    records = read_records(source)
    prefix = _find_prefix(records)
    byte_order = b"little"
    if prefix + "byteorder" in records:
        byte_order = source.read(*records[prefix + "byteorder"])
    if byte_order not in (b"little", b"big"):
        raise ValueError("an unknown byte order")
    pickled = records[prefix + "data.pkl"]
    if pickled.size > _LONGEST_PICKLE:
        raise ValueError(f"a pickle of {pickled.size} bytes, over {_LONGEST_PICKLE}")

    def find_data(storage: Storage) -> tuple[Source, int, bool]:
        record = records.get(f"{prefix}data/{storage.key}")
        if record is None:
            raise ValueError(f"truncated: its storage {storage.key!r} is not in the archive")
        if record.size != storage.nbytes:
            sizes = f"{record.size} bytes in the archive, {storage.nbytes} in the pickle"
            raise ValueError(f"its storage {storage.key!r} has {sizes}")
        return source, record.position, byte_order == b"big"

    for_storages = _STEPS_PER_STORAGE * len(records)
    machine = PickleMachine(_MOST_STEPS + for_storages, storage_of)
    with source.opened() as file:
        stream = PickleStream(source, file, pickled.position, pickled.size)
        root = machine.run(stream)
    if stream.position != pickled.size:
        raise ValueError("bytes behind the end of its pickle")
    return PickleTree(source.path, find_data, _MOST_VISITS + for_storages).read(root)


def _find_prefix(records: dict[str, Record]) -> str:
    """Return the folder in the archive that everything lies in, with its slash."""
    if any(name.endswith("/constants.pkl") or "/code/" in name for name in records):
        raise ValueError("is a TorchScript archive: save the module's state_dict() instead")
    if any(name.endswith(".npy") for name in records):
        raise ValueError("is a numpy .npz archive, which is not read")
    prefixes = [name.removesuffix("data.pkl") for name in records if name.endswith("/data.pkl")]
    prefixes = [prefix for prefix in prefixes if prefix.count("/") == 1]
    if len(prefixes) != 1:
        raise ValueError("is a zip archive that torch.save did not write: it lacks one data.pkl")
    for name in records:
        if not name.startswith(prefixes[0]):
            raise ValueError(f"a foreign member in its archive: {name!r}")
    return prefixes[0]
