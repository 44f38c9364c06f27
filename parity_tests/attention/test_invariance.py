"""What must not matter: later tokens to a causal output, other samples to a sample."""

import functools
import itertools

import jax
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diptych.spec import ScoreConfig
from parity_tests.support.panels import JAX, TORCH, both_panels_slow_in_jax, to_numpy

B, T, D, N = 2, 5, 6, 3
RATE = 0.4

properties = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PATHS = [
    {"need_weights": need_weights, "training": training, "compiled": compiled}
    for need_weights, training, compiled in itertools.product([True, False], repeat=3)
]
every_path = pytest.mark.parametrize("options", PATHS, ids=str)
windows, seeds = st.sampled_from([None, 2]), st.integers(0, 99)


@functools.cache
def layer(name, window, training):
    panel = {"torch_impl": TORCH, "jax_impl": JAX}[name]
    score = ScoreConfig(is_causal=True, window=window)
    module = panel.build(
        "MultiHeadAttention", D, N, num_kv_heads=1, attention_dropout=RATE, score=score
    )
    return module.train(training)


@functools.cache
def path(name, window, training, need_weights, compiled):
    """Return one way to call the layer on x, drawing the same in every call."""
    module = layer(name, window, training)

    def call(x, draw):
        draw = {"rng_key": draw} if name == "jax_impl" else {}
        return module(x, x, x, need_weights=need_weights, **draw)

    if not compiled:
        return call
    if name == "jax_impl":
        return jax.jit(call)
    return torch.compile(call, backend="aot_eager", fullgraph=True)


def run(panel, x, *, window, training, need_weights, compiled):
    call = path(panel.name, window, training, need_weights, compiled)
    torch.manual_seed(0)
    with panel.wide():
        draw = jax.random.key(0) if panel is JAX else None
        output, weights = call(panel.array(x), draw)
        return to_numpy(output), to_numpy(weights)


@both_panels_slow_in_jax
@every_path
@given(t=st.integers(1, T - 1), window=windows, seed=seeds)
@properties
def test_later_tokens_do_not_matter(panel, options, t, window, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(B, T, D))
    changed = x.copy()
    changed[:, t:] = random.normal(size=(B, T - t, D))
    output, weights = run(panel, x, window=window, **options)
    other_output, other_weights = run(panel, changed, window=window, **options)
    assert np.abs(output - other_output)[:, :t].max() <= 1e-14
    assert np.abs(output - other_output)[:, t:].max() > 1e-3
    if weights is not None:
        assert np.abs(weights - other_weights)[..., :t, :].max() <= 1e-14
        assert not np.triu(weights, 1).any()


@both_panels_slow_in_jax
@every_path
@given(sample=st.integers(0, B - 1), window=windows, seed=seeds)
@properties
def test_other_samples_do_not_matter(panel, options, sample, window, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(B, T, D))
    changed = random.normal(size=(B, T, D))
    changed[sample] = x[sample]
    output, weights = run(panel, x, window=window, **options)
    other_output, other_weights = run(panel, changed, window=window, **options)
    assert np.abs(output - other_output)[sample].max() <= 1e-14
    assert np.abs(output - other_output)[1 - sample].max() > 1e-3
    if weights is not None:
        assert np.abs(weights - other_weights)[sample].max() <= 1e-14
