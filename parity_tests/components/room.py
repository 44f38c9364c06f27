"""What proves one component, in one value, and what its file draws on.

B batch   T positions   D model width
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from diptych.spec import Config
from parity_tests.components.case import ComponentCase
from parity_tests.support.sizes import VOCAB, B, D

T = 7
QUERIES, KEYS = 11, 13
EVERYTHING = {"need_weights": True, "need_hidden_states": True}


class Example(NamedTuple):
    """A component and the positional arguments of one call; a config stands for its module."""

    config: Config
    arguments: tuple[Any, ...]


class Draw:
    """The numbers of one case: they come from its name, whatever other cases there are."""

    def __init__(self, name: str):
        self.generator = np.random.default_rng(list(name.encode()))

    def normal(self, *shape: int) -> np.ndarray:
        """Return normal float64 numbers."""
        return self.generator.normal(size=shape)

    def coins(self, *shape: int) -> np.ndarray:
        """Return booleans, seven in ten of them true."""
        return self.generator.random(shape) < 0.7

    def integers(self, high: int, *shape: int) -> np.ndarray:
        """Return integers below ``high``."""
        return self.generator.integers(0, high, shape)

    def ids(self) -> np.ndarray:
        """Return a batch of token ids."""
        return self.integers(VOCAB, B, QUERIES)


Call = Callable[[Draw], ComponentCase]


@dataclass(frozen=True)
class Room:
    """What proves one component; its file in ``rooms`` is all that a new one needs here.

    Attributes:
        example: A small config and one call, built as a user builds it.
        changes: For every field of the config a value that makes a difference in the example; a
            dictionary where other fields change with it.
        formula: Computes in numpy float64 what a call returns in evaluation mode, from the config,
            the canonical parameters in torch's shapes and the call's arguments; written from the
            papers, it shares no code with a panel. None for a head, which its encoder proves.
        calls: Cases of the exact tier by name: the component with every option that counts.
        parts: For a field whose value is a config too, each field of that: where it starts, and a
            value that makes a difference.
        is_slow: Whether the example is so many operations that compiling it, or running JAX
            uncompiled, takes seconds; such tests are of the long tail.
    """

    example: Example
    changes: dict[str, Any]
    formula: Callable[..., Any] | None = None
    calls: Mapping[str, Call] = field(default_factory=dict)
    parts: Mapping[str, dict[str, tuple[Config, Any]]] = field(default_factory=dict)
    is_slow: bool = False

    @property
    def component(self) -> str:
        """Return the name that the component has in both panels."""
        return self.example.config.component


def starting_at(config: Config, **changes: Any) -> dict[str, tuple[Config, Any]]:
    """Return changes of a part's fields that all start at one config."""
    return {name: (config, value) for name, value in changes.items()}


def of_vectors(config: Config, **flags: bool) -> Call:
    """Return a case that calls a component with one batch of vectors; flags are the case's."""
    return lambda draw: ComponentCase(config, {"x": draw.normal(B, QUERIES, D)}, **flags)


def key_mask(*lengths: int) -> np.ndarray:
    """Return a mask that is true where a sample has keys; the first is the longest."""
    return np.arange(lengths[0]) < np.array(lengths)[:, None]


def random_input(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float32 normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


IDS = np.random.default_rng(1).integers(0, VOCAB, (B, T))
X = random_input(B, T, D)
