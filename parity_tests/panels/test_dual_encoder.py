"""Pooled tokens, projections and the comparison of two encoders."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from diptych.spec import DualEncoderConfig, EncoderConfig, EncoderWithProjectionConfig
from parity_tests.components.modules import PANELS, arrays, build, run
from parity_tests.components.room import random_input
from parity_tests.components.rooms import EXAMPLES
from parity_tests.components.rooms.dual_encoder import PROJECTED
from parity_tests.components.rooms.embedding import TEXT
from parity_tests.components.rooms.patches import IMAGES
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.components.rooms.vision import VISION
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.sizes import D

TO_PANEL = {"torch": to_torch, "jax": to_jax}
both_panels = pytest.mark.parametrize("panel", PANELS)
IDS = np.array([[3, 9, 4, 9], [7, 1, 7, 7], [0, 0, 0, 0]])
PLACES = {9: (1, 0, 0), 7: (0, 0, 0), 0: (0, 0, 0), "highest": (1, 0, 0), "last": (3, 3, 3)}


@both_panels
@pytest.mark.parametrize("token", PLACES)
def test_the_pooled_vector_is_the_output_at_the_token(panel: str, token: Any) -> None:
    """The first place of several, the first position where there is none."""
    config = EncoderConfig(layer=LAYER, num_layers=1, embedding=TEXT, pooled_token=token)
    output, pooled = run(panel, config, IDS)
    np.testing.assert_array_equal(pooled, output[np.arange(3), PLACES[token]])


REFUSED = [
    ({"pooled_token": "first"}, "pooled_token='first' must be one of 'highest', 'last'"),
    ({"pooled_token": -1}, "pooled_token=-1 must be an integer of at least 0"),
    ({"pooled_token": 3, "pooler": True}, "there is one pooled vector"),
    ({"pooled_token": 3, "embedding": None}, "pooled_token=3 needs an embedding"),
    ({"pooled_token": "highest", "embedding": None}, "needs an embedding"),
]


@pytest.mark.parametrize(("change", "cause"), REFUSED)
def test_a_pooled_token_that_cannot_be_found_is_refused(change: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        EncoderConfig(**{"layer": LAYER, "num_layers": 1, "embedding": TEXT} | change)


PLAIN = EncoderConfig(layer=LAYER, num_layers=1, embedding=TEXT)


def test_encoders_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="the Encoder has no pooled vector"):
        EncoderWithProjectionConfig(encoder=PLAIN, projection_dim=3)
    with pytest.raises(ValueError, match="the Encoder has no pooled vector"):
        DualEncoderConfig(image=VISION, text=PLAIN)
    with pytest.raises(ValueError, match=f"width of image={D} must equal width of text=3"):
        DualEncoderConfig(image=VISION, text=dataclasses.replace(PROJECTED, projection_dim=3))
    with pytest.raises(TypeError, match="image=EncoderConfig must be of VisionEncoderConfig"):
        DualEncoderConfig(image=PROJECTED, text=PROJECTED)


@both_panels
def test_one_encoder_alone_gives_the_vectors_that_are_compared(panel: str) -> None:
    config = EXAMPLES["DualEncoder"].config
    module = build(panel, config)
    images, ids = arrays(panel, (IMAGES, IDS))
    found = module(images, ids)
    functional = PANELS[panel].functional
    image = functional.normalize(module.image(images).pooled)
    text = functional.normalize(module.text(ids).projected)
    np.testing.assert_array_equal(_numpy(image), _numpy(found.image_vectors))
    np.testing.assert_array_equal(_numpy(text), _numpy(found.text_vectors))


@both_panels
def test_images_and_texts_need_not_be_as_many(panel: str) -> None:
    config = EXAMPLES["DualEncoder"].config
    logits = run(panel, config, IMAGES, IDS)[0]
    one = run(panel, config, IMAGES[:1], IDS)[0]
    assert one.shape == (1, len(IDS))
    np.testing.assert_allclose(one, logits[:1], rtol=1e-5)


@both_panels
def test_logits_are_scaled_cosines(panel: str) -> None:
    x, y = random_input(2, 3, seed=1) * 1e3, random_input(4, 3, seed=2) * 1e-3
    functional = PANELS[panel].functional
    to_panel = TO_PANEL[panel]
    vectors = [functional.normalize(to_panel(each)) for each in (x, y)]
    scale, bias = (to_panel(np.array(each, np.float32)) for each in (0.7, -2.0))
    found = _numpy(functional.similarity(*vectors, scale, bias))
    lengths = np.linalg.norm(x, axis=-1)[:, None] * np.linalg.norm(y, axis=-1)
    np.testing.assert_allclose(found, np.exp(0.7) * (x @ y.T) / lengths - 2.0, rtol=1e-5, atol=1e-6)


@both_panels
def test_lone_vectors_and_other_widths_are_refused(panel: str) -> None:
    functional, to_panel = PANELS[panel].functional, TO_PANEL[panel]
    x = to_panel(random_input(2, 3))
    scale = to_panel(np.array(0.0, np.float32))
    with pytest.raises(ValueError, match=r"the input has shape \(3,\), expected \(..., T, 3\)"):
        functional.similarity(x, x[0], scale)
    with pytest.raises(ValueError, match=r"the input has shape \(3,\), expected \(..., T, 3\)"):
        functional.similarity(x[0], x, scale)
    with pytest.raises(ValueError, match=r"the input has shape \(2, 3\), expected \(..., T, 2\)"):
        functional.similarity(x, x[:, :2], scale)
    with pytest.raises(TypeError, match="x is int"):
        functional.normalize(to_panel(IDS))


def _numpy(array: Any) -> np.ndarray:
    return array.detach().numpy() if hasattr(array, "detach") else np.asarray(array)
