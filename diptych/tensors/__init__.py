"""What a tensor is on disk: codes of dtypes, bits, casts, distances in units in the last place."""
