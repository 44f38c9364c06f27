"""The parity suite: mirrors the source, ``test_x.py`` proves ``x.py``."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
