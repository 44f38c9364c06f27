"""The panels beside code that others wrote."""
