"""T5, BART and Whisper: old and new settings, bare state dicts, what is refused."""

import contextlib

import numpy as np
import pytest
import transformers

from diptych.convert import open_checkpoint
from diptych.families import FAMILIES
from diptych.spec import CheckpointError
from parity_tests.families.cases import CASES
from parity_tests.support.checkpoints import write_checkpoint
from parity_tests.support.saved_models import UNTIED, saved, there_and_back

NAMES = ("t5", "t5 1.1", "t5 base", "t5 encoder", "bart", "whisper", "whisper, untied")


@pytest.mark.parametrize("name", NAMES)
def test_a_component_without_settings_is_written_and_read_back(tmp_path, name):
    tensors, config = saved(name)
    opened = open_checkpoint(write_checkpoint(tmp_path / "source", tensors, config))
    family = opened.family
    written = family.write_config(opened.config, None)
    assert written["architectures"] == config["architectures"]
    spelling = family.usual_variants(opened.config)
    assert spelling == tuple(v for v in opened.variants if v == "prefix")
    again = open_checkpoint(write_checkpoint(tmp_path / "again", tensors, written))
    assert again.config == opened.config
    fitting = []
    for each in FAMILIES.values():
        with contextlib.suppress(ValueError):
            each.write_config(opened.config, None)
            fitting.append(each.name)
    assert fitting == [family.name]


BARE = {
    "t5": {"d_kv": 12},
    "t5 encoder": {"d_kv": 12, "feed_forward_proj": "gated-gelu"},
    "bart": {"encoder_attention_heads": 4, "decoder_attention_heads": 8},
    "whisper": {"encoder_attention_heads": 4, "decoder_attention_heads": 8},
}


@pytest.mark.parametrize("name", BARE)
def test_sizes_of_a_bare_state_dict_are_read_from_its_shapes(tmp_path, name):
    tensors, config = saved(name)
    expected = open_checkpoint(write_checkpoint(tmp_path / "whole", tensors, config)).config
    bare = write_checkpoint(tmp_path / "bare", tensors)
    for key in BARE[name]:
        others = {k: v for k, v in BARE[name].items() if k != key}
        with pytest.raises(CheckpointError, match=f"{key}: not in|wi_0"):
            open_checkpoint(bare, settings=others)
    unseen = {"relative_attention_max_distance": 10, "layer_norm_epsilon": 1e-5}
    unseen = unseen if "t5" in name else {}
    opened = open_checkpoint(bare, settings=BARE[name] | unseen)
    assert opened.family.name == CASES[name].family
    assert opened.config == expected


@pytest.mark.parametrize("name", ["bart", "whisper"])
def test_names_without_a_prefix_have_no_head_unless_it_is_named(tmp_path, name):
    tensors, config = saved(name)
    body = {n.removeprefix("model."): array for n, array in tensors.items()}
    body.pop("final_logits_bias", None)
    plain = config | {"architectures": [config["architectures"][0].partition("For")[0] + "Model"]}
    source = write_checkpoint(tmp_path / "plain", body, plain)
    assert open_checkpoint(source).config.decoder.head is None
    there_and_back(source, tmp_path)
    assert open_checkpoint(write_checkpoint(tmp_path / "head", body, config)).config.decoder.head


_SELF, _CROSS = "decoder.block.1.layer.0.SelfAttention", "decoder.block.1.layer.1.EncDecAttention"
ARRIVALS = {
    "t5": {
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (
            "encoder.position_bias.bias_embed.weight"
        ),
        f"{_SELF}.k.weight": "decoder.layers.1.attention.k_proj.weight",
        f"{_CROSS}.q.weight": ("decoder.layers.1.cross_attention.q_proj.weight"),
        "decoder.block.1.layer.2.layer_norm.weight": "decoder.layers.1.feed_forward_norm.weight",
        "shared.weight": "encoder.embedding.token_embed.weight",
    },
    # A key's bias adds the same to every score of a query: no output shows it.
    "bart": {
        "model.encoder.layers.2.self_attn.k_proj.bias": "encoder.layers.2.attention.k_proj.bias",
        "model.decoder.layers.1.self_attn.k_proj.bias": "decoder.layers.1.attention.k_proj.bias",
        "model.decoder.layers.1.encoder_attn.k_proj.bias": (
            "decoder.layers.1.cross_attention.k_proj.bias"
        ),
        "final_logits_bias": "decoder.head.vocab_bias_param",
    },
    "whisper": {
        "model.encoder.embed_positions.weight": "encoder.position_embed.weight",
        "model.encoder.conv2.weight": "encoder.second_conv1d.weight",
    },
}


@pytest.mark.parametrize("name", ARRIVALS)
def test_values_arrive_under_their_own_name(tmp_path, name):
    tensors, config = saved(name)
    leaves = open_checkpoint(write_checkpoint(tmp_path, tensors, config)).leaves
    for theirs, ours in ARRIVALS[name].items():
        assert np.array_equal(leaves[ours].read(), np.squeeze(tensors[theirs])), theirs


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("t5", "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"),
        ("bart", "model.encoder.version"),
    ],
)
def test_stale_tensors_of_old_files_travel(tmp_path, name, stale):
    tensors, config = saved(name)
    old = tensors | {stale: np.full((8, 4), 3, np.float32)}
    source = write_checkpoint(tmp_path / "source", old, config)
    assert open_checkpoint(source).buffers.keys() == {stale}
    there_and_back(source, tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "t5",
            {"feed_forward_proj": "gated-mish", "dense_act_fn": None},
            "feed_forward_proj: 'mish' must be one of gelu",
        ),
        ("t5", {"dense_act_fn": "mish"}, "dense_act_fn: 'mish' must be one"),
        ("t5", {"feed_forward_proj": "soft-relu"}, "must be ACTIVATION or gated-ACTIVATION"),
        ("t5", {"is_gated_act": True}, "wi.weight: no rule covers it"),
        ("t5", {"num_heads": 6}, "shape (48, 32), expected (72, 32)"),
        ("t5", {"num_layers": 4}, "encoder.block.3.layer.0.SelfAttention.q.weight: missing"),
        ("t5", {"is_decoder": True}, "is_decoder: true is not supported"),
        ("t5", {"relative_attention_num_buckets": 6}, "num_buckets=6 must be a multiple of 4"),
        ("t5", {"rotary_dim": 3}, "rotary_dim: setting not understood"),
        ("t5", UNTIED, "lm_head.weight: missing"),
        ("t5 1.1", UNTIED | {"vocab_size": 96}, "expected (96, 32)"),
        ("bart", {"normalize_before": True}, "normalize_before: true is not supported"),
        ("bart", {"add_final_layer_norm": True}, "add_final_layer_norm: true is not supported"),
        ("bart", {"static_position_embeddings": True}, "static_position_embeddings: true"),
        ("bart", UNTIED, "tie_word_embeddings: false is not supported, only true"),
        ("bart", {"activation_function": "mish"}, "activation_function: 'mish' must be one of"),
        ("bart", {"max_position_embeddings": 66}, "shape (66, 32), expected (68, 32)"),
        ("bart", {"decoder_attention_heads": 3}, "num_heads=3 must divide d_model=32"),
        ("whisper", {"scale_embedding": True}, "scale_embedding: true is not supported"),
        ("whisper", {"use_weighted_layer_sum": True}, "use_weighted_layer_sum: true"),
        ("whisper", UNTIED, "proj_out.weight: missing"),
        ("whisper", {"num_mel_bins": 11}, "shape (32, 10, 3), expected (32, 11, 3)"),
    ],
)
def test_settings_that_are_refused(tmp_path, name, settings, words):
    tensors, config = saved(name)
    source = write_checkpoint(tmp_path, tensors, config | settings)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(source)
    assert any(words in fault for fault in caught.value.faults), caught.value.faults


OLD_SETTINGS = {
    "t5": {  # of t5-small
        "n_positions": 512,
        "output_past": True,
        "task_specific_params": {"summarization": {"prefix": "summarize: "}},
        "num_decoder_layers": None,
        "relative_attention_max_distance": None,
    },
    "bart": {  # of bart-large-cnn
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "classif_dropout": 0.0,
        "extra_pos_embeddings": 2,
        "normalize_before": False,
        "normalize_embedding": True,
        "num_hidden_layers": 3,
        "static_position_embeddings": False,
        "force_bos_token_to_be_generated": True,
    },
    "whisper": {
        "num_hidden_layers": 3,
        "alignment_heads": [[1, 2]],
        "forced_decoder_ids": [[1, 9]],
    },
}


@pytest.mark.parametrize("name", OLD_SETTINGS)
def test_old_settings_come_back_untouched(tmp_path, name):
    tensors, config = saved(name)
    new = ("scale_decoder_outputs", "dense_act_fn", "is_gated_act", "tie_word_embeddings")
    old = {key: value for key, value in config.items() if key not in new} | OLD_SETTINGS[name]
    old = {key: value for key, value in old.items() if value is not None}
    if name == "t5":
        tensors = tensors | {
            n.replace(".block.1.", ".block.2."): array
            for n, array in tensors.items()
            if n.startswith("decoder.block.1.")
        }
    source = write_checkpoint(tmp_path / "source", tensors, old)
    assert there_and_back(source, tmp_path) == old


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("t5", transformers.T5Config),
        ("bart", transformers.BartConfig),
        ("whisper", transformers.WhisperConfig),
    ],
)
def test_every_setting_of_the_installed_library_is_known(family, config):
    defaults = config().to_dict()
    table = FAMILIES[family].settings
    assert table.faults(defaults) == []
    ours = {key: value for key, value in table.values({}).items() if value is not None}
    assert ours == {key: defaults[key] for key in ours}


def test_rates_and_sizes_that_no_output_shows_are_read(tmp_path):
    tensors, config = saved("t5")
    rates = {"dropout_rate": 0.3, "layer_norm_epsilon": 1e-4}
    read = open_checkpoint(write_checkpoint(tmp_path / "t5", tensors, config | rates)).config
    for half in (read.encoder, read.decoder):
        layer = half.layers[0]
        assert (half.dropout, half.embedding.dropout, layer.dropout) == (0.3, 0.3, 0.3)
        assert layer.attention.attention_dropout == 0.3
        assert (layer.norm.eps, half.final_norm.eps) == (1e-4, 1e-4)
    assert read.decoder.layers[0].cross_attention.attention_dropout == 0.3
    for name in ("bart", "whisper"):
        tensors, config = saved(name)
        rates = {"dropout": 0.3, "attention_dropout": 0.4}
        read = open_checkpoint(write_checkpoint(tmp_path / name, tensors, config | rates)).config
        assert read.decoder.embedding.dropout == 0.3
        assert (read.encoder.embedding if name == "bart" else read.encoder).dropout == 0.3
        for layer in (read.encoder.layers[0], read.decoder.layers[0]):
            assert (layer.dropout, layer.attention.attention_dropout) == (0.3, 0.4)
        assert read.decoder.layers[0].cross_attention.attention_dropout == 0.4


def test_an_encoder_alone_is_t5s_only(tmp_path):
    tensors, config = saved("bart")
    half = {name: array for name, array in tensors.items() if "decoder" not in name}
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(write_checkpoint(tmp_path, half, config | {"decoder_layers": 2}))
    missing = "model.decoder.layers.1.fc2.weight: missing"
    assert any(fault.endswith(missing) for fault in caught.value.faults)
