"""One call of a component, and parameters for it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.spec import Config
from parity_tests.support.harness import Arrays, random_arrays


@dataclass(frozen=True)
class ComponentCase:
    """One call of a component.

    Attributes:
        config: Of the component.
        arguments: Positional arguments by a name of our own.
        options: Keyword arguments.
        keywords: Names of the arguments that are given by keyword.
        is_slow: Whether other cases prove the same kinds, so that JAX compiles it by hand only.
        is_working: Whether the working tier judges it too.
    """

    config: Config
    arguments: dict[str, np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    is_slow: bool = False
    is_working: bool = False

    @property
    def positional(self) -> list[np.ndarray]:
        """Return the arguments that are given by position."""
        return [array for name, array in self.arguments.items() if name not in self.keywords]

    @property
    def named(self) -> dict[str, Any]:
        """Return the options and the arguments that are given by keyword."""
        given = {name: self.arguments[name] for name in self.keywords if name in self.arguments}
        return self.options | given


def random_tensors(config: Config, seed: int = 5) -> Arrays:
    """Return float64 parameters by canonical name: no bias is 0, no norm scale is 1."""
    leaves = config.leaves()
    tensors = random_arrays(seed, {name: leaf.shape for name, leaf in leaves.items()}, size=0.3)
    for name, leaf in leaves.items():
        if leaf.kind == "norm" and name.endswith("weight"):
            tensors[name] += 1.0
    return tensors
