"""The parameters of a module as a flat dict of arrays, in and out.

The names are the attribute paths, for example ``layers.0.attention.q_proj.bias``.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.sizes import check_floating, check_names_and_shapes

from .module import Module

if TYPE_CHECKING:
    from diptych.convert import Checkpoint


def export_state(module: nnx.Module) -> dict[str, np.ndarray]:
    """Copy every parameter into a numpy array.

    Args:
        module: The module; it is not changed.

    Returns:
        Arrays by name, in the shapes and dtypes of the parameters, bit for bit; 16-bit and 8-bit
        floating dtypes are those of ``ml_dtypes``.
    """
    return {name: np.array(parameter[...]) for name, parameter in _parameters(module).items()}


def load_state(module: nnx.Module, tensors: Mapping[str, np.ndarray]) -> None:
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
    _check(_parameters(module), tensors)
    # Checked before, as nnx.update takes wrong shapes and narrows dtypes.
    nnx.update(module, _state(module, tensors))


def functional_call(
    module: nnx.Module, params: Mapping[str, Array | np.ndarray], *args: Any, **kwargs: Any
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
    graphdef, _, others = nnx.split(module, nnx.Param, ...)  # type: ignore[misc]
    return nnx.merge(graphdef, _state(module, params), others)(*args, **kwargs)


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
    import jax_impl
    from diptych.convert import read_model

    loaded = read_model(path, layout="flax", dtype=dtype)
    component = getattr(jax_impl, loaded.component)

    def build() -> Module:
        rngs = nnx.Rngs(0) if loaded.config.leaves() else None
        return component.from_config(loaded.config, rngs=rngs)

    module = nnx.eval_shape(build)
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
        layout="flax",
        overwrite=overwrite,
    )


def _parameters(module: nnx.Module) -> dict[str, nnx.Param]:
    return {_name(path): parameter for path, parameter in _flat_state(module)}


def _check(parameters: Mapping[str, nnx.Param], given: Mapping[str, Any]) -> None:
    expected = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    shapes = {name: tuple(array.shape) for name, array in given.items()}
    check_names_and_shapes(expected, shapes, what="parameters")
    check_floating(**{name: str(array.dtype) for name, array in given.items()})


def _state(module: nnx.Module, tensors: Mapping[str, Array | np.ndarray]) -> nnx.State:
    values = {path: _to_array(_name(path), tensors[_name(path)]) for path, _ in _flat_state(module)}
    return nnx.from_flat_state(values)


def _flat_state(module: nnx.Module) -> Any:
    return nnx.to_flat_state(nnx.state(module, nnx.Param))


def _name(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _to_array(name: str, value: Array | np.ndarray) -> Array:
    if isinstance(value, Array):
        return value
    narrowed = jax.dtypes.canonicalize_dtype(value.dtype)
    if narrowed != value.dtype:
        raise TypeError(
            f"{name} is {value.dtype}, which JAX would narrow to {narrowed}: set jax_enable_x64"
        )
    # jnp.array(value) may read the caller's memory after it has returned.
    return jnp.asarray(np.array(value))
