"""Embeddings: ids inside and outside the table, positions, types, initialisation."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import torch_impl
from diptych.spec import EmbeddingConfig, TextEmbeddingConfig
from parity_tests.components.modules import PANELS, build, flat, new, random_weights, run
from parity_tests.support.harness import to_jax, to_torch

TABLE = EmbeddingConfig(num_embeddings=4, d_model=3)
TEXT = TextEmbeddingConfig(vocab_size=11, d_model=5, max_seq_len=7, num_token_types=2)
IDS = np.array([[3, 1, 2], [0, 10, 9]])


def lookup(panel: str, ids: np.ndarray, config: EmbeddingConfig = TABLE) -> np.ndarray:
    """Look ids up in a table of random weights."""
    return run(panel, config, ids)[0]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
def test_rows_of_the_table(panel: str, dtype: Any) -> None:
    ids = np.array([[0, 3], [1, 1]], dtype)
    np.testing.assert_array_equal(lookup(panel, ids), random_weights(TABLE)["weight"][ids])


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("id", [4, -1, 2**32 + 1, -(2**32)])
def test_ids_outside_raise(panel: str, id: int) -> None:
    """jax-ml/jax#3774; the large ones are inside when narrowed to 32 bits."""
    module = build(panel, TABLE)
    ids = np.array([0, id, 1])
    with pytest.raises(IndexError, match=rf"id {id} is outside a table of 4 rows \(0 .. 3\)"):
        module(to_torch(ids) if panel == "torch" else ids)


@pytest.mark.parametrize("rows", [1, 4, 200])
def test_ids_outside_are_nan_where_they_cannot_be_seen(rows: int) -> None:
    """jax-ml/jax#3774: compiled or under vmap, never a valid row; 8-bit ids and one row too."""
    config = EmbeddingConfig(num_embeddings=rows, d_model=3)
    first = random_weights(config)["weight"][0]
    for dtype in (np.int32, np.int8):
        ids = np.array([0, min(rows, 127) if rows < 127 else -2, -1], dtype)
        in_jax, in_torch = build("jax", config), build("torch", config)
        compiled = torch.compile(in_torch, backend="aot_eager", fullgraph=True)
        for result in flat(
            [
                jax.jit(lambda module, ids: module(ids))(in_jax, jnp.asarray(ids)),
                jax.vmap(in_jax)(jnp.asarray(ids)),
                compiled(torch.from_numpy(ids)),
                torch.vmap(in_torch)(torch.from_numpy(ids)),
            ]
        ):
            np.testing.assert_array_equal(result[0], first)
            assert np.isnan(result[1:]).all()


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(("ids", "dtype"), [(1.0, "float32"), (True, "bool")])
def test_ids_are_integers(panel: str, ids: Any, dtype: str) -> None:
    array = np.array([ids], np.dtype(dtype))
    with pytest.raises(TypeError, match=f"ids is {dtype}, but it must be integer"):
        lookup(panel, array)


def test_fake_ids_cannot_be_looked_at() -> None:
    """Tools that plan memory run models on tensors without values."""
    with FakeTensorMode():
        rows = torch_impl.Embedding(4, 3)(torch.zeros(2, 5, dtype=torch.int64))
    assert rows.shape == (2, 5, 3)


def test_concrete_ids_inside_a_compiled_function() -> None:
    ids, module = jnp.array([1, 4]), build("jax", TABLE)
    with pytest.raises(IndexError, match="id 4"):
        jax.jit(lambda x: module(ids) + x)(1.0)


@pytest.mark.parametrize("panel", PANELS)
def test_logits_of_a_tied_head(panel: str) -> None:
    module = build(panel, TABLE)
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    logits = flat(module.attend(to_torch(x) if panel == "torch" else to_jax(x)))[0]
    np.testing.assert_allclose(logits, x @ random_weights(TABLE)["weight"].T, atol=1e-6)


def test_logits_need_one_dtype_and_the_width() -> None:
    for panel, convert in (("torch", to_torch), ("jax", to_jax)):
        with pytest.raises(ValueError, match=r"shape \(2, 4\), expected a last axis of 3"):
            build(panel, TABLE).attend(convert(np.ones((2, 4), np.float32)))
    x = np.ones((2, 3), np.float16)
    with pytest.raises(TypeError, match="one dtype, not float16, float32"):
        build("jax", TABLE).attend(to_jax(x))
    with pytest.raises(RuntimeError, match="dtype"):
        build("torch", TABLE).attend(to_torch(x))


@pytest.mark.parametrize("panel", PANELS)
def test_initial_rows_are_normal(panel: str) -> None:
    module = new(panel, EmbeddingConfig(num_embeddings=500, d_model=64))
    (table,) = PANELS[panel].export_state(module).values()
    assert abs(table.mean()) < 5e-4
    assert abs(table.std() - 0.02) < 5e-4
    assert (np.abs(table) > 0.04).mean() > 0.03  # no truncation: 4.6 % lie beyond two sigma


def by_formula(ids: np.ndarray, types: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Sum the three rows and normalise, in float64."""
    weights = {name: array.astype(np.float64) for name, array in random_weights(TEXT).items()}
    x = weights["token_embed.weight"][ids] + weights["position_embed.weight"][positions]
    x = x + weights["token_type_embed.weight"][types]
    centred = x - x.mean(-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return x * weights["embed_norm.weight"] + weights["embed_norm.bias"]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"token_type_ids": np.array([[0, 1, 1], [1, 0, 1]])},
        {"position_ids": np.array([[4, 0, 6], [1, 1, 0]])},
        {"position_ids": np.array([5, 3, 1]), "token_type_ids": np.array([[1], [0]])},
    ],
)
def test_tokens_types_and_positions(panel: str, given: dict[str, np.ndarray]) -> None:
    types = np.broadcast_to(given.get("token_type_ids", np.zeros(1, int)), IDS.shape)
    positions = np.broadcast_to(given.get("position_ids", np.arange(3)), IDS.shape)
    result = run(panel, TEXT, IDS, **given)[0]
    np.testing.assert_allclose(result, by_formula(IDS, types, positions), atol=2e-6)


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize(
    ("ids", "given", "error", "words"),
    [
        (np.zeros((1, 8), int), {}, ValueError, "8 positions exceeds max_seq_len=7"),
        (IDS, {"position_ids": np.array([0, 1, 7])}, IndexError, "id 7 is outside a table of 7"),
        (IDS, {"token_type_ids": np.array([2])}, IndexError, "id 2 is outside a table of 2"),
        (IDS, {"token_type_ids": np.zeros(2, int)}, ValueError, "token_type_ids of shape"),
        (IDS[0], {"position_ids": IDS}, ValueError, "position_ids of shape"),
    ],
)
def test_what_does_not_fit(panel: str, ids: Any, given: Any, error: Any, words: str) -> None:
    """bentrevett/pytorch-seq2seq#89 for learned positions."""
    with pytest.raises(error, match=words):
        run(panel, TEXT, ids, **given)


@pytest.mark.parametrize("panel", PANELS)
def test_without_token_types(panel: str) -> None:
    config = TextEmbeddingConfig(vocab_size=11, d_model=5, num_token_types=0)
    assert run(panel, config, IDS)[0].shape == (2, 3, 5)
    with pytest.raises(ValueError, match="num_token_types=0"):
        run(panel, config, IDS, token_type_ids=np.zeros_like(IDS))


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", [(3,), (2, 0), (0, 3), (2, 1, 3)])
def test_any_leading_dimensions_and_empty(panel: str, shape: tuple[int, ...]) -> None:
    assert run(panel, TEXT, np.ones(shape, int))[0].shape == (*shape, 5)
