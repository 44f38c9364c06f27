"""The parity suite: mirrors the source, ``test_x.py`` proves ``x.py``."""
