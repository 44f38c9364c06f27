"""The exact tier where float64's own noise is large: deep stacks, saturated softmax.

The bound is 4 times what random rounding errors do to plain torch code.
"""

import dataclasses

import numpy as np
import pytest
import torch

from diptych.parity.rounding import rounding_noise
from diptych.spec import EncoderConfig, TransformerEncoderLayerConfig
from jax_impl.functional import scaled_dot_product_attention as attend_jax
from parity_tests.attention.cases import attention_call, attention_case
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support import plain
from parity_tests.support.harness import (
    Arrays,
    Call,
    compare_runs,
    cotangents_of,
    judge_exact,
    random_arrays,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)
from torch_impl.functional import scaled_dot_product_attention as attend_torch

B, T, D = 2, 23, 30


def noise_of(call: Call, inputs: Arrays, cotangents: Arrays) -> dict[str, float]:
    """Return the rounding noise of every output and every gradient of a plain torch call."""
    cotangents = to_torch(cotangents)

    def run():
        tensors = {name: tensor.requires_grad_() for name, tensor in to_torch(inputs).items()}
        outputs = call(tensors)
        loss = sum((outputs[name] * tensor).sum() for name, tensor in cotangents.items())
        gradients = torch.autograd.grad(loss, list(tensors.values()))
        return outputs | dict(zip(tensors, gradients, strict=True))

    return rounding_noise(run)


@pytest.mark.parametrize("size", [10.0, 100.0])
def test_saturated_attention(tally, size):
    case = attention_case("plain", 11, 13)
    inputs = {name: size * array for name, array in case.inputs.items()}

    def plain_call(tensors):
        output, weights = plain.attention(torch, **tensors)
        return {"output": output, "weights": weights}

    cotangents = cotangents_of(plain_call(to_torch(inputs)))
    noise = noise_of(plain_call, inputs, cotangents)
    in_torch = run_torch(attention_call(attend_torch, to_torch, {}), inputs, cotangents)
    in_jax = run_jax(attention_call(attend_jax, to_jax, {}), inputs, cotangents)
    judge_exact(tally, f"attention, scores x {size}", in_torch, in_jax, noise=noise)


@pytest.mark.parametrize("norm_placement", ["post", pytest.param("pre", marks=pytest.mark.slow)])
def test_deep_encoder(tally, norm_placement):
    layer = TransformerEncoderLayerConfig(
        d_model=D, num_heads=3, d_ff=37, activation="gelu", norm_placement=norm_placement
    )
    config = EncoderConfig(layer=layer, num_layers=4)
    tensors = random_tensors(config)
    x = random_arrays(1, {"x": (B, T, D)})
    key_mask = np.arange(T) < np.array([[T], [9]])
    case = ComponentCase(
        config,
        x,
        {"key_mask": key_mask, "need_weights": True, "need_hidden_states": True},
    )
    visible = torch.from_numpy(key_mask[:, None, None, :])

    def plain_call(inputs):
        found = plain.encoder(torch, inputs, inputs["x"], config, visible)
        names = {"output": found.pop("output")}
        for name, tensor in found.items():
            kind, index = name.split(".")
            names[f"[{kind}][{index}]"] = tensor
        return {("[output]" if name == "output" else name): t for name, t in names.items()}

    cotangents = cotangents_of({"[output]": x["x"]})
    noise = noise_of(plain_call, x | tensors, cotangents)

    in_torch = run_component_torch(case, tensors, cotangents)
    in_jax = run_component_jax(case, tensors, cotangents)
    judge_exact(tally, f"4 layers, {norm_placement}-norm", in_torch, in_jax, noise=noise)

    worse = dataclasses.replace(config, layer=dataclasses.replace(layer, eps=1.0001e-5))
    mutant = run_component_torch(dataclasses.replace(case, config=worse), tensors, cotangents)
    rows = compare_runs("mutant", mutant, in_jax, noise=noise, float32_bits=False)
    assert [row.ok for row in rows.outputs if row.name == "mutant: [output]"] == [False]
