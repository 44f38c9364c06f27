"""Proves ``generate`` in both panels."""
