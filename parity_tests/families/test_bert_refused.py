"""BERT: what is not understood is refused by name, or accepted on request."""

import numpy as np
import pytest

from diptych.convert import FAMILIES, convert_checkpoint, diff_checkpoints, open_checkpoint
from diptych.spec import CheckpointError

from ..support.checkpoints import BERT_CONFIG, HEADS, bert_tensors, write_checkpoint
from .bert_cases import CASES, DECODER, MLM, named


def test_different_tied_copies_are_refused_and_nothing_is_written(tmp_path):
    tensors, config, _ = CASES["tied copies"]
    changed = tensors[DECODER[0]].copy()
    changed[3, 2] += 1
    source = write_checkpoint(tmp_path / "source", tensors | {DECODER[0]: changed}, config)
    with pytest.raises(CheckpointError, match=r"decoder\.weight: .*to untie them, delete the one"):
        convert_checkpoint(source, tmp_path / "out", to="flax")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"position_embedding_type": "relative_key"}, 'position_embedding_type: "relative_key"'),
        ({"is_decoder": True}, "is_decoder: true is not supported, only false"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_act": "mish"}, "hidden_act: 'mish' must be one of gelu"),
        ({"rotary_dim": 3}, "rotary_dim: setting not understood"),
        ({"hiden_act": "gelu"}, "hiden_act: setting not understood (nearest: hidden_act)"),
        ({"model_type": "electra"}, "model_type: 'electra' is of no family"),
        ({"num_attention_heads": 4}, "num_heads=4 must divide d_model=6"),
        ({"num_attention_heads": None}, "num_attention_heads: not in the checkpoint; give --set"),
        ({"hidden_dropout_prob": 1.5}, "dropout=1.5"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: 1000000000 given, but there are only"),
        ({"hidden_size": "6"}, "hidden_size"),
    ],
)
def test_settings_that_are_refused(tmp_path, settings, words):
    source = write_checkpoint(tmp_path, bert_tensors(), {**BERT_CONFIG, **settings})
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(source)
    assert words in str(caught.value)
    assert str(source / "config.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_refused_settings_are_listed(tmp_path):
    config = {**BERT_CONFIG, "is_decoder": True, "rotary_dim": 3}
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(write_checkpoint(tmp_path, bert_tensors(), config))
    assert len(caught.value.faults) == 2


def test_an_ignored_setting_is_accepted_recorded_and_restored(tmp_path):
    config = {**BERT_CONFIG, "rotary_dim": 3}
    source = write_checkpoint(tmp_path / "source", bert_tensors(), config)
    report = convert_checkpoint(
        source, tmp_path / "flax", to="flax", ignore_settings=["rotary_dim"]
    )
    assert report.ignored_settings == {"rotary_dim": 3}
    assert open_checkpoint(tmp_path / "flax").ignored == {"rotary_dim": 3}
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    assert '"rotary_dim": 3' in (tmp_path / "back/config.json").read_text()


def test_an_untied_masked_lm_head_is_refused(tmp_path):
    source = write_checkpoint(tmp_path, MLM, named("BertForMaskedLM", tie_word_embeddings=False))
    with pytest.raises(CheckpointError, match="tie_word_embeddings"):
        open_checkpoint(source)


def test_every_setting_of_the_installed_library_is_known():
    from transformers import BertConfig

    defaults, settings = BertConfig().to_dict(), FAMILIES["bert"].settings
    assert settings.faults(defaults) == []
    values = settings.values({})
    for name in ("hidden_act", "layer_norm_eps", "hidden_dropout_prob", "tie_word_embeddings"):
        assert values[name] == defaults[name]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: t.pop("encoder.layer.1.output.dense.bias"),
            "layer.1.output.dense.bias: missing",
        ),
        (lambda t: t.update({"pooler.densee.bias": t["pooler.dense.bias"]}), "no rule covers it"),
        (
            lambda t: t.update({"encoder.layer.7.output.dense.bias": t["pooler.dense.bias"]}),
            "encoder.layer.7.output.dense.bias: the configuration has no such tensor",
        ),
        (
            lambda t: t.update({"pooler.dense.weight": t["pooler.dense.weight"][:, :5]}),
            "pooler.dense.weight: shape (6, 5), expected (6, 6)",
        ),
        (
            lambda t: t.update({"pooler.dense.weight": np.zeros((6, 6), np.int8)}),
            "dequantise first",
        ),
        (
            lambda t: t.update({"embeddings.LayerNorm.gamma": t["pooler.dense.bias"]}),
            "embeddings.LayerNorm.",
        ),
        (lambda t: t.update({"block.gamma": t["pooler.dense.bias"]}), "block.gamma: no rule"),
    ],
)
def test_tensors_that_are_refused(tmp_path, change, words):
    tensors = bert_tensors()
    change(tensors)
    source = write_checkpoint(tmp_path, tensors, BERT_CONFIG)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(source)
    assert any(words in fault for fault in caught.value.faults), caught.value.faults
    assert str(caught.value).startswith(str(source))


def test_a_bare_state_dict_needs_only_its_heads(tmp_path):
    bare = write_checkpoint(tmp_path / "without a prefix", bert_tensors())
    with pytest.raises(CheckpointError, match=r"several families: give --family \(bert, roberta\)"):
        open_checkpoint(bare)
    source = write_checkpoint(tmp_path / "bare", bert_tensors(prefix="bert."))
    with pytest.raises(
        CheckpointError, match=r"num_attention_heads: .* --set num_attention_heads="
    ):
        open_checkpoint(source)
    opened = open_checkpoint(source, settings={"num_attention_heads": HEADS})
    assert opened.family.name == "bert"
    assert any("layer_norm_eps=1e-12" in note for note in opened.notes)
    full = write_checkpoint(tmp_path / "full", bert_tensors(), BERT_CONFIG)
    assert diff_checkpoints(source, full).identical
    again = open_checkpoint(source / "model.safetensors", config=full / "config.json")
    assert again.config == open_checkpoint(full).config


def test_a_classifier_of_unknown_meaning_is_refused(tmp_path):
    source = write_checkpoint(tmp_path, bert_tensors(3, prefix="bert."), named("MyBert"))
    with pytest.raises(CheckpointError, match="--set architectures=BertForSequenceClassification"):
        open_checkpoint(source)
    opened = open_checkpoint(source, settings={"architectures": "BertForTokenClassification"})
    assert opened.config.token_classification.num_labels == 3
