"""Biases for the distance between query and key: ALiBi and T5, beside their models' own code."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from diptych.spec import (
    AlibiConfig,
    BucketTable,
    RelativeBiasConfig,
    RelativePositionBiasConfig,
    SlopeTable,
)
from parity_tests.support.panels import JAX, TORCH, Panel, both_panels

FIRST = np.zeros(1, int)


def alibi(panel: Panel, queries: Any, keys: Any, slopes: np.ndarray) -> np.ndarray:
    return panel.run(panel.functional.alibi_bias, queries, keys, slopes)


def relative(panel: Panel, queries: Any, keys: Any, weight: Any, table: BucketTable) -> np.ndarray:
    function = panel.functional.relative_bias
    return panel.run(lambda q, k, w: function(q, k, w, table), queries, keys, weight)


def buckets(panel: Panel, distances: np.ndarray, config: RelativeBiasConfig) -> np.ndarray:
    """Return the bucket of every distance of a key from a query."""
    numbers = np.arange(config.num_buckets, dtype=np.float64)[:, None]
    bias = relative(panel, FIRST, distances, numbers, BucketTable(config))
    return bias[0, 0].astype(np.int64)


@pytest.mark.parametrize("num_heads", range(1, 21))
def test_slopes_as_in_bloom_and_mpt(num_heads: int) -> None:
    ours = SlopeTable(AlibiConfig(), num_heads).values
    assert ours.dtype == np.float64
    bloom = build_alibi_tensor(torch.ones(1, 4), num_heads, torch.float64)
    np.testing.assert_allclose(ours, (bloom[:, 0, 3] / 3).numpy(), rtol=1e-6)
    mpt = build_mpt_alibi_tensor(num_heads, 4)
    np.testing.assert_allclose(ours, (mpt[:, 0, 0] / -3).numpy(), rtol=1e-6)
    wide = build_mpt_alibi_tensor(num_heads, 4, alibi_bias_max=5)
    slopes = SlopeTable(AlibiConfig(max_exponent=5.0, scale=2.0), num_heads).values
    np.testing.assert_allclose(slopes / 2, (wide[:, 0, 0] / -3).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("num_heads", "right"),
    [
        (1, [2.0**-8]),
        (2, [2.0**-4, 2.0**-8]),
        (3, [2.0**-4, 2.0**-8, 2.0**-2]),
        (8, [2.0**-n for n in range(1, 9)]),
    ],
)
def test_slopes_by_hand(num_heads: int, right: list[float]) -> None:
    """Press et al. 2022, section 3, and their code where the number is no power of two."""
    np.testing.assert_array_equal(SlopeTable(AlibiConfig(), num_heads).values, right)


@both_panels
def test_alibi_falls_with_the_distance(panel: Panel) -> None:
    bias = alibi(panel, np.array([2, 3]), np.arange(4), np.array([1.0, 0.5]))
    first = np.array([[-2.0, -1, 0, 1], [-3, -2, -1, 0]])
    np.testing.assert_array_equal(bias, [first, first / 2])


@both_panels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_alibi_has_the_dtype_of_the_slopes(panel: Panel, dtype: Any) -> None:
    slopes = SlopeTable(AlibiConfig(), 5).values.astype(dtype)
    assert alibi(panel, np.arange(2), np.arange(3), slopes).dtype == dtype


DISTANCES = np.arange(-2000, 2001)


@pytest.mark.parametrize("is_bidirectional", [True, False])
@pytest.mark.parametrize(
    ("num_buckets", "max_distance"),
    [(32, 128), (64, 256), (32, 256), (8, 64), (4, 100), (16, 20), (128, 1024), (32, 1000)],
)
def test_buckets_as_in_t5(num_buckets: int, max_distance: int, is_bidirectional: bool) -> None:
    config = RelativeBiasConfig(
        num_buckets=num_buckets, max_distance=max_distance, is_bidirectional=is_bidirectional
    )
    theirs = T5Attention._relative_position_bucket(
        torch.from_numpy(DISTANCES), is_bidirectional, num_buckets, max_distance
    )
    for panel in (TORCH, JAX):
        np.testing.assert_array_equal(buckets(panel, DISTANCES, config), theirs.numpy())


@both_panels
def test_an_edge_belongs_to_the_bucket_that_it_begins(panel: Panel) -> None:
    """Distance 64 of T5 is 14: float32 logarithms compiled by XLA say 13."""
    found = buckets(panel, np.array([-7, -8, -15, -16, -31, -32, -63, -64]), RelativeBiasConfig())
    assert found.tolist() == [7, 8, 9, 10, 11, 12, 13, 14]
    found = buckets(panel, np.array([7, 8, 127, 128, 10**6]), RelativeBiasConfig())
    assert found.tolist() == [16 + 7, 16 + 8, 16 + 15, 16 + 15, 16 + 15]


@both_panels
def test_keys_after_the_query_share_bucket_0_in_one_direction(panel: Panel) -> None:
    config = RelativeBiasConfig(num_buckets=8, max_distance=20, is_bidirectional=False)
    found = buckets(panel, np.array([5, 1, 0, -1, -3, -4, -5, -6, -8, -9, -99]), config)
    assert found.tolist() == [0, 0, 0, 1, 3, 4, 4, 5, 5, 6, 7]


@pytest.mark.parametrize("is_decoder", [False, True])
def test_bias_as_in_t5(is_decoder: bool) -> None:
    config = T5Config(d_model=8, d_kv=4, num_heads=3, is_decoder=is_decoder)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()
    weight = theirs.relative_attention_bias.weight.detach()
    table = BucketTable(RelativeBiasConfig(is_bidirectional=not is_decoder))
    for T, S, past in ((5, 150, 0), (3, 40, 37), (1, 5, 4)):
        with torch.no_grad():
            expected = theirs.compute_bias(T, S, past_seen_tokens=past)[0].numpy()
        for panel in (TORCH, JAX):
            ours = relative(panel, past + np.arange(T), np.arange(S), weight.numpy(), table)
            np.testing.assert_array_equal(ours, expected)


@both_panels
def test_positions_per_sample(panel: Panel) -> None:
    random = np.random.default_rng(0)
    queries, keys = random.integers(0, 99, (2, 3)), random.integers(0, 99, (2, 5))
    table, weight = BucketTable(RelativeBiasConfig()), random.normal(size=(32, 4))
    slopes = SlopeTable(AlibiConfig(), 4).values
    learnt, falling = (
        relative(panel, queries, keys, weight, table),
        alibi(panel, queries, keys, slopes),
    )
    assert learnt.shape == falling.shape == (2, 4, 3, 5)
    for i in range(2):
        np.testing.assert_array_equal(
            learnt[i], relative(panel, queries[i], keys[i], weight, table)
        )
        np.testing.assert_array_equal(falling[i], alibi(panel, queries[i], keys[i], slopes))


@both_panels
@pytest.mark.parametrize(("T", "S"), [(0, 3), (3, 0), (0, 0)])
def test_empty(panel: Panel, T: int, S: int) -> None:
    weight, table = np.ones((32, 2)), BucketTable(RelativeBiasConfig())
    assert relative(panel, np.arange(T), np.arange(S), weight, table).shape == (2, T, S)
    assert alibi(panel, np.arange(T), np.arange(S), np.ones(2)).shape == (2, T, S)


@both_panels
def test_a_bucket_gathers_the_gradients_of_its_distances(panel: Panel) -> None:
    config = RelativeBiasConfig(num_buckets=8, max_distance=6)
    cotangent = np.random.default_rng(1).normal(size=(3, 4, 9))
    queries, keys = np.arange(4), np.arange(9)

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        q, k = panel.array(queries), panel.array(keys)
        bias = panel.functional.relative_bias(q, k, arrays["weight"], BucketTable(config))
        return {"bias": bias}

    run = panel.differentiate(call, {"weight": np.ones((8, 3))}, {"bias": cotangent})
    rows = np.stack([buckets(panel, keys - q, config) for q in queries])
    right = np.stack([cotangent[:, rows == i].sum(-1) for i in range(8)])
    np.testing.assert_allclose(run.gradients["weight"], right, atol=1e-14)


@both_panels
def test_compiled(panel: Panel) -> None:
    module = panel.build("RelativePositionBias", 4, num_buckets=8, max_distance=9)
    queries, keys = np.arange(3), np.arange(7)
    eager = panel.run(module, queries, keys)
    assert eager.shape == (4, 3, 7)
    np.testing.assert_array_equal(panel.run(panel.compile(module), queries, keys), eager)


@both_panels
def test_unsigned_positions_count_down_too(panel: Panel) -> None:
    queries, keys = np.array([3], np.uint8), np.array([1, 250], np.uint8)
    found = alibi(panel, queries, keys, np.ones(1))
    np.testing.assert_array_equal(found, [[[-2.0, 247.0]]])


@both_panels
def test_positions_are_integer(panel: Panel) -> None:
    with pytest.raises(TypeError, match=r"query_positions is float64, but it must be integer"):
        alibi(panel, np.arange(3.0), np.arange(3), np.ones(2))
    table = BucketTable(RelativeBiasConfig())
    with pytest.raises(TypeError, match=r"key_positions is float64, but it must be integer"):
        relative(panel, np.arange(3), np.arange(3.0), np.ones((32, 1)), table)


def test_tables_compare_by_their_arguments() -> None:
    assert BucketTable(RelativeBiasConfig()) == BucketTable(RelativeBiasConfig())
    assert hash(SlopeTable(AlibiConfig(), 3)) == hash(SlopeTable(AlibiConfig(), 3))
    assert BucketTable(RelativeBiasConfig()) != BucketTable(RelativeBiasConfig(max_distance=99))
    assert SlopeTable(AlibiConfig(), 3) != SlopeTable(AlibiConfig(scale=2.0), 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RelativeBiasConfig(num_buckets=0), "num_buckets=0 must be a positive integer"),
        (lambda: RelativeBiasConfig(num_buckets=6), "num_buckets=6 must be a multiple of 4"),
        (
            lambda: RelativeBiasConfig(num_buckets=5, is_bidirectional=False),
            "num_buckets=5 must be a multiple of 2",
        ),
        (lambda: RelativeBiasConfig(max_distance=8), "max_distance=8 must exceed the 8 exact"),
        (lambda: AlibiConfig(max_exponent=0.0), r"max_exponent=0\.0 must be above 0"),
        (lambda: AlibiConfig(scale=-1.0), r"scale=-1\.0 must be above 0"),
        (lambda: RelativePositionBiasConfig(num_heads=0), "num_heads=0 must be a positive"),
        (lambda: SlopeTable(AlibiConfig(), 0), "num_heads=0 must be a positive"),
    ],
)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
