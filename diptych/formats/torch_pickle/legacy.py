"""Reading what ``torch.save`` wrote before torch 1.6, or with the new zip format switched off.

Five pickles one after another (a magic number, a version, the machine, the object, the keys of its
storages), then each storage: its number of elements (8 bytes, little endian) and its bytes.
"""

from ..container import Branch
from ..source import FileSource, Source
from .globals import storage_of
from .machine import PickleMachine, PickleStream
from .tree import PickleTree
from .values import Dictionary, Opaque, Storage

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PICKLED_MAGIC_NUMBER = b"\x8a\x0a" + _MAGIC_NUMBER.to_bytes(10, "little") + b"."
_VERSION = 1001
_MOST_STEPS = 600_000
_MOST_VISITS = 250_000
_BYTES_PER_STEP = 1024


def read_legacy(source: FileSource) -> dict[str, Branch]:
    """Return the branches of a file.

    Raises:
        ValueError: If the file is damaged or another pickle.
    """
    most_steps = _MOST_STEPS + source.size // _BYTES_PER_STEP
    storages: dict[str, Storage] = {}

    def find_storage(persistent_id: object) -> Storage | Opaque:
        match persistent_id:
            case (*plain_id, None) if len(plain_id) == 5:
                persistent_id = tuple(plain_id)
            case ("storage", _, _, _, _, _):
                raise ValueError("is a torch file with views of storages: load and save it again")
        storage = storage_of(persistent_id)
        if isinstance(storage, Opaque) or storages.setdefault(storage.key, storage) == storage:
            return storage
        raise ValueError(f"storage {storage.key!r} with two sizes or dtypes")

    if _PICKLED_MAGIC_NUMBER not in source.read(0, 32):
        raise ValueError("is a pickle that torch.save did not write: its objects are not built")
    with source.opened() as file:
        stream = PickleStream(source, file, 0, source.size)
        if PickleMachine(8, find_storage).run(stream) != _MAGIC_NUMBER:
            raise ValueError("is a torch file without its magic number")
        if PickleMachine(8, find_storage).run(stream) != _VERSION:
            raise ValueError("is a torch file of an unknown version")
        facts = PickleMachine(64, find_storage).run(stream)
        if not isinstance(facts, Dictionary) or ("little_endian", True) not in facts:
            raise ValueError("is a torch file of a machine with another byte order")
        root = PickleMachine(most_steps, find_storage).run(stream)
        keys = PickleMachine(most_steps, find_storage).run(stream)
    if type(keys) is not list:
        raise ValueError("is a torch file without a list of its storages")
    positions = _find_positions(source, stream.position, keys, storages)

    def find_data(storage: Storage) -> tuple[Source, int, bool]:
        if storage.key not in positions:
            raise ValueError(f"truncated: its storage {storage.key!r} is not in the file")
        return source, positions[storage.key], False

    return PickleTree(source.path, find_data, _MOST_VISITS).read(root)


def _find_positions(
    source: FileSource, position: int, keys: list, storages: dict[str, Storage]
) -> dict[str, int]:
    """Return the first byte of each storage."""
    positions: dict[str, int] = {}
    for key in keys:
        if not isinstance(key, str) or key not in storages or key in positions:
            raise ValueError(f"a storage that no tensor has, or twice: {key!r}")
        storage = storages[key]
        count = int.from_bytes(source.read(position, 8), "little")
        if count * storage.width != storage.nbytes:
            raise ValueError(f"storage {key!r} has {count} elements, not those of the pickle")
        positions[key] = position + 8
        position += 8 + storage.nbytes
    if position > source.size:
        raise ValueError(f"truncated: {position} bytes promised, {source.size} there")
    if position < source.size:
        raise ValueError(f"corrupt: {source.size - position} bytes behind the last storage")
    return positions
