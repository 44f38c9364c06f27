"""Files that travel with a checkpoint: tokenizer, generation, pooling and processor files."""

import os
from pathlib import Path

from ..formats.container import Container
from ..formats.errors import fault
from ..formats.paths import contained

SUFFIXES = (".bpe", ".jinja", ".json", ".md", ".model", ".spm", ".tiktoken", ".txt", ".vocab")
NAMES = ("LICENSE", "NOTICE")
OWN = ("config.json", "source_config.json", "diptych.json")


def find_companions(folder: Path, container: Container) -> dict[str, Path]:
    """Return the companions in a folder and its subfolders, by path relative to it.

    Hidden files and folders, linked folders, indices of shards, and the files that hold the
    weights and configs are left out.

    Raises:
        CheckpointError: If one is no regular file, or a link that leads out of its folder.
    """
    weights = frozenset(container.files)
    companions: dict[str, Path] = {}
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        is_top = Path(root) == folder
        for name in sorted(files):
            own = Path(root, name) in weights or (is_top and name in OWN)
            wanted = name.endswith(SUFFIXES) or name in NAMES
            if own or not wanted or name.startswith(".") or name.endswith(".index.json"):
                continue
            path = contained(Path(root), name, root)
            if not path.is_file():  # a named pipe would be waited for
                raise fault(path, "is not a regular file")
            companions[path.relative_to(folder).as_posix()] = path
    return companions
