"""Comparing two sides; needs numpy only until it is asked to run a panel."""
