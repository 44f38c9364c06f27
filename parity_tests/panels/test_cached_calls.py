"""Calls with a cache: refusals, overruns where numbers are hidden, compilation, dtypes."""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
import torch

from diptych.spec import AttentionConfig, ScoreConfig
from parity_tests.components.case import random_tensors
from parity_tests.components.runs import jax_module, torch_module
from parity_tests.panels.cache_cases import CACHED, B, D, T
from parity_tests.panels.cache_runs import X, assert_exact, module_of
from parity_tests.support.harness import DTYPES, to_jax, to_torch
from parity_tests.support.panels import JAX, TORCH, both_panels, to_numpy

CAUSAL = AttentionConfig(d_model=D, num_heads=2, score=ScoreConfig(is_causal=True))
REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "too many": (ValueError, "capacity=5 that holds 4 positions has no room for 2", {}),
    "one of a batch": (
        ValueError,
        "no room for 2",
        {"key_mask": np.array([[1, 0], [1, 1], [1, 0]])},
    ),
    "segments": (ValueError, "segment_ids beside cache=", {"segment_ids": np.zeros((B, 2), int)}),
    "offset": (ValueError, "offset=1 beside cache=", {"offset": 1}),
    "padding first": (
        ValueError,
        "key_mask of sample 1 hides a row before a real one",
        {"key_mask": np.array([[1, 0], [0, 1], [1, 0]])},
    ),
    "mask of another length": (
        ValueError,
        r"key_mask has shape \(3, 5\), expected that of the new rows, \(3, 2\)",
        {"key_mask": np.ones((B, T), bool)},
    ),
    "floating mask": (TypeError, "key_mask is float", {"key_mask": np.ones((B, 2))}),
    "wrong mask": (
        ValueError,
        r"mask.*\(1, 4\)",
        {"query": X[:, :1], "mask": np.ones((1, 4), bool)},
    ),
    "other keys": (ValueError, "with cache= there is no memory", {"key": X}),
    "wrong batch": (ValueError, r"\(2, 2, 14\), expected \(3, T, D\)", {"query": X[:2, :2]}),
    "no batch": (ValueError, r"\(2, 14\), expected \(3, T, D\)", {"query": X[0, :2]}),
}


@both_panels
@pytest.mark.parametrize(("error", "words", "options"), REFUSED.values(), ids=REFUSED)
def test_refused(panel, error, words, options):
    module = module_of(panel, CAUSAL)
    with panel.wide():
        _, _, cache = module(panel.array(X[:, :4]), cache=module.new_cache(B, T))
        given = panel.array({"query": X[:, :2]} | options)
        with pytest.raises(error, match=words):
            module(**given, cache=cache)


@both_panels
def test_memory_beside_a_cache_is_refused(panel):
    module = module_of(panel, CAUSAL)
    with panel.wide():
        x = panel.array(X)
        with pytest.raises(ValueError, match="with cache= there is no memory"):
            module(x, memory=module.project(x), cache=module.new_cache(B, T))


@both_panels
def test_a_cache_of_another_dtype_is_refused(panel):
    module = module_of(panel, CAUSAL)
    with panel.wide():
        cache = module.new_cache(B, T)
        narrow = panel.array(tuple(x.astype(np.float32) for x in to_numpy(cache.entries)))
        with pytest.raises(TypeError, match="must have one dtype, not float32, float64"):
            module(panel.array(X), cache=cache._replace(entries=narrow))


@both_panels
@pytest.mark.parametrize("name", ["MultiHeadAttention", "LatentAttention"])
def test_attention_that_is_not_causal_has_no_cache(panel, name):
    sizes = {"kv_rank": 4, "nope_dim": 3, "rope_dim": 2, "v_dim": 5}
    options = sizes if name == "LatentAttention" else {}
    module = panel.build(name, D, 2, **options)
    with pytest.raises(ValueError, match="a cache needs score"):
        module.new_cache(B, T)
    causal = panel.build(name, D, 2, **options, score=ScoreConfig(is_causal=True))
    with panel.wide(), pytest.raises(ValueError, match="a cache needs score"):
        module(panel.array(X), cache=causal.new_cache(B, T))
    for sizes in ((-1, T), (B, 0)):
        with pytest.raises(ValueError, match=r"batch_size=-1|capacity=0"):
            causal.new_cache(*sizes)


@both_panels
@pytest.mark.parametrize("name", ["plain", "latent"])
def test_overrun_where_numbers_are_hidden(panel, name):
    """Rows past the capacity are NaN, those before it right, and nothing is overwritten."""
    module = module_of(panel, CACHED[name])
    step = panel.compile(lambda x, cache: module(x, cache=cache, need_weights=False))
    truth = panel.run(module, X)[0]
    with panel.wide(), torch.no_grad():
        x = panel.array(np.concatenate([X, X[:, :1]], 1))
        _, _, cache = module(x[:, :4], cache=module.new_cache(B, T))
        output, _, full = step(x[:, 4:], cache)
        again, _, after = step(x[:, 4:], full)
        output, again, full, after = (to_numpy(value) for value in (output, again, full, after))
    assert_exact(output[:, 0], truth[:, 4], panel.name)
    assert np.isnan(output[:, 1]).all()
    assert np.isnan(again).all()
    assert full[1].tolist() == after[1].tolist() == [T] * B
    assert all(np.array_equal(a, b) for a, b in zip(full[0], after[0], strict=True))


def test_under_vmap():
    """Two caches beside each other; an overrun is NaN there too."""
    results = []
    for panel, vmap in ((TORCH, torch.func.vmap), (JAX, jax.vmap)):
        module = module_of(panel, CACHED["rotary"])
        with panel.wide():
            both = np.stack([X, X[::-1]])
            x = panel.array(np.concatenate([both, both[:, :, :1]], 2))
            first = [module(part[:, :4], cache=module.new_cache(B, T))[2] for part in x]
            stack = torch.stack if panel is TORCH else jax.numpy.stack
            entries = tuple(stack(pair) for pair in zip(*[c.entries for c in first], strict=True))
            lengths = stack([c.length for c in first])

            step = partial(_step, module, type(first[0]))
            results.append(to_numpy(vmap(step)(x[:, :, 4:], entries, lengths)))
    assert np.isnan(results[0][:, :, 1]).all()
    assert_exact(results[0][:, :, 0], results[1][:, :, 0], "vmap")
    assert np.isnan(results[1][:, :, 1]).all()


def _step(module: Any, kind: Any, x: Any, entries: Any, length: Any) -> Any:
    return module(x, cache=kind(entries, length))[0]


@pytest.mark.parametrize("name", ["everything", "dynamic", "latent"])
def test_jax_compiles_a_step_once(name):
    module, traces = module_of(JAX, CACHED[name]), []
    truth = JAX.run(module, X)[0]

    @jax.jit
    def step(x, cache):
        traces.append(x.shape)
        return module(x, cache=cache, need_weights=False)

    with JAX.wide():
        cache = module.new_cache(B, T)
        for i in range(T):
            output, _, cache = step(to_jax(X[:, i : i + 1]), cache)
            assert_exact(np.asarray(output), truth[:, i : i + 1], f"step {i}")
    assert len(traces) == 1


@pytest.mark.parametrize("name", ["everything", "dynamic", "latent"])
def test_torch_compiles_a_step_once(name):
    module = module_of(TORCH, CACHED[name])
    truth = to_numpy(module(to_torch(X))[0])
    torch.compiler.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    step = torch.compile(
        lambda x, cache: module(x, cache=cache, need_weights=False),
        backend=counter,
        fullgraph=True,
    )
    with torch.no_grad():
        cache = module.new_cache(B, T)
        for i in range(T):
            output, _, cache = step(to_torch(X[:, i : i + 1]), cache)
            assert_exact(to_numpy(output), truth[:, i : i + 1], f"step {i}")
    assert counter.frame_count == 1


@both_panels
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_cache_has_the_dtype_of_the_parameters(panel, dtype):
    config = CACHED["rotary"]
    tensors = {name: x.astype(DTYPES[dtype]) for name, x in random_tensors(config).items()}
    x = X.astype(DTYPES[dtype])
    with panel.wide():
        module = (torch_module if panel is TORCH else jax_module)(config, tensors)
        whole = to_numpy(module(panel.array(x))[0])
        output, _, cache = module(panel.array(x), cache=module.new_cache(B, T))
    assert to_numpy(cache.entries)[0].dtype == whole.dtype == DTYPES[dtype]
    assert np.array_equal(to_numpy(output), whole)


@both_panels
@pytest.mark.parametrize("name", ["plain", "window 3"])
def test_padding_first_is_nan_where_numbers_are_hidden(panel, name):
    module = module_of(panel, CACHED[name])
    key_mask = np.array([[0, 1, 1], [1, 1, 0], [1, 1, 1]])

    def call(x, key_mask):
        return module(x, cache=module.new_cache(B, T), key_mask=key_mask)[0]

    with panel.wide():
        rows, mask = panel.array(X[:, :3]), panel.array(key_mask)
        output = to_numpy(panel.compile(call)(rows, mask))
        right = to_numpy(module(rows[1:], cache=module.new_cache(B - 1, T), key_mask=mask[1:])[0])
    assert np.isnan(output[0]).all()
    assert_exact(output[1:], right, name)
