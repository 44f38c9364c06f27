"""Writing a torch checkpoint for a test, and reading why one is refused."""

from pathlib import Path

import numpy as np
import pytest

from diptych.formats import FORMATS
from diptych.formats.find import find_container
from diptych.formats.output import Planned
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import code_of


def write(folder: Path, arrays: dict[str, np.ndarray], **options) -> tuple[str, ...]:
    """Write arrays as a torch checkpoint; return the names of its files."""
    plan = [Planned(name, code_of(array.dtype), array.shape) for name, array in arrays.items()]
    options = {"file_name": "model.pt", "metadata": {}} | options
    return FORMATS["pt"].write(folder, plan, iter(arrays.items()), **options)


def error_of(path: Path) -> str:
    """Return why a file is refused, in one line that begins with its path."""
    with pytest.raises(CheckpointError) as caught:
        find_container(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message
