"""What proves every component: a file here holds its example, its calls, its fields, its formula.

The folder is walked: a file that defines a ``Room`` is all that a new component needs here.
"""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from diptych.spec import Config
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors
from parity_tests.components.room import Draw, Example, Room


def _rooms() -> dict[str, Room]:
    found: dict[str, Room] = {}
    for file in iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{file.name}")).values():
            if isinstance(value, Room):
                assert found.setdefault(value.component, value) is value, value.component
    return dict(sorted(found.items()))


def _cases() -> dict[str, ComponentCase]:
    found: dict[str, ComponentCase] = {}
    for room in ROOMS.values():
        for name, call in room.calls.items():
            assert name not in found, name
            found[name] = call(Draw(name))
    return found


def marked_components(names: Iterable[str]) -> list[Any]:
    """Return components as parameters; those that take seconds to compile are of the long tail."""
    return [pytest.param(name, marks=slow_if(ROOMS[name].is_slow), id=name) for name in names]


def marked_pairs(names: Iterable[str]) -> list[Any]:
    """Return pairs of a panel and a component as parameters; JAX has a long tail, torch none."""
    return [
        pytest.param(
            panel, name, marks=slow_if(panel == "jax" and ROOMS[name].is_slow), id=f"{name}-{panel}"
        )
        for name in names
        for panel in ("torch", "jax")
    ]


def slow_if(is_slow: bool) -> list[pytest.MarkDecorator]:
    """Return the marks of a case."""
    return [pytest.mark.slow] if is_slow else []


ROOMS = _rooms()
EXAMPLES: dict[str, Example] = {name: room.example for name, room in ROOMS.items()}
CASES = _cases()


def component(config: Config, tensors: Tensors, *args: Any, **options: Any) -> Any:
    """Compute by its formula what the component of a config returns in evaluation mode.

    Outputs are nested as the panels nest theirs.

    Args:
        config: Of the component.
        tensors: float64 parameters by canonical name, in torch's shapes.
        args: Positional arguments of the call.
        options: Keyword arguments of the call.
    """
    formula = ROOMS[config.component].formula
    assert formula is not None, config.component
    return formula(config, tensors, *args, **options)
