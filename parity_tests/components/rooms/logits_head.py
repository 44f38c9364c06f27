"""Logits over a vocabulary."""

from typing import Any

import numpy as np

from diptych.spec import LogitsHeadConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.formulas import Tensors, linear
from parity_tests.components.room import Example, Room, X, of_vectors
from parity_tests.support.sizes import VOCAB, D


def logits_head(config: Any, tensors: Tensors, x: Array, table: Array | None = None) -> Array:
    """``softcap(scale (x W^T + b))``, W the head's own or the token table (Press, Wolf 2017)."""
    if config.tied:
        x = linear(tensors, "embed_proj", x) if config.embed_dim else x
        logits = np.inner(x, table) + tensors.get("vocab_bias_param", 0.0)
    else:
        logits = linear(tensors, "vocab_proj", x)
    logits = logits * config.scale
    return logits if config.softcap is None else config.softcap * np.tanh(logits / config.softcap)


LOGITS_HEAD = Room(
    Example(LogitsHeadConfig(d_model=D, vocab_size=VOCAB, tied=False, softcap=3.0), (X,)),
    changes={
        "d_model": 2 * D,
        "vocab_size": 5,
        "tied": True,
        "bias": True,
        "scale": 0.5,
        "softcap": None,
        "embed_dim": {"tied": True, "embed_dim": 4},
    },
    formula=logits_head,
    calls={
        "LogitsHead": of_vectors(
            LogitsHeadConfig(d_model=D, vocab_size=VOCAB, tied=False, bias=True, scale=0.5),
            is_working=True,
        )
    },
)
