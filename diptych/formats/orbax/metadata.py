"""The file ``_METADATA`` of an Orbax directory: the tree that was saved."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import fault
from ..json import JsonReader
from ..limits import MOST_TENSORS, check_name
from ..source import FileSource

METADATA = "_METADATA"
_LONGEST = 1 << 28
_MOST_PARTS = 64
_SEQUENCE, _MAPPING = 1, 2


@dataclass(frozen=True)
class SavedLeaf:
    """A leaf of the tree that was saved.

    Attributes:
        parts: Its keys from the root on; an index of a list is its digits.
        kind: What it was: "jax.Array", "np.ndarray", "scalar", "string", "None", "Dict" ...
        is_stored: Whether it has a value of its own; an empty dictionary has none.
    """

    parts: tuple[str, ...]
    kind: str
    is_stored: bool

    @property
    def name(self) -> str:
        """Return what Orbax calls it among its arrays."""
        return ".".join(self.parts)

    @property
    def is_array(self) -> bool:
        """Return whether it was an array."""
        return self.is_stored and self.kind in ("jax.Array", "np.ndarray")


@dataclass(frozen=True)
class OrbaxMetadata:
    """What ``_METADATA`` says.

    Attributes:
        leaves: The leaves of the tree.
        is_ocdbt: Whether arrays lie in one database; None where an old file does not say.
        is_zarr3: Whether each array is of zarr 3, not 2.
        stores_zeros: Whether chunks of zeros are stored too, so that one that lacks is a loss.
    """

    leaves: tuple[SavedLeaf, ...]
    is_ocdbt: bool | None
    is_zarr3: bool
    stores_zeros: bool


def read_metadata(path: Path) -> OrbaxMetadata:
    """Return what a file ``_METADATA`` says.

    Raises:
        CheckpointError: If it is damaged, or a key could lead out of the directory, or two leaves
            have one name.
    """
    source = FileSource(path)
    if source.size > _LONGEST:
        raise fault(path, f"{source.size} bytes, over {_LONGEST}")
    leaves: list[SavedLeaf] = []
    flags: dict[str, bool] = {}
    entry = None
    try:
        reader = JsonReader(source.read(0, source.size).decode())
        has_tree = False
        for key in reader.members():
            if key == "tree_metadata":
                has_tree = True
                for entry in reader.members():  # noqa: B007
                    leaves.append(_read_leaf(reader))
                    if len(leaves) > MOST_TENSORS:
                        raise ValueError(f"more than {MOST_TENSORS} leaves")
                entry = None
            elif key in ("use_ocdbt", "use_zarr3", "store_array_data_equal_to_fill_value"):
                flags[key] = _read_flag(reader)
            else:
                reader.skip()
        reader.end()
        if not has_tree:
            raise ValueError("it has no tree_metadata")
    except ValueError as error:
        raise fault(path, f"is no metadata of Orbax: {error}", entry) from error
    _check_names(path, leaves)
    return OrbaxMetadata(
        leaves=tuple(leaves),
        is_ocdbt=flags.get("use_ocdbt"),
        is_zarr3=flags.get("use_zarr3", False),
        stores_zeros=flags.get("store_array_data_equal_to_fill_value", False),
    )


def render_metadata(paths: Sequence[tuple[str, ...]]) -> bytes:
    """Return the ``_METADATA`` of a tree of arrays, each in files of its own."""
    value = {"value_type": "np.ndarray", "skip_deserialize": False}
    tree = {
        str(parts): {
            "key_metadata": [{"key": part, "key_type": _MAPPING} for part in parts],
            "value_metadata": value,
        }
        for parts in paths
    }
    metadata = {
        "tree_metadata": tree,
        "use_ocdbt": False,
        "use_zarr3": False,
        "store_array_data_equal_to_fill_value": True,
        "custom_metadata": None,
    }
    return json.dumps(metadata).encode()


def _read_leaf(reader: JsonReader) -> SavedLeaf:
    parts: list[str] = []
    kind, is_stored = None, True
    for key in reader.members():
        if key == "key_metadata":
            for _ in reader.items():
                parts.append(_read_part(reader))
                if len(parts) > _MOST_PARTS:
                    raise ValueError(f"nested deeper than {_MOST_PARTS}")
        elif key == "value_metadata":
            for field in reader.members():
                if field == "value_type":
                    kind = reader.string()
                elif field == "skip_deserialize":
                    is_stored = not _read_flag(reader)
                else:
                    reader.skip()
        else:
            reader.skip()
    if kind is None or not parts:
        raise ValueError("needs key_metadata and a value_type")
    return SavedLeaf(tuple(parts), kind, is_stored)


def _read_part(reader: JsonReader) -> str:
    part = kind = None
    for key in reader.members():
        if key == "key":
            part = str(reader.integer()) if reader.next_is_integer() else reader.string()
        elif key == "key_type":
            kind = reader.integer()
        else:
            reader.skip()
    if part is None or kind not in (_SEQUENCE, _MAPPING):
        raise ValueError("a key without text or of an unknown type")
    check_name(part)
    # Names become paths: of files without a database, of keys in one.
    if "\\" in part or any(step in ("", ".", "..") for step in part.split("/")):
        raise ValueError(f"key {part!a} is a path that leaves its folder")
    return part


def _read_flag(reader: JsonReader) -> bool:
    is_true = reader.next_is("true")
    if not is_true and not reader.next_is("false") and not reader.next_is("null"):
        raise ValueError("true or false expected")
    reader.skip()
    return is_true


def _check_names(path: Path, leaves: Sequence[SavedLeaf]) -> None:
    """Refuse two leaves that Orbax stores in one place, and one inside another."""
    by_name: dict[str, SavedLeaf] = {}
    for leaf in leaves:
        other = by_name.setdefault(leaf.name, leaf)
        if other is not leaf:
            raise fault(path, f"two leaves, {other.parts!a} and {leaf.parts!a}", leaf.name)
    paths = {leaf.parts for leaf in leaves}
    for leaf in leaves:
        for end in range(1, len(leaf.parts)):
            if leaf.parts[:end] in paths:
                raise fault(
                    path, f"is both a leaf and a folder of {leaf.name!a}", leaf.parts[end - 1]
                )
