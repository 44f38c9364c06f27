"""The manifest ``diptych.json``: what was written, with digests of all of it.

It holds no time and no path of the machine: the same input gives the same bytes.
"""

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.errors import printable
from ..formats.find import find_container
from ..formats.json import read_json
from ..formats.paths import contained
from ..formats.tensor import Tensor
from ..spec.checks.sizes import Shape
from ..spec.errors import CheckpointError

MANIFEST = "diptych.json"
VERSION = 1
_DIGEST = "manifest_sha256"


def tensor_digest(name: str, dtype: str, shape: Shape, values: np.ndarray) -> str:
    """Return the SHA-256 over name, dtype code, shape and the bytes in C order."""
    return _digest(
        name, dtype, shape, [np.ascontiguousarray(values).reshape(-1).view(np.uint8).data]
    )


def stored_digest(name: str, tensor: Tensor) -> str:
    """Return the same of a stored tensor, with no more than a piece of it in memory."""
    return _digest(name, tensor.dtype, tensor.shape, tensor.pieces())


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def render_manifest(body: Mapping[str, Any]) -> bytes:
    """Return the manifest's bytes: the body and, last, the digest of the body."""
    digest = hashlib.sha256(_json(body)).hexdigest()
    return _json({**body, _DIGEST: digest})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the body of a folder's manifest.

    Raises:
        CheckpointError: If it is missing, damaged, or of another version.
    """
    path = contained(folder, MANIFEST, folder)
    body = read_json(path)
    body.pop(_DIGEST, None)
    if body.get("version") != VERSION:
        raise CheckpointError(f"{path}: version: {body.get('version')!r} is not {VERSION}")
    try:
        is_whole = path.read_bytes() == render_manifest(body)
    except (ValueError, RecursionError):
        is_whole = False
    if not is_whole:
        raise CheckpointError(f"{path}: damaged: its own digest does not fit")
    return body


def verify_manifest(path: str | Path) -> list[str]:
    """Return every way in which a folder differs from its manifest, [] when it is whole.

    All bytes are read: those of the manifest, of every file that it lists, and of every tensor.
    """
    folder = Path(path)
    faults: list[str] = []
    try:
        body = read_manifest(folder)
        faults.extend(_file_faults(folder, body["files"]))
        faults.extend(_tensor_faults(folder, body["tensors"]))
    except CheckpointError as error:
        faults.extend(error.faults)
    return faults


def _own_tensors(folder: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a folder of ours, which names them from its outermost dictionary on."""
    container = find_container(folder)
    is_undecided = not container.tensors and "" in container.tree
    return container.select("").tensors if is_undecided else container.tensors


def written_digests(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return what is on disk: every tensor's header and digest, and every file's digest.

    The two are computed side by side, since hashing releases the interpreter.
    """
    files: dict[str, str] = {}

    def hash_files() -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                files[path.relative_to(folder).as_posix()] = file_digest(path)

    worker = threading.Thread(target=hash_files)
    worker.start()
    try:
        tensors = {
            name: tensor_entry(tensor.dtype, tensor.shape, stored_digest(name, tensor))
            for name, tensor in _own_tensors(folder).items()
        }
    finally:
        worker.join()
    return dict(sorted(tensors.items())), files


def tensor_entry(dtype: str, shape: Shape, digest: str) -> dict[str, Any]:
    """Return a tensor's line in the manifest."""
    return {"dtype": dtype, "shape": list(shape), "sha256": digest}


def _digest(name: str, dtype: str, shape: Shape, pieces: Iterable[memoryview]) -> str:
    digest = hashlib.sha256(json.dumps([name, dtype, list(shape)]).encode() + b"\n")
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _file_faults(folder: Path, files: Mapping[str, str]) -> Iterable[str]:
    for name, digest in files.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            yield f"{folder / MANIFEST}: {printable(name)}: leads out of its folder"
        elif not path.is_file():
            yield f"{path}: missing"
        elif file_digest(path) != digest:
            yield f"{path}: its bytes are not those that were written"


def _tensor_faults(folder: Path, expected: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    tensors = _own_tensors(folder)
    for name in expected.keys() - tensors.keys():
        yield f"{folder}: {printable(name)}: missing"
    for name, tensor in tensors.items():
        if name not in expected:
            yield f"{tensor.path}: {printable(name)}: not in the manifest"
            continue
        entry = expected[name]
        for what, found in (("dtype", tensor.dtype), ("shape", list(tensor.shape))):
            if found != entry[what]:
                yield f"{tensor.path}: {printable(name)}: {what} {found}, written {entry[what]}"
        if stored_digest(name, tensor) != entry["sha256"]:
            yield f"{tensor.path}: {printable(name)}: its bytes are not those that were written"


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
