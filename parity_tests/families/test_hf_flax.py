"""Files that ``transformers`` 4.57 wrote from its Flax classes, against the outputs it stored.

``data/hf_flax/FAMILY`` has what the library's own ``save_pretrained`` wrote, of a random model
whose norm scales are not 1 and biases not 0, and in ``reference.npz`` inputs (``in.``) and the Flax
model's float32 outputs (``out.``). No version of the library since 5.0 can read such a folder.
"""

import json
from typing import Any

import flax.serialization
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from diptych.convert import (
    convert_checkpoint,
    diff_checkpoints,
    inspect_checkpoint,
    open_checkpoint,
    verify_manifest,
)
from diptych.parity.compare import compare_exact
from diptych.parity.inputs import Batch
from diptych.parity.panels import Outputs, run_jax, run_torch
from diptych.tensors.ulp import unit_roundoff
from parity_tests import ROOT

from ..convert.interrupt import tree_digest
from ..support.checkpoints import assert_same_tensors, stored_tensors

DATA = ROOT / "parity_tests" / "data" / "hf_flax"
MASKED_LM = {
    "logits": "masked_lm",
    "hidden_states": "encoded.hidden_states",
    "attentions": "encoded.attention_weights",
}
DECODER = {
    "logits": "logits",
    "hidden_states": "hidden_states",
    "attentions": "attention_weights",
}
ENCODER_DECODER = {
    "logits": "decoded.logits",
    "decoder_hidden_states": "decoded.hidden_states",
    "decoder_attentions": "decoded.attention_weights",
    "cross_attentions": "decoded.cross_attention_weights",
    "encoder_last_hidden_state": "encoded.output",
    "encoder_hidden_states": "encoded.hidden_states",
    "encoder_attentions": "encoded.attention_weights",
}
CLASSIFIER = {
    "logits": "projected",
    "hidden_states": "encoded.hidden_states",
    "attentions": "encoded.attention_weights",
}
OUTPUTS = {
    "bert": MASKED_LM,
    "roberta": MASKED_LM,
    "gpt2": DECODER,
    "llama": DECODER,
    "t5": ENCODER_DECODER,
    "vit": CLASSIFIER,
}
"""By family: what the stored outputs are called here; those of a list have an index behind."""
ENDS = {
    "gpt2": {"hidden_states.3": "output"},
    "llama": {"hidden_states.3": "output"},
    "t5": {
        "encoder_hidden_states.3": "encoded.output",
        "decoder_hidden_states.2": "decoded.output",
    },
}
"""Stored outputs that are called otherwise: Flax normalises the last hidden state."""
ARGUMENTS = ("input_ids", "decoder_input_ids", "pixel_values")
CLASSES = {
    "bert": "AutoModelForMaskedLM",
    "roberta": "AutoModelForMaskedLM",
    "t5": "AutoModelForSeq2SeqLM",
    "vit": "AutoModelForImageClassification",
}
"""What opens the converted folder in ``transformers``; a language model where none is named."""


def references(family: str) -> tuple[Batch, Outputs]:
    """Return the stored inputs, and the stored outputs by our names."""
    with np.load(DATA / family / "reference.npz") as file:
        arrays = dict(file)
    kwargs: dict[str, Any] = {"need_weights": True, "need_hidden_states": True}
    if "in.attention_mask" in arrays:
        kwargs["key_mask"] = arrays["in.attention_mask"].astype(bool)
    if "in.token_type_ids" in arrays:
        kwargs["token_type_ids"] = arrays["in.token_type_ids"].astype(np.int64)
    given = [arrays[f"in.{name}"] for name in ARGUMENTS if f"in.{name}" in arrays]
    args = tuple(a.astype(np.float64 if a.dtype.kind == "f" else np.int64) for a in given)
    stored = {}
    for name, values in arrays.items():
        kind, _, rest = name.partition(".")
        if kind == "out":
            title, _, index = rest.partition(".")
            ours = OUTPUTS[family][title] + (f"[{index}]" if index else "")
            stored[ENDS.get(family, {}).get(rest, ours)] = values
    return Batch(name=family, args=args, kwargs=kwargs), stored


def is_near(found: np.ndarray, stored: np.ndarray, exact: np.ndarray) -> bool:
    """Return whether a float32 result is as near to the stored one as that is to float64."""
    error = np.abs(stored - exact).max()
    floor = 8 * unit_roundoff(stored.dtype) * np.abs(stored).max()
    difference = np.abs(found.astype(np.float64) - stored).max()
    return found.shape == stored.shape and bool(difference <= max(4 * error, floor))


@pytest.mark.parametrize("family", OUTPUTS)
def test_both_panels_reach_the_stored_outputs(tally, tmp_path, family):
    """At most 4 times the stored outputs' own error against float64, or 8u of the largest."""
    batch, stored = references(family)
    assert {name.partition("[")[0] for name in stored} >= set(OUTPUTS[family].values())
    for to in ("hf", "flax"):
        convert_checkpoint(DATA / family, tmp_path / to, to=to)
    in_torch, in_jax = (open_checkpoint(tmp_path / to) for to in ("hf", "flax"))
    (wide_torch,), (wide_jax,) = (
        run_torch(in_torch, (batch,), "float64"),
        run_jax(in_jax, (batch,), "float64"),
    )
    for name in stored:
        row = compare_exact(wide_torch[name], wide_jax[name], name=f"{family}: {name}")
        tally.outputs.append(row)
        assert row.ok, str(row)
    (narrow_torch,), (narrow_jax,) = (
        run_torch(in_torch, (batch,), "float32"),
        run_jax(in_jax, (batch,), "float32"),
    )
    for panel in (narrow_torch, narrow_jax):
        for name, theirs in stored.items():
            assert is_near(panel[name], theirs, wide_torch[name]), name


@pytest.mark.parametrize("family", OUTPUTS)
def test_there_and_back_is_the_same_tree(tmp_path, family):
    source = DATA / family
    before = tree_digest(source)
    given = flax.serialization.msgpack_restore((source / "flax_model.msgpack").read_bytes())
    for to in ("hf", "torch", "flax", "hf-flax") if family == "bert" else ("hf", "flax"):
        for shards in (None, 100_000) if family == "bert" else (None,):
            there, back = tmp_path / f"{to}{shards}", tmp_path / f"{to}{shards}-back"
            convert_checkpoint(source, there, to=to, max_shard_size=shards)
            assert verify_manifest(there) == []
            assert diff_checkpoints(source, there).identical
            convert_checkpoint(there, back, to="hf-flax")
            # Flax sorts the keys of what it serializes; the old library kept its modules' order.
            expected = flax.serialization.msgpack_serialize(given)
            assert (back / "flax_model.msgpack").read_bytes() == expected
            settings = json.loads((source / "config.json").read_text())
            assert settings.items() <= json.loads((back / "config.json").read_text()).items()
            assert_same_tensors(stored_tensors(back), flatten_dict(given, sep="."))
    assert tree_digest(source) == before


@pytest.mark.parametrize("family", OUTPUTS)
def test_inspect_says_what_it_is_without_being_told(family):
    seen = inspect_checkpoint(DATA / family)
    assert (seen.layout, seen.container, seen.family) == ("hf-flax", "msgpack", family)
    assert seen.faults == ()
    meta = json.loads((DATA / family / "meta.json").read_text())
    assert len(seen.tensors) == meta["tensors"]
    assert f"in layout hf-flax, family {family}" in str(seen)


@pytest.mark.parametrize("family", OUTPUTS)
def test_transformers_of_today_loads_what_was_converted(tmp_path, family):
    """huggingface/transformers#12545: nothing missing, nothing unexpected, the stored outputs."""
    import torch
    import transformers

    convert_checkpoint(DATA / family, tmp_path / "hf", to="hf")
    kind = getattr(transformers, CLASSES.get(family, "AutoModelForCausalLM"))
    model, info = kind.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    batch, stored = references(family)
    with np.load(DATA / family / "reference.npz") as file:
        inputs = {
            name.removeprefix("in."): torch.from_numpy(array).to(
                torch.float32 if array.dtype.kind == "f" else torch.int64
            )
            for name, array in file.items()
            if name.startswith("in.")
        }
    with torch.no_grad():
        found = model.eval()(**inputs).logits
    (exact,) = run_torch(open_checkpoint(tmp_path / "hf"), (batch,), "float64")
    name = OUTPUTS[family]["logits"]
    assert is_near(found.numpy(), stored[name], exact[name])
