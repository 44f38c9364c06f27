"""A small head, and how a config rotates it in either panel.

B batch   N heads   T positions   H head width
"""

import numpy as np

from diptych.spec import RotaryConfig, RotaryTable
from parity_tests.support.panels import Panel

B, N, T, H = 2, 2, 7, 16
X = np.random.default_rng(0).normal(size=(B, N, T, H))
POSITIONS = np.arange(T)


def rotate(
    panel: Panel, x: np.ndarray, positions: np.ndarray, config: RotaryConfig = RotaryConfig()
) -> np.ndarray:
    """Rotate a head as attention does."""
    table = RotaryTable(config, x.shape[-1])
    return panel.run(
        lambda x, positions: panel.functional.apply_rotary(
            x,
            positions,
            table.frequencies(x.shape[-2]),
            interleaved=config.interleaved,
            factor=table.factor,
        ),
        x,
        positions,
    )
