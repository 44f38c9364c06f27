"""The workloads that both runners time, and the clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diptych.spec import (
    EncoderConfig,
    NormConfig,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)

Calls = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Attention:
    """One multi-head attention layer over a batch.

    Attributes:
        batch: B.
        length: T, queries and keys alike.
        d_model: D.
        num_heads: N.
    """

    batch: int = 4
    length: int = 256
    d_model: int = 384
    num_heads: int = 12

    def inputs(self) -> np.ndarray:
        """Return float32 (B, T, D)."""
        return np.random.default_rng(0).standard_normal(
            (self.batch, self.length, self.d_model), np.float32
        )


LAYER = TransformerEncoderLayerConfig(
    d_model=384, num_heads=12, d_ff=1536, activation="gelu", eps=1e-12
)
MINILM = EncoderConfig(
    layer=LAYER,
    num_layers=6,
    embedding=TextEmbeddingConfig(vocab_size=30522, d_model=384, norm=NormConfig(eps=1e-12)),
    pooler=True,
)


def token_ids(batch: int = 8, length: int = 128) -> np.ndarray:
    """Return int32 ids (batch, length) of MiniLM's vocabulary."""
    assert MINILM.embedding is not None
    return np.random.default_rng(0).integers(
        0, MINILM.embedding.vocab_size, (batch, length), np.int32
    )


def median_seconds(calls: Calls, repeats: int = 15) -> dict[str, float]:
    """Return each call's median time; the calls take turns, after two rounds of warming up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(repeats + 2):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if round_ >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}
