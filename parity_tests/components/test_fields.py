"""No field of a config is without effect: another value changes leaves, outputs or refusals."""

import dataclasses
import inspect
from typing import Any

import jax
import pytest
import torch

from diptych.spec import Config, QKNormConfig, RotaryConfig, RouterConfig, ScoreConfig
from parity_tests.components.examples import EXAMPLES, PANELS, Example, arrays, build, flat
from parity_tests.components.field_changes import CHANGES, QK_NORMS, ROTARIES, ROUTERS, SCORES


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("component", CHANGES)
def test_every_field_changes_something(panel: str, component: str) -> None:
    example = EXAMPLES[component]
    names = {field.name for field in dataclasses.fields(example.config)}
    assert names == CHANGES[component].keys()
    before = fingerprint(panel, example)
    for name, value in CHANGES[component].items():
        together = value if isinstance(value, dict) else {name: value}
        changed = dataclasses.replace(example.config, **together)
        assert fingerprint(panel, example._replace(config=changed)) != before, name


@pytest.mark.parametrize("panel", PANELS)
def test_every_field_of_a_score_changes_something(panel: str) -> None:
    assert {field.name for field in dataclasses.fields(ScoreConfig)} == SCORES.keys()
    example = EXAMPLES["MultiHeadAttention"]
    before = fingerprint(panel, example)
    for name, value in SCORES.items():
        config = dataclasses.replace(example.config, score=ScoreConfig(**{name: value}))
        assert fingerprint(panel, example._replace(config=config)) != before, name


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("part", "given", "changes"),
    [("qk_norm", QKNormConfig(), QK_NORMS), ("rotary", RotaryConfig(dim=4), ROTARIES)],
)
def test_every_field_of_a_part_of_attention_changes_something(
    panel: str, part: str, given: Config, changes: dict[str, Any]
) -> None:
    assert {field.name for field in dataclasses.fields(given)} == changes.keys()
    example = EXAMPLES["MultiHeadAttention"]
    config = dataclasses.replace(example.config, **{part: given})
    before = fingerprint(panel, example._replace(config=config))
    for name, value in changes.items():
        changed = {part: dataclasses.replace(given, **{name: value})}
        config = dataclasses.replace(example.config, **changed)
        assert fingerprint(panel, example._replace(config=config)) != before, name


@pytest.mark.parametrize("panel", PANELS)
def test_every_field_of_a_router_changes_something(panel: str) -> None:
    assert {field.name for field in dataclasses.fields(RouterConfig)} == ROUTERS.keys()
    example = EXAMPLES["MixtureOfExperts"]
    for name, (config, changed) in ROUTERS.items():
        fingerprints = [
            fingerprint(
                panel,
                example._replace(config=dataclasses.replace(example.config, router=router)),
            )
            for router in (config, dataclasses.replace(config, **{name: changed}))
        ]
        assert fingerprints[0] != fingerprints[1], name


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
