"""The two source documents: their calls work as written, their numbers come out in both panels."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.families import FAMILIES
from diptych.parity.compare import compare_working
from diptych.rules import convert_tensors
from diptych.spec import (
    AttentionConfig,
    Config,
    FeedForwardConfig,
    HeadAttentionConfig,
    PositionalEncodingConfig,
    ScaledDotProductAttentionConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.components.runs import jax_module, outputs_of, torch_module
from parity_tests.support import seed_code
from parity_tests.support.harness import Arrays, Run, judge_exact, to_jax, to_torch

PANELS = {
    "torch": (torch_impl, {}, torch.from_numpy),
    "jax": (jax_impl, {"rngs": nnx.Rngs(0)}, jnp.asarray),
}
both_panels = pytest.mark.parametrize("panel", PANELS)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


MASKS = {
    "(T, S)": np.random.default_rng(1).integers(0, 2, (4, 6)) | np.eye(4, 6, dtype=int),
    "(B, 1, T, S)": np.random.default_rng(2).integers(0, 2, (2, 1, 4, 6)) | np.eye(4, 6, dtype=int),
}

CASES: dict[str, tuple[Config, tuple[Any, ...], dict[str, Any], list[np.ndarray]]] = {
    "ScaledDotProductAttention": (
        ScaledDotProductAttentionConfig(d_k=64),
        (64,),
        {},
        [normal(2, 4, 64), normal(2, 6, 64, seed=1), normal(2, 6, 7, seed=2)],
    ),
    "ScaledDotProductAttention, mask": (
        ScaledDotProductAttentionConfig(d_k=64),
        (64,),
        {"mask": MASKS["(T, S)"]},
        [normal(2, 4, 64), normal(2, 6, 64, seed=1), normal(2, 6, 7, seed=2)],
    ),
    "MultiHeadAttention": (
        AttentionConfig(d_model=256, num_heads=8),
        (256, 8),
        {},
        [normal(2, 4, 256), normal(2, 6, 256, seed=1), normal(2, 6, 256, seed=2)],
    ),
    "MultiHeadAttention, mask": (
        AttentionConfig(d_model=256, num_heads=8),
        (256, 8),
        {"mask": MASKS["(B, 1, T, S)"]},
        [normal(2, 4, 256), normal(2, 6, 256, seed=1), normal(2, 6, 256, seed=2)],
    ),
    "FeedForward": (FeedForwardConfig(d_model=32, d_ff=64), (32, 64), {}, [normal(2, 5, 32)]),
    "TransformerEncoderLayer": (
        TransformerEncoderLayerConfig(d_model=256, num_heads=8, d_ff=1024),
        (256, 8, 1024),
        {},
        [normal(2, 4, 256)],
    ),
    "HeadAttention": (
        HeadAttentionConfig(emb_size=64, head_size=32, max_seq_len=128),
        (64, 32, 128),
        {},
        [normal(1, 10, 64)],
    ),
}


def seed_tensors(config: Config, module: torch.nn.Module) -> Arrays:
    """Return the parameters of a seed's module by canonical name."""
    if not config.leaves():
        return {}
    family = FAMILIES["seed_head" if isinstance(config, HeadAttentionConfig) else "seed_encoder"]
    tensors = {name: tensor.detach().numpy() for name, tensor in module.named_parameters()}
    return convert_tensors(tensors, family.rules(config, ()))


def panel_modules(config: Config, tensors: Arrays) -> tuple[torch.nn.Module, nnx.Module]:
    """Return both panels' modules with the same parameters."""
    return torch_module(config, tensors), jax_module(config, tensors)


def numpy_outputs(output: Any) -> Arrays:
    return {name: np.asarray(array) for name, array in outputs_of(output).items()}


@pytest.mark.parametrize("name", CASES)
def test_the_seeds_numbers_in_float64(tally, name):
    config, arguments, options, inputs = CASES[name]
    torch.manual_seed(0)
    seed = getattr(seed_code, config.component)(*arguments).double().eval()
    wide = [array.astype(np.float64) for array in inputs]
    with torch.no_grad(), jax.enable_x64(True):
        in_torch, in_jax = panel_modules(config, seed_tensors(config, seed))
        truth = numpy_outputs(seed(*map(to_torch, wide), **to_torch(options)))
        ours = numpy_outputs(in_torch(*map(to_torch, wide), **to_torch(options)))
        theirs = numpy_outputs(in_jax(*map(to_jax, wide), **to_jax(options)))
    judge_exact(tally, f"seed {name}, torch", Run(ours, {}), Run(truth, {}))
    judge_exact(tally, f"seed {name}, jax", Run(theirs, {}), Run(truth, {}))
    judge_exact(tally, f"seed {name}", Run(ours, {}), Run(theirs, {}))


@pytest.mark.parametrize("name", CASES)
def test_the_seeds_numbers_in_float32(name):
    config, arguments, options, inputs = CASES[name]
    torch.manual_seed(0)
    seed = getattr(seed_code, config.component)(*arguments).eval()
    with torch.no_grad():
        in_torch, in_jax = panel_modules(config, seed_tensors(config, seed))
        plain = numpy_outputs(seed(*map(to_torch, inputs), **to_torch(options)))
        ours = numpy_outputs(in_torch(*map(to_torch, inputs), **to_torch(options)))
        theirs = numpy_outputs(in_jax(*map(to_jax, inputs), **to_jax(options)))
        wide = [to_torch(array.astype(np.float64)) for array in inputs]
        truth = numpy_outputs(seed.double()(*wide, **to_torch(options)))
    for output, reference in truth.items():
        for side in (ours, theirs):
            row = compare_working(side[output], reference, plain[output], name=output)
            assert row.ok, str(row)


@both_panels
def test_calls_of_the_first_document(panel):
    impl, rngs, array = PANELS[panel]
    Q, K, V = (array(normal(2, 4, 64, seed=seed)) for seed in range(3))
    attention = impl.ScaledDotProductAttention(d_k=64)
    output, weights = attention(Q, K, V)
    assert output.shape == (2, 4, 64)
    assert weights.shape == (2, 4, 4)
    np.testing.assert_allclose(weights[0].sum(-1), np.ones(4), atol=1e-6)

    Q = array(normal(2, 4, 256))
    mha = impl.MultiHeadAttention(d_model=256, num_heads=8, **rngs)
    output, weights = mha(Q, Q, Q)
    assert output.shape == (2, 4, 256)
    assert weights.shape == (2, 8, 4, 4)

    x = array(normal(2, 4, 256))
    assert impl.PositionalEncoding(256)(x).shape == x.shape
    assert impl.FeedForward(256, **rngs)(x).shape == x.shape
    layer = impl.TransformerEncoderLayer(d_model=256, num_heads=8, d_ff=1024, **rngs)
    key = {"rng_key": jax.random.key(0)} if panel == "jax" else {}
    assert layer(x, **key).shape == x.shape
    assert layer.eval()(x).shape == x.shape


@both_panels
def test_calls_of_the_second_document(panel):
    impl, rngs, array = PANELS[panel]
    attention = impl.HeadAttention(emb_size=64, head_size=32, max_seq_len=128, **rngs)
    x = array(normal(1, 10, 64))
    assert attention(x).shape == (1, 10, 32)
    assert attention.get_attention_weights(x).shape == (1, 10, 10)
    for call in (attention, attention.get_attention_weights):
        with pytest.raises(ValueError, match="max_seq_len=128"):
            call(array(normal(1, 129, 64)))


def test_get_attention_weights_are_the_seeds():
    torch.manual_seed(0)
    seed = seed_code.HeadAttention(64, 32, 128)
    config, x = CASES["HeadAttention"][0], normal(1, 10, 64)
    with torch.no_grad():
        in_torch, in_jax = panel_modules(config, seed_tensors(config, seed))
        plain = seed.get_attention_weights(torch.from_numpy(x)).numpy()
        ours = in_torch.get_attention_weights(torch.from_numpy(x)).numpy()
        theirs = np.asarray(in_jax.get_attention_weights(jnp.asarray(x)))
        truth = seed.double().get_attention_weights(torch.from_numpy(x).double()).numpy()
    assert compare_working(ours, truth, plain).ok
    assert compare_working(theirs, truth, plain).ok
    assert not np.triu(ours[0], 1).any()
    assert not np.triu(theirs[0], 1).any()


@both_panels
def test_first_of_four_shapes(panel):
    impl, rngs, array = PANELS[panel]
    x = array(normal(3, 5, 128))
    output, _ = impl.MultiHeadAttention(d_model=128, num_heads=4, **rngs)(x, x, x)
    assert output.shape == x.shape


def test_second_of_four_gradient():
    x = torch.from_numpy(normal(2, 3, 64)).requires_grad_()
    output, _ = torch_impl.MultiHeadAttention(d_model=64, num_heads=2)(x, x, x)
    output.sum().backward()
    assert x.grad is not None
    assert x.grad.abs().max() > 0

    mha = jax_impl.MultiHeadAttention(d_model=64, num_heads=2, rngs=nnx.Rngs(0))
    gradient = jax.grad(lambda x: mha(x, x, x)[0].sum())(jnp.asarray(normal(2, 3, 64)))
    assert gradient.shape == (2, 3, 64)
    assert abs(gradient).max() > 0


@both_panels
def test_third_of_four_equal_values_come_out(panel):
    impl, _, array = PANELS[panel]
    Q, K, V = np.zeros((1, 1, 64)), normal(1, 4, 64), np.ones((1, 4, 64)) * 5
    output, weights = impl.ScaledDotProductAttention(d_k=64)(
        *(array(a.astype(np.float32)) for a in (Q, K, V))
    )
    assert float(output[0, 0, 0]) == pytest.approx(5)
    np.testing.assert_allclose(weights, np.full((1, 1, 4), 0.25))


@both_panels
def test_fourth_of_four_the_documents_causal_mask_is_the_wrong_way_round(panel):
    """The document's mask is true above the diagonal, and true means: may attend."""
    impl, _, array = PANELS[panel]
    of_the_document = np.triu(np.ones((4, 4)), k=1).astype(bool)
    right = np.asarray(impl.functional.causal_mask(4))
    assert (right == ~of_the_document).all()

    Q, eye = np.zeros((1, 4, 4), np.float32), np.eye(4, dtype=np.float32)[None]
    attention = impl.ScaledDotProductAttention(d_k=4)
    _, weights = attention(array(Q), array(eye), array(eye), array(right))
    np.testing.assert_allclose(weights[0], right / right.sum(-1, keepdims=True), rtol=1e-6)
    _, weights = attention(array(Q), array(eye), array(eye), array(of_the_document))
    assert not np.tril(weights[0]).any()


def test_the_position_table_is_the_seeds_up_to_its_float32_rounding():
    x = np.zeros((1, 512, 64), np.float32)
    seed = seed_code.PositionalEncoding(64)(torch.from_numpy(x)).numpy()
    config = PositionalEncodingConfig(d_model=64)
    ours = torch_impl.PositionalEncoding.from_config(config)(torch.from_numpy(x)).numpy()
    theirs = np.asarray(jax_impl.PositionalEncoding.from_config(config)(jnp.asarray(x)))
    assert (ours == theirs).all()
    assert 0 < np.abs(ours - seed).max() <= 3e-5
