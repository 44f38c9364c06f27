"""The parameters of a module as a flat dict of arrays, in and out.

The names are the attribute paths, for example ``layers.0.attention.q_proj.bias``.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor, nn

from diptych.spec.checks.sizes import check_floating, check_names_and_shapes

from .module import Module

if TYPE_CHECKING:
    from diptych.convert import Checkpoint


def export_state(module: nn.Module) -> dict[str, np.ndarray]:
    """Copy every parameter into a numpy array.

    Args:
        module: The module; it is not changed.

    Returns:
        Arrays by name, in the shapes and dtypes of the parameters, bit for bit; 16-bit and 8-bit
        floating dtypes are those of ``ml_dtypes``.
    """
    return {name: _to_numpy(parameter) for name, parameter in _parameters(module).items()}


def load_state(module: nn.Module, tensors: Mapping[str, np.ndarray]) -> None:
    """Replace every parameter, in place, by a copy of the array of its name.

    A parameter takes the dtype of its array; nothing is cast.

    Args:
        module: The module to be changed.
        tensors: Arrays with the names and shapes of ``export_state``.

    Raises:
        ValueError: If a name is missing or unexpected or a shape is another; lists every fault,
            and nothing is changed.
        TypeError: If a dtype is not floating, or the framework would narrow it; nothing is changed.
    """
    parameters = _parameters(module)
    _check(parameters, tensors)
    # All are converted before the first is replaced, so that a refusal changes nothing.
    converted = {name: _to_tensor(tensors[name]) for name in parameters}
    for name, parameter in parameters.items():
        parameter.data = converted[name].to(parameter.device)


def functional_call(
    module: nn.Module, params: Mapping[str, Tensor | np.ndarray], *args: Any, **kwargs: Any
) -> Any:
    """Call a module with other parameters than its own; the module is not changed.

    Gradients flow to ``params``, and the function transforms of the framework apply.

    Args:
        module: The module.
        params: Arrays with the names and shapes of ``export_state``.
        *args: Positional arguments of the call.
        **kwargs: Keyword arguments of the call.

    Returns:
        What the module returns.

    Raises:
        ValueError: If a name is missing or unexpected or a shape is another; lists every fault.
        TypeError: If a dtype is not floating, or the framework would narrow it.
    """
    _check(_parameters(module), params)
    tensors = {
        name: _to_tensor(value) if isinstance(value, np.ndarray) else value
        for name, value in params.items()
    }
    return torch.func.functional_call(module, tensors, args, kwargs)


def load_model(path: "str | Path | Checkpoint", *, dtype: str | None = None) -> Module:
    """Build the module of a checkpoint and load its parameters.

    Args:
        path: A checkpoint in any layout that ``diptych.convert`` reads, or one that its
            ``open_checkpoint`` opened with the settings that a bare state dict lacks.
        dtype: "float64", "float32", "float16" or "bfloat16" to convert to; None keeps the file's.

    Returns:
        The module, in evaluation mode. Buffers of the checkpoint that it does not use are named in
        a warning.

    Raises:
        CheckpointError: If the checkpoint cannot be read; names file, key and cause.
    """
    import torch_impl
    from diptych.convert import read_model

    loaded = read_model(path, layout="torch", dtype=dtype)
    component = getattr(torch_impl, loaded.component)
    with torch.device("meta"):
        module = component.from_config(loaded.config)
    module.to_empty(device="cpu")
    load_state(module, loaded.tensors)
    if loaded.unused:
        unused = ", ".join(loaded.unused)
        warnings.warn(f"buffers not used by {loaded.component}: {unused}", stacklevel=2)
    return module.eval()


def save_model(module: Module, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a module into a folder that ``load_model`` of either panel reads.

    Args:
        module: The module; its config and parameters are written.
        path: The folder to be made.
        overwrite: Whether a folder that exists is replaced.

    Raises:
        ValueError: If the folder exists and may not be replaced.
        OutputError: If the folder cannot be written; nothing is left behind.
    """
    from diptych.convert import write_model

    write_model(
        path,
        component=module.config.component,
        config=module.config,
        tensors=export_state(module),
        layout="torch",
        overwrite=overwrite,
    )


def _parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    return dict(module.named_parameters(remove_duplicate=False))


def _check(parameters: Mapping[str, Tensor], given: Mapping[str, Any]) -> None:
    expected = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    shapes = {name: tuple(array.shape) for name, array in given.items()}
    check_names_and_shapes(expected, shapes, what="parameters")
    check_floating(**{name: str(array.dtype) for name, array in given.items()})


def _to_numpy(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if not hasattr(ml_dtypes, name):
        return tensor.numpy().copy()
    return tensor.view(_BYTES[tensor.itemsize]).numpy().copy().view(getattr(ml_dtypes, name))


def _to_tensor(array: np.ndarray) -> Tensor:
    array = np.array(array, order="C")
    if not hasattr(ml_dtypes, array.dtype.name):
        return torch.from_numpy(array)
    unsigned = torch.from_numpy(array.view(f"u{array.itemsize}"))
    return unsigned.view(getattr(torch, array.dtype.name))


# torch and numpy share no 16-bit or 8-bit floating dtype but float16: bytes cross as integers.
_BYTES = {1: torch.uint8, 2: torch.uint16}
