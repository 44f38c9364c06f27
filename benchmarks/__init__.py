"""Timings of both panels beside the stock functions of their frameworks, in one run."""
