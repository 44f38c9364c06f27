"""Proves ``diptych.formats``, and holds the damaged files that they refuse."""
