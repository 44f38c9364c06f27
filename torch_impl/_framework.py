"""PyTorch, or a word on how to install what is missing."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    message = f"torch_impl needs PyTorch ({error.name} is missing): pip install 'diptych[torch]'"
    raise ModuleNotFoundError(message, name=error.name) from None
