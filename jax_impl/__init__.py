"""The JAX panel: attention and transformer components as Flax NNX modules."""
