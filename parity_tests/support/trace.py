"""The output of every submodule of a torch or NNX module, by path, in the order of completion.

Two traces answer where two models start to differ: the first fault of ``compare_traces``.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from flax import nnx

from diptych.parity.compare import Comparison, compare_exact
from parity_tests.support.harness import from_torch

Trace = dict[str, np.ndarray]


def trace(module: Any, *args: Any, **kwargs: Any) -> Trace:
    """Call a module once and keep what each of its submodules returned.

    Args:
        module: A ``torch.nn.Module`` or ``flax.nnx.Module``; it is left as it is.
        args: Passed to the call.
        kwargs: Passed to the call.

    Returns:
        Arrays by path: ``layers.0.attention.q_proj``; the module itself is ``""``. A tuple is
        numbered, ``attention[0]``, a named tuple or dict named, ``[output]``; what is no array is
        left out. The second call of one submodule is ``path@2``.

    Raises:
        TypeError: If the module is of neither framework.
    """
    frameworks = {base.__module__.split(".")[0] for base in type(module).__mro__}
    if "torch" in frameworks:
        return _trace_torch(module, args, kwargs)
    if "flax" in frameworks:
        return _trace_nnx(module, args, kwargs)
    raise TypeError(f"module is neither torch.nn nor flax.nnx, but {type(module)}")


def compare_traces(a: Trace, b: Trace) -> list[Comparison]:
    """Judge two float64 traces by the exact tier, in the order of a; its first fault leads.

    Args:
        a: Of one side.
        b: Of the other; a path on one side only is a fault.
    """
    rows = [
        compare_exact(a[path], b[path], name=path)
        if path in b
        else Comparison(path, a[path].size, float("nan"), 0.0, fault="only in the first trace")
        for path in a
    ]
    return rows + [
        Comparison(path, b[path].size, float("nan"), 0.0, fault="only in the second trace")
        for path in b
        if path not in a
    ]


def named_arrays(output: Any) -> Iterator[tuple[str, Any]]:
    """Yield every array of a module's output with the suffix that ``trace`` gives it.

    Args:
        output: An array, or tuples, named tuples and dicts of arrays; the rest is left out.
    """
    if hasattr(output, "dtype"):
        yield "", output
        return
    parts: dict[Any, Any] = {}
    if isinstance(output, dict):
        parts = output
    elif isinstance(output, tuple | list):
        parts = dict(zip(getattr(output, "_fields", range(len(output))), output, strict=True))
    for name, part in parts.items():
        for suffix, array in named_arrays(part):
            yield f"[{name}]{suffix}", array


def _trace_torch(module: Any, args: tuple, kwargs: dict[str, Any]) -> Trace:
    found: Trace = {}

    def copied(tensor: Any) -> np.ndarray:
        return from_torch(tensor).copy()

    def keeping(path: str) -> Callable:
        return lambda _module, _args, output: _keep(found, path, output, copied)

    hooks = [part.register_forward_hook(keeping(path)) for path, part in module.named_modules()]
    try:
        module(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _trace_nnx(module: Any, args: tuple, kwargs: dict[str, Any]) -> Trace:
    found: Trace = {}

    def traced_class(cls: type, path: str) -> type:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            output = cls.__call__(self, *args, **kwargs)  # type: ignore[operator]
            _keep(found, path, output, np.array)
            return output

        return type(cls)(cls.__name__, (cls,), {"__call__": call})

    # A call looks __call__ up on the class, so the parts of a copy get classes of their own.
    copy = nnx.clone(module)
    for path, part in list(nnx.iter_modules(copy)):
        if callable(part):
            part.__class__ = traced_class(type(part), ".".join(map(str, path)))
    copy(*args, **kwargs)
    return found


def _keep(found: Trace, path: str, output: Any, to_numpy: Callable[[Any], np.ndarray]) -> None:
    for suffix, array in named_arrays(output):
        name, calls = path + suffix, 1
        while name in found:
            calls += 1
            name = f"{path}@{calls}{suffix}"
        found[name] = to_numpy(array)
