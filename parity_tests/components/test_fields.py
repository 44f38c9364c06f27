"""No field of a config is without effect: another value changes leaves, outputs or refusals."""

import dataclasses
import inspect
from typing import Any

import jax
import pytest
import torch

from parity_tests.components.modules import PANELS, arrays, build, flat
from parity_tests.components.room import Example
from parity_tests.components.rooms import ROOMS, marked_pairs

EXAMPLES_OF_PARTS = [(name, part) for name, room in ROOMS.items() for part in room.parts]


@pytest.mark.parametrize(("panel", "component"), marked_pairs(ROOMS))
def test_every_field_changes_something(panel: str, component: str) -> None:
    room = ROOMS[component]
    names = {field.name for field in dataclasses.fields(room.example.config)}
    assert names == room.changes.keys()
    before = fingerprint(panel, room.example)
    for name, value in room.changes.items():
        together = value if isinstance(value, dict) else {name: value}
        assert fingerprint(panel, changed(room.example, **together)) != before, name


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("component", "part"), EXAMPLES_OF_PARTS)
def test_every_field_of_a_part_changes_something(panel: str, component: str, part: str) -> None:
    room = ROOMS[component]
    for name, (start, value) in room.parts[part].items():
        assert {field.name for field in dataclasses.fields(start)} == room.parts[part].keys()
        before, after = (
            fingerprint(panel, changed(room.example, **{part: config}))
            for config in (start, dataclasses.replace(start, **{name: value}))
        )
        assert before != after, name


def changed(example: Example, **fields: Any) -> Example:
    """Return the example with other fields of its config."""
    return example._replace(config=dataclasses.replace(example.config, **fields))


def fingerprint(panel: str, example: Example) -> Any:
    """Return all that can be seen of a component: its leaves, its outputs, what it refuses."""
    module = build(panel, example.config)
    arguments = arrays(panel, example.arguments)
    try:
        evaluated = flat(module(*arguments))
        drawn = flat(draw(panel, module.train(), arguments))
    except (ValueError, TypeError, IndexError, RuntimeError) as refused:
        return example.config.leaves(), str(refused)
    return example.config.leaves(), [array.tobytes() for array in evaluated + drawn]


def draw(panel: str, module: Any, arguments: Any) -> Any:
    """Call a module in training mode, always with the same random numbers."""
    if panel == "torch":
        torch.manual_seed(0)
        return module(*arguments)
    takes_key = "rng_key" in inspect.signature(module.__call__).parameters
    return module(*arguments, rng_key=jax.random.key(0)) if takes_key else module(*arguments)
