"""Families of encoders of text."""
