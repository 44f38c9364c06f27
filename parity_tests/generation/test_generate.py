"""Generation: the tokens of full passes, the same in both panels, and how they are drawn."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
import torch

from diptych.spec import DecoderConfig
from parity_tests.panels.stack_cases import DECODERS, ENCODER_DECODER, VOCAB, B, D
from parity_tests.panels.test_decoder import build
from parity_tests.support.panels import JAX, TORCH, Panel, both_panels, to_numpy

T, M = 6, 5
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, VOCAB, (B, T))
LENGTHS = (6, 2, 4)
KEY_MASK = np.arange(T) < np.array(LENGTHS)[:, None]
UNIFORMS = RANDOM.random((B, M))
SAMPLING = {"temperature": 0.8, "top_k": 9, "top_p": 0.9}
BARE = DECODERS["rotary, grouped"]
QUICK = ("rotary, grouped", "latent", "T5 bias")
all_decoders = pytest.mark.parametrize("config", DECODERS.values(), ids=DECODERS)


def generate(panel: Panel, model: Any, ids: np.ndarray = IDS, **options: Any) -> Any:
    """Generate, compiled in JAX: numbers stay outside of the compiled function."""
    generate = panel.package.generate
    options = {"max_new_tokens": M} | options
    if panel is TORCH:
        return panel.run(generate, model, ids, **options)
    arrays = {name: v for name, v in options.items() if isinstance(v, np.ndarray)}
    fixed = {name: v for name, v in options.items() if name not in arrays}
    return panel.run(jax.jit(lambda ids, arrays: generate(model, ids, **arrays, **fixed)), ids,
                     panel.run(lambda a: a, arrays))  # fmt: skip


def without_cache(
    panel: Panel, run: Any, uniforms: np.ndarray | None, **options: Any
) -> np.ndarray:
    """Generate from prompts of all lengths by one full pass a token."""
    tokens = np.zeros((B, M), int)
    for i, length in enumerate(LENGTHS):
        ids = IDS[i : i + 1, :length]
        for j in range(M):
            u = None if uniforms is None else uniforms[i : i + 1, j]
            logits = run(i, ids)[:, -1]
            choose = panel.functional.choose_token
            token = panel.run(choose, logits, *([] if u is None else [u]), **options)
            tokens[i, j] = token[0]
            ids = np.concatenate([ids, token[:, None]], 1)
    return tokens


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, config in DECODERS.items()
    ],
)
def test_greedy_and_drawn_tokens_are_those_of_full_passes(config: DecoderConfig) -> None:
    models = {panel: build(panel, config) for panel in (TORCH, JAX)}
    for options in ({}, SAMPLING | {"uniforms": UNIFORMS}):
        found = [generate(p, m, key_mask=KEY_MASK, **options) for p, m in models.items()]
        np.testing.assert_array_equal(found[0].tokens, found[1].tokens)
        sampling = {name: v for name, v in options.items() if name != "uniforms"}
        right = without_cache(
            TORCH, lambda _, ids: TORCH.run(models[TORCH], ids).logits,
            options.get("uniforms"), **sampling,
        )  # fmt: skip
        np.testing.assert_array_equal(found[0].tokens, right)
        assert found[0].lengths.tolist() == [M] * B


def test_an_encoder_decoder_reads_its_memory() -> None:
    sources = RANDOM.integers(0, VOCAB, (B, 4))
    source_mask = np.arange(4) < np.array([[4], [1], [3]])
    found = []
    for panel in (TORCH, JAX):
        model = build(panel, ENCODER_DECODER)
        memory = panel.run(model.encoder, sources, key_mask=source_mask).output
        reading = {"memory": memory, "memory_mask": source_mask}
        found.append(generate(panel, model, key_mask=KEY_MASK, **reading).tokens)
        with panel.wide():
            projected = model.decoder.project(panel.array(memory))
            again = panel.package.generate(
                model, panel.array(IDS), max_new_tokens=M, key_mask=panel.array(KEY_MASK),
                memory=projected, memory_mask=panel.array(source_mask),
            )  # fmt: skip
        np.testing.assert_array_equal(to_numpy(again.tokens), found[-1])
    np.testing.assert_array_equal(*found)
    model = build(TORCH, ENCODER_DECODER)
    right = without_cache(
        TORCH,
        lambda i, ids: (
            TORCH.run(
                model, sources[i : i + 1], ids, key_mask=source_mask[i : i + 1]
            ).decoded.logits
        ),
        None,
    )
    np.testing.assert_array_equal(found[0], right)


@both_panels
def test_a_sample_ends_at_its_first_stop(panel: Panel) -> None:
    model = build(panel, BARE)
    free = generate(panel, model).tokens
    stops = (int(free[0, 2]), int(free[1, 1]))
    stopped = generate(panel, model, stop_ids=stops)
    for row, tokens, length in zip(free, stopped.tokens, stopped.lengths, strict=True):
        at = [i for i, token in enumerate(row) if token in stops]
        assert length == (at[0] + 1 if at else M)
        assert tokens.tolist() == [*row[:length], *[stops[0]] * (M - length)]
    assert stopped.lengths.min() < M
    assert stopped.lengths.dtype == np.int32
    assert stopped.tokens.dtype == IDS.dtype


LOGITS = np.log(np.array([0.1, 0.4, 0.1, 0.3, 0.1]))


@both_panels
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(
    ("u", "options", "token"),
    [
        # In order: 1 (0.4), 3 (0.7), 0 (0.8), 2 (0.9), 4 (1.0).
        (0.0, {}, 1), (0.39, {}, 1), (0.41, {}, 3), (0.75, {}, 0), (0.85, {}, 2), (0.95, {}, 4),
        (0.999, {"top_k": 1}, 1), (0.999, {"top_k": 2}, 3), (0.56, {"top_k": 2}, 1),
        (0.58, {"top_k": 2}, 3), (0.99, {"top_k": 99}, 4),
        (0.999, {"top_p": 0.01}, 1), (0.999, {"top_p": 0.41}, 3), (0.999, {"top_p": 0.72}, 0),
        (0.999, {"top_p": 1.0}, 4), (0.999, {"top_k": 2, "top_p": 0.5}, 1),
        (0.999, {"temperature": 1e-3}, 1), (0.3, {"temperature": 1e3}, 3),
    ],
)  # fmt: skip
def test_how_a_token_is_drawn(panel: Panel, u: float, options: Any, token: int, dtype: Any) -> None:
    choose = panel.functional.choose_token
    logits = LOGITS.astype(dtype)
    assert panel.run(choose, logits, np.array(u), **({"temperature": 1.0} | options)) == token


@both_panels
def test_equal_tokens_go_by_id(panel: Panel) -> None:
    choose = panel.functional.choose_token
    assert panel.run(choose, np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])).tolist() == [1, 0]
    largest = np.nextafter(1, 0)
    assert panel.run(choose, np.zeros(7), np.array(largest), temperature=1.0) == 6
    assert panel.run(choose, np.zeros(2), np.array(0.5), temperature=1.0) == 1
    hidden = np.array([0.0, -np.inf, 0.0, -np.inf])
    assert panel.run(choose, hidden, np.array(largest), temperature=1.0) == 2


@both_panels
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(
    ("largest", "rest"),
    [(0.5, 0.25), (0.0, -0.0), (-np.inf, -np.inf), (np.inf, 1.0), (np.nan, 3.0)],
)
def test_the_first_of_many_equal_ones_is_most_likely(
    panel: Panel, dtype: Any, largest: float, rest: float
) -> None:
    logits = np.full((2, 3, 1001), rest, dtype)
    logits[..., [130, 131, 640, 1000]] = largest
    token = panel.run(panel.functional.choose_token, logits)
    assert token.dtype == np.int64
    np.testing.assert_array_equal(token, np.full((2, 3), 0 if rest == largest else 130))


@both_panels
def test_frequencies_are_the_probabilities(panel: Panel) -> None:
    u = (np.arange(1000) + 0.5) / 1000
    logits = np.repeat(LOGITS[None], 1000, 0)
    tokens = panel.run(panel.functional.choose_token, logits, u, temperature=1.0)
    assert np.bincount(tokens).tolist() == [100, 400, 100, 300, 100]


def test_numbers_are_drawn_where_none_are_given() -> None:
    model = build(TORCH, BARE)
    torch.manual_seed(3)
    drawn = TORCH.run(TORCH.package.generate, model, IDS, max_new_tokens=M, temperature=9.0)
    torch.manual_seed(3)
    again = TORCH.run(TORCH.package.generate, model, IDS, max_new_tokens=M, temperature=9.0)
    other = TORCH.run(TORCH.package.generate, model, IDS, max_new_tokens=M, temperature=9.0)
    assert (drawn.tokens == again.tokens).all()
    assert (drawn.tokens != other.tokens).any()
    model = build(JAX, BARE)
    with pytest.raises(ValueError, match=r"temperature=9.0 needs rng_key= or uniforms="):
        generate(JAX, model, temperature=9.0)
    drawn, again, other = (
        generate(JAX, model, temperature=9.0, rng_key=jax.random.key(seed)) for seed in (3, 3, 4)
    )
    assert (drawn.tokens == again.tokens).all()
    assert (drawn.tokens != other.tokens).any()


@both_panels
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens=0 must be a positive integer"),
        ({"temperature": -1.0}, "temperature=-1.0 must be at least 0 and below"),
        ({"temperature": float("nan")}, "temperature=nan must be at least 0 and below"),
        ({"temperature": 1.0, "top_k": 0}, "top_k=0 must be a positive integer"),
        ({"temperature": 1.0, "top_p": 0.0}, "top_p=0.0 must satisfy 0 < top_p <= 1"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p=1.5 must satisfy 0 < top_p <= 1"),
        ({"top_k": 3}, "top_k is given, but temperature=0"),
        ({"top_p": 0.5}, "top_p is given, but temperature=0"),
        ({"uniforms": UNIFORMS}, "uniforms is given, but temperature=0"),
        ({"temperature": 1.0, "uniforms": UNIFORMS[:2]}, "uniforms have shape .*expected .3, 5."),
        ({"temperature": 1.0, "uniforms": UNIFORMS + 1}, "expected 0 <= uniforms < 1"),
        ({"stop_ids": (VOCAB,)}, r"stop_ids=\(19,\) must be ids of 0 .. 18"),
        ({"memory": np.zeros((B, 2, D))}, "memory is given, but cross_attention=False"),
        ({"key_mask": KEY_MASK[:, ::-1]}, "padding comes last"),
        ({"key_mask": KEY_MASK & np.array([[1], [0], [1]])}, "whole prompt of sample 1"),
    ],
)  # fmt: skip
def test_what_is_refused(panel: Panel, options: dict[str, Any], words: str) -> None:
    model = build(panel, BARE)
    with pytest.raises(ValueError, match=words):
        panel.run(panel.package.generate, model, IDS, **({"max_new_tokens": M} | options))


@both_panels
def test_prompts_and_models_that_are_refused(panel: Panel) -> None:
    model, generate = build(panel, BARE), panel.package.generate
    for ids, words in ((IDS[0], r"expected \(B, T\)"), (IDS[:, :0], "at least one position")):
        with pytest.raises(ValueError, match=words):
            panel.run(generate, model, ids, max_new_tokens=1)
    long = build(panel, DECODERS["learned positions"])
    with pytest.raises(ValueError, match="a sequence of 17 positions exceeds max_seq_len=16"):
        panel.run(generate, long, IDS, max_new_tokens=12)
    panel.run(generate, long, IDS, max_new_tokens=11)
    with pytest.raises(ValueError, match=r"call .eval\(\) first"):
        panel.run(generate, model.train(), IDS, max_new_tokens=1)
    headless = build(panel, replace(BARE, head=None))
    with pytest.raises(ValueError, match="needs a decoder with an embedding and a head"):
        panel.run(generate, headless, IDS, max_new_tokens=1)
