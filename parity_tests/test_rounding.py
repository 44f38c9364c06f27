"""The witness of rounding noise: errors where they belong, of the size they should have."""

import numpy as np
import pytest
import torch

from diptych.spec import EncoderConfig, TransformerEncoderLayerConfig
from parity_tests import plain
from parity_tests.rounding import UNIT, RandomRounding, rounding_noise


def values(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.erf, torch.tanh, lambda x: x * 3.0, lambda x: x / 7.0, lambda x: x**2],
)
def test_elementwise_errors_are_relative(function):
    x = values(1000)
    exact = function(x)
    with RandomRounding(0):
        moved = function(x)
    relative = ((moved - exact) / exact).abs().max().item()
    assert 0.9 * UNIT < relative < 2.1 * UNIT


@pytest.mark.parametrize("n", [4, 64, 1024])
@pytest.mark.parametrize("kind", ["sum", "mean", "product"])
def test_errors_of_sums_grow_with_the_root_of_their_length(n, kind):
    x, ones = torch.ones(4000, n, dtype=torch.float64), torch.ones(n, 1, dtype=torch.float64)
    run = {"sum": lambda: x.sum(-1), "mean": lambda: x.mean(-1), "product": lambda: x @ ones}[kind]
    exact = run()
    with RandomRounding(0):
        moved = run()
    largest = (moved - exact).abs().max().item() / (n if kind != "mean" else 1)
    assert 0.9 * UNIT < largest < 1.5 * UNIT


def test_moves_and_choices_are_exact():
    x = values(6, 5)
    with RandomRounding(0):
        moved = torch.where(x > 0, x, -x).T.reshape(5, 6)[1:, ::2].amax(-1)
    assert torch.equal(moved, x.abs().T[1:, ::2].amax(-1))


def test_the_backward_pass_has_errors_too():
    x = values(50).requires_grad_()

    def gradient():
        (found,) = torch.autograd.grad((x * x).sum(), x)
        return {"x": found}

    assert 0 < rounding_noise(gradient)["x"] < 4 * UNIT * x.abs().max().item() * 2


def test_seeds_repeat():
    def run(seed):
        with RandomRounding(seed):
            return torch.exp(values(20))

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


def test_a_deep_stack_has_noise_everywhere():
    config = EncoderConfig(
        layer=TransformerEncoderLayerConfig(d_model=8, num_heads=2, d_ff=12, activation="gelu"),
        num_layers=3,
        pooler=True,
    )
    parameters = {
        name: values(*leaf.shape, seed=i) for i, (name, leaf) in enumerate(config.leaves().items())
    }
    parameters = {name: tensor.requires_grad_() for name, tensor in parameters.items()}
    visible = torch.tensor([True] * 5 + [False])

    def run():
        outputs = plain.encoder(torch, parameters, values(2, 6, 8), config, visible)
        loss = sum((tensor**2).sum() for tensor in outputs.values())
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        return outputs | dict(zip(parameters, gradients, strict=True))

    noise = rounding_noise(run)
    assert noise.pop("hidden_states.0") == 0
    assert min(noise.values()) > 0


def test_fused_code_is_refused():
    with pytest.raises(NotImplementedError, match="softmax is not plain code"), RandomRounding(0):
        torch.softmax(values(3), -1)


def test_the_noise_is_that_of_real_rounding():
    """Attention with large scores: the true error, against 80-bit arithmetic, is of N's size."""
    query, key, value = values(40, 16) * 20, values(50, 16, seed=1), values(50, 8, seed=2)

    def run():
        output, weights = plain.attention(torch, query, key, value)
        return {"output": output, "weights": weights}

    noise = rounding_noise(run)
    wide = [np.asarray(x, np.longdouble) for x in (query, key, value)]
    scores = wide[0] @ wide[1].T / 4
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    found = run()
    for name, true in {"output": weights @ wide[2], "weights": weights}.items():
        error = float(np.abs(found[name].numpy() - true).max())
        assert 0.02 * noise[name] < error < 1.6 * noise[name], name
