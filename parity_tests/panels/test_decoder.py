"""Decoders: stepping equals the full pass, nothing sees what follows, both panels agree."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from diptych.parity.compare import compare_exact
from diptych.spec import AlibiConfig, DecoderConfig, ScoreConfig
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.runs import (
    jax_module,
    run_component_jax,
    run_component_torch,
    torch_module,
)
from parity_tests.panels.stack_cases import DECODERS, ROWS, VOCAB, B, D, N, block, decoder
from parity_tests.support.panels import (
    JAX,
    TORCH,
    Panel,
    both_panels,
    both_panels_slow_in_jax,
    in_both_panels,
    to_numpy,
)

T = 7
IDS = np.random.default_rng(4).integers(0, VOCAB, (B, T))
LENGTHS = (7, 3, 5)
KEY_MASK = np.arange(T) < np.array(LENGTHS)[:, None]
all_decoders = pytest.mark.parametrize("config", DECODERS.values(), ids=DECODERS)


def build(panel: Panel, config: Any) -> Any:
    """Build a module with float64 parameters that are equal in both panels."""
    make = torch_module if panel is TORCH else jax_module
    return make(config, random_tensors(config))


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Assert that two float64 arrays agree to rounding."""
    assert ours.dtype == theirs.dtype == np.float64
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def in_chunks(panel: Panel, model: Any, chunks: list[tuple[np.ndarray, Any]], capacity: int) -> Any:
    """Return the logits of ids that are given one chunk after the other."""

    def step(ids: Any, key_mask: Any, cache: Any) -> Any:
        return model(ids, key_mask=key_mask, cache=cache)

    step = panel.jit(step)
    with panel.wide():
        cache, logits = model.new_cache(len(chunks[0][0]), capacity), []
        for ids, key_mask in chunks:
            result = step(panel.array(ids), panel.array(key_mask), cache)
            cache = result.cache
            logits.append(to_numpy(result.logits))
        lengths = to_numpy(cache[0].length)
    return np.concatenate(logits, 1), lengths


@in_both_panels("config", DECODERS, quick_in_jax=("rotary, grouped", "latent"))
def test_steps_and_chunks_equal_the_full_pass(panel: Panel, config: DecoderConfig) -> None:
    model = build(panel, config)
    full = panel.run(model, IDS).logits
    for sizes in ([1] * T, [3, 2, 2], [T]):
        ends = np.cumsum(sizes)
        chunks = [(IDS[:, end - size : end], None) for size, end in zip(sizes, ends, strict=True)]
        stepped, lengths = in_chunks(panel, model, chunks, T + 2)
        close(stepped, full)
        assert lengths.tolist() == [T] * B


@in_both_panels("config", DECODERS, quick_in_jax=("rotary, grouped",))
def test_samples_of_other_lengths_go_on_where_they_end(panel: Panel, config: Any) -> None:
    model = build(panel, config)
    more = np.random.default_rng(5).integers(0, VOCAB, (B, 2))
    chunks = [(IDS, KEY_MASK), (more[:, :1], None), (more[:, 1:], None)]
    stepped, lengths = in_chunks(panel, model, chunks, T + 2)
    assert lengths.tolist() == [length + 2 for length in LENGTHS]
    for i, length in enumerate(LENGTHS):
        whole = np.concatenate([IDS[i : i + 1, :length], more[i : i + 1]], 1)
        full = panel.run(model, whole).logits[0]
        close(stepped[i, :length], full[:length])
        close(stepped[i, T:], full[length:])


@both_panels
@all_decoders
def test_nothing_sees_what_follows_nor_other_samples(panel: Panel, config: Any) -> None:
    model = build(panel, config)
    before = panel.run(model, IDS).logits
    changed = IDS.copy()
    changed[1, 4:] = (changed[1, 4:] + 1) % VOCAB
    after = panel.run(model, changed).logits
    np.testing.assert_array_equal(before[[0, 2]], after[[0, 2]])
    np.testing.assert_array_equal(before[1, :4], after[1, :4])
    assert (before[1, 4:] != after[1, 4:]).any(-1).all()


@in_both_panels("config", DECODERS, quick_in_jax=("rotary, grouped", "ALiBi"))
def test_padding_on_either_side_is_not_seen(panel: Panel, config: Any) -> None:
    model = build(panel, config)
    right = panel.run(model, IDS, key_mask=KEY_MASK).logits
    for i, length in enumerate(LENGTHS):
        alone = panel.run(model, IDS[i : i + 1, :length]).logits
        close(right[i : i + 1, :length], alone)
        padded = np.concatenate([IDS[:1, : T - length], IDS[i : i + 1, :length]], 1)
        left = panel.run(
            model,
            padded,
            key_mask=np.arange(T)[None] >= T - length,
            position_ids=np.maximum(np.arange(T) - (T - length), 0)[None],
        ).logits
        close(left[:, T - length :], alone)


@all_decoders
def test_both_panels_compute_the_same(config: DecoderConfig) -> None:
    options = {"key_mask": KEY_MASK, "need_weights": True, "need_hidden_states": True}
    ours, theirs = (panel.run(build(panel, config), IDS, **options) for panel in (TORCH, JAX))
    assert len(ours.hidden_states) == 3
    assert [w.shape for w in ours.attention_weights] == [(B, N, T, T)] * 2
    assert ours.cross_attention_weights is ours.cache is ours.pooled is None
    for name in ("output", "logits", "hidden_states", "attention_weights"):
        of_torch, of_jax = getattr(ours, name), getattr(theirs, name)
        if not isinstance(of_torch, tuple):
            of_torch, of_jax = (of_torch,), (of_jax,)
        for i, (a, b) in enumerate(zip(of_torch, of_jax, strict=True)):
            assert compare_exact(a, b, name=f"{name} {i}").ok


@all_decoders
def test_compiled_steps_compute_the_same(config: DecoderConfig) -> None:
    for panel in (TORCH, JAX):
        model = build(panel, config)
        with panel.wide(), torch.no_grad():

            def step(ids: Any, cache: Any, model: Any = model) -> Any:
                result = model(ids, cache=cache)
                return result.logits, result.cache

            compiled, cache = panel.compile(step), model.new_cache(B, T)
            found = []
            for i in range(3):
                logits, cache = compiled(panel.array(IDS[:, i : i + 1]), cache)
                found.append(to_numpy(logits))
        close(np.concatenate(found, 1), panel.run(model, IDS[:, :3]).logits)


@both_panels
def test_a_tied_table_has_the_gradient_of_both_uses(panel: Panel) -> None:
    """The gradient of a tied table is that of its lookups plus that of the head's own table."""
    config = DECODERS["rotary, grouped"]
    untied = replace(config, head=replace(config.head, tied=False))
    tensors = random_tensors(config)
    table = "embedding.token_embed.weight"
    gradients = []
    for each in (config, untied):
        own = tensors | ({"head.vocab_proj.weight": tensors[table]} if each is untied else {})
        gradients.append(_gradients(panel, each, own))
    tied, apart = gradients
    close(tied[table], apart[table] + apart["head.vocab_proj.weight"])
    assert all((np.abs(gradient) > 0).any() for gradient in tied.values())


def _gradients(panel: Panel, config: Any, tensors: dict[str, np.ndarray]) -> Any:
    run = run_component_torch if panel is TORCH else run_component_jax
    random = np.random.default_rng(8)
    cotangents = {"[logits]": random.normal(size=(B, T, VOCAB))}
    return run(ComponentCase(config, {"ids": IDS}), tensors, cotangents).gradients


@in_both_panels("config", DECODERS, quick_in_jax=("rotary, grouped", "latent"))
def test_gradients_reach_every_parameter(panel: Panel, config: DecoderConfig) -> None:
    for leaf, gradient in _gradients(panel, config, random_tensors(config)).items():
        # A bias of the keys shifts all scores of a query alike.
        if not leaf.endswith("k_proj.bias"):
            assert (np.abs(gradient) > 1e-12).any(), leaf


@both_panels
def test_a_full_cache_refuses(panel: Panel) -> None:
    model = build(panel, DECODERS["rotary, grouped"])
    with panel.wide():
        cache = model.new_cache(B, 3)
        with pytest.raises(ValueError, match="capacity=3 that holds 0 positions has no room for 7"):
            model(panel.array(IDS), cache=cache)


@both_panels
def test_what_does_not_fit(panel: Panel) -> None:
    model = build(panel, DECODERS["learned positions"])
    too_long = np.zeros((1, ROWS + 1), int)
    with pytest.raises(ValueError, match="17 positions exceeds max_seq_len=16"):
        panel.run(model, too_long)
    with pytest.raises(ValueError, match="memory is given, but cross_attention=False"):
        panel.run(model, IDS, memory=np.zeros((B, 2, D)))
    words = "cache is of 1 layers, expected num_layers=2"
    with panel.wide(), pytest.raises(ValueError, match=words):
        model(panel.array(IDS), cache=model.new_cache(B, T)[:1])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layer": replace(block(), attention=replace(block().attention, score=ScoreConfig()))},
         "layer 0: attention.score.is_causal=False: a decoder is causal"),
        ({"embedding": None}, "head.tied=True, but embedding=None"),
        ({"layer": block(3), "position_bias": AlibiConfig()}, "layer 0 has a window"),
        ({"layer": (block(), replace(block(), attention=replace(
            block().attention, num_heads=1, num_kv_heads=None))), "position_bias": AlibiConfig()},
         "layer 1: attention.num_heads=1 must be "),
        ({"embedding": replace(
            DECODERS["learned positions"].embedding, padding_id=1, position_offset=0)},
         "embedding.padding_id=1: a decoder counts"),
        ({"num_layers": 0}, "num_layers=0 must be a positive integer"),
    ],
)  # fmt: skip
def test_bad_configs_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(decoder(block()), **fields)


@both_panels_slow_in_jax
def test_hidden_rows_of_a_cached_call_need_no_position(panel: Panel) -> None:
    """Padding may pass the table of learned positions; a real row may not."""
    model = build(panel, DECODERS["learned positions"])
    ids = np.random.default_rng(5).integers(0, VOCAB, (B, ROWS))
    full = panel.run(model, ids).logits
    mask = np.arange(4) < np.array([[2], [1], [2]])
    with panel.wide():
        cache = model.new_cache(B, ROWS + 4)
        cache = model(panel.array(ids[:, : ROWS - 2]), cache=cache).cache
        chunk = panel.array(np.pad(ids[:, ROWS - 2 :], [(0, 0), (0, 2)]))
        result = model(chunk, key_mask=panel.array(mask), cache=cache)
        logits, lengths = to_numpy(result.logits), to_numpy(result.cache[0].length)
        with pytest.raises(IndexError, match="id 18 is outside a table of 18 rows"):
            model(chunk, key_mask=panel.array(np.arange(4) < 3 + 0 * mask[:, :1]), cache=cache)
        for wrong, error in ((mask[:, :3], ValueError), (mask * 1.0, TypeError)):
            with pytest.raises(error, match="key_mask"):
                model(chunk, key_mask=panel.array(wrong), cache=cache)
    close(logits[:, :2][mask[:, :2]], full[:, ROWS - 2 :][mask[:, :2]])
    assert lengths.tolist() == [ROWS, ROWS - 1, ROWS]
