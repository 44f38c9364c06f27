"""What the libraries that others wrote do otherwise than ours: the sizes of it, for the ledger.

T positions   S memory positions   D width
"""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from transformers import FalconConfig, FalconModel, LlamaConfig
from transformers.masking_utils import create_causal_mask
from transformers.models.llama import modeling_llama
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5Attention

import torch_impl
from diptych.spec import AlibiConfig, BucketTable, RelativeBiasConfig, SlopeTable

T, S, D = 4, 6, 5
_random = np.random.default_rng(2)
X, MEMORY = _random.normal(size=(1, T, D)), _random.normal(size=(1, S, D))


def attend(query: np.ndarray, key: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Run our attention, the keys being the values."""
    given = {n: torch.from_numpy(o) if isinstance(o, np.ndarray) else o for n, o in options.items()}
    arrays = map(torch.from_numpy, (query, key, key))
    output, weights = torch_impl.functional.scaled_dot_product_attention(*arrays, **given)
    return output.numpy(), weights.numpy()


def flax_causal_decoding() -> float:
    """Return the largest difference of causal steps, each of which sees the first key alone."""
    with jax.enable_x64(True):
        module = _flax_attention()
        whole = module(jnp.asarray(X), is_causal=True, decode=False)
        module.init_cache(X.shape, jnp.float64)
        steps = [module(jnp.asarray(X[:, i : i + 1]), is_causal=True) for i in range(T)]
        found = np.concatenate(steps, 1)
    ours, _ = attend(X, X, is_causal=True)
    np.testing.assert_allclose(whole, ours, atol=1e-6)
    return float(np.abs(found - ours).max())


def flax_step_past_the_cache() -> float:
    """Return the difference of a step past the capacity, which overwrites the last position."""
    with jax.enable_x64(True):
        module = _flax_attention()
        module.init_cache((1, T - 1, D), jnp.float64)
        found = [module(jnp.asarray(X[:, i : i + 1])) for i in range(T)][-1]
    ours, _ = attend(X, X, is_causal=True)
    return float(np.abs(np.asarray(found) - ours[:, -1:]).max())


def flax_norm_of_a_large_mean() -> float:
    """Return the largest difference of the norm of values 100 +- 0.01."""
    x = (100.0 + 0.01 * np.random.default_rng(0).normal(size=(3, 64))).astype(np.float32)
    theirs = np.asarray(nnx.LayerNorm(64, epsilon=1e-5, rngs=nnx.Rngs(0))(jnp.asarray(x)))
    ones, zeros = torch.ones(64), torch.zeros(64)
    norm = torch_impl.functional.layer_norm
    ours = norm(torch.from_numpy(x), ones, zeros, eps=1e-5).numpy()
    return float(np.abs(theirs - ours).max())


def torch_causal_corner() -> float:
    """Return the difference without weights, where the hint sets aside a mask that ends right."""
    visible = np.tri(T, S, S - T, dtype=bool)
    call = _torch_attention()
    hint: dict[str, Any] = {"attn_mask": torch.from_numpy(~visible), "is_causal": True}
    ours, _ = attend(X, MEMORY, mask=visible)
    np.testing.assert_allclose(call(**hint, need_weights=True), ours, atol=1e-12)
    return float(np.abs(call(**hint, need_weights=False) - ours).max())


def torch_hidden_rows() -> float:
    """Return the share of NaN in the output of a query that sees no key, ours being 0."""
    visible = np.tri(T, S, -1, dtype=bool)
    ours, _ = attend(X, MEMORY, mask=visible)
    assert not ours[:, 0].any()
    return float(np.isnan(_torch_attention()(attn_mask=torch.from_numpy(~visible))[:, 0]).mean())


def jax_hidden_rows() -> float:
    """Return the largest output of a query that sees no key, ours being 0."""
    visible = np.tri(T, S, -1, dtype=bool)
    ours, _ = attend(X, MEMORY, mask=visible)
    theirs = _jax_attention(mask=jnp.asarray(visible)[None, None])
    np.testing.assert_allclose(theirs[:, 0], MEMORY.mean(1), atol=1e-6)
    return float(np.abs(theirs - ours)[:, 0].max())


def jax_softmax_in_float32() -> float:
    """Return the largest difference in float64, relative to the largest output."""
    ours, _ = attend(X, MEMORY)
    return float(np.abs(_jax_attention() - ours).max() / np.abs(ours).max())


def hidden_rows_of_transformers() -> float:
    """Return the largest weight of a padded query on the left, which sees no key; ours are 0."""
    config = LlamaConfig(attn_implementation="eager")
    x, real = torch.from_numpy(X).float(), torch.arange(T)[None] > 0
    mask = create_causal_mask(config, x, real, cache=None)
    module: Any = SimpleNamespace(num_key_value_groups=1, training=False)
    heads = x[:, None]
    eager = modeling_llama.eager_attention_forward
    theirs = eager(module, heads, heads, heads, mask, scaling=D**-0.5)[1][:, 0].numpy()
    visible = np.tri(T, dtype=bool) & real.numpy()
    _, ours = attend(X, X, mask=visible)
    np.testing.assert_allclose(theirs[:, 1:], ours[:, 1:], atol=1e-6)
    assert not ours[:, 0].any()
    return float(theirs[:, 0].max())


def falcon_later_keys() -> float:
    """Return the largest weight of a later key, with SDPA and weights asked for; ours are 0."""
    model = _falcon("sdpa", alibi=False)
    weights = model(torch.arange(T)[None], output_attentions=True).attentions[0]
    return float(weights.triu(1).max())


def falcon_alibi_twice() -> float:
    """Return the largest difference of weights that the bias alone decides, in eager code."""
    model = _falcon("eager", alibi=True)
    model.h[0].self_attention.query_key_value.weight.data.zero_()
    theirs = model(torch.arange(T)[None], output_attentions=True).attentions[0].numpy()
    N, H = theirs.shape[1], model.config.head_dim
    slopes = SlopeTable(AlibiConfig(scale=H**-0.5), N).values.reshape(N, 1, 1)
    bias = (slopes * (np.arange(T) - np.arange(T)[:, None]))[None]
    zeros = np.zeros((1, N, T, H))
    _, once = attend(zeros, zeros, bias=bias, is_causal=True)
    _, twice = attend(zeros, zeros, bias=2 * bias, is_causal=True)
    np.testing.assert_allclose(theirs, twice, atol=1e-6)
    return float(np.abs(theirs - once).max())


def gradient_of_the_padding_row() -> float:
    """Return the largest gradient of an embedding row that ``padding_idx`` sets to 0."""
    ids = torch.tensor([0, 1, 0])
    ours, theirs = torch_impl.Embedding(2, 3), torch.nn.Embedding(2, 3, padding_idx=0)
    for module in (ours, theirs):
        module(ids).sum().backward()
    return float((ours.weight.grad - theirs.weight.grad).abs().max())


def bucket_at_an_exact_edge() -> float:
    """Return how many buckets of ``transformers``' T5 lie one too low, of 2000 distances."""
    distances = torch.arange(2000)
    theirs = T5Attention._relative_position_bucket(-distances, False, 48, 81)
    config = RelativeBiasConfig(num_buckets=48, max_distance=81, is_bidirectional=False)
    numbers = torch.arange(48, dtype=torch.float64)[:, None]
    ours = torch_impl.functional.relative_bias(
        distances, torch.zeros(1, dtype=torch.int64), numbers, BucketTable(config)
    )[0, :, 0]
    assert ((ours - theirs).abs() <= 1).all()
    return float((ours - theirs).sum())


def rms_norm_of_llama_in_16_bits() -> float:
    """Return the largest relative difference in bfloat16, ours being the correctly rounded one."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.normal(size=(50, 64))).bfloat16()
    weight = torch.from_numpy(random.normal(size=64)).bfloat16()
    theirs = LlamaRMSNorm(64)
    theirs.weight.data = weight
    ours = torch_impl.functional.rms_norm(x, weight, eps=1e-6).double()
    wide = torch_impl.functional.rms_norm(x.double(), weight.double(), eps=1e-6)
    assert ((ours - wide).abs() <= 1.001 * 2.0**-8 * wide.abs()).all()
    return float(((theirs(x).detach().double() - ours) / wide).abs().max())


def _flax_attention() -> nnx.MultiHeadAttention:
    """Return a module of one head whose projections change nothing."""
    options: dict[str, Any] = {"use_bias": False, "decode": True, "param_dtype": jnp.float64}
    module = nnx.MultiHeadAttention(1, D, **options, rngs=nnx.Rngs(0))
    for part in (module.query, module.key, module.value, module.out):
        part.kernel[...] = jnp.eye(D).reshape(part.kernel.shape)
    return module


def _torch_attention() -> Any:
    """Return a call of a module of one head whose projections change nothing."""
    module = torch.nn.MultiheadAttention(D, 1, bias=False, batch_first=True, dtype=torch.float64)
    module.in_proj_weight.data = torch.eye(D, dtype=torch.float64).repeat(3, 1)
    module.out_proj.weight.data = torch.eye(D, dtype=torch.float64)
    x, memory = torch.from_numpy(X), torch.from_numpy(MEMORY)
    return lambda **options: module(x, memory, memory, **options)[0].detach().numpy()


def _jax_attention(**options: Any) -> np.ndarray:
    with jax.enable_x64(True):
        x, memory = jnp.asarray(X)[:, :, None], jnp.asarray(MEMORY)[:, :, None]
        return np.asarray(jax.nn.dot_product_attention(x, memory, memory, **options))[:, :, 0]


def _falcon(implementation: str, *, alibi: bool) -> FalconModel:
    config = FalconConfig(
        hidden_size=16, num_attention_heads=4, num_hidden_layers=1, vocab_size=12, alibi=alibi,
        attn_implementation=implementation,
    )  # fmt: skip
    torch.manual_seed(0)
    return FalconModel(config).eval().requires_grad_(False)
