"""What a family cannot hold or read is refused in words; a slip of ours is no refusal."""

import json
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diptych import cli
from diptych.convert import FAMILIES, convert_checkpoint, open_checkpoint
from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    Config,
    DecoderConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    HeadAttentionConfig,
    LatentAttentionConfig,
    LayerNormConfig,
    MaskedLMHeadConfig,
    MixtureOfExpertsConfig,
    NextSentenceHeadConfig,
    PositionalEncodingConfig,
    ScoreConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.families.cases import CASES
from parity_tests.support.checkpoints import write_bert
from parity_tests.support.tiny_transformers import save_tiny

Folder = Callable[[str], Path]
PYTHON = re.compile(
    r"has no attribute|unsupported operand|NoneType|not (iterable|subscriptable|callable|hashable)"
    r"|argument must be|KeyError|index out of range"
)
"""Words of Python's own errors."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Folder:
    """Return the folder that a case's model was saved to, written once."""
    made: dict[str, Path] = {}

    def save(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("case") / "source"
            save_tiny(CASES[name], made[name])
        return made[name]

    return save


def refusal(call: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """Return what is returned, or None and why it is refused; nothing else may go wrong."""
    try:
        return call(*arguments), ""
    except ValueError as error:
        return None, f"{error}"


NAMED = TransformerEncoderLayerConfig(d_model=6, num_heads=3, d_ff=10)
EMBEDDING = TextEmbeddingConfig(vocab_size=11, d_model=6)
GROUPED = AttentionConfig(d_model=6, num_heads=3, num_kv_heads=1, score=ScoreConfig(is_causal=True))
LATENT = LatentAttentionConfig(
    d_model=6, num_heads=3, kv_rank=4, nope_dim=2, rope_dim=2, v_dim=2, score=GROUPED.score
)
GATED = GatedFeedForwardConfig(d_model=6, d_ff=10)
MIXTURE = MixtureOfExpertsConfig(d_model=6, d_ff=10, num_experts=3, top_k=2)
CAUSAL = BlockConfig(attention=GROUPED, feed_forward=GATED)
POOLED = EncoderConfig(layer=NAMED, num_layers=2, embedding=EMBEDDING, pooler=True)
LABELS = {"d_model": 6, "num_labels": 4}
ODD: dict[str, Config] = {
    "layer": NAMED,
    "block": CAUSAL,
    "attention": GROUPED,
    "latent attention": LATENT,
    "feed forward": FeedForwardConfig(d_model=6, d_ff=10, bias=False),
    "norm": LayerNormConfig(d_model=6, bias=False),
    "positions": PositionalEncodingConfig(d_model=6, max_seq_len=5),
    "head": HeadAttentionConfig(emb_size=6, head_size=3, max_seq_len=5),
    "encoder of vectors": EncoderConfig(layer=NAMED, num_layers=2),
    "encoder of blocks": EncoderConfig(layer=NAMED.block, num_layers=2, embedding=EMBEDDING),
    "encoder of mixtures": EncoderConfig(
        layer=replace(NAMED.block, feed_forward=MIXTURE), num_layers=2, embedding=EMBEDDING
    ),
    "decoder of vectors": DecoderConfig(layer=CAUSAL, num_layers=2),
    "layers in turns": DecoderConfig(
        layer=(CAUSAL, replace(CAUSAL, feed_forward=MIXTURE), replace(CAUSAL, attention=LATENT)),
        num_layers=5,
        embedding=EMBEDDING,
    ),
    "two classifiers": EncoderWithHeadsConfig(
        encoder=POOLED,
        sequence_classification=SequenceClassificationHeadConfig(**LABELS),
        token_classification=TokenClassificationHeadConfig(**LABELS),
    ),
    "three heads": EncoderWithHeadsConfig(
        encoder=POOLED,
        masked_lm=MaskedLMHeadConfig(d_model=6, vocab_size=11),
        next_sentence=NextSentenceHeadConfig(d_model=6),
        token_classification=TokenClassificationHeadConfig(**LABELS),
    ),
}


@pytest.mark.parametrize("name", [*CASES, *ODD])
def test_every_family_holds_a_component_or_says_why_not(name: str, folder: Folder) -> None:
    """Whatever a family writes for it is read as the same; whatever it refuses has a reason."""
    config = ODD[name] if name in ODD else open_checkpoint(folder(name)).config
    for family in FAMILIES.values():
        settings, cause = refusal(family.write_config, config, None)
        if settings is None:
            assert cause.startswith(f"{family.name} has no "), cause
            assert not PYTHON.search(cause), cause
            assert "not in the checkpoint" not in cause, cause
            assert len(cause) < 300, cause
        else:
            assert not family.settings.faults(settings)
            assert family.rules(config, family.usual_variants(config)) or not config.leaves()
            assert family.write_config(config, settings) == settings


@pytest.mark.parametrize("name", CASES)
def test_settings_of_another_model_do_no_harm(name: str, folder: Folder) -> None:
    """A source's config.json may be another family's, where names hold other things."""
    config, family = open_checkpoint(folder(name)).config, FAMILIES[CASES[name].family]
    for other in CASES:
        source = json.loads((folder(other) / "config.json").read_text())
        settings, cause = refusal(family.write_config, config, source)
        assert settings or cause.startswith(f"{family.name} has no such "), cause
        assert not PYTHON.search(cause), cause


def test_a_bert_is_no_roberta_and_the_reason_is_said(tmp_path, command) -> None:
    (tmp_path / "bert").mkdir()
    write_bert(tmp_path / "bert")
    convert_checkpoint(tmp_path / "bert", tmp_path / "flax", to="flax")
    code, error = command(
        "convert", tmp_path / "flax", tmp_path / "out", "--to", "hf", "--family", "roberta"
    )
    cause = "embedding.padding_id=None, only the id that positions count from"
    assert (code, error) == (
        2,
        f"error: {tmp_path}/flax: roberta has no such Encoder: {cause}\n",
    )


ODD_VALUES = [0, -1, 10**9, 10**400, 5e-324, True, "x", [], [[]], [{}], {"full_attention": {}}]
ODD_VALUES += [
    {"rope_type": "longrope", "short_factor": 1, "long_factor": [{}]},
    {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0], "factor": "x"},
    {"rope_type": "yarn", "factor": 0, "original_max_position_embeddings": 0},
    {"rope_theta": []},
]
FIRST = {case.family: name for name, case in reversed(CASES.items())}


@pytest.mark.parametrize("name", FIRST.values(), ids=FIRST)
def test_odd_values_of_settings_are_refused_in_words(name: str, folder: Folder) -> None:
    """The table of settings checks their types, so that nothing else goes wrong on the way."""
    opened = open_checkpoint(folder(name))
    family, variants = FAMILIES[CASES[name].family], opened.variants
    shapes = {each: tensor.shape for each, tensor in opened.container.tensors.items()}
    _, cause = refusal(family.read_config, family.settings.values({}), {}, variants)
    assert cause
    for key in family.settings.understood:
        for value in ODD_VALUES:
            settings = {**opened.source_config, key: value}
            if family.settings.faults(settings):
                continue
            values = family.settings.values(settings)
            config, cause = refusal(family.read_config, values, shapes, variants)
            if config is not None:
                _, cause = refusal(family.rules, config, variants)
            assert not PYTHON.search(cause), cause


SLIPS = {"gpt2": "gpt2", "roberta": "roberta", "bart": "bart", "vit": "vit", "clip": "clip text"}


def slip(*arguments: Any) -> Any:
    return arguments[0].no_such_field


@pytest.fixture
def command(monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """Call the command; return its exit code and what it says of an error."""

    def call(*arguments: Any) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["diptych", *map(str, arguments)])
        previous = signal.getsignal(signal.SIGTERM)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        signal.signal(signal.SIGTERM, previous)
        return stop.value.code, capsys.readouterr().err

    return call


@pytest.mark.parametrize("name", SLIPS)
@pytest.mark.parametrize("which", ["read", "write"])
def test_a_slip_in_a_family_is_ours(name, which, folder, tmp_path, monkeypatch, command) -> None:
    source = folder(SLIPS[name])
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    family = FAMILIES[name]
    broken = dict.fromkeys(("image", "text"), slip) if name == "clip" else slip
    monkeypatch.setitem(FAMILIES, name, replace(family, **{which: broken}))
    steps = {"read": (source, "torch"), "write": (tmp_path / "flax", "hf")}
    path, to = steps[which]
    code, error = command("convert", path, tmp_path / "out", "--to", to)
    assert code == 70
    assert error.splitlines()[-1].startswith("error: internal: AttributeError: ")
    assert not (tmp_path / "out").exists()
