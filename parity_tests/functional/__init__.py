"""Proves ``functional`` in both panels, but for attention."""
