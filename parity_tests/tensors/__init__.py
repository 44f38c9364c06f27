"""Proves ``diptych.tensors``."""
