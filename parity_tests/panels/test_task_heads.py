"""BERT's heads: what each reads and returns, and the encoder that carries them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from diptych.spec import EmbeddingConfig, EncoderWithHeadsConfig
from parity_tests.components.modules import PANELS, arrays, build, flat, random_weights, run
from parity_tests.components.room import IDS, T, X
from parity_tests.components.rooms import EXAMPLES, component
from parity_tests.components.rooms.encoder import ENCODER
from parity_tests.components.rooms.feed_forward import ACTIVATIONS
from parity_tests.components.rooms.heads import HEADS
from parity_tests.components.runs import outputs_of
from parity_tests.support.harness import to_jax, to_torch
from parity_tests.support.sizes import NUM_LABELS, VOCAB, B, D

FULL = EXAMPLES["EncoderWithHeads"].config
KEY_MASK = np.array([[1] * T, [1] * (T - 2) + [0] * 2])


def exact(config: Any) -> dict[str, np.ndarray]:
    """Return the random weights of a config in float64."""
    return {name: array.astype(np.float64) for name, array in random_weights(config).items()}


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("name", "leaf", "labels"),
    [
        ("next_sentence", "classifier_proj", 2),
        ("sequence_classification", "classifier_proj", NUM_LABELS),
        ("token_classification", "classifier_proj", NUM_LABELS),
    ],
)
def test_a_linear_map_to_labels(panel: str, name: str, leaf: str, labels: int) -> None:
    config, weights = HEADS[name], exact(HEADS[name])
    right = X @ weights[f"{leaf}.weight"].T + weights[f"{leaf}.bias"]
    (logits,) = run(panel, config, X)
    assert logits.shape == (B, T, labels)
    np.testing.assert_allclose(logits, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("panel", PANELS)
def test_start_and_end_of_an_answer(panel: str) -> None:
    config, weights = HEADS["question_answering"], exact(HEADS["question_answering"])
    right = X @ weights["span_proj.weight"].T + weights["span_proj.bias"]
    start, end = run(panel, config, X)
    np.testing.assert_allclose(start, right[..., 0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(end, right[..., 1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_vocabulary_logits_are_tied(panel: str, activation: str) -> None:
    config = dataclasses.replace(HEADS["masked_lm"], activation=activation)
    table = EmbeddingConfig(num_embeddings=VOCAB, d_model=D)
    weights, rows = exact(config), exact(table)["weight"]
    x = X @ weights["transform_proj.weight"].T + weights["transform_proj.bias"]
    x = ACTIVATIONS[activation](x)
    centred = x - x.mean(-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config.eps)
    x = x * weights["transform_norm.weight"] + weights["transform_norm.bias"]
    (logits,) = run(panel, config, X, table)
    np.testing.assert_allclose(
        logits, x @ rows.T + weights["vocab_bias_param"], rtol=1e-5, atol=2e-5
    )


@pytest.mark.parametrize("panel", PANELS)
def test_encoder_with_every_head(panel: str) -> None:
    options = {"token_type_ids": IDS % 2, "key_mask": KEY_MASK}
    right = outputs_of(component(FULL, exact(FULL), IDS, **options))
    convert = to_torch if panel == "torch" else to_jax
    found = outputs_of(build(panel, FULL)(convert(IDS), **convert(options)))
    assert found.keys() == right.keys()
    assert len(found) == 2 + 6
    for name, array in found.items():
        np.testing.assert_allclose(flat(array)[0], right[name], rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("name", HEADS)
def test_only_the_heads_that_are_there(panel: str, name: str) -> None:
    config = EncoderWithHeadsConfig(encoder=ENCODER, **{name: HEADS[name]})
    result = build(panel, config)(*arrays(panel, (IDS,)), need_hidden_states=True)
    assert [head for head in HEADS if getattr(result, head) is not None] == [name]
    assert len(result.encoded.hidden_states) == 3


@pytest.mark.parametrize("panel", PANELS)
def test_the_tied_table_is_one_leaf(panel: str) -> None:
    """The token embedding has one leaf, and no copy of it in the head."""
    state = PANELS[panel].export_state(build(panel, FULL))
    assert [array.shape for array in state.values()].count((VOCAB, D)) == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"encoder": dataclasses.replace(ENCODER, embedding=None)}, "reads token ids"),
        (dict.fromkeys(HEADS), "at least one head"),
        ({"encoder": dataclasses.replace(ENCODER, pooler=False)}, "encoder.pooler=False"),
        (
            {"masked_lm": dataclasses.replace(HEADS["masked_lm"], vocab_size=5)},
            "masked_lm.vocab_size=5 must equal embedding.vocab_size=23",
        ),
        (
            {"next_sentence": dataclasses.replace(HEADS["next_sentence"], d_model=4)},
            "next_sentence.d_model=4 must equal d_model=15",
        ),
    ],
)
def test_heads_that_do_not_fit_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(FULL, **fields)
