"""JAX and Flax, or a word on how to install what is missing."""

try:
    import flax  # noqa: F401
    import jax  # noqa: F401
except ModuleNotFoundError as error:
    message = f"jax_impl needs JAX and Flax ({error.name} is missing): pip install 'diptych[jax]'"
    raise ModuleNotFoundError(message, name=error.name) from None
