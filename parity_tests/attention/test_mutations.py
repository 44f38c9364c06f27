"""Faults made on purpose: the exact tier must find each of them, small ones too."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from parity_tests.attention import oracle
from parity_tests.attention.cases import attention_call, attention_case
from parity_tests.components.case import random_tensors
from parity_tests.components.rooms import CASES, component
from parity_tests.components.runs import outputs_of, run_component_torch
from parity_tests.support.harness import (
    Arrays,
    Run,
    compare_runs,
    cotangents_of,
    run_torch,
    to_torch,
)
from parity_tests.support.sizes import GROUPED_K, GROUPED_N, LENGTHS, D, F, H, N
from torch_impl.functional import scaled_dot_product_attention

ATTENTION_MUTANTS = {
    "scale + 0.01 %": ("softcap", lambda inputs, options: options.update(scale=0.9 * 1.0001)),
    "softcap + 0.01 %": ("softcap", lambda inputs, options: options.update(softcap=1.50015)),
    "no softcap": ("softcap", lambda inputs, options: options.pop("softcap")),
    "causal off by one": ("causal", lambda inputs, options: options.update(offset=1)),
    "causal aligned to the other corner": (
        "causal offset",
        lambda inputs, options: options.update(offset=0),
    ),
    "not causal": ("causal", lambda inputs, options: options.pop("is_causal")),
    "offsets of the samples swapped": (
        "causal offset per sample",
        lambda inputs, options: options.update(offset=options["offset"][::-1].copy()),
    ),
    "window one key too wide": ("window", lambda inputs, options: options.update(window=4)),
    "window sides swapped": (
        "window both sides",
        lambda inputs, options: options.update(window=(1, 2)),
    ),
    "mask inverted": ("mask", lambda inputs, options: options.update(mask=~options["mask"])),
    "mask dropped": ("mask", lambda inputs, options: options.pop("mask")),
    "one hidden key seen": ("mask", lambda inputs, options: show_one(options["mask"])),
    "mask of the other sample": (
        "mask per sample",
        lambda inputs, options: options.update(mask=options["mask"][::-1].copy()),
    ),
    "key mask of the other sample": (
        "key mask",
        lambda inputs, options: options.update(key_mask=options["key_mask"][::-1].copy()),
    ),
    "sign of the bias": (
        "bias",
        lambda inputs, options: np.negative(inputs["bias"], inputs["bias"]),
    ),
    "one bias off by 1e-9": ("bias", lambda inputs, options: add(inputs["bias"], 1e-9)),
    "query and key swapped": ("one sequence", lambda inputs, options: swap(inputs, "query", "key")),
    "heads of the keys swapped": (
        "plain",
        lambda inputs, options: inputs.update(key=inputs["key"][:, ::-1].copy()),
    ),
    "groups interleaved": ("grouped", lambda inputs, options: interleave(inputs)),
    "sinks dropped": ("sinks", lambda inputs, options: add(inputs["sinks"], -1e9)),
    "sinks of the heads reversed": (
        "sinks",
        lambda inputs, options: inputs.update(sinks=inputs["sinks"][::-1].copy()),
    ),
    "segments shifted": (
        "segments",
        lambda inputs, options: options.update(
            segment_ids=(options["segment_ids"][0] + 1, options["segment_ids"][1])
        ),
    ),
    "kept weights not scaled up": (
        "dropout",
        lambda inputs, options: options.update(dropout=0.0),
    ),
}


def show_one(mask: np.ndarray) -> None:
    mask[tuple(np.argwhere(~mask)[0])] = True


def add(array: np.ndarray, amount: float) -> None:
    array.reshape(-1)[-1] += amount


def swap(arrays: Arrays, first: str, second: str) -> None:
    arrays[first], arrays[second] = arrays[second], arrays[first]


def interleave(inputs: Arrays) -> None:
    """Query head n reads key/value head n % K."""
    order = [n // (GROUPED_N // GROUPED_K) for n in range(GROUPED_N)]
    wrong = [n % GROUPED_K for n in range(GROUPED_N)]
    assert order != wrong
    for name in ("key", "value"):
        inputs[name] = inputs[name][:, wrong]


def attention_runs(variant: str, mutate: Callable) -> tuple[Run, Run]:
    """Return the torch panel's run of a mutated call and the oracle's of the right one."""
    lengths = (13, 13) if variant == "one sequence" else LENGTHS["T<S"]
    case = attention_case(variant, *lengths)
    result = oracle.attention(**case.inputs, **case.options)
    truth = {"output": result.output, "weights": result.weights}
    cotangents = cotangents_of(truth)
    gradients = result.backward(cotangents["output"], cotangents["weights"])
    inputs = {name: array.copy() for name, array in case.inputs.items()}
    options = dict(case.options)
    mutate(inputs, options)
    call = attention_call(scaled_dot_product_attention, to_torch, options)
    return run_torch(call, inputs, cotangents), Run(truth, gradients)


def faults(left: Run, right: Run) -> list[str]:
    rows = compare_runs("mutant", left, right, float32_bits=False)
    return [row.fault for row in [*rows.outputs, *rows.gradients] if not row.ok]


@pytest.mark.parametrize("name", ATTENTION_MUTANTS)
def test_attention_mutants_are_found(name):
    variant, mutate = ATTENTION_MUTANTS[name]
    right = attention_runs(variant, lambda inputs, options: None)
    assert not faults(*right)
    mutated, truth = attention_runs(variant, mutate)
    assert faults(Run(mutated.outputs, {}), Run(truth.outputs, {}))


@pytest.mark.parametrize("stopped", ["query", "key", "value"])
def test_a_gradient_that_does_not_flow_is_found(stopped):
    case = attention_case("plain", *LENGTHS["T<S"])
    _, truth = attention_runs("plain", lambda inputs, options: None)

    def call(inputs):
        detached = inputs | {stopped: inputs[stopped].detach()}
        return attention_call(scaled_dot_product_attention, to_torch, {})(detached)

    run = run_torch(call, case.inputs, cotangents_of(truth.outputs))
    assert len(faults(run, truth)) == 1
    assert not faults(Run(run.outputs, {}), Run(truth.outputs, {}))


LAYER = "TransformerEncoderLayer, pre-norm"


def rows_of_head(tensors: Arrays, name: str) -> None:
    """Swap the first two heads of a projection."""
    order = np.arange(N * H)
    order[: 2 * H] = np.roll(order[: 2 * H], H)
    tensors[name] = tensors[name][order]


def scaled(name: str, factor: float) -> Callable[[Arrays], None]:
    return lambda tensors: tensors.update({name: tensors[name] * factor})


def transposed(name: str) -> Callable[[Arrays], None]:
    return lambda tensors: tensors.update({name: tensors[name].T.copy()})


WEIGHT_MUTANTS = {
    "sign of the output bias": scaled("attention.out_proj.bias", -1.0),
    "sign of the value bias": scaled("attention.v_proj.bias", -1.0),
    "query bias dropped": scaled("attention.q_proj.bias", 0.0),
    "square kernel transposed": transposed("attention.q_proj.weight"),
    "output kernel transposed": transposed("attention.out_proj.weight"),
    "query and key swapped": lambda tensors: swap(
        tensors, "attention.q_proj.weight", "attention.k_proj.weight"
    ),
    "key and value swapped": lambda tensors: swap(
        tensors, "attention.k_proj.weight", "attention.v_proj.weight"
    ),
    "heads of the values swapped": lambda tensors: rows_of_head(tensors, "attention.v_proj.weight"),
    "heads of the queries swapped": lambda tensors: rows_of_head(
        tensors, "attention.q_proj.weight"
    ),
    "one weight off by 1e-9": lambda tensors: add(tensors["feed_forward.up_proj.weight"], 1e-9),
    "norms swapped": lambda tensors: swap(
        tensors, "attention_norm.weight", "feed_forward_norm.weight"
    ),
    "scale and shift swapped": lambda tensors: swap(
        tensors, "attention_norm.weight", "attention_norm.bias"
    ),
    "scale read as 1 + weight": lambda tensors: tensors.update(
        {"attention_norm.weight": tensors["attention_norm.weight"] + 1.0}
    ),
}

CONFIG_MUTANTS = {
    "eps": (LAYER, {"eps": 1e-5}),
    "norm placement": (LAYER, {"norm_placement": "post"}),
    "approximate gelu": (LAYER, {"activation": "gelu_tanh"}),
    "number of heads": (
        "Encoder of vectors",
        {"layer": {"d_model": D, "num_heads": 5, "d_ff": F, "activation": "gelu", "eps": 1e-12}},
    ),
    "eps of a norm": ("LayerNorm", {"eps": 1.001e-3}),
    "approximate gelu alone": ("FeedForward, gelu", {"activation": "gelu_tanh"}),
    "score scale": ("ScaledDotProductAttention", {"d_k": H, "score": {"scale": 5**-0.5 * 1.0001}}),
}


def component_outputs(name: str, changes: dict, mutate: Callable) -> tuple[Run, Run]:
    """Return the outputs of a mutated component and, from the oracle, of the right one."""
    case = CASES[name]
    tensors = random_tensors(case.config)
    truth = outputs_of(component(case.config, tensors, *case.arguments.values(), **case.options))
    mutate(tensors)
    config = type(case.config).from_dict(case.config.to_dict() | changes)
    found = run_component_torch(dataclasses.replace(case, config=config), tensors, {}).outputs
    return Run(found, {}), Run({output: truth[output] for output in found}, {})


@pytest.mark.parametrize("name", WEIGHT_MUTANTS)
def test_weight_mutants_are_found(name):
    assert not faults(*component_outputs(LAYER, {}, lambda tensors: None))
    assert faults(*component_outputs(LAYER, {}, WEIGHT_MUTANTS[name]))


@pytest.mark.parametrize("name", CONFIG_MUTANTS)
def test_config_mutants_are_found(name):
    component, changes = CONFIG_MUTANTS[name]
    assert not faults(*component_outputs(component, {}, lambda tensors: None))
    assert faults(*component_outputs(component, changes, lambda tensors: None))
