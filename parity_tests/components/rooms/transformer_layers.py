"""The classic layers of encoders and decoders."""

from dataclasses import replace

import numpy as np

from diptych.spec import TransformerDecoderLayerConfig, TransformerEncoderLayerConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.room import QUERIES, Example, Room, X, key_mask
from parity_tests.components.rooms.block import block
from parity_tests.support.sizes import B, D, F, N

LAYER = TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F)
GELU_LAYER = replace(LAYER, activation="gelu", eps=1e-12)
_decoder_layer = TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F)
_changes = {
    "d_model": 2 * D,
    "num_heads": 5,
    "d_ff": F + 2,
    "dropout": 0.5,
    "activation": "gelu",
    "norm_placement": "pre",
    "eps": 0.1,
    "attention_dropout": 0.5,
}


def encoder_layer(config, tensors, x, mask=None, *, need_weights=False, **options):
    found = block(config, tensors, x, mask, need_weights=True, **options)
    pair = found["output"], found["attention_weights"]
    return pair if need_weights else pair[0]


def decoder_layer(config, tensors, x, memory, mask=None, *, need_weights=False, **options):
    found = block(config, tensors, x, mask, memory=memory, need_weights=True, **options)
    names = ("output", "attention_weights", "cross_attention_weights")
    return tuple(found[name] for name in names) if need_weights else found["output"]


TRANSFORMER_ENCODER_LAYER = Room(
    Example(LAYER, (X,)),
    changes=_changes,
    formula=encoder_layer,
    calls={
        "TransformerEncoderLayer": lambda draw: ComponentCase(
            LAYER,
            {"x": draw.normal(B, QUERIES, D)},
            {"key_mask": key_mask(QUERIES, 7), "need_weights": True},
        ),
        # The working tier's: at relu's kink a rounding error turns a whole gradient on or off.
        "TransformerEncoderLayer, gelu": lambda draw: ComponentCase(
            GELU_LAYER,
            {"x": draw.normal(B, QUERIES, D)},
            {"key_mask": key_mask(QUERIES, 7), "need_weights": True},
        ),
        "TransformerEncoderLayer, pre-norm": lambda draw: ComponentCase(
            replace(LAYER, activation="gelu", norm_placement="pre", eps=1e-2),
            {"x": draw.normal(B, QUERIES, D)},
            {
                "mask": np.tril(np.ones((QUERIES, QUERIES), bool)),
                "bias": draw.normal(1, N, QUERIES, QUERIES),
            },
        ),
    },
    is_slow=True,
)
TRANSFORMER_DECODER_LAYER = Room(
    Example(_decoder_layer, (X, X[:, :5])),
    changes=_changes,
    formula=decoder_layer,
    calls={
        "TransformerDecoderLayer": lambda draw: ComponentCase(
            _decoder_layer,
            {"x": draw.normal(B, 7, D), "memory": draw.normal(B, 5, D)},
            {"key_mask": key_mask(7, 4), "need_weights": True},
        )
    },
    is_slow=True,
)
