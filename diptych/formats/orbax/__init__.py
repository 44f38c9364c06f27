"""Directories that Orbax saves."""
