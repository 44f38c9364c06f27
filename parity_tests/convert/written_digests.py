"""Print a digest of every file that converting every tiny model writes, in every way.

To be run before and after a change that should change no byte; the outputs must be equal:

    python -m parity_tests.convert.written_digests > before.txt
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from diptych.convert import convert_checkpoint
from diptych.convert.layouts.layout import LAYOUTS
from diptych.formats import WRITTEN
from parity_tests.families.cases import CASES
from parity_tests.support.tiny_transformers import save_tiny


def main() -> None:
    """Print one line per written file: model, layout, container, name and SHA-256."""
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            source = Path(folder, "source")
            save_tiny(case, source)
            for to in LAYOUTS:
                for container in WRITTEN:
                    for line in written(source, to, container):
                        print(name.replace(" ", "_"), to, container, line, flush=True)


def written(source: Path, to: str, container: str) -> Iterator[str]:
    """Yield a line per file that a conversion writes, or the one line of its refusal."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "out")
        try:
            convert_checkpoint(source, out, to=to, format=container)
        except ValueError as error:
            yield f"refused: {str(error).replace(str(source), 'SOURCE')}"
            return
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield f"{path.relative_to(out).as_posix()} {digest}"


if __name__ == "__main__":
    main()
