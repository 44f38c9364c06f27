"""Pure functions on arrays: the arithmetic of every component."""
