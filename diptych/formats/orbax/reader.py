"""Reading what ``orbax.checkpoint`` saved, without JAX and whatever mesh saved it.

An item is a directory with the tree in ``_METADATA`` and every array in zarr chunks, which lie in
files (``NAME/.zarray``, ``NAME/0.0``) or, usually, in one database in ``manifest.ocdbt`` and ``d``.
Everything is checked before TensorStore, which ends the process on some damage, decodes a chunk.
One array is in memory at a time: its values and, of one chunk, the stored bytes and the decoded
ones, which makes four times the array where it was saved as one chunk.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from ..container import Container
from ..errors import fault, printable
from ..json import read_json
from ..limits import check_twins
from ..tensor import Tensor
from .chunks import ChunkedSource
from .files import MANIFEST, list_files, own_files
from .metadata import METADATA, OrbaxMetadata, SavedLeaf, read_metadata
from .store import DatabaseStore, FolderStore, KeyStore
from .tree import Leaf, Unread, build_tree, make_branches, take_random_state
from .zarr import BEST_RATIO, UncarriedDtypeError, parse_zarr2, parse_zarr3

UNFINISHED = ".orbax-checkpoint-tmp"
_LONGEST_LAYOUT = 1 << 16
_MOST_LISTED = 20


def read_orbax(path: Path) -> Container:
    """Return the tensors of one item.

    Args:
        path: Its ``_METADATA``, or another of its files.

    Raises:
        CheckpointError: If it is damaged, unfinished, or holds what is not read.
    """
    return select_only(read_item(path.parent))


def select_only(container: Container) -> Container:
    """Return the container with the tensors of its only branch that has any, if there is only one.

    Raises:
        CheckpointError: If there is none.
    """
    with_tensors = [key for key, branch in container.tree.items() if branch.tensors]
    refused = [key for key, branch in container.tree.items() if branch.refused]
    if len(with_tensors) > 1:
        return container
    if not with_tensors and not refused:
        raise fault(container.files[0], "holds no arrays")
    return container.select((with_tensors or refused)[0])


def read_item(folder: Path) -> Container:
    """Return what one item holds, as the tree of a container, with no branch chosen.

    Raises:
        CheckpointError: As ``read_orbax``.
    """
    if any(UNFINISHED in part for part in folder.resolve().parts[-2:]):
        raise fault(folder, "is a save of Orbax that was not finished")
    listed = list_files(folder)
    if METADATA not in listed:
        raise fault(folder, f"{METADATA} is missing: damaged, or of Orbax before 0.5")
    path = own_files({METADATA: listed[METADATA]}, ())[METADATA]
    metadata = read_metadata(path)
    arrays = {leaf.name for leaf in metadata.leaves if leaf.is_stored}
    for name in (".zarray", "zarr.json"):
        arrays |= {key.removesuffix(f"/{name}") for key in listed if key.endswith(f"/{name}")}
    files = {METADATA: path, **own_files(listed, arrays)}
    leaves, unlisted = _read_leaves(folder, metadata, files)
    tree = build_tree(leaves)
    random = take_random_state(tree, _random_keys(files))
    branches = make_branches(tree)
    for key, branch in branches.items():
        check_twins(path, branch.tensors, key)
    notes = []
    if random:
        notes.append(f"random state left out: {_listed(random)}")
    if unlisted:
        notes.append(f"not read, since {METADATA} lacks them: {_listed(unlisted)}")
    return Container("orbax", tuple(files.values()), {}, tree=branches, notes=tuple(notes))


def _read_leaves(
    folder: Path, metadata: OrbaxMetadata, files: Mapping[str, Path]
) -> tuple[dict[tuple[str, ...], Leaf], list[str]]:
    """Return every leaf by its path, and the arrays that are stored but in no leaf."""
    store: KeyStore
    if metadata.is_ocdbt is False and MANIFEST in files:
        raise fault(files[MANIFEST], f"is there, but {METADATA} says that there is no database")
    if MANIFEST in files:
        store = DatabaseStore(folder, files)
    elif metadata.is_ocdbt:
        raise fault(folder, f"{MANIFEST} is missing")
    else:
        store = FolderStore(folder, files)
    nbytes = sum(path.stat().st_size for path in files.values())
    chunks = _group_keys(store.keys(), "zarr.json" if metadata.is_zarr3 else ".zarray")
    leaves: dict[tuple[str, ...], Leaf] = {}
    for leaf in metadata.leaves:
        keys = chunks.pop(leaf.name, None)
        if not leaf.is_array:
            leaves[leaf.parts] = Unread(_describe(leaf))
        elif keys is None:
            raise fault(folder, f"{METADATA} lists it, but it is not stored", leaf.name)
        else:
            leaves[leaf.parts] = _read_array(store, metadata, leaf.name, keys, nbytes)
    return leaves, list(chunks)


def _group_keys(keys: Collection[str], metadata_name: str) -> dict[str, set[str]]:
    """Return the keys of each array's chunks, behind the array's own."""
    suffix = f"/{metadata_name}"
    chunks: dict[str, set[str]] = {
        key.removesuffix(suffix): set() for key in keys if key.endswith(suffix)
    }
    for key in keys:
        array = key
        while "/" in array:
            array = array.rpartition("/")[0]
            if array in chunks:
                chunks[array].add(key.removeprefix(f"{array}/"))
                break
    for found in chunks.values():
        found.discard(metadata_name)
    return chunks


def _read_array(
    store: KeyStore, metadata: OrbaxMetadata, name: str, stored: Collection[str], most: int
) -> Leaf:
    """Return the tensor of an array, or why its dtype is not carried."""
    key = f"{name}/{'zarr.json' if metadata.is_zarr3 else '.zarray'}"
    text = store.read(key)
    if len(text) > _LONGEST_LAYOUT:
        raise fault(store.path, f"{len(text)} bytes, over {_LONGEST_LAYOUT}", key)
    parse = parse_zarr3 if metadata.is_zarr3 else parse_zarr2
    try:
        layout = parse(text, fills=not metadata.stores_zeros)
    except UncarriedDtypeError as error:
        return Unread(str(error), is_fault=True)
    except ValueError as error:
        raise fault(store.path, str(error), key) from error
    if layout.nbytes > most * BEST_RATIO:
        cause = f"shape {list(layout.shape)} promises more bytes than its files could hold"
        raise fault(store.path, cause, name)
    source = ChunkedSource(store, name, layout, frozenset(stored))
    # To learn a size, a database reads the chunk: done where so much could be a lie.
    if isinstance(store, FolderStore) or layout.nbytes > most:
        source.check()
    if isinstance(store, FolderStore) and layout.is_plain and layout.chunk_shape == layout.shape:
        chunk, _ = layout.chunks()[0]
        if chunk in stored:
            return Tensor(name, layout.dtype, layout.shape, store.source(f"{name}/{chunk}"), 0)
    return Tensor(name, layout.dtype, layout.shape, source, 0)


def _random_keys(files: Mapping[str, Path]) -> set[str]:
    """Return the names of the arrays that are keys of a random generator."""
    names: set[str] = set()
    for path in files.values():
        if path.parent.name != "array_metadatas":
            continue
        entries = read_json(path).get("array_metadatas")
        if not isinstance(entries, list):
            raise fault(path, "is no metadata of arrays")
        for entry in entries:
            match entry:
                case {"array_metadata": {"param_name": str(name), "ext_metadata": extra}}:
                    if isinstance(extra, dict) and extra.get("random_key_impl") is not None:
                        names.add(name)
                case _:
                    raise fault(path, "is no metadata of arrays")
    return names


def _describe(leaf: SavedLeaf) -> str:
    return f"saved as {leaf.kind}" if leaf.is_stored else f"an empty {leaf.kind}"


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(printable(name) for name in sorted(names)[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return shown + (f" and {more} more" if more > 0 else "")
