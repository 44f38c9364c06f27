"""Meta's own Llama files: neighbours rotate, and ``--family llama`` reorders for transformers."""

import json

import numpy as np
import pytest
import torch

from diptych.convert import convert_checkpoint, diff_checkpoints, open_checkpoint, read_model
from diptych.parity.compare import compare_exact
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import run_component_torch
from parity_tests.families.cases import CASES
from parity_tests.support.checkpoints import assert_same_tensors, stored_tensors
from parity_tests.support.tiny_transformers import call_theirs, save_tiny

NAMES = {
    "model.embed_tokens": "tok_embeddings",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "lm_head": "output",
    "model.": "",
}


@pytest.fixture
def meta(tmp_path):
    """Return a folder of Meta's, made from a tiny Llama by the reverse of what its authors did."""
    save_tiny(CASES["llama"], tmp_path / "hf")
    tensors = {}
    for name, array in stored_tensors(tmp_path / "hf").items():
        if ".q_proj." in name or ".k_proj." in name:  # (heads, 2, half) -> (heads, half, 2)
            heads = array.shape[0] // 8
            array = array.reshape(heads, 2, 4, -1).swapaxes(1, 2).reshape(array.shape)
        for theirs, metas in NAMES.items():
            name = name.replace(theirs, metas)
        tensors[name] = torch.from_numpy(array.copy())
    folder = tmp_path / "meta"
    folder.mkdir()
    torch.save(tensors | {"rope.freqs": torch.arange(4.0)}, folder / "consolidated.00.pth")
    params = {"dim": 32, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 97}
    params |= {"multiple_of": 4, "norm_eps": 1e-6, "rope_theta": 10000.0}
    (folder / "params.json").write_text(json.dumps(params))
    return folder


def test_it_computes_what_the_reordered_one_does(meta):
    opened = open_checkpoint(meta)
    assert opened.family is not None
    assert opened.family.name == "llama_meta"
    case = CASES["llama"]
    truth = call_theirs(case, meta.parent / "hf", torch.float64)
    loaded = read_model(meta, layout="torch")
    arguments = case.ours(case.inputs())
    options = {"key_mask": arguments.pop("key_mask"), "need_weights": True}
    wide = {name: array.astype(np.float64) for name, array in loaded.tensors.items()}
    found = run_component_torch(ComponentCase(loaded.config, arguments, options), wide, {}).outputs
    for name in ("[logits]", "[attention_weights][2]"):
        assert compare_exact(found[name], truth[name], name=name).ok


def test_there_and_back_and_to_transformers(meta, tmp_path):
    convert_checkpoint(meta, tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf", format="pt")
    assert diff_checkpoints(meta, tmp_path / "back").identical
    convert_checkpoint(tmp_path / "flax", tmp_path / "theirs", to="hf", family="llama")
    assert_same_tensors(stored_tensors(tmp_path / "theirs"), stored_tensors(tmp_path / "hf"))
    notes = open_checkpoint(tmp_path / "flax", family="llama").notes
    assert "from llama_meta, taken as llama: rope.freqs left out" in notes
