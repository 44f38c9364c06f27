"""Names on disk: a family's own, the same in Linen, torch_impl's, jax_impl's."""
