"""Encoder-decoders: memory projected once, steps, what each side sees, the table they share."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diptych.parity.compare import compare_exact
from diptych.spec import AudioEncoderConfig
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import jax_module, torch_module
from parity_tests.panels.stack_cases import ENCODER_DECODER, TOKENS, VOCAB, B, N, decoder
from parity_tests.panels.test_decoder import build, close
from parity_tests.support.panels import JAX, TORCH, Panel, both_panels, to_numpy

S, T = 6, 4
RANDOM = np.random.default_rng(7)
SOURCE, TARGET = RANDOM.integers(0, VOCAB, (B, S)), RANDOM.integers(0, VOCAB, (B, T))
SOURCE_MASK = np.arange(S) < np.array([[6], [3], [5]])


@both_panels
def test_steps_over_a_memory_that_is_projected_once(panel: Panel) -> None:
    model = build(panel, ENCODER_DECODER)
    full = panel.run(model, SOURCE, TARGET, key_mask=SOURCE_MASK)
    with panel.wide():
        mask = panel.array(SOURCE_MASK)
        memory = model.decoder.project(model.encoder(panel.array(SOURCE), key_mask=mask).output)
        cache, logits = model.decoder.new_cache(B, T), []
        for chunk in (TARGET[:, :1], TARGET[:, 1:3], TARGET[:, 3:]):
            result = model.decode(panel.array(chunk), memory, memory_mask=mask, cache=cache)
            cache = result.cache
            logits.append(to_numpy(result.logits))
    close(np.concatenate(logits, 1), full.decoded.logits)


@both_panels
def test_nothing_sees_padding_what_follows_nor_other_samples(panel: Panel) -> None:
    model = build(panel, ENCODER_DECODER)
    before = panel.run(model, SOURCE, TARGET, key_mask=SOURCE_MASK).decoded.logits
    source = np.where(SOURCE_MASK, SOURCE, (SOURCE + 1) % VOCAB)
    after = panel.run(model, source, TARGET, key_mask=SOURCE_MASK).decoded.logits
    np.testing.assert_array_equal(before, after)
    target = TARGET.copy()
    target[1, 2:] = (target[1, 2:] + 1) % VOCAB
    after = panel.run(model, SOURCE, target, key_mask=SOURCE_MASK).decoded.logits
    np.testing.assert_array_equal(before[[0, 2]], after[[0, 2]])
    np.testing.assert_array_equal(before[1, :2], after[1, :2])
    source = SOURCE.copy()
    source[2, 0] = (source[2, 0] + 1) % VOCAB
    after = panel.run(model, source, TARGET, key_mask=SOURCE_MASK).decoded.logits
    np.testing.assert_array_equal(before[:2], after[:2])
    assert (before[2] != after[2]).any(-1).all()


def test_both_panels_return_the_same_on_request() -> None:
    wanted: Any = {"need_weights": True, "need_hidden_states": True}
    ours, theirs = (
        panel.run(build(panel, ENCODER_DECODER), SOURCE, TARGET, key_mask=SOURCE_MASK, **wanted)
        for panel in (TORCH, JAX)
    )
    assert [w.shape for w in ours.decoded.cross_attention_weights] == [(B, N, T, S)] * 2
    assert [w.shape for w in ours.decoded.attention_weights] == [(B, N, T, T)] * 2
    assert ours.encoded.cross_attention_weights is None
    hidden = np.broadcast_to(~SOURCE_MASK[:, None, None], (B, N, T, S))
    for weights in ours.decoded.cross_attention_weights:
        assert (weights[hidden] == 0).all()
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-14)
    for side in ("encoded", "decoded"):
        of_torch, of_jax = getattr(ours, side), getattr(theirs, side)
        for name in ("output", "hidden_states", "attention_weights"):
            pairs = zip(np.stack(getattr(of_torch, name)), getattr(of_jax, name), strict=True)
            assert all(compare_exact(a, b, name=name).ok for a, b in pairs)


@both_panels
def test_encoder_decoder_and_head_read_one_table(panel: Panel) -> None:
    model = build(panel, ENCODER_DECODER)
    names = panel.package.export_state(model)
    assert [name for name in names if "token_embed" in name] == [
        f"encoder.embedding.token_embed.{'weight' if panel is TORCH else 'embedding'}"
    ]
    own = replace(ENCODER_DECODER.decoder, embedding=ENCODER_DECODER.encoder.embedding)
    apart = replace(ENCODER_DECODER, decoder=own)
    tensors = random_tensors(ENCODER_DECODER)
    name = "embedding.token_embed.weight"
    table = {f"decoder.{name}": tensors[f"encoder.{name}"]}
    make = torch_module if panel is TORCH else jax_module
    twice = make(apart, tensors | table)
    shared, copied = (panel.run(m, SOURCE, TARGET).decoded.logits for m in (model, twice))
    np.testing.assert_array_equal(shared, copied)


@both_panels
def test_hidden_positions_of_a_spectrogram(panel: Panel) -> None:
    """They are read neither by the encoder nor by the decoder."""
    config = replace(
        ENCODER_DECODER,
        encoder=AudioEncoderConfig(
            num_mel_bins=4, layer=ENCODER_DECODER.encoder.layer, num_layers=2, max_seq_len=S
        ),
        decoder=replace(ENCODER_DECODER.decoder, embedding=TOKENS),
    )
    model, features = build(panel, config), RANDOM.normal(size=(B, 4, 2 * S))
    masked = panel.run(model, features, TARGET, key_mask=SOURCE_MASK, need_weights=True)
    hidden = np.broadcast_to(~SOURCE_MASK[:, None, None], (B, N, S, S))
    assert all((weights[hidden] == 0).all() for weights in masked.encoded.attention_weights)
    encoded = panel.run(model.encoder, features, key_mask=SOURCE_MASK).output
    with panel.wide():
        decoded = model.decode(
            panel.array(TARGET), panel.array(encoded), memory_mask=panel.array(SOURCE_MASK)
        )
        np.testing.assert_array_equal(to_numpy(decoded.logits), masked.decoded.logits)
    whole = panel.run(model, features, TARGET).decoded.logits
    assert (whole[1] != masked.decoded.logits[1]).any()
    np.testing.assert_array_equal(whole[0], masked.decoded.logits[0])
    with pytest.raises(ValueError, match=r"key_mask has shape \(3, 12\), expected \(3, 6\)"):
        panel.run(model, features, TARGET, key_mask=np.ones((B, 2 * S), bool))


@both_panels
def test_what_does_not_fit(panel: Panel) -> None:
    model = build(panel, ENCODER_DECODER)
    with pytest.raises(ValueError, match="memory is missing, but cross_attention=True"):
        panel.run(build(panel, replace(ENCODER_DECODER.decoder, embedding=None, head=None)),
                  np.zeros((B, T, 12)))  # fmt: skip
    words = "memory is of 1 layers, expected num_layers=2"
    with panel.wide():
        memory = model.decoder.project(panel.array(np.zeros((B, S, 12))))
    with panel.wide(), pytest.raises(ValueError, match=words):
        model.decode(panel.array(TARGET), memory[:1])


def test_bad_configs_are_refused() -> None:
    bare = decoder(replace(ENCODER_DECODER.decoder.layers[0], cross_attention=None))
    with pytest.raises(ValueError, match="decoder layer 0: cross_attention=None"):
        replace(ENCODER_DECODER, decoder=bare)
    vectors = replace(ENCODER_DECODER.encoder, embedding=None)
    with pytest.raises(ValueError, match="the encoder has no tokens"):
        replace(ENCODER_DECODER, encoder=vectors)
