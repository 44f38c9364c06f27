"""Tiny encoder-decoders as they lie on disk, and the way there and back."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from diptych.convert import convert_checkpoint, diff_checkpoints
from parity_tests.families.cases import CASES
from parity_tests.support.checkpoints import assert_same_tensors, stored_tensors
from parity_tests.support.harness import Arrays
from parity_tests.support.tiny_transformers import save_tiny

UNTIED = {"tie_word_embeddings": False}


@cache
def saved(name: str) -> tuple[Arrays, dict[str, Any]]:
    """Return the tensors and settings of a case's tiny model."""
    with TemporaryDirectory() as folder:
        save_tiny(CASES[name], Path(folder))
        settings = json.loads((Path(folder) / "config.json").read_text())
        return stored_tensors(folder), settings


def there_and_back(source: Path, folder: Path) -> dict[str, Any]:
    """Convert to flax and back, compare every byte, and return the settings that came back."""
    convert_checkpoint(source, folder / "there", to="flax")
    convert_checkpoint(folder / "there", folder / "back", to="hf")
    assert_same_tensors(stored_tensors(folder / "back"), stored_tensors(source))
    assert diff_checkpoints(source, folder / "back").identical
    return json.loads((folder / "back/config.json").read_text())
