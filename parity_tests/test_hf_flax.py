"""Files that ``transformers`` 4.57 wrote from its Flax classes, against the outputs it stored.

``data/hf_flax/FAMILY`` has what the library's own ``save_pretrained`` wrote, of a random model
whose norm scales are not 1 and biases not 0, and in ``reference.npz`` inputs (``in.``) and the Flax
model's float32 outputs (``out.``). No version of the library since 5.0 can read such a folder.
"""

from pathlib import Path

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
from diptych.parity.ulp import unit_roundoff

from .checkpoints import assert_same_tensors, stored_tensors
from .interrupt import tree_digest

DATA = Path(__file__).parent / "data" / "hf_flax"
PREFIXES = {
    "bert": {
        "logits": "masked_lm",
        "hidden_states": "encoded.hidden_states",
        "attentions": "encoded.attention_weights",
    }
}
"""By family: what the stored outputs are called here; those of a list have an index behind."""


def references(family: str) -> tuple[Batch, Outputs]:
    """Return the stored inputs, and the stored outputs by our names."""
    with np.load(DATA / family / "reference.npz") as file:
        arrays = dict(file)
    batch = Batch(
        name=family,
        args=(arrays["in.input_ids"].astype(np.int64),),
        kwargs={
            "key_mask": arrays["in.attention_mask"].astype(bool),
            "token_type_ids": arrays["in.token_type_ids"].astype(np.int64),
            "need_weights": True,
            "need_hidden_states": True,
        },
    )
    stored = {}
    for name, values in arrays.items():
        kind, _, rest = name.partition(".")
        if kind == "out":
            title, _, index = rest.partition(".")
            stored[PREFIXES[family][title] + (f"[{index}]" if index else "")] = values
    return batch, stored


def is_near(found: np.ndarray, stored: np.ndarray, exact: np.ndarray) -> bool:
    """Return whether a float32 result is as near to the stored one as that is to float64."""
    error = np.abs(stored - exact).max()
    floor = 8 * unit_roundoff(stored.dtype) * np.abs(stored).max()
    difference = np.abs(found.astype(np.float64) - stored).max()
    return found.shape == stored.shape and bool(difference <= max(4 * error, floor))


@pytest.mark.parametrize("family", PREFIXES)
def test_both_panels_reach_the_stored_outputs(tally, tmp_path, family):
    """At most 4 times the stored outputs' own error against float64, or 8u of the largest."""
    batch, stored = references(family)
    assert {name.partition("[")[0] for name in stored} == set(PREFIXES[family].values())
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


@pytest.mark.parametrize("family", PREFIXES)
def test_there_and_back_is_the_same_tree(tmp_path, family):
    source = DATA / family
    before = tree_digest(source)
    given = flax.serialization.msgpack_restore((source / "flax_model.msgpack").read_bytes())
    for to in ("hf", "torch", "flax", "hf-flax"):
        for shards in (None, 100_000):
            there, back = tmp_path / f"{to}{shards}", tmp_path / f"{to}{shards}-back"
            convert_checkpoint(source, there, to=to, max_shard_size=shards)
            assert verify_manifest(there) == []
            assert diff_checkpoints(source, there).identical
            convert_checkpoint(there, back, to="hf-flax")
            # Flax sorts the keys of what it serializes; the old library kept its modules' order.
            expected = flax.serialization.msgpack_serialize(given)
            assert (back / "flax_model.msgpack").read_bytes() == expected
            assert (back / "config.json").read_text() == (source / "config.json").read_text()
            assert_same_tensors(stored_tensors(back), flatten_dict(given, sep="."))
    assert tree_digest(source) == before


@pytest.mark.parametrize("family", PREFIXES)
def test_inspect_says_what_it_is_without_being_told(family):
    seen = inspect_checkpoint(DATA / family)
    assert (seen.layout, seen.container, seen.family) == ("hf-flax", "msgpack", family)
    assert seen.faults == ()
    assert len(seen.tensors) == 58
    assert f"in layout hf-flax, family {family}" in str(seen)


@pytest.mark.parametrize("family", PREFIXES)
def test_transformers_of_today_loads_what_was_converted(tmp_path, family):
    """huggingface/transformers#12545: nothing missing, nothing unexpected, the stored outputs."""
    import torch
    import transformers

    convert_checkpoint(DATA / family, tmp_path / "hf", to="hf")
    model, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "hf", output_loading_info=True
    )
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    batch, stored = references(family)
    with torch.no_grad():
        found = model.eval()(
            input_ids=torch.from_numpy(batch.args[0]),
            attention_mask=torch.from_numpy(batch.kwargs["key_mask"]).long(),
            token_type_ids=torch.from_numpy(batch.kwargs["token_type_ids"]),
        ).logits
    (exact,) = run_torch(open_checkpoint(tmp_path / "hf"), (batch,), "float64")
    assert is_near(found.numpy(), stored["masked_lm"], exact["masked_lm"])
