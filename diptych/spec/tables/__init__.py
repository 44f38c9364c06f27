"""Constant tables, made once in a constructor and only sliced and converted in a call."""
