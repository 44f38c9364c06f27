"""Images and spectrograms of any leading dimensions, and those that encoders refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diptych.spec import PatchEmbeddingConfig
from parity_tests.components.modules import PANELS, run
from parity_tests.components.rooms import EXAMPLES
from parity_tests.components.rooms.patches import PATCHES

VISION, AUDIO, POOLING = (
    EXAMPLES[name].config for name in ("VisionEncoder", "AudioEncoder", "AttentionPooling")
)
MASKED = replace(PATCHES, mask_token=True)
IMAGES = np.random.default_rng(0).normal(size=(2, 3, 8, 12)).astype(np.float32)
SOUND = np.random.default_rng(1).normal(size=(2, 5, 14)).astype(np.float32)
X = np.random.default_rng(2).normal(size=(2, 7, PATCHES.d_model)).astype(np.float32)
IMAGE_WORDS = r"expected \(\.\.\., 3, 8, 12\): num_channels=3, image_size=\(8, 12\)"

REFUSED: dict[str, tuple[Any, np.ndarray, dict[str, Any], type[Exception], str]] = {
    "channels": (PATCHES, IMAGES[:, :2], {}, ValueError, r"\(2, 2, 8, 12\), " + IMAGE_WORDS),
    "channels last": (PATCHES, np.moveaxis(IMAGES, 1, -1), {}, ValueError, IMAGE_WORDS),
    "odd width": (PATCHES, IMAGES[..., :11], {}, ValueError, IMAGE_WORDS),
    "sides swapped": (VISION, np.swapaxes(IMAGES, -1, -2), {}, ValueError, IMAGE_WORDS),
    "no channels": (VISION, IMAGES[0, 0], {}, ValueError, IMAGE_WORDS),
    "bytes": (PATCHES, IMAGES.astype(np.uint8), {}, TypeError, "images is uint8, but it must be"),
    "no mask token": (
        VISION,
        IMAGES,
        {"patch_mask": np.ones((2, 6), bool)},
        ValueError,
        "patch_mask is given, but mask_token=False",
    ),
    "mask of a grid": (
        MASKED,
        IMAGES,
        {"patch_mask": np.ones((2, 2, 3), bool)},
        ValueError,
        r"patch_mask of shape \(2, 2, 3\) does not broadcast to the input's \(2, 6\)",
    ),
    "floating mask": (
        MASKED,
        IMAGES,
        {"patch_mask": np.ones((2, 6), np.float32)},
        TypeError,
        "patch_mask is float32, but a mask is boolean or integer",
    ),
    "mel bins": (
        AUDIO,
        SOUND[:, :4],
        {},
        ValueError,
        r"\(2, 4, 14\), expected \(\.\.\., 5, frames",
    ),
    "odd frames": (AUDIO, SOUND[..., :13], {}, ValueError, "13 frames, expected an even number"),
    "no frames": (AUDIO, SOUND[..., :0], {}, ValueError, "0 frames, expected an even number"),
    "too many": (AUDIO, SOUND.repeat(3, -1), {}, ValueError, "42 frames, two a position, but max_"),
    "no bins": (AUDIO, SOUND[0, 0], {}, ValueError, r"\(14,\), expected \(\.\.\., 5, frames\)"),
    "integers": (AUDIO, SOUND.astype(np.int32), {}, TypeError, "features is int32, but it must be"),
    "mask of frames": (
        AUDIO,
        SOUND,
        {"key_mask": np.ones((2, 14), bool)},
        ValueError,
        r"key_mask has shape \(2, 14\), expected \(2, 7\)",
    ),
    "one vector": (POOLING, X[0, 0], {}, ValueError, r"\(15,\), expected \(\.\.\., T, 15\)"),
    "pooled width": (POOLING, X[..., :3], {}, ValueError, r"\(2, 7, 3\), expected"),
    "pooled mask": (
        POOLING,
        X,
        {"key_mask": np.ones((2, 6), bool)},
        ValueError,
        r"key_mask has shape \(2, 6\), expected \(2, 7\)",
    ),
}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("config", "x", "options", "error", "words"), REFUSED.values(), ids=REFUSED
)
def test_refused(
    panel: str, config: Any, x: np.ndarray, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        run(panel, config, x, **options)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("config", "x"), [(PATCHES, IMAGES), (VISION, IMAGES), (AUDIO, SOUND), (POOLING, X)],
    ids=["patches", "vision", "audio", "pooling"],
)  # fmt: skip
def test_any_leading_dimensions(panel: str, config: Any, x: np.ndarray) -> None:
    batch = run(panel, config, x)
    for leading in ((), (1, 2), (0,)):
        given = x[0] if leading == () else x[: leading[-1]].reshape(*leading, *x.shape[1:])
        expected = [a[0] if leading == () else a[: leading[-1]] for a in batch]
        for ours, theirs in zip(run(panel, config, given), expected, strict=True):
            assert ours.shape == (*leading, *theirs.shape[0 if leading == () else 1 :])
            np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_size": 7}, "patch_size=4 must divide image_size=7"),
        ({"image_size": (8, 10)}, "patch_size=4 must divide image_size=10"),
        (
            {"image_size": (8, 8, 8)},
            r"image_size=\(8, 8, 8\) must be one size or \(height, width\)",
        ),
        ({"patch_size": 0}, "patch_size=0 must be a positive integer"),
        ({"class_token": 1}, "class_token=1 must be a boolean"),
    ],
)
def test_sizes_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PatchEmbeddingConfig(**({"image_size": 8, "patch_size": 4, "d_model": 6} | change))
