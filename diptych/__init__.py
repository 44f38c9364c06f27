"""Diptych: one transformer library in two panels, and the hinge that proves them equal."""

__version__ = "0.1.0"
