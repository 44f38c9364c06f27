"""Caches: steps, chunks and the whole sequence are one computation for every kind of attention."""

from typing import Any

import jax
import numpy as np
import pytest
import torch

import jax_impl
import torch_impl
from diptych.spec import ScoreConfig
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import jax_module, to_canonical, to_flax, torch_module
from parity_tests.panels.cache_cases import CACHED, B, D, T
from parity_tests.panels.cache_runs import X, assert_exact, decode, module_of
from parity_tests.support.harness import (
    Run,
    judge_exact,
    random_arrays,
    run_jax,
    run_torch,
    to_torch,
)
from parity_tests.support.panels import JAX, TORCH, both_panels, to_numpy

CHUNKS = {"steps": (1,) * T, "chunks, some empty": (0, 3, 0, 2)}
DISTINCT = {
    "grouped",
    "window 3",
    "alibi",
    "relative bias",
    "everything",
    "latent, latent queries",
    "latent, window 3",
    "dynamic",
}
"""Those with a path of their own; what the others add, positions and norms, lies before a cache."""
most_are_slow = pytest.mark.parametrize(
    "name",
    [name if name in DISTINCT else pytest.param(name, marks=pytest.mark.slow) for name in CACHED],
)
COTANGENT = random_arrays(4, {"output": (B, T, D)})


@most_are_slow
def test_steps_chunks_and_the_whole_agree(name):
    config = CACHED[name]
    with TORCH.wide():
        truth = to_numpy(torch_module(config, random_tensors(config))(to_torch(X)))
    for panel in (TORCH, JAX):
        module = module_of(panel, config)
        assert_exact(panel.run(module, X)[0], truth[0], f"{panel.name}: whole")
        for way, chunks in CHUNKS.items():
            outputs, weights, (entries, length) = decode(panel, module, X, chunks)
            place = f"{panel.name}: {way}"
            assert_exact(np.concatenate(outputs, 1), truth[0], place)
            assert (length == T).all()
            if entries[0].shape[-2] == T:  # slots are positions
                assert_exact(np.concatenate(weights, 2), truth[1], f"{place}: weights")


def padded_chunks(filler: float) -> tuple[np.ndarray, tuple[int, ...], np.ndarray]:
    """Return X spread over padded chunks, their lengths and the real rows (chunks, B)."""
    counts = np.array([[3, 1, 0], [2, 2, 0], [0, 1, 0], [0, 1, 0]])
    chunks = (3, 2, 1, 1)
    x = np.full((B, sum(chunks), D), filler)
    for sample in range(B):
        done = start = 0
        for count, number in zip(counts[:, sample], chunks, strict=True):
            x[sample, start : start + count] = X[sample, done : done + count]
            done, start = done + count, start + number
    return x, chunks, counts


@most_are_slow
def test_samples_of_different_lengths(name):
    x, chunks, counts = padded_chunks(7.0)
    for panel in (TORCH, JAX):
        module = module_of(panel, CACHED[name])
        truth = panel.run(module, X)[0]
        outputs, _, (_, length) = decode(panel, module, x, chunks, counts=counts)
        assert length.tolist() == counts.sum(0).tolist() == [5, 5, 0]
        for sample in range(B):
            real = [
                output[sample, :n] for output, n in zip(outputs, counts[:, sample], strict=True)
            ]
            place = f"{panel.name}: sample {sample}"
            assert_exact(np.concatenate(real), truth[sample, : length[sample]], place)
        assert all(np.isfinite(output).all() for output in outputs)


@both_panels
@pytest.mark.parametrize("name", ["grouped", "window 3", "latent, window 3"])
def test_padding_of_any_number_stays_out(panel, name):
    module = module_of(panel, CACHED[name])
    found = []
    for filler in (7.0, np.nan):
        x, chunks, counts = padded_chunks(filler)
        outputs, _, _ = decode(panel, module, x, chunks, counts=counts)
        found.append(outputs)
    for finite, poisoned, count in zip(*found, counts, strict=True):
        is_real = np.arange(finite.shape[1]) < count[:, None]
        assert np.array_equal(finite[is_real], poisoned[is_real])


@pytest.mark.parametrize("name", ["plain", "window 3", "latent, window 3"])
def test_one_chunk_longer_than_the_window(name):
    config = CACHED[name]
    for panel in (TORCH, JAX):
        module = module_of(panel, config)
        (output,), _, _ = decode(panel, module, X, (T,))
        assert_exact(output, panel.run(module, X)[0], panel.name)


@both_panels
@pytest.mark.parametrize("name", ["window 3", "latent, window 3", "rotary, window 3"])
def test_a_rolling_cache_never_ends(panel, name):
    module = module_of(panel, CACHED[name])
    x = random_arrays(8, {"x": (B, 11, D)})["x"]
    with panel.wide():
        assert module.new_cache(B, 1000).entries[0].shape[-2] == 3
    outputs, _, (_, length) = decode(panel, module, x, (1,) * 8 + (3,), capacity=1000)
    assert (length == 11).all()
    assert_exact(np.concatenate(outputs, 1), panel.run(module, x)[0], name)


@both_panels
@pytest.mark.parametrize(("name", "held"), [("rotary, window 3", (3, 4, 2)), ("rotary", range(T))])
def test_slots_hold_the_positions_that_they_say(panel, name, held):
    module = module_of(panel, CACHED[name])
    _, _, (entries, _) = decode(panel, module, X, (3, 2))
    with panel.wide():
        projected = to_numpy(module.project(panel.array(X)))
    for entry, whole in zip(entries, projected, strict=True):
        assert_exact(entry, whole[:, :, list(held)], name)


@both_panels
def test_capacity_one(panel):
    module = module_of(panel, CACHED["rotary"])
    (output,), _, (_, length) = decode(panel, module, X[:, :1], (1,), capacity=1)
    assert_exact(output, panel.run(module, X[:, :1])[0], panel.name)
    assert (length == 1).all()


@both_panels
def test_a_spare_capacity_changes_nothing(panel):
    module = module_of(panel, CACHED["everything"])
    outputs, _, _ = decode(panel, module, X, (3, 2), capacity=9)
    assert_exact(np.concatenate(outputs, 1), panel.run(module, X)[0], panel.name)


@both_panels
@pytest.mark.parametrize("name", ["plain", "window 3", "latent", "latent, window 3"])
def test_a_cache_is_a_value(panel, name):
    module = module_of(panel, CACHED[name])
    with panel.wide():
        first = module(panel.array(X[:, :2]), cache=module.new_cache(B, T))[2]
        entries, length = jax.tree.map(np.copy, to_numpy(first))
        rows = panel.array(X[:, 2:4])
        once, twice = (module(rows, cache=first) for _ in range(2))
    assert np.array_equal(to_numpy(once[0]), to_numpy(twice[0]))
    after = to_numpy(first)
    assert np.array_equal(after[1], length)
    assert length.dtype == np.int32
    assert all(np.array_equal(a, b) for a, b in zip(after[0], entries, strict=True))
    assert not np.array_equal(to_numpy(once[2])[0][0], entries[0])


@both_panels
def test_samples_with_different_pasts_see_their_own_keys(panel):
    """onnx/onnx#8068: three and one positions held, two new ones."""
    module = panel.build("MultiHeadAttention", D, 2, score=ScoreConfig(is_causal=True))
    counts = np.array([[3, 1], [2, 2]])
    _, (_, weights), _ = decode(panel, module, X[:2], (3, 2), counts=counts)
    seen = (weights[:, 0] > 0).astype(int).tolist()
    assert seen == [[[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]]


@both_panels
def test_masks_and_biases_of_slots(panel):
    module = module_of(panel, CACHED["rotary"])
    random = np.random.default_rng(2)
    mask, bias = random.random((T, T)) < 0.6, random.normal(size=(B, 1, T, T))
    truth = panel.run(module, X, mask=mask, bias=bias)[0]
    with panel.wide():
        cache, outputs = module.new_cache(B, T), []
        for i in range(T):
            row = slice(i, i + 1)
            options = {"mask": mask[row], "bias": bias[:, :, row]}
            output, _, cache = module(panel.array(X[:, row]), cache=cache, **panel.array(options))
            outputs.append(to_numpy(output))
    assert_exact(np.concatenate(outputs, 1), truth, panel.name)


@both_panels
def test_given_positions_rotate_the_new_rows(panel):
    module = module_of(panel, CACHED["rotary"])
    positions = np.array([[0, 2, 3, 5, 9]] * B) + np.arange(B)[:, None]
    truth = panel.run(module, X, position_ids=positions)[0]
    with panel.wide():
        cache, outputs = module.new_cache(B, T), []
        for rows in (slice(0, 3), slice(3, T)):
            ids = panel.array(positions[:, rows])
            output, _, cache = module(panel.array(X[:, rows]), cache=cache, position_ids=ids)
            outputs.append(to_numpy(output))
    assert_exact(np.concatenate(outputs, 1), truth, panel.name)


@most_are_slow
def test_gradients_pass_through_the_cache(tally, name):
    config = CACHED[name]
    tensors = random_tensors(config)
    modules = {"torch": torch_module(config, tensors), "jax": jax_module(config, tensors)}

    def calls(panel: Any, module: Any) -> tuple[Any, Any]:
        def whole(inputs: dict[str, Any]) -> dict[str, Any]:
            params = {name: array for name, array in inputs.items() if name != "x"}
            return {"output": panel.functional_call(module, params, inputs["x"])[0]}

        def chunked(inputs: dict[str, Any]) -> dict[str, Any]:
            params = {name: array for name, array in inputs.items() if name != "x"}
            x, cache = inputs["x"], module.new_cache(B, T)
            first, _, cache = panel.functional_call(module, params, x[:, :3], cache=cache)
            second, _, cache = panel.functional_call(module, params, x[:, 3:], cache=cache)
            join = torch.cat if panel is torch_impl else jax.numpy.concatenate
            return {"output": join([first, second], 1)}

        return whole, chunked

    inputs = {"x": X}
    whole, chunked = calls(torch_impl, modules["torch"])
    truth = run_torch(whole, inputs | tensors, COTANGENT)
    in_torch = run_torch(chunked, inputs | tensors, COTANGENT)
    judge_exact(tally, name, in_torch, truth)
    _, chunked = calls(jax_impl, modules["jax"])
    own = to_flax(config, tensors)
    in_jax = run_jax(chunked, inputs | own, COTANGENT)
    gradients = to_canonical(config, {leaf: in_jax.gradients.pop(leaf) for leaf in own})
    judge_exact(tally, name, Run(in_jax.outputs, in_jax.gradients | gradients), truth)
