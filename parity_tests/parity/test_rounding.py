"""The witness of rounding noise: errors where they belong, of the size they should have."""

import numpy as np
import pytest
import torch

from diptych.parity.rounding import FLOAT32, FLOAT64, random_rounding, rounding_noise
from diptych.spec import EncoderConfig, TransformerEncoderLayerConfig
from parity_tests.support import plain


def values(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize(
    "function",
    [torch.exp, torch.erf, torch.tanh, lambda x: x * 3.0, lambda x: x / 7.0, lambda x: x**2],
)
def test_elementwise_errors_are_relative(function):
    x = values(1000)
    exact = function(x)
    with random_rounding(0, FLOAT64):
        moved = function(x)
    relative = ((moved - exact) / exact).abs().max().item()
    assert 0.9 * FLOAT64 < relative < 2.1 * FLOAT64


@pytest.mark.parametrize("n", [4, 64, 1024])
@pytest.mark.parametrize("kind", ["sum", "mean", "product"])
def test_errors_of_sums_grow_with_the_root_of_their_length(n, kind):
    x, ones = torch.ones(4000, n, dtype=torch.float64), torch.ones(n, 1, dtype=torch.float64)
    run = {"sum": lambda: x.sum(-1), "mean": lambda: x.mean(-1), "product": lambda: x @ ones}[kind]
    exact = run()
    with random_rounding(0, FLOAT64):
        moved = run()
    largest = (moved - exact).abs().max().item() / (n if kind != "mean" else 1)
    assert 0.9 * FLOAT64 < largest < 1.5 * FLOAT64


def test_moves_and_choices_are_exact():
    x = values(6, 5)
    with random_rounding(0, FLOAT64):
        moved = torch.where(x > 0, x, -x).T.reshape(5, 6)[1:, ::2].amax(-1)
    assert torch.equal(moved, x.abs().T[1:, ::2].amax(-1))


def test_the_backward_pass_has_errors_too():
    x = values(50).requires_grad_()

    def gradient():
        (found,) = torch.autograd.grad((x * x).sum(), x)
        return {"x": found}

    assert 0 < rounding_noise(gradient)["x"] < 4 * FLOAT64 * x.abs().max().item() * 2


def test_seeds_repeat():
    def run(seed):
        with random_rounding(seed, FLOAT64):
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


def plain_layer_norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / ((centred**2).mean(-1, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize(
    ("fused", "decomposed"),
    [
        (
            lambda x: torch.softmax(20 * x, -1),
            lambda x: (p := (20 * x - (20 * x).amax(-1, keepdim=True)).exp()) / p.sum(-1, True),
        ),
        (lambda x: torch.layer_norm(x + 9, (40,)), lambda x: plain_layer_norm(x + 9)),
        (torch.nn.functional.gelu, lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5))),
        (
            lambda x: torch.nn.functional.linear(x, x, x[:, 0]),
            lambda x: (x @ x.T) + x[:, 0],
        ),
    ],
    ids=["softmax", "layer norm", "gelu", "linear"],
)
def test_a_fused_operation_has_the_errors_of_its_steps(fused, decomposed):
    x = values(40, 40)
    noise = [rounding_noise(lambda f=f: {"y": f(x)})["y"] for f in (fused, decomposed)]
    assert 0.4 * noise[1] < noise[0] < 2.5 * noise[1]


def test_the_unit_is_that_of_the_dtype():
    x = values(30, 30)
    wide, narrow = (rounding_noise(lambda: {"y": x @ x}, unit=u)["y"] for u in (FLOAT64, FLOAT32))
    assert narrow / wide == pytest.approx(FLOAT32 / FLOAT64, rel=0.1)
    error = (x.float() @ x.float()).double() - x.float().double() @ x.float().double()
    assert 0.02 * narrow < error.abs().max().item() < 1.6 * narrow


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
