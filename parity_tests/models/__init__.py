"""Attention and blocks as model families call them, one row per combination."""
