"""Proves scaled dot-product attention: the tiers, the oracle, every option."""
