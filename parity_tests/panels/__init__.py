"""Proves the modules of both panels, one file each."""
