"""Proves the command."""
