"""BERT: every spelling and head is understood, and restored byte for byte."""

import json

import numpy as np
import pytest

from diptych.convert import convert_checkpoint, diff_checkpoints, open_checkpoint
from diptych.spec import CheckpointError

from ..support.checkpoints import (
    HEADS,
    LAYERS,
    POSITIONS,
    WIDTH,
    assert_same_tensors,
    stored_tensors,
    write_checkpoint,
)
from .bert_cases import CASES


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to", ["flax", "torch"])
def test_there_and_back_is_byte_for_byte(tmp_path, case, to):
    tensors, config, variants = CASES[case]
    source = write_checkpoint(tmp_path / "source", tensors, config)
    assert open_checkpoint(source).variants == variants
    convert_checkpoint(source, tmp_path / "there", to=to)
    assert open_checkpoint(tmp_path / "there").variants == variants
    convert_checkpoint(tmp_path / "there", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)
    back = tmp_path / "back/config.json"
    assert back.read_text() == (source / "config.json").read_text()
    assert diff_checkpoints(source, tmp_path / "there").identical


def test_component_and_canonical_names(tmp_path):
    opened = open_checkpoint(write_checkpoint(tmp_path, *CASES["BertModel"][:2]))
    assert opened.component == "Encoder"
    layer = opened.config.layer
    assert (opened.config.num_layers, layer.attention.num_heads) == (LAYERS, HEADS)
    assert (layer.norm.eps, layer.dropout) == (1e-12, 0.1)
    assert layer.attention.attention_dropout == 0.2
    assert opened.leaves["embedding.token_embed.weight"].shape == (11, WIDTH)
    assert "layers.1.attention.out_proj.bias" in opened.leaves
    opened = open_checkpoint(write_checkpoint(tmp_path / "heads", *CASES["pretraining"][:2]))
    assert opened.component == "EncoderWithHeads"
    assert opened.config.heads.keys() == {"masked_lm", "next_sentence"}
    assert "encoder.embedding.token_embed.weight" in opened.leaves
    assert opened.leaves["masked_lm.vocab_bias_param"].shape == (11,)


@pytest.mark.parametrize(
    ("theirs", "canonical"),
    [
        ("encoder.layer.1.attention.self.query.weight", "layers.1.attention.q_proj.weight"),
        ("encoder.layer.1.attention.self.key.weight", "layers.1.attention.k_proj.weight"),
        ("encoder.layer.1.attention.self.value.weight", "layers.1.attention.v_proj.weight"),
        ("encoder.layer.1.attention.output.dense.weight", "layers.1.attention.out_proj.weight"),
        ("encoder.layer.0.attention.output.LayerNorm.bias", "layers.0.attention_norm.bias"),
        ("encoder.layer.0.output.LayerNorm.bias", "layers.0.feed_forward_norm.bias"),
        ("encoder.layer.0.intermediate.dense.weight", "layers.0.feed_forward.up_proj.weight"),
        ("encoder.layer.0.output.dense.weight", "layers.0.feed_forward.down_proj.weight"),
        ("embeddings.token_type_embeddings.weight", "embedding.token_type_embed.weight"),
        ("embeddings.LayerNorm.weight", "embedding.embed_norm.weight"),
        ("pooler.dense.weight", "pooler_proj.weight"),
    ],
)
def test_values_arrive_under_their_own_name(tmp_path, theirs, canonical):
    tensors, config, _ = CASES["BertModel"]
    leaves = open_checkpoint(write_checkpoint(tmp_path, tensors, config)).leaves
    assert np.array_equal(leaves[canonical].read(), tensors[theirs])


def test_position_ids_are_recreated_and_others_travel(tmp_path):
    tensors, config, _ = CASES["position_ids"]
    opened = open_checkpoint(write_checkpoint(tmp_path / "usual", tensors, config))
    assert opened.buffers == {}
    assert opened.recreated.keys() == {"embeddings.position_ids"}
    odd = tensors | {"embeddings.position_ids": np.arange(POSITIONS)[None] + 1}
    source = write_checkpoint(tmp_path / "odd", odd, config)
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    names = stored_tensors(tmp_path / "flax").keys()
    assert "buffers.embeddings.position_ids" in names
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), odd)
    assert diff_checkpoints(source, tmp_path / "back").identical


def test_diff_lists_recreatable_buffers_apart(tmp_path):
    a = write_checkpoint(tmp_path / "a", *CASES["position_ids"][:2])
    b = write_checkpoint(tmp_path / "b", *CASES["BertModel"][:2])
    compared = diff_checkpoints(a, b)
    assert compared.identical
    assert compared.recreatable == ("embeddings.position_ids",)


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "module._orig_mod."])
def test_wrappers_are_taken_out_at_any_depth(tmp_path, wrapper):
    tensors, config, _ = CASES["BertModel"]
    wrapped = {
        wrapper + name.replace("encoder.layer.0.", "encoder.layer.0._orig_mod."): value
        for name, value in tensors.items()
    }
    opened = open_checkpoint(write_checkpoint(tmp_path / "wrapped", wrapped, config))
    plain = open_checkpoint(write_checkpoint(tmp_path / "plain", tensors, config))
    assert diff_checkpoints(opened, plain).identical
    assert "taken out of" in opened.notes[0]


def test_a_wrapper_that_hides_a_twin_is_refused(tmp_path):
    tensors, config, _ = CASES["BertModel"]
    twin = tensors | {"module.pooler.dense.bias": tensors["pooler.dense.bias"]}
    with pytest.raises(CheckpointError, match=r"collides with .*pooler\.dense\.bias"):
        open_checkpoint(write_checkpoint(tmp_path, twin, config))


def test_a_panel_model_is_written_in_the_current_spelling(tmp_path):
    from diptych.convert import read_model, write_model

    source = write_checkpoint(tmp_path / "source", *CASES["pretraining"][:2])
    model = read_model(source, layout="torch")
    write_model(
        tmp_path / "panel",
        component=model.component,
        config=model.config,
        tensors=model.tensors,
        layout="torch",
    )
    convert_checkpoint(tmp_path / "panel", tmp_path / "back", to="hf")
    opened = open_checkpoint(tmp_path / "back")
    assert opened.variants == ("bert_prefix",)
    assert opened.source_config["architectures"] == ["BertForPreTraining"]
    assert opened.config == open_checkpoint(source).config
    assert diff_checkpoints(source, opened).identical


@pytest.mark.parametrize("stated", [None, 0.1])
def test_a_setting_that_says_what_holds_without_it_stays(tmp_path, stated):
    """Also where another one is added: the file names no labels, three are written."""
    tensors, config, _ = CASES["sequence"]
    own = {k: v for k, v in config.items() if k not in ("id2label", "label2id")}
    own |= {"classifier_dropout": stated, "hidden_dropout_prob": 0.1}
    source = write_checkpoint(tmp_path / "source", tensors, own)
    convert_checkpoint(source, tmp_path / "back", to="hf")
    back = json.loads((tmp_path / "back" / "config.json").read_text())
    assert {**back, **own} == back


@pytest.mark.parametrize("case", ["BertModel", "pretraining", "sequence", "choice", "token"])
def test_the_library_itself_opens_what_is_written(tmp_path, case):
    import transformers

    tensors, config, _ = CASES[case]
    source = write_checkpoint(tmp_path / "source", tensors, config)
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    kind = getattr(transformers, config["architectures"][0])
    model, info = kind.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    state = model.state_dict()
    for name, value in tensors.items():
        assert np.array_equal(state[name].numpy(), value), name
