"""Layer normalisation and root-mean-square normalisation."""

from typing import Any

import numpy as np

from diptych.spec import LayerNormConfig, RMSNormConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.formulas import Tensors
from parity_tests.components.room import Example, Room, X, of_vectors
from parity_tests.support.sizes import D


def layer_norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axis (Ba et al. 2016)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    normed = centred / np.sqrt(variance + config.eps) * tensors["weight"]
    return normed + tensors.get("bias", 0.0)


def rms_norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """``x / sqrt(mean(x^2) + eps) * weight``, or 1 + weight (Zhang, Sennrich 2019)."""
    factor = tensors["weight"] + (1.0 if config.unit_offset else 0.0)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.eps) * factor


def norm(config: Any, tensors: Tensors, x: Array) -> Array:
    """Apply the norm that a ``NormConfig`` is at the width of ``x``."""
    apply = rms_norm if config.kind == "rms" else layer_norm
    return apply(config.of(x.shape[-1]), tensors, x)


LAYER_NORM = Room(
    Example(LayerNormConfig(d_model=D), (X,)),
    changes={"d_model": 2 * D, "eps": 0.1, "bias": False},
    formula=layer_norm,
    calls={
        "LayerNorm": of_vectors(LayerNormConfig(d_model=D, eps=1e-3)),
        "LayerNorm without a bias": of_vectors(LayerNormConfig(d_model=D, bias=False)),
    },
)
RMS_NORM = Room(
    Example(RMSNormConfig(d_model=D), (X,)),
    changes={"d_model": 2 * D, "eps": 0.1, "unit_offset": True},
    formula=rms_norm,
    calls={
        "RMSNorm": of_vectors(RMSNormConfig(d_model=D, eps=1e-3)),
        "RMSNorm, 1 + weight": of_vectors(RMSNormConfig(d_model=D, unit_offset=True)),
    },
)
