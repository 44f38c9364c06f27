"""The ledger of what still differs between the panels, or from their sources, and why.

Every entry measures its own difference: one that no longer differs fails the run and is struck.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import torch

import jax_impl
import torch_impl
from parity_tests.house import differences_of_peers as peers
from parity_tests.support import seed_code
from parity_tests.support.harness import run_jax, run_torch


@dataclass(frozen=True)
class KnownDifference:
    """One entry.

    Attributes:
        what: Differs, and between whom.
        reason: Why it stays.
        bound: Largest value that ``measure`` may return.
        measure: Returns the size of the difference today.
    """

    what: str
    reason: str
    bound: float
    measure: Callable[[], float]


def gelu_tail() -> float:
    """Return the largest difference where the relative one is large, over the largest value."""
    x = np.linspace(-40.0, 8.0, 20_001)
    in_torch = torch_impl.functional.activate(torch.from_numpy(x), "gelu").numpy()
    with jax.enable_x64(True):
        in_jax = np.asarray(jax_impl.functional.activate(jnp.asarray(x), "gelu"))
    parts = in_torch.astype(np.float32) != in_jax.astype(np.float32)
    return float(np.abs(in_torch - in_jax)[parts].max(initial=0.0) / in_torch.max())


def norm_of_huge_values() -> float:
    """Return the share of outputs that differ at values whose squares overflow."""
    x, ones, zeros = np.array([[1e30, 2e30]], np.float32), np.ones(2), np.zeros(2)
    arrays = [x, ones.astype(np.float32), zeros.astype(np.float32)]
    in_torch = torch_impl.functional.layer_norm(*map(torch.from_numpy, arrays), eps=1e-5).numpy()
    in_jax = np.asarray(jax_impl.functional.layer_norm(*map(jnp.asarray, arrays), eps=1e-5))
    assert not in_jax.any()
    return float(np.isnan(in_torch).mean())


def norm_gradient_in_16_bits() -> float:
    """Return the relative error of torch's bias gradient over 2000 rows of bfloat16."""
    random = np.random.default_rng(0)
    bfloat16 = jnp.bfloat16
    inputs = {
        "x": random.normal(size=(2000, 15)).astype(bfloat16),
        "weight": np.ones(15, bfloat16),
        "bias": np.zeros(15, bfloat16),
    }
    cotangents = {"output": random.normal(size=(2000, 15)).astype(bfloat16)}
    truth = cotangents["output"].astype(np.float64).sum(0)

    def call_of(panel):
        return lambda inputs: {"output": panel.functional.layer_norm(**inputs, eps=1e-5)}

    def error(gradient: np.ndarray) -> float:
        return float(np.linalg.norm(gradient - truth) / np.linalg.norm(truth))

    in_torch = run_torch(call_of(torch_impl), inputs, cotangents).gradients["bias"]
    in_jax = run_jax(call_of(jax_impl), inputs, cotangents, x64=False).gradients["bias"]
    assert error(in_jax.astype(np.float64)) <= 2.0**-8
    return error(in_torch.astype(np.float64)) if (in_torch != in_jax).any() else 0.0


def flushed_denormals() -> float:
    """Return the largest attention weight that one panel has and the other flushed to 0."""
    scores = np.array([[0.0], [-88.0], [-95.0], [-100.0]], np.float32)
    arrays = [np.ones((1, 1), np.float32), scores, np.eye(4, dtype=np.float32)]
    attend = torch_impl.functional.scaled_dot_product_attention
    in_torch = attend(*map(torch.from_numpy, arrays))[1].numpy()
    attend = jax_impl.functional.scaled_dot_product_attention
    in_jax = np.asarray(attend(*map(jnp.asarray, arrays))[1])
    return float(np.abs(in_torch - in_jax).max())


def dropout_draws() -> float:
    """Return the share of values that one panel drops and the other keeps."""
    ones, rate = np.ones(10_000, np.float32), 0.25
    torch.manual_seed(0)
    in_torch = torch_impl.functional.apply_dropout(torch.from_numpy(ones), rate).numpy()
    key = jax.random.key(0)
    in_jax = np.asarray(jax_impl.functional.apply_dropout(jnp.asarray(ones), rate, rng_key=key))
    return float(((in_torch == 0) != (in_jax == 0)).mean())


def hidden_rows_of_the_seed() -> float:
    """Return the largest output of a query that may attend to nothing, ours being 0."""
    query, mask = torch.zeros(1, 2, 4), torch.tensor([[1, 1], [0, 0]])
    value = torch.ones(1, 2, 4)
    ours, _ = torch_impl.ScaledDotProductAttention(4)(query, query, value, mask)
    theirs, _ = seed_code.ScaledDotProductAttention(4)(query, query, value, mask)
    assert not ours[0, 1].any()
    return float((ours - theirs).abs().max())


def position_table_of_the_seed() -> float:
    """Return the largest difference of the two position tables."""
    x = torch.zeros(1, 512, 64)
    ours, theirs = torch_impl.PositionalEncoding(64)(x), seed_code.PositionalEncoding(64)(x)
    return float((ours - theirs).abs().max())


KNOWN_DIFFERENCES = (
    KnownDifference(
        "GELU far in the negative tail, torch_impl and jax_impl, relative to the largest value",
        "each framework's fused function cancels differently; formulas of ours cost 4x the time",
        1e-14,
        gelu_tail,
    ),
    KnownDifference(
        "layer norm of values whose squares overflow, torch_impl NaN, jax_impl 0, share of values",
        "torch's fused kernel; its formula would cost ten times the time",
        1.0,
        norm_of_huge_values,
    ),
    KnownDifference(
        "bias gradient of a 16-bit layer norm on a CPU, torch_impl, relative error at 2000 rows",
        "torch's fused backward adds rows up in 16 bits; bound: sqrt(rows) roundoffs",
        2000**0.5 * 2.0**-8,
        norm_gradient_in_16_bits,
    ),
    KnownDifference(
        "float32 below 2**-126, torch_impl keeps it, jax_impl has 0",
        "XLA flushes denormals",
        2.0**-126,
        flushed_denormals,
    ),
    KnownDifference(
        "which values dropout drops, torch_impl and jax_impl, share of values at rate 1/4",
        "two random number generators; `keep` gives both the same mask",
        0.5,
        dropout_draws,
    ),
    KnownDifference(
        "query without a visible key, ours 0, the first document's mean of the values",
        "-1e9 everywhere is a uniform softmax; a query that sees nothing must not see everything",
        1.0,
        hidden_rows_of_the_seed,
    ),
    KnownDifference(
        "position table, ours from float64, the first document's from float32",
        "its float32 frequencies are off by rounding, which grows with the position",
        3e-5,
        position_table_of_the_seed,
    ),
    KnownDifference(
        "gradient of the padding token's row, ours as any other, transformers' 0",
        "`padding_idx` only changes training; the forward pass is the same",
        2.0,
        peers.gradient_of_the_padding_row,
    ),
    KnownDifference(
        "bucket of distances 36 and 54 of 48 buckets up to 81, ours one above transformers' T5's",
        "they begin a bucket exactly, which float32 logarithms miss; T5's own sizes have no such",
        2.0,
        peers.bucket_at_an_exact_edge,
    ),
    KnownDifference(
        "RMS norm in bfloat16, ours rounded once, transformers' of Llama twice, relative",
        "it rounds before the weight is applied; three roundings part the two at most",
        3.02 * 2.0**-8,
        peers.rms_norm_of_llama_in_16_bits,
    ),
    KnownDifference(
        "causal steps of flax.nnx's attention over its cache, ours as the full pass",
        "it hides later keys by position, from the top: every step sees the first key alone",
        3.0,
        peers.flax_causal_decoding,
    ),
    KnownDifference(
        "step past the capacity of flax.nnx's cache, ours refused by name",
        "its update slides back and overwrites the last position",
        0.5,
        peers.flax_step_past_the_cache,
    ),
    KnownDifference(
        "layer norm of values 100 +- 0.01 in float32, ours two-pass, flax.nnx's E[x^2] - E[x]^2",
        "the difference of two large numbers has few right digits",
        6.0,
        peers.flax_norm_of_a_large_mean,
    ),
    KnownDifference(
        "torch.nn.MultiheadAttention, T != S, is_causal with a mask that ends right, no weights",
        "the hint makes it causal from the top, whatever the mask; with weights it is as ours",
        2.0,
        peers.torch_causal_corner,
    ),
    KnownDifference(
        "query without a visible key, ours 0, torch.nn.MultiheadAttention's NaN, share of values",
        "its softmax divides 0 by 0",
        1.0,
        peers.torch_hidden_rows,
    ),
    KnownDifference(
        "query without a visible key, ours 0, jax.nn.dot_product_attention's mean of the values",
        "a large negative score everywhere is a uniform softmax",
        1.0,
        peers.jax_hidden_rows,
    ),
    KnownDifference(
        "attention of float64, ours in float64, jax.nn's softmax in float32, relative",
        "the working tier judges it in float32, where it is right",
        2.0**-22,
        peers.jax_softmax_in_float32,
    ),
    KnownDifference(
        "query without a visible key, our weights 0, those of transformers' eager code uniform",
        "it adds the least finite number, which is a number like any other",
        0.25,
        peers.hidden_rows_of_transformers,
    ),
    KnownDifference(
        "weight of later keys in transformers' Falcon with SDPA and output_attentions, ours 0",
        "it adds a boolean mask to the scores; eager code is as ours",
        0.25,
        peers.falcon_later_keys,
    ),
    KnownDifference(
        "weights of transformers' Falcon with ALiBi in eager code, ours those of its SDPA",
        "it adds the bias to the mask and to the scores",
        0.1,
        peers.falcon_alibi_twice,
    ),
)
