"""Families that read images."""
