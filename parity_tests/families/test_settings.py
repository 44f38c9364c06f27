"""Settings of decoders and encoders: both spellings, none, made anew, tied or not, or refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diptych.convert import convert_checkpoint, open_checkpoint
from diptych.families import FAMILIES
from diptych.families.settings import parse_setting
from diptych.spec import CheckpointError
from parity_tests.families.cases import CASES, DECODERS
from parity_tests.families.cases_encoder import ENCODERS
from parity_tests.support.checkpoints import stored_tensors, write_checkpoint
from parity_tests.support.tiny_transformers import FamilyCase, call_theirs, save_tiny

TEXTS = DECODERS | ENCODERS
all_cases = pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS)
HEADS = ("num_attention_heads", "n_head", "n_heads")


def settings_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(
    ("given", "value"),
    [("4", 4), ("[1, 2]", [1, 2]), ("null", None), ("relu", "relu"), ("a=b", "a=b"), ("", "")]
    + [(text, text) for text in ("NaN", "-1e400", '{"a": 1, "a": 2}', "[" * 3000)],
)
def test_a_setting_given_is_json_or_a_text(given: str, value: Any):
    assert parse_setting(f"key={given}") == ("key", value)


@all_cases
def test_both_spellings_of_a_rotation_say_the_same(case: FamilyCase, tmp_path):
    save_tiny(case, tmp_path)
    opened = open_checkpoint(tmp_path)
    assert opened.family is not None
    both = opened.family.write_config(opened.config, None)
    if "rope_parameters" not in both:
        return
    old = {key: value for key, value in both.items() if key != "rope_parameters"}
    new = {key: value for key, value in both.items() if key not in ("rope_theta", "rope_scaling")}
    for settings in (both, old, new):
        assert open_checkpoint(tmp_path, config=settings).config == opened.config


@all_cases
def test_settings_made_anew_mean_the_same_to_transformers(case: FamilyCase, tmp_path):
    """A folder of ours that knows no source: what is written for it computes the same bits."""
    save_tiny(case, tmp_path / "source")
    convert_checkpoint(tmp_path / "source", tmp_path / "flax", to="flax")
    for name in ("source_config.json", "diptych.json"):
        (tmp_path / "flax" / name).unlink()
    convert_checkpoint(tmp_path / "flax", tmp_path / "anew", to="hf", family=case.family)
    before = call_theirs(case, tmp_path / "source", torch.float32)
    for name, array in call_theirs(case, tmp_path / "anew", torch.float32).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@all_cases
def test_what_a_bare_state_dict_lacks_is_asked_for(case: FamilyCase, tmp_path):
    """Sizes are read from the shapes; the number of heads is not guessed."""
    save_tiny(case, tmp_path)
    weights, settings = tmp_path / "model.safetensors", settings_of(tmp_path)
    heads = next(key for key in HEADS if key in settings)
    with pytest.raises(CheckpointError, match="not in the checkpoint; give --set"):
        open_checkpoint(weights, family=case.family)
    sizes = {"hidden_size", "d_model", "n_embd", "vocab_size"}
    if case.family != "albert":  # whose layers share their weights
        sizes |= {"num_hidden_layers", "n_layer", "n_layers"}
    given = {key: value for key, value in settings.items() if key not in sizes}
    opened = open_checkpoint(weights, family=case.family, settings=given | {heads: 4})
    assert opened.config == open_checkpoint(tmp_path).config


@all_cases
def test_a_setting_that_is_not_understood_is_refused(case: FamilyCase, tmp_path):
    save_tiny(case, tmp_path)
    for extra, words in (
        ({"rotary_turns": 3}, "rotary_turns: setting not understood"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"tie_word_embeddings": "yes"}, 'tie_word_embeddings: "yes" '),
        ({"model_type": "gpt9"}, "model_type: 'gpt9' is of no family"),
    ):
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(tmp_path, config=settings_of(tmp_path) | extra)
        assert words in str(caught.value)


REFUSED = [
    ("llama", {"partial_rotary_factor": 0.5}, "this family rotates whole heads"),
    ("qwen2", {"use_mrope": True}, "use_mrope: true is not supported"),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "they contradict each other"),
    ("llama", {"rope_theta": 3.0}, "they contradict each other"),
    ("llama", {"rope_parameters": {"rope_type": []}}, "rope_type '[]' must be one of"),
    ("llama", {"intermediate_size": 45}, "intermediate_size: 45, but model.layers.0.mlp.gate_proj"),
    ("qwen2", {"num_attention_heads": 0}, "num_attention_heads: 0 must be above 0"),
    ("qwen3", {"num_hidden_layers": 0}, "num_hidden_layers: 0 must be above 0"),
    ("mixtral", {"num_local_experts": 10**7}, "num_local_experts: 10000000, but"),
    ("gpt_oss", {"rope_parameters": None}, "rope_parameters: not in the checkpoint"),
    ("gpt_oss", {"num_experts_per_tok": 0}, "top_k=0"),
    ("gpt_oss", {"intermediate_size": 10**9}, "intermediate_size: 1000000000, but"),
    (
        "gemma3_text",
        {"attn_logit_softcapping": 2.0},
        "attn_logit_softcapping: 2.0 is not supported",
    ),
    ("gemma3_text", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar: 0 must be above 0"),
    ("t5", {"feed_forward_proj": None}, "feed_forward_proj: null is no value"),
]


@pytest.mark.parametrize(("name", "extra", "words"), REFUSED)
def test_odd_settings_are_refused_in_one_line(name, extra, words, tmp_path):
    save_tiny(CASES[name], tmp_path)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path, config=settings_of(tmp_path) | extra)
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_dtype_of_a_cast_is_written_after_a_chain(tmp_path):
    save_tiny(CASES["llama"], tmp_path / "source")
    convert_checkpoint(tmp_path / "source", tmp_path / "flax", to="flax", dtype="bfloat16")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    assert settings_of(tmp_path / "back")["dtype"] == "bfloat16"


def test_names_under_model_travel_through_orbax(tmp_path):
    """``model`` is the envelope of many training states, and the prefix of many families."""
    save_tiny(CASES["qwen2"], tmp_path / "source")
    convert_checkpoint(tmp_path / "source", tmp_path / "orbax", to="hf", format="orbax")
    convert_checkpoint(tmp_path / "orbax", tmp_path / "back", to="hf")
    found = stored_tensors(tmp_path / "back")
    assert found.keys() == stored_tensors(tmp_path / "source").keys()


def head_of(case: FamilyCase) -> str:
    return {"gpt_neox": "embed_out"}.get(case.family, "lm_head")


TIED = [name for name, case in CASES.items() if name in ("gpt2", "llama 3.1", "gemma", "bloom")]


@pytest.mark.parametrize("name", TIED)
def test_a_tied_table_may_stand_twice_if_it_is_the_same(name, tmp_path):
    case = CASES[name]
    save_tiny(case, tmp_path / "source")
    tensors = stored_tensors(tmp_path / "source")
    settings = settings_of(tmp_path / "source")
    table = next(
        n for n in tensors if n.endswith(("embed_tokens.weight", "wte.weight", "embeddings.weight"))
    )
    copy = f"{head_of(case)}.weight"
    twice = tensors | {copy: tensors[table].copy()}
    source = write_checkpoint(tmp_path / "twice", twice, settings)
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf")
    assert stored_tensors(tmp_path / "back").keys() == twice.keys()
    other = twice | {copy: tensors[table] + 1}
    source = write_checkpoint(tmp_path / "other", other, settings)
    with pytest.raises(CheckpointError, match=r"tied copies differ.*tie_word_embeddings"):
        convert_checkpoint(source, tmp_path / "out", to="flax")
    untied = {"tie_word_embeddings": False}
    convert_checkpoint(source, tmp_path / "untied", to="flax", settings=untied)
    assert open_checkpoint(tmp_path / "untied").config.head.tied is False


@pytest.mark.parametrize("name", ["gpt2", "llama", "gpt_neox"])
def test_an_old_file_may_lack_the_prefix(name, tmp_path):
    """As the first GPT-2: the classes that the configuration names say whether there is a head."""
    case = CASES[name]
    save_tiny(case, tmp_path / "source")
    prefix = {"gpt2": "transformer.", "gpt_neox": "gpt_neox."}.get(name, "model.")
    tensors = {
        key.removeprefix(prefix): array
        for key, array in stored_tensors(tmp_path / "source").items()
    }
    source = write_checkpoint(tmp_path / "bare", tensors, settings_of(tmp_path / "source"))
    opened = open_checkpoint(source)
    assert opened.config == open_checkpoint(tmp_path / "source").config
    assert "prefix" not in opened.variants


def test_every_family_has_a_case():
    """Those without one are people's own, in ``test_own.py`` and the like."""
    own = {
        "llama_meta",
        "mingpt",
        "nanogpt",
        "torch_layers",
        "seed_encoder",
        "seed_gpt",
        "seed_head",
    }
    assert {case.family for case in CASES.values()} == FAMILIES.keys() - own - {"bert"}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_null_is_no_value_where_there_is_a_default(family):
    """It means nothing to the library either; but a window or a cap may be null: there is none."""
    for key, setting in family.settings.understood.items():
        faults = family.settings.faults({key: None})
        if setting.default is None or setting.nullable:
            assert not faults
        else:
            default = json.dumps(setting.default)
            assert faults == [f"{key}: null is no value; left out, it is {default}"]


@pytest.mark.parametrize(
    ("case", "key"),
    [("mistral", "sliding_window"), ("gemma2", "final_logit_softcapping")],
)
def test_null_where_it_means_something(case, key, tmp_path):
    save_tiny(TEXTS[case], tmp_path)
    settings = settings_of(tmp_path) | {key: None}
    config = open_checkpoint(tmp_path, config=settings).config
    layer, head = config.layers[0], config.head
    assert layer.attention.score.window is None if key == "sliding_window" else head.softcap is None


@pytest.mark.parametrize(
    ("case", "extra", "left_out"),
    [
        ("opt", {"activation_dropout": 0.0}, ()),
        ("bloom", {"n_inner": None, "num_attention_heads": 4}, ("n_head",)),
        ("gemma2", {"sliding_window_size": 4096}, ()),
        ("qwen2", {"use_mrope": False}, ()),
        ("phi3", {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False}, ()),
        ("cohere", {"model_max_length": 8192}, ()),
        ("starcoder2", {"attention_softmax_in_fp32": True, "scale_attn_weights": True}, ()),
        ("llama", {"max_sequence_length": 2048, "unsloth_version": "2024.9"}, ()),
    ],
)
def test_settings_of_real_files_that_change_nothing(case, extra, left_out, tmp_path):
    save_tiny(TEXTS[case], tmp_path)
    settings = {k: v for k, v in settings_of(tmp_path).items() if k not in left_out} | extra
    assert open_checkpoint(tmp_path, config=settings).config == open_checkpoint(tmp_path).config
