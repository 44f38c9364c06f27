"""What components refuse, in the same words in both panels."""

import re
from typing import Any

import numpy as np
import pytest

from diptych.spec import Config, EncoderConfig, ScoreConfig, TextEmbeddingConfig
from diptych.spec import TransformerEncoderLayerConfig as LayerConfig
from parity_tests.components.modules import PANELS, arrays, new
from parity_tests.components.room import Example
from parity_tests.components.rooms import EXAMPLES
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.support.sizes import D

TAKE_IDS = (
    "Decoder",
    "Embedding",
    "Encoder",
    "EncoderDecoder",
    "EncoderWithHeads",
    "EncoderWithProjection",
    "RelativePositionBias",
    "TextEmbedding",
)
OF_VECTORS = {name: example for name, example in EXAMPLES.items() if name not in TAKE_IDS}
OF_VECTORS["Encoder"] = Example(
    EncoderConfig(layer=LAYER, num_layers=1), EXAMPLES[LAYER.component].arguments
)
OF_SEQUENCES = ("HeadAttention", "MultiHeadAttention", "PositionalEncoding", LAYER.component)


def refusals(example: Example, change: Any, error: type[Exception]) -> list[str]:
    """Return what each panel says of an example whose first argument is changed."""
    first, *others = example.arguments
    messages = []
    for panel in PANELS:
        module = new(panel, example.config).eval()
        with pytest.raises(error) as caught:
            module(*arrays(panel, (change(first), *others)))
        messages.append(str(caught.value))
    return messages


@pytest.mark.parametrize("component", OF_VECTORS)
def test_another_width_is_refused(component: str) -> None:
    """Neither framework's own error: they differ, and name neither argument nor rule."""
    in_torch, in_jax = refusals(OF_VECTORS[component], lambda x: x[..., :-1], ValueError)
    assert in_torch == in_jax
    assert re.search("(has|have) shape|have 13 frames", in_torch)


@pytest.mark.parametrize("component", OF_SEQUENCES)
def test_one_vector_is_no_sequence(component: str) -> None:
    in_torch, in_jax = refusals(OF_VECTORS[component], lambda x: x[0, 0], ValueError)
    assert in_torch == in_jax == f"the input has shape ({D},), expected (..., T, {D})"


@pytest.mark.parametrize("component", ["LayerNorm", "PositionalEncoding"])
def test_integers_are_not_normalised_nor_moved(component: str) -> None:
    """Statistics and sinusoids would be rounded to integers without a word."""
    in_torch, in_jax = refusals(OF_VECTORS[component], lambda x: x.astype(np.int32), TypeError)
    assert in_torch == in_jax == "x is int32, but it must be floating"


SIZES = {"d_model": 4, "num_heads": 2}
JSON: list[tuple[type[Config], dict[str, Any], str]] = [
    (LayerConfig, SIZES | {"dropout": "0.1"}, "dropout='0.1' must be a number"),
    (LayerConfig, SIZES | {"dropout": None}, "dropout=None must be a number"),
    (LayerConfig, SIZES | {"dropout": False}, "dropout=False must be a number"),
    (LayerConfig, SIZES | {"num_heads": 2.0}, "num_heads=2.0 must be an integer"),
    (LayerConfig, SIZES | {"activation": 1}, "activation=1 must be a string"),
    (ScoreConfig, {"is_causal": "false"}, "is_causal='false' must be true or false"),
    (ScoreConfig, {"is_causal": 1}, "is_causal=1 must be true or false"),
    (ScoreConfig, {"window": "3"}, "window='3' must be an integer or a list or null"),
    (EncoderConfig, {"layer": 5, "num_layers": 1}, "layer=5 must be an object"),
    (
        EncoderConfig,
        {"layer": SIZES, "num_layers": 1, "embedding": []},
        r"embedding=\[\] must be an object or null",
    ),
    (
        TextEmbeddingConfig,
        {"vocab_size": 3, "d_model": 4, "num_token_types": False},
        "num_token_types=False must be an integer",
    ),
]


@pytest.mark.parametrize(("config", "values", "words"), JSON)
def test_json_of_another_type_is_refused(
    config: type[Config], values: dict[str, Any], words: str
) -> None:
    """The text "false" is true to Python, and a number in quotes no number."""
    with pytest.raises(ValueError, match=words):
        config.from_dict(values)


def test_json_writes_whole_numbers_without_a_point() -> None:
    assert LayerConfig.from_dict(SIZES | {"dropout": 0}).dropout == 0


@pytest.mark.parametrize("number", ["1e-5", None, float("nan"), 0])
def test_numbers_are_numbers(number: Any) -> None:
    with pytest.raises(ValueError, match=r"eps=.* must be above 0 and finite"):
        LayerConfig(**SIZES, eps=number)
