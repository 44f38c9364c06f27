"""Proves ``diptych.spec``."""
