"""BERT: every spelling, head and setting is understood and restored, or refused by name."""

import numpy as np
import pytest

from diptych.convert import convert_checkpoint, diff_checkpoints, open_checkpoint
from diptych.spec import CheckpointError

from .checkpoints import (
    BERT_CONFIG,
    HEADS,
    LAYERS,
    POSITIONS,
    WIDTH,
    assert_same_tensors,
    bert_tensors,
    stored_tensors,
    write_checkpoint,
)

POSITION_IDS = {"embeddings.position_ids": np.arange(POSITIONS)[None]}
WORDS_NAME = "bert.embeddings.word_embeddings.weight"


def named(*architectures, **settings):
    return {**BERT_CONFIG, "architectures": list(architectures), **settings}


def tied(tensors, *copies):
    """Return tensors with copies of tied ones, or with the copy in place of the original."""
    originals = {
        "cls.predictions.decoder.weight": WORDS_NAME,
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    return tensors | {copy: tensors[originals[copy]].copy() for copy in copies}


def without(tensors, *names):
    return {name: value for name, value in tensors.items() if name not in names}


DECODER = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
MLM = bert_tensors("masked_lm", prefix="bert.", pooler=False)
CASES = {
    "BertModel": (bert_tensors(), BERT_CONFIG, ()),
    "no pooler": (bert_tensors(pooler=False), BERT_CONFIG, ()),
    "prefix": (bert_tensors(prefix="bert."), BERT_CONFIG, ("bert_prefix",)),
    "gamma": (bert_tensors(norm=("gamma", "beta")), BERT_CONFIG, ("gamma_beta",)),
    "position_ids": (bert_tensors() | POSITION_IDS, BERT_CONFIG, ()),
    "half": (bert_tensors(dtype=np.float16), BERT_CONFIG, ()),
    "pretraining": (
        bert_tensors("masked_lm", "next_sentence", prefix="bert."),
        named("BertForPreTraining"),
        ("bert_prefix",),
    ),
    "old pretraining": (
        tied(
            bert_tensors("masked_lm", "next_sentence", prefix="bert.", norm=("gamma", "beta"))
            | {"bert.embeddings.position_ids": np.arange(POSITIONS)[None]},
            DECODER[0],
        ),
        named("BertForPreTraining"),
        ("bert_prefix", "gamma_beta", "decoder_weight"),
    ),
    "masked LM": (MLM, named("BertForMaskedLM"), ("bert_prefix",)),
    "LM head": (MLM, named("BertLMHeadModel"), ("bert_prefix",)),
    "tied copies": (
        tied(MLM, *DECODER),
        named("BertForMaskedLM"),
        ("bert_prefix", "decoder_weight", "decoder_bias"),
    ),
    "only the copies": (
        without(tied(MLM, *DECODER), WORDS_NAME, "cls.predictions.bias"),
        named("BertForMaskedLM"),
        ("bert_prefix", "decoder_weight", "decoder_bias", "no_embedding", "no_bias"),
    ),
    "next sentence": (
        bert_tensors("next_sentence", prefix="bert."),
        named("BertForNextSentencePrediction"),
        ("bert_prefix",),
    ),
    "sequence": (
        bert_tensors(3, prefix="bert."),
        named("BertForSequenceClassification", id2label={"0": "a", "1": "b", "2": "c"}),
        ("bert_prefix",),
    ),
    "sequence without prefix": (
        bert_tensors(2),
        named("BertForSequenceClassification", classifier_dropout=0.3),
        (),
    ),
    "choice": (bert_tensors(1, prefix="bert."), named("BertForMultipleChoice"), ("bert_prefix",)),
    "token": (
        bert_tensors(4, prefix="bert.", pooler=False),
        named("BertForTokenClassification", num_labels=4),
        ("bert_prefix",),
    ),
    "old token, with a pooler": (
        bert_tensors(4, prefix="bert."),
        named("BertForTokenClassification", num_labels=4),
        ("bert_prefix",),
    ),
    "question answering": (
        bert_tensors("question_answering", prefix="bert.", pooler=False),
        named("BertForQuestionAnswering"),
        ("bert_prefix",),
    ),
}


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
    assert (opened.config.num_layers, opened.config.layer.num_heads) == (LAYERS, HEADS)
    assert (opened.config.layer.eps, opened.config.layer.dropout) == (1e-12, 0.1)
    assert opened.config.layer.attention_dropout == 0.2
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
        ({"model_type": "roberta"}, "model_type: 'roberta' is of no family"),
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

    from diptych.convert.families.bert_settings import SETTINGS

    defaults = BertConfig().to_dict()
    assert SETTINGS.faults(defaults) == []
    values = SETTINGS.values({})
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
    source = write_checkpoint(tmp_path / "bare", bert_tensors())
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
