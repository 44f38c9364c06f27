"""Proves ``diptych.convert``."""
