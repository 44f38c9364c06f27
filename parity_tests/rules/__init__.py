"""Proves ``diptych.rules``."""
