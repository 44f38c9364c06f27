"""Traces name every submodule, in both frameworks, and leave the module alone."""

import jax
import numpy as np
import pytest
import torch
from flax import nnx

from parity_tests.support.trace import compare_traces, trace

PATHS = ["layers.0", "layers.1", "norm", "norm@2", "[0]", "[1]"]


class TorchModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(2)])
        self.norm = torch.nn.LayerNorm(3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x), self.norm(x + 1), None


class NNXModel(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(3, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x), self.norm(x + 1), None


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_torch_paths_and_values():
    model = TorchModel()
    found = trace(model, torch.from_numpy(X))
    assert list(found) == PATHS
    np.testing.assert_array_equal(found["[0]"], model(torch.from_numpy(X))[0].detach().numpy())
    assert not any(part._forward_hooks for part in model.modules())


def test_nnx_paths_and_values():
    model = NNXModel(nnx.Rngs(0))
    before = nnx.graphdef(model)
    found = trace(model, X)
    assert list(found) == PATHS
    np.testing.assert_array_equal(found["[0]"], model(X)[0])
    np.testing.assert_array_equal(found["layers.0"], model.layers[0](X))
    assert type(model) is NNXModel
    assert type(model.layers[0]) is nnx.Linear
    assert nnx.graphdef(model) == before


def test_torch_hooks_go_when_the_call_fails():
    model = TorchModel()
    with pytest.raises(RuntimeError):
        trace(model, torch.zeros(2, 4))
    assert not any(part._forward_hooks for part in model.modules())


def test_bfloat16_and_dicts_and_keywords():
    class Named(torch.nn.Module):
        def forward(self, *, x):
            return {"twice": 2 * x, "count": 3}

    found = trace(Named(), x=torch.ones(2, dtype=torch.bfloat16))
    assert {name: array.dtype.name for name, array in found.items()} == {"[twice]": "bfloat16"}
    assert found["[twice]"].astype(float).tolist() == [2.0, 2.0]


def test_a_module_of_no_framework():
    with pytest.raises(TypeError, match="neither torch"):
        trace(len, [])


def test_first_fault_is_where_two_models_part():
    ours, theirs = TorchModel().double(), NNXModel(nnx.Rngs(0))
    with jax.enable_x64(True):
        theirs = jax.tree.map(lambda a: a.astype("float64"), theirs)
        theirs.norm.epsilon = 1e-5
        for left, right in zip(ours.layers, theirs.layers, strict=True):
            right.kernel[...] = jax.numpy.asarray(left.weight.detach().numpy().T.copy())
            right.bias[...] = jax.numpy.asarray(left.bias.detach().numpy())
        x = X.astype(np.float64)
        found = trace(ours, torch.from_numpy(x))
        assert all(row.ok for row in compare_traces(found, trace(theirs, jax.numpy.asarray(x))))
        theirs.layers[1].bias[...] = -theirs.layers[1].bias[...]
        rows = compare_traces(found, trace(theirs, jax.numpy.asarray(x)))
    assert next(row.name for row in rows if not row.ok) == "layers.1"


def test_a_path_on_one_side_only_is_a_fault():
    rows = compare_traces({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.zeros(1), "c": np.ones(2)})
    assert [(row.name, row.fault) for row in rows if not row.ok] == [
        ("b", "only in the first trace"),
        ("c", "only in the second trace"),
    ]
