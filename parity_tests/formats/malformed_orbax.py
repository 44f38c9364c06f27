"""Damaged and hostile Orbax directories: what each is, the damage, words of the error.

The sound one holds ``layers.0.kernel`` (float32, 4 x 3), ``layers.0.bias`` (float32, 3) and, so
that a chunk can be compressed, ``table`` (float32, 64 x 64 zeros); "files" keeps them in files,
"database" in an OCDBT database.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

Damage = Callable[[Path], object]
Case = tuple[str, str, Damage, str]

KERNEL, BIAS, TABLE = "layers.0.kernel", "layers.0.bias", "table"


def malformed_directories() -> Iterator[Case]:
    """Every case: its name, "files" or "database", the damage, words of the error."""
    for case in _metadata_texts():
        yield (case[0], "files", *case[1:])
    yield from _missing_files()
    for case in _keys():
        yield (case[0], "files", *case[1:])
    for case in _layouts():
        yield (case[0], "files", *case[1:])
    yield from _links()
    yield from _databases()


def _metadata_texts() -> Iterator[tuple[str, Damage, str]]:
    yield "empty metadata", _write("_METADATA", b""), "no metadata of Orbax"
    yield "half of the metadata", _cut("_METADATA"), "no metadata of Orbax"
    yield "metadata that is no JSON", _write("_METADATA", b"\x93NUMPY"), "no metadata of Orbax"
    yield "a list as metadata", _write("_METADATA", b"[]"), "'{' expected"
    yield "metadata without a tree", _write("_METADATA", b"{}"), "no tree_metadata"
    yield "an empty tree", _write("_METADATA", b'{"tree_metadata": {}}'), "holds no arrays"
    yield "a tree that is a list", _write("_METADATA", b'{"tree_metadata": []}'), "'{' expected"
    deep = b'{"custom_metadata": ' + b"[" * 100_000
    yield "metadata 100,000 deep", _write("_METADATA", deep), "nested deeper"
    yield (
        "a flag that is a text",
        _replace("_METADATA", '"use_ocdbt": false', '"use_ocdbt": "no"'),
        ("true or false expected"),
    )
    yield "a leaf without a type", _leaf({"value_metadata": {}}), "needs key_metadata"
    yield "a leaf without keys", _leaf({"key_metadata": []}), "needs key_metadata"
    yield (
        "an unknown type of key",
        _leaf({"key_metadata": [{"key": "a", "key_type": 9}]}),
        ("unknown type"),
    )
    yield "a key without text", _leaf({"key_metadata": [{"key_type": 2}]}), "key without text"
    keys = [{"key": "a", "key_type": 2}] * 100
    yield "a leaf 100 deep", _leaf({"key_metadata": keys}), "nested deeper"
    yield "a NaN in the metadata", _replace("_METADATA", "null", "NaN"), "a value expected"


def _missing_files() -> Iterator[Case]:
    yield (
        "no metadata of the tree, with a database",
        "database",
        _remove("_METADATA"),
        ("_METADATA is missing"),
    )
    yield "a missing chunk", "files", _remove(f"{KERNEL}/0.0"), "1 of its chunks are missing"
    yield "a missing layout", "files", _remove(f"{KERNEL}/.zarray"), "is not stored"
    yield "a missing array", "files", _remove(KERNEL), "is not stored"
    yield "a missing database", "database", _remove("manifest.ocdbt"), "manifest.ocdbt is missing"
    yield "a short chunk", "files", _cut(f"{KERNEL}/0.0"), "a chunk of 48 bytes is stored in 24"
    yield "a long chunk", "files", _append(f"{KERNEL}/0.0", b"0000"), "stored in 52"
    yield "an empty chunk", "files", _write(f"{KERNEL}/0.0", b""), "stored in 0"
    yield "a database beside files", "files", _write("manifest.ocdbt", b"x"), "no database"


def _keys() -> Iterator[tuple[str, Damage, str]]:
    yield "an absolute key", _renamed("/etc/passwd"), "leaves its folder"
    yield "a key upwards", _renamed("../outside"), "leaves its folder"
    yield "a key that is two dots", _renamed(".."), "leaves its folder"
    yield "a key that is a dot", _renamed("."), "leaves its folder"
    yield "a key upwards within", _renamed("a/../../b"), "leaves its folder"
    yield "a key with two slashes", _renamed("a//b"), "leaves its folder"
    yield "a key with a backslash", _renamed("a\\..\\b"), "leaves its folder"
    yield "an empty key", _renamed(""), "the name is empty"
    yield "a key with NUL", _renamed("a\0b"), "control character"
    yield "a key that steers a terminal", _renamed("\x1b[31m"), "control character"
    yield "half of a surrogate pair", _renamed("\ud800"), "unprintable"
    twice = _more_leaves([("0", 2), ("0", 1)], prefix=())
    yield "a number and its digits as keys", twice, "two leaves"
    yield (
        "one entry twice",
        _replace("_METADATA", '{"key_metadata"', '{"key_metadata": [], "key_metadata"'),
        ("twice"),
    )
    yield (
        "a dot in a key that collides",
        _more_leaves([("layers.0.kernel", 2)], prefix=()),
        ("two leaves"),
    )
    yield (
        "a leaf that is a folder too",
        _more_leaves([("0", 2)], prefix=("layers",)),
        ("both a leaf and a folder"),
    )
    yield "a leaf that is not stored", _more_leaves([("ghost", 2)], prefix=()), "is not stored"


def _layouts() -> Iterator[tuple[str, Damage, str]]:
    yield "no JSON", _write(f"{KERNEL}/.zarray", b"{"), "no JSON"
    yield "a list", _write(f"{KERNEL}/.zarray", b"[]"), "no JSON object"
    yield "100,000 lists", _write(f"{KERNEL}/.zarray", b"[" * 60_000), "no JSON"
    yield "a long layout", _write(f"{KERNEL}/.zarray", b" " * 100_000), "over 65536"
    for name, fields, words in (
        ("a huge shape", {"shape": [10**6, 10**6], "chunks": [10**6, 10**6]}, "promises more"),
        ("a huge chunk", {"chunks": [10**6, 10**6]}, "is stored in"),
        ("a million chunks", {"shape": [10**9, 3], "chunks": [1, 1]}, "chunks are more than"),
        ("a shape beyond memory", {"shape": [2**62, 2**62]}, "does not fit into memory"),
        ("a shape of more chunks", {"shape": [8, 3]}, "1 of its chunks are missing"),
        ("a negative size", {"shape": [-4, 3]}, "negative size"),
        ("a size that is a fraction", {"shape": [4.0, 3]}, "no list of sizes"),
        ("a size that is true", {"shape": [True, 3]}, "no list of sizes"),
        ("no shape", {"shape": None}, "no list of sizes"),
        ("a chunk of nothing", {"chunks": [0, 3]}, "do not divide"),
        ("chunks of another rank", {"chunks": [12]}, "do not divide"),
        ("a rank of 40", {"shape": [1] * 40, "chunks": [1] * 40}, "axes are more than 32"),
        ("an unknown dtype", {"dtype": "<f3"}, "is not carried"),
        ("a dtype that is no text", {"dtype": 7}, "is not carried"),
        ("a dtype of fields", {"dtype": [["a", "<f4"]]}, "is not carried"),
        ("an object dtype", {"dtype": "|O"}, "is not carried"),
        ("int4", {"dtype": "int4"}, "is not carried"),
        ("a wider dtype", {"dtype": "<f8"}, "a chunk of 96 bytes is stored in 48"),
        ("filters", {"filters": [{"id": "delta"}]}, "filters"),
        ("an unknown compressor", {"compressor": {"id": "rot13"}}, "is not read"),
        ("a compressor that is a text", {"compressor": "zstd"}, "is not read"),
        ("an unknown order", {"order": "K"}, "order"),
        ("an unknown separator", {"dimension_separator": "../"}, "dimension_separator"),
        ("another zarr", {"zarr_format": 3}, "zarr_format"),
        ("zstd that is none", {"compressor": {"id": "zstd"}}, "corrupt"),
        ("gzip that is none", {"compressor": {"id": "gzip"}}, "corrupt"),
        ("blosc that is none", {"compressor": {"id": "blosc"}}, "corrupt"),
    ):
        yield name, _layout(**fields), words


def _links() -> Iterator[Case]:
    for way, name in (("files", f"{KERNEL}/0.0"), ("database", "manifest.ocdbt")):
        yield f"a link out of it ({way})", way, _link_out(name), "leads out of its folder"
        yield f"a pipe ({way})", way, _pipe(name), "not a regular file"
    yield "a linked array", "files", _link_out(KERNEL), "leads out of its folder"
    yield "linked data", "database", _link_out("d"), "leads out of its folder"
    yield "linked metadata", "files", _link_out("_METADATA"), "leads out of its folder"


def _databases() -> Iterator[Case]:
    yield "no data", "database", _remove("d"), "corrupt"
    yield "an empty manifest", "database", _write("manifest.ocdbt", b""), "corrupt"
    yield "half of the manifest", "database", _cut("manifest.ocdbt"), "corrupt"
    yield "a manifest of text", "database", _write("manifest.ocdbt", b"<html>" * 20), "corrupt"
    yield "half of the data", "database", _each("d", _cut), "corrupt"
    yield "empty data", "database", _each("d", lambda name: _write(name, b"")), "corrupt"
    yield "no arrays in it", "database", _more_leaves([("ghost", 2)], prefix=()), "is not stored"


def _write(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data)


def _append(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + data)


def _cut(name: str) -> Damage:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return cut


def _each(name: str, damage: Callable[[str], Damage]) -> Damage:
    def all_files(folder: Path) -> None:
        for path in (folder / name).iterdir():
            damage(f"{name}/{path.name}")(folder)

    return all_files


def _remove(name: str) -> Damage:
    def remove(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return remove


def _replace(name: str, old: str, new: str) -> Damage:
    def replace(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return replace


def _link_out(name: str) -> Damage:
    def link(folder: Path) -> None:
        away = folder.parent / "away"
        (folder / name).rename(away)
        (folder / name).symlink_to(away)

    return link


def _pipe(name: str) -> Damage:
    def pipe(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return pipe


def _layout(**fields: object) -> Damage:
    def change(folder: Path) -> None:
        path = folder / KERNEL / ".zarray"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def _tree(change: Callable[[dict], None]) -> Damage:
    def change_tree(folder: Path) -> None:
        path = folder / "_METADATA"
        metadata = json.loads(path.read_text())
        change(metadata["tree_metadata"])
        path.write_text(json.dumps(metadata))

    return change_tree


def _leaf(fields: dict) -> Damage:
    """Change fields of the first leaf."""
    return _tree(lambda tree: next(iter(tree.values())).update(fields))


def _renamed(key: str) -> Damage:
    """Give the first leaf one other key."""
    return _leaf({"key_metadata": [{"key": key, "key_type": 2}]})


def _more_leaves(keys: list[tuple[str, int]], *, prefix: tuple[str, ...]) -> Damage:
    """Add leaves, each of the keys of ``prefix`` and one more."""

    def add(tree: dict) -> None:
        for key, kind in keys:
            parts = [{"key": part, "key_type": 2} for part in prefix]
            tree[f"{prefix}{key}{kind}"] = {
                "key_metadata": [*parts, {"key": key, "key_type": kind}],
                "value_metadata": {"value_type": "np.ndarray", "skip_deserialize": False},
            }

    return _tree(add)
