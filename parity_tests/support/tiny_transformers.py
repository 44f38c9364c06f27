"""Tiny random models of ``transformers``, every parameter drawn anew."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from parity_tests.support.harness import from_torch, to_torch
from parity_tests.support.lift_float32 import float64_throughout

VOCAB, PADDING, T = 97, 1, 11


@dataclass(frozen=True)
class FamilyCase:
    """A model of a family, and how its call is ours.

    Attributes:
        family: Name of the family.
        model: Its class in ``transformers``.
        config: Returns its config.
        inputs: Inputs of its call, by its names.
        ours: Inputs of ours, by ours.
        outputs: Our output by theirs, with dots into parts: a name as ``named_arrays`` gives it.
        lists: Our list of outputs by their list of outputs, with dots into parts.
        options: How it is opened.
        prepare: Changes the model once it is built or opened.
        last: Our output that is their last hidden state, which they normalise.
        slow: Whether its numbers are compared in the long tail only: others show the same.
    """

    family: str
    model: Any
    config: Callable[[], Any]
    inputs: Callable[[], dict[str, np.ndarray]]
    ours: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
    outputs: dict[str, str]
    lists: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Any], None] = lambda model: None
    last: str = "[output]"
    slow: bool = False


def slow(case: FamilyCase) -> FamilyCase:
    """Return a case whose numbers are compared in the long tail only."""
    return replace(case, slow=True)


def text_inputs() -> dict[str, np.ndarray]:
    """Return two prompts, the second with three tokens of padding at its end."""
    ids = np.random.default_rng(0).integers(3, VOCAB - 1, (2, T))
    mask = np.ones_like(ids)
    ids[1, -3:], mask[1, -3:] = PADDING, 0
    return {"input_ids": ids, "attention_mask": mask}


def our_text_inputs(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same prompts by our names."""
    return {"inputs": inputs["input_ids"], "key_mask": inputs["attention_mask"].astype(bool)}


def save_tiny(case: FamilyCase, folder: Path) -> None:
    """Write a random model, in float32."""
    torch.manual_seed(0)
    model = case.model(case.config())
    case.prepare(model)
    redraw(model)
    model.save_pretrained(folder)


def open_theirs(case: FamilyCase, folder: Path, dtype: torch.dtype) -> torch.nn.Module:
    """Open a folder as ``transformers`` does; nothing in it may be missing or unexpected."""
    options = {"attn_implementation": "eager"} | case.options
    model, info = case.model.from_pretrained(
        folder, dtype=dtype, output_loading_info=True, **options
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    case.prepare(model)
    return model.eval()


def call_theirs(case: FamilyCase, folder: Path, dtype: torch.dtype) -> dict[str, np.ndarray]:
    """Return what the model in a folder computes, by our names; float64 is float64 throughout."""
    if dtype is torch.float64:
        with float64_throughout():
            return _call(case, open_theirs(case, folder, dtype), dtype)
    return _call(case, open_theirs(case, folder, dtype), dtype)


def _call(case: FamilyCase, model: Any, dtype: torch.dtype) -> dict[str, np.ndarray]:
    tensors = {
        name: to_torch(array).to(dtype) if array.dtype.kind == "f" else to_torch(array)
        for name, array in case.inputs().items()
    }
    wanted = {f"output_{_kind(theirs)}": True for theirs in case.lists}
    with torch.no_grad():
        found = model(**tensors, **wanted)
    outputs = {ours: _part(found, theirs) for theirs, ours in case.outputs.items()}
    for theirs, ours in case.lists.items():
        parts = list(_part(found, theirs))
        if case.last and "." not in theirs and _kind(theirs) == "hidden_states":
            half = ours.replace("[hidden_states]", "[output]")
            outputs[case.last if theirs == "hidden_states" else half] = parts.pop()
        outputs |= {f"{ours}[{i}]": tensor for i, tensor in enumerate(parts)}
    return {name: from_torch(tensor) for name, tensor in outputs.items()}


def _part(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found[name]
    return found


def _kind(theirs: str) -> str:
    """Return which option gives one of their lists; in an encoder-decoder either half has one."""
    return "hidden_states" if theirs.endswith("hidden_states") else "attentions"


def redraw(model: torch.nn.Module, seed: int = 0) -> None:
    """Draw every saved parameter and buffer anew, by its name, in a size that keeps rows alive."""
    saved = model.state_dict().keys()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    done: set[int] = set()
    with torch.no_grad():
        for name, tensor in tensors.items():
            if name not in saved or not tensor.is_floating_point() or tensor.data_ptr() in done:
                continue
            done.add(tensor.data_ptr())
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + seed)
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() <= 1 or "norm" in name.lower():
                base = tensor.round() if tensor.numel() > 1 else tensor
                tensor.copy_(base + 0.25 * noise)
            elif _is_table(name):
                tensor.copy_(0.7 * noise)
            else:
                tensor.copy_(1.2 * noise / _fan_in(name, tensor) ** 0.5)


def _is_table(name: str) -> bool:
    words = ("embed", "wte", "wpe", "shared.weight", "position", "relative_attention", "cls_token")
    return any(word in name for word in words) and "proj" not in name and "mapping" not in name


def _fan_in(name: str, tensor: torch.Tensor) -> int:
    transposed = any(f".{word}." in name for word in ("c_attn", "c_proj", "c_fc"))
    if transposed or (tensor.dim() == 3 and "expert" in name):
        return tensor.shape[-2]
    return tensor[0].numel()
