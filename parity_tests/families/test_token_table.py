"""The token table of encoder-decoders under all its names: tied, stored again, untied."""

import numpy as np
import pytest

from diptych.convert import convert_checkpoint, open_checkpoint
from diptych.rules import DELETE
from diptych.spec import CheckpointError
from parity_tests.support.checkpoints import write_checkpoint
from parity_tests.support.saved_models import UNTIED, saved, there_and_back

ENCODER, DECODER = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
SET = "to read both, give --set tie_word_embeddings=false"

SPELLINGS = {
    "the table alone": ("t5", {}, ()),
    "every copy": (
        "t5",
        {name: "shared.weight" for name in (ENCODER, DECODER, "lm_head.weight")},
        (ENCODER, DECODER, "head_weight"),
    ),
    "one copy": ("t5", {ENCODER: "shared.weight"}, (ENCODER,)),
    "copies alone": (
        "t5",
        {ENCODER: "shared.weight", DECODER: "shared.weight", "shared.weight": None},
        (ENCODER, DECODER, "no_shared"),
    ),
    "untied beside copies": (
        "t5 1.1",
        {ENCODER: "shared.weight", DECODER: "shared.weight"},
        (ENCODER, DECODER, "head_weight"),
    ),
    "encoder with its copy": ("t5 encoder", {ENCODER: "shared.weight"}, (ENCODER,)),
    "bart, every copy": (
        "bart",
        {
            f"model.{ENCODER}": "model.shared.weight",
            f"model.{DECODER}": "model.shared.weight",
            "lm_head.weight": "model.shared.weight",
        },
        ("prefix", ENCODER, DECODER, "head_weight"),
    ),
    "bart without its bias": ("bart", {"final_logits_bias": None}, ("prefix",)),
    "whisper, head stored": (
        "whisper",
        {"proj_out.weight": f"model.{DECODER}"},
        ("prefix", "head_weight"),
    ),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_every_spelling_of_the_token_table_comes_back(tmp_path, case):
    name, copies, variants = SPELLINGS[case]
    tensors, config = saved(name)
    changed = tensors | {copy: tensors[of] for copy, of in copies.items() if of}
    changed = {n: array for n, array in changed.items() if copies.get(n, "") is not None}
    source = write_checkpoint(tmp_path / "source", changed, config)
    opened = open_checkpoint(source)
    assert opened.variants == tuple(name.removesuffix(".weight") for name in variants)
    there_and_back(source, tmp_path)


@pytest.mark.parametrize(
    ("name", "copy", "of", "way"),
    [
        (
            "t5",
            "lm_head.weight",
            "shared.weight",
            SET,
        ),
        ("t5", ENCODER, "shared.weight", DELETE),
        (
            "bart",
            "lm_head.weight",
            "model.shared.weight",
            DELETE,
        ),
        (
            "whisper",
            "proj_out.weight",
            "model.decoder.embed_tokens.weight",
            SET,
        ),
    ],
)
def test_copies_that_differ_are_refused_with_a_way_out(tmp_path, name, copy, of, way):
    tensors, config = saved(name)
    other = tensors[of].copy()
    other[3, 2] += 1
    source = write_checkpoint(tmp_path / "source", tensors | {copy: other}, config)
    with pytest.raises(CheckpointError) as caught:
        convert_checkpoint(source, tmp_path / "out", to="flax")
    assert f"{of}, {copy}: the tied copies differ; {way}" in str(caught.value)
    assert not (tmp_path / "out").exists()
    if "--set" in way:
        opened = open_checkpoint(source, settings=UNTIED)
        found = opened.leaves["decoder.head.vocab_proj.weight"].read()
        assert np.array_equal(found, other)


def test_the_scale_of_t5_goes_with_its_tie(tmp_path):
    tensors, config = saved("t5")
    own, own_config = saved("t5 1.1")
    old = {key: value for key, value in config.items() if key != "scale_decoder_outputs"}
    lacking = {key: value for key, value in old.items() if key != "tie_word_embeddings"}
    unscaled = {"scale_decoder_outputs": False}
    cases = [
        (tensors, config, True, 32**-0.5),
        (tensors, old, True, 32**-0.5),
        (tensors, lacking, True, 32**-0.5),
        (tensors, old | unscaled, True, 1.0),
        (own, own_config, False, 1.0),
        (own, own_config | UNTIED, False, 1.0),
        (own, own_config | UNTIED | {"scale_decoder_outputs": True}, False, 32**-0.5),
    ]
    for i, (stored, settings, tied, scale) in enumerate(cases):
        source = write_checkpoint(tmp_path / f"{i}", stored, settings)
        head = open_checkpoint(source).config.decoder.head
        assert (head.tied, head.scale) == (tied, scale), settings


def test_t5_untied_is_written_so_that_both_transformers_read_it(tmp_path):
    tensors, config = saved("t5 1.1")
    assert config["tie_word_embeddings"] is True
    source = write_checkpoint(tmp_path / "source", tensors, config)
    assert there_and_back(source, tmp_path) == config | UNTIED
