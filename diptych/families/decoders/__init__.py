"""Families of decoders of text."""
