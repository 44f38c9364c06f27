"""Families of encoder-decoders."""
