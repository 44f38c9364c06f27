"""Projections stored as one, or for another rotation: every row by value, none by its shape."""

import numpy as np
import pytest

from diptych.convert import convert_checkpoint
from diptych.families.decoders.llama import to_neighbours
from diptych.families.fused import blocks, groups
from diptych.spec import AttentionConfig
from parity_tests.support.checkpoints import stored_tensors, write_checkpoint

W = 4


def attention(num_heads: int, num_kv_heads: int) -> AttentionConfig:
    return AttentionConfig(d_model=8, num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=2)


@pytest.mark.parametrize(
    ("cut", "num_heads", "num_kv_heads", "rows"),
    [
        (blocks, 2, 2, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]),
        (groups, 2, 2, [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]),
        (blocks, 4, 1, [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9], [10, 11]]),
        (groups, 4, 2, [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]]),
    ],
    ids=["blocks", "groups", "blocks, one key head", "groups, shared keys"],
)
def test_rows_of_a_fused_projection(cut, num_heads, num_kv_heads, rows):
    """After lablup/mlxcel PR#928, wanshuiyin/ARIS-in-AI-Offer PR#45: shapes tell nothing."""
    fused = np.arange(sum(map(len, rows)), dtype=np.float32)
    way = cut(attention(num_heads, num_kv_heads))
    parts = way.apply([fused])
    assert [part.astype(int).tolist() for part in parts] == rows
    np.testing.assert_array_equal(way.inverse.apply(parts)[0], fused)


@pytest.mark.parametrize(
    ("heads", "width", "order"),
    [
        (1, 4, [0, 2, 1, 3]),
        (2, 4, [0, 2, 1, 3, 4, 6, 5, 7]),
        (1, 6, [0, 3, 1, 4, 2, 5]),
    ],
)
def test_rows_of_another_rotation(heads, width, order):
    """After ooples/AiDotNet PR#2074: biases move with the weights, and back."""
    way = to_neighbours(heads, width)
    bias = np.arange(heads * width, dtype=np.float32)
    (moved,) = way.apply([bias])
    assert moved.astype(int).tolist() == order
    np.testing.assert_array_equal(way.inverse.apply([moved])[0], bias)


def test_square_kernels_of_gpt2_are_turned_by_their_name(tmp_path):
    """After karpathy/nanoGPT#190: stored (in, out), as in Flax; our torch panel has (out, in)."""
    random = np.random.default_rng(0)
    shapes = {"wte.weight": (7, W), "wpe.weight": (5, W), "h.0.mlp.c_fc.weight": (W, 6)}
    shapes |= {"h.0.mlp.c_fc.bias": (6,), "h.0.mlp.c_proj.weight": (6, W)}
    shapes |= {"h.0.attn.c_attn.weight": (W, 3 * W), "h.0.attn.c_attn.bias": (3 * W,)}
    shapes |= {"h.0.attn.c_proj.weight": (W, W), "h.0.mlp.c_proj.bias": (W,)}
    for name in ("h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.ln_2.weight", "h.0.ln_2.bias"):
        shapes[name] = (W,)
    shapes |= {"h.0.attn.c_proj.bias": (W,), "ln_f.weight": (W,), "ln_f.bias": (W,)}
    stored = {n: random.normal(size=shape).astype(np.float32) for n, shape in shapes.items()}
    source = write_checkpoint(tmp_path / "source", stored, {"model_type": "gpt2", "n_head": 2})
    for layout in ("flax", "torch"):
        convert_checkpoint(source, tmp_path / layout, to=layout)
    flax, torch = stored_tensors(tmp_path / "flax"), stored_tensors(tmp_path / "torch")
    square = stored["h.0.attn.c_proj.weight"]
    np.testing.assert_array_equal(flax["layers.0.attention.out_proj.kernel"], square)
    np.testing.assert_array_equal(torch["layers.0.attention.out_proj.weight"], square.T)
    fused = stored["h.0.attn.c_attn.weight"]
    for i, letter in enumerate("qkv"):
        part = fused[:, W * i : W * (i + 1)]
        np.testing.assert_array_equal(flax[f"layers.0.attention.{letter}_proj.kernel"], part)
        np.testing.assert_array_equal(torch[f"layers.0.attention.{letter}_proj.weight"], part.T)
