"""Encoders of audio."""

from dataclasses import replace

import numpy as np

from diptych.spec import AudioEncoderConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import convolve
from parity_tests.components.room import EVERYTHING, Example, Room, T, key_mask, random_input
from parity_tests.components.rooms.encoder import run_layers
from parity_tests.components.rooms.feed_forward import ACTIVATIONS
from parity_tests.components.rooms.transformer_layers import GELU_LAYER, LAYER
from parity_tests.support.sizes import MAX_LEN, B


def audio_encoder(config, tensors, features, **options):
    x = features
    for name, stride in (("first_conv1d", 1), ("second_conv1d", 2)):
        x = ACTIVATIONS["gelu"](convolve(tensors, name, x, stride=stride, padding=1))
    x = np.swapaxes(x, -1, -2)
    return run_layers(
        config, tensors, x + tensors["position_embed.weight"][: x.shape[-2]], **options
    )


AUDIO_ENCODER = Room(
    Example(
        AudioEncoderConfig(num_mel_bins=5, layer=LAYER, num_layers=2, max_seq_len=MAX_LEN),
        (random_input(B, 5, 2 * T),),
    ),
    changes={
        "num_mel_bins": 7,
        "layer": replace(LAYER, d_ff=13),
        "num_layers": 3,
        "max_seq_len": 6,
        "final_norm": None,
        "dropout": 0.5,
    },
    formula=audio_encoder,
    calls={
        "AudioEncoder": lambda draw: ComponentCase(
            AudioEncoderConfig(num_mel_bins=4, layer=GELU_LAYER, num_layers=1, max_seq_len=9),
            {"features": draw.normal(B, 4, 14)},
            {"key_mask": key_mask(7, 4), **EVERYTHING},
            is_working=True,
        )
    },
    is_slow=True,
)
