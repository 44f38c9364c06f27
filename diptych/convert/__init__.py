"""Carrying checkpoints between layouts and containers, bit for bit."""
