"""Constant tables, made once in a constructor and only sliced and converted in a call."""

from .bias import BucketTable, SlopeTable
from .rotary import RotaryTable
from .sinusoid import SinusoidTable

__all__ = ["BucketTable", "RotaryTable", "SinusoidTable", "SlopeTable"]
