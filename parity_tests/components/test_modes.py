"""Training and evaluation, random keys, and what a module holds."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.spec import (
    BucketTable,
    Config,
    LayerNormConfig,
    RotaryTable,
    SinusoidTable,
    SlopeTable,
)
from parity_tests.components.modules import PANELS, arrays, build, flat, new
from parity_tests.components.room import IDS, Example, X
from parity_tests.components.rooms import EXAMPLES
from parity_tests.components.rooms.embedding import TEXT
from parity_tests.components.rooms.encoder import ENCODER
from parity_tests.components.rooms.heads import HEADS
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.support.sizes import D, F, N

WITH_DROPOUT = {
    "layer, branches": EXAMPLES["TransformerEncoderLayer"],
    "layer, weights": EXAMPLES["TransformerEncoderLayer"]._replace(
        config=dataclasses.replace(LAYER, dropout=0.0, attention_dropout=0.2)
    ),
    "text": EXAMPLES["TextEmbedding"],
    "encoder": EXAMPLES["Encoder"],
    "heads": EXAMPLES["EncoderWithHeads"],
    "sequence": EXAMPLES["SequenceClassificationHead"],
    "token": EXAMPLES["TokenClassificationHead"],
}
NO_DROPOUT = dataclasses.replace(
    ENCODER,
    layer=dataclasses.replace(LAYER, dropout=0.0),
    embedding=dataclasses.replace(TEXT, dropout=0.0),
)


FRAMEWORK = {  # what the frameworks' own base classes keep, and the mode
    "torch": vars(torch.nn.Embedding(1, 1)),
    "jax": {*vars(nnx.Embed(1, 1, rngs=nnx.Rngs(0))), "training"},
}


def submodules(panel: str, module: Any) -> list[Any]:
    """Return the module and every module of ours inside it."""
    if panel == "torch":
        return [part for part in module.modules() if isinstance(part, torch_impl.Module)]
    return [part for _, part in nnx.iter_modules(module) if isinstance(part, jax_impl.Module)]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("component", EXAMPLES)
def test_new_modules_train_and_modes_reach_every_part(panel: str, component: str) -> None:
    module = new(panel, EXAMPLES[component].config)
    parts = submodules(panel, module)
    assert all(part.training is True for part in parts)
    assert module.eval() is module
    assert all(part.training is False for part in parts)
    assert module.train() is module
    assert all(part.training is True for part in parts)
    assert module.train(False) is module
    assert all(part.training is False for part in parts)


def test_modes_reach_the_frameworks_own_modules() -> None:
    class Mixed(jax_impl.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nnx.Dropout(0.5)
            self.norms = nnx.List([jax_impl.LayerNorm(3, rngs=nnx.Rngs(0))])

    module = Mixed().eval()
    assert module.dropout.deterministic
    assert not module.norms[0].training
    assert not module.train().dropout.deterministic


@pytest.mark.parametrize("example", WITH_DROPOUT.values(), ids=WITH_DROPOUT)
def test_training_draws_and_evaluation_does_not(example: Example) -> None:
    """google/flax#821: one module, switched back and forth."""
    module, arguments = build("torch", example.config), arrays("torch", example.arguments)
    right = flat(module(*arguments))
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        same(flat(module(*arguments)), right)
        assert torch.equal(torch.get_rng_state(), before)
        assert different(flat(module.train()(*arguments)), right)
        assert not torch.equal(torch.get_rng_state(), before)
        module.eval()


@pytest.mark.parametrize("example", WITH_DROPOUT.values(), ids=WITH_DROPOUT)
def test_training_in_jax_takes_a_key(example: Example) -> None:
    module, arguments = build("jax", example.config), arrays("jax", example.arguments)
    right = flat(module(*arguments))
    module.train()
    with pytest.raises(ValueError, match=r"rng_key=.*\.eval\(\)"):
        module(*arguments)
    first, again, other = (
        flat(module(*arguments, rng_key=jax.random.key(seed))) for seed in (0, 0, 1)
    )
    same(first, again)
    assert different(first, other)
    assert different(first, right)
    same(flat(module.eval()(*arguments, rng_key=jax.random.key(0))), right)


def test_rates_of_zero_need_no_key() -> None:
    module = build("jax", NO_DROPOUT)
    right = flat(module(*arrays("jax", (IDS,))))
    same(flat(module.train()(*arrays("jax", (IDS,)))), right)
    in_torch = build("torch", NO_DROPOUT).train()
    before = torch.get_rng_state()
    in_torch(*arrays("torch", (IDS,)))
    assert torch.equal(torch.get_rng_state(), before)


def test_every_draw_of_a_call_has_a_key_of_its_own() -> None:
    """Two branches, two layers and two heads that drop the same places would give this away."""
    keys: list[bytes] = []
    real = jax_impl.functional.apply_dropout

    def spy(x: Any, rate: float, *, rng_key: Any = None) -> Any:
        keys.append(np.asarray(jax.random.key_data(rng_key)).tobytes())
        return real(x, rate, rng_key=rng_key)

    module = build("jax", EXAMPLES["EncoderWithHeads"].config).train()
    jax_impl.functional.apply_dropout = spy
    try:
        module(*arrays("jax", (IDS,)), rng_key=jax.random.key(0))
    finally:
        jax_impl.functional.apply_dropout = real
    assert len(keys) == len(set(keys)) == 1 + 2 * 2 + 1 + 2


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("component", EXAMPLES)
def test_modules_hold_nothing_else(panel: str, component: str) -> None:
    """Parameters, parts, the config, the mode, tables: no buffer, no random state, no array."""
    module = new(panel, EXAMPLES[component].config)
    tables = SinusoidTable | RotaryTable | SlopeTable | BucketTable
    kinds = Config | tables | nnx.Param | nnx.Module | None
    for part in submodules(panel, module):
        own = {name: value for name, value in vars(part).items() if name not in FRAMEWORK[panel]}
        assert all(isinstance(value, kinds) for value in own.values()), own
    if panel == "torch":
        assert not dict(module.named_buffers())


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("component", EXAMPLES)
def test_constructor_arguments_are_the_configs_fields(panel: str, component: str) -> None:
    module = getattr(PANELS[panel], component)
    names = set(inspect.signature(module.__init__).parameters) - {"self"}
    config = EXAMPLES[component].config
    extra = {"rngs"} if panel == "jax" and config.leaves() else set()
    assert names == {field.name for field in dataclasses.fields(config)} | extra


@pytest.mark.parametrize("panel", PANELS)
def test_the_config_of_another_component_is_refused(panel: str) -> None:
    keywords = {} if panel == "torch" else {"rngs": nnx.Rngs(0)}
    module = PANELS[panel].SequenceClassificationHead
    with pytest.raises(TypeError, match="config=TokenClassificationHeadConfig is not a config of"):
        module.from_config(HEADS["token_classification"], **keywords)

    class Own(PANELS[panel].LayerNorm):
        """A user's subclass."""

    assert Own.from_config(LayerNormConfig(d_model=3), **keywords).config.d_model == 3


def test_jax_modules_with_parameters_need_rngs() -> None:
    with pytest.raises(TypeError, match="rngs"):
        jax_impl.LayerNorm.from_config(LayerNormConfig(d_model=3))


@pytest.mark.parametrize("component", EXAMPLES)
def test_torch_modules_copy_and_pickle(component: str) -> None:
    module = build("torch", EXAMPLES[component].config)
    arguments = arrays("torch", EXAMPLES[component].arguments)
    right = flat(module(*arguments))
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        same(flat(other(*arguments)), right)
        assert other.config == module.config


def same(found: list[np.ndarray], right: list[np.ndarray]) -> None:
    """Assert that two results are equal, value by value."""
    for ours, theirs in zip(found, right, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def different(found: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Return whether every array of two results differs somewhere."""
    return all((a != b).any() for a, b in zip(found, other, strict=True))


def test_linen_users_train_and_infer() -> None:
    """``to_linen`` for training; ``ToLinen`` around a factory of an evaluated module."""
    (x,) = arrays("jax", (X,))
    linen = nnx.bridge.to_linen(jax_impl.TransformerEncoderLayer, D, N, F, dropout=0.2)
    variables = linen.init(jax.random.key(0), x, rng_key=jax.random.key(1))
    assert len(jax.tree.leaves(variables["params"])) == len(LAYER.leaves())

    def loss(params: Any, key: Any) -> Any:
        return (linen.apply({**variables, "params": params}, x, rng_key=key) ** 3).sum()

    gradients = jax.jit(jax.grad(loss))(variables["params"], jax.random.key(2))
    assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(gradients))
    assert all((g != 0).any() for g in jax.tree.leaves(gradients))

    evaluated = nnx.bridge.ToLinen(
        lambda rngs: jax_impl.TransformerEncoderLayer.from_config(LAYER, rngs=rngs).eval()
    )
    fresh = evaluated.init(jax.random.key(0), x)
    first, second = (evaluated.apply(fresh, x) for _ in range(2))
    np.testing.assert_array_equal(first, second)
