"""What generate refuses, with the same words in both panels, and prompts that just fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity_tests.components.modules import PANELS, build
from parity_tests.panels.stack_cases import (
    BLOCKS,
    DECODERS,
    ENCODER,
    ROWS,
    TIED,
    TOKENS,
    B,
    decoder,
)
from parity_tests.support.harness import from_torch, to_jax, to_torch

IDS = np.arange(B * 4).reshape(B, 4)
MASK = np.arange(4) < np.array([[4], [2], [1]])
BARE, LEARNED = DECODERS["rotary, grouped"], DECODERS["learned positions"]
UNIFORMS = np.full((B, 3), 0.5, np.float32)
LARGE = replace(BARE, embedding=replace(TOKENS, vocab_size=300), head=replace(TIED, vocab_size=300))

REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no decoder": (ENCODER, {}, TypeError, "model=Encoder must be of Decoder or EncoderDecoder"),
    "one stop id": (BARE, {"stop_ids": 3}, TypeError, "stop_ids=int must be of list or tuple"),
    "mask of one prompt": (BARE, {"key_mask": MASK[0]}, ValueError, r"key_mask has shape \(4,\)"),
    "floating mask": (BARE, {"key_mask": MASK * 1.0}, TypeError, "key_mask is float"),
    "integer uniforms": (
        BARE,
        {"temperature": 1.0, "uniforms": np.zeros((B, 3), np.int32)},
        TypeError,
        "uniforms is int32, but it must be floating",
    ),
    "temperature": (
        BARE,
        {"temperature": 1e300, "uniforms": UNIFORMS},
        ValueError,
        r"temperature=1e\+300 must be at least 0 and below 2\*\*127",
    ),
    "true": (BARE, {"temperature": True}, ValueError, "temperature=True must be at least 0"),
    "narrow ids": (
        LARGE,
        {"input_ids": IDS.astype(np.uint8)},
        ValueError,
        "input_ids are uint8, too narrow for the ids of vocab_size=300",
    ),
    "narrower ids": (LARGE, {"input_ids": IDS.astype(np.int8)}, ValueError, "are int8, too narrow"),
    "one prompt too long": (
        LEARNED,
        {"key_mask": MASK, "max_new_tokens": ROWS - 2},
        ValueError,
        "a sequence of 17 positions exceeds max_seq_len=16",
    ),
    "mask of the memory": (
        decoder(BLOCKS["cross, sandwich"]),
        {"memory": np.ones((B, 5, 12), np.float32), "memory_mask": MASK},
        ValueError,
        r"memory_mask has shape \(3, 4\), expected that of the memory, \(3, 5\)",
    ),
}


def generate(panel: str, config: Any, **options: Any) -> Any:
    """Generate in a panel from numpy arrays."""
    convert = to_torch if panel == "torch" else to_jax
    given = {"input_ids": IDS, "max_new_tokens": 3} | options
    arrays = {k: convert(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    return PANELS[panel].generate(build(panel, config), **arrays)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("config", "options", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(panel: str, config: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        generate(panel, config, **options)


@pytest.mark.parametrize("panel", PANELS)
def test_padding_needs_no_positions(panel: str) -> None:
    """Prompts padded past the table continue as they do without the padding."""
    wide = np.pad(IDS, [(0, 0), (0, ROWS)])
    mask = np.pad(MASK, [(0, 0), (0, ROWS)])
    options: Any = {"max_new_tokens": ROWS - 3}
    padded = generate(panel, LEARNED, input_ids=wide, key_mask=mask, **options)
    plain = generate(panel, LEARNED, key_mask=MASK, **options)
    convert = from_torch if panel == "torch" else np.asarray
    np.testing.assert_array_equal(convert(padded.tokens), convert(plain.tokens))
