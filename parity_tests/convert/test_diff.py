"""diff finds every bit, says where and how far, and calls nothing else a difference."""

import json

import ml_dtypes
import numpy as np
import pytest

from diptych.convert import convert_checkpoint, diff_checkpoints, write_model
from diptych.spec import CheckpointError, FeedForwardConfig

from ..support.checkpoints import BERT_CONFIG, bert_tensors, write_checkpoint

CONFIG = FeedForwardConfig(d_model=2, d_ff=3)


def model(folder, dtype=np.float32, config=CONFIG, **changes):
    """Write a feed-forward network of ones with some single values changed."""
    tensors = {
        name: np.ones(leaf.shape, dtype).reshape(leaf.shape)
        for name, leaf in config.leaves().items()
    }
    for name, (index, value) in changes.items():
        tensors[name.replace("__", ".")][index] = value
    write_model(folder, component="FeedForward", config=config, tensors=tensors, layout="torch")
    return folder


def next_to(value, dtype, steps=1):
    bits = np.array(value, dtype).view(f"i{np.dtype(dtype).itemsize}")
    return (bits + bits.dtype.type(steps)).view(dtype)[()]


def test_equal_checkpoints_are_identical_in_any_layout(tmp_path):
    a = model(tmp_path / "a")
    convert_checkpoint(a, tmp_path / "b", to="flax", format="pt")
    found = diff_checkpoints(a, tmp_path / "b")
    assert found.identical
    assert found.equal == 4
    assert json.loads(json.dumps(found.to_dict()))["identical"] is True


@pytest.mark.parametrize(
    ("dtype", "value", "bits", "ulp"),
    [
        (np.float32, next_to(1, np.float32), 1, 1),
        (np.float32, next_to(1, np.float32, -1), 31 - 6 - 1, 1),
        (np.float64, next_to(1, np.float64, 1000), 6, 1000),
        (np.float16, next_to(1, np.float16, 3), 2, 3),
        (ml_dtypes.bfloat16, next_to(1, ml_dtypes.bfloat16, 2), 1, 2),
        (np.float32, -1.0, 1, 2 * 0x3F800000),
        (np.float64, -1.0, 1, 2 * 0x3FF0000000000000),
        (np.float64, -np.inf, None, 0x3FF0000000000000 + 0x7FF0000000000000),
    ],
)
def test_one_value_is_found_with_its_place_and_distance(tmp_path, dtype, value, bits, ulp):
    a = model(tmp_path / "a", dtype)
    b = model(tmp_path / "b", dtype, up_proj__weight=((2, 1), value))
    (found,) = diff_checkpoints(a, b).different
    assert (found.name, found.elements, found.first) == ("up_proj.weight", 1, (2, 1))
    assert found.max_ulp == ulp
    assert bits is None or found.bits == bits
    assert found.values == tuple(str(x) for x in np.array([1, value], dtype))


def test_zeros_of_two_signs_differ_in_one_bit_and_no_ulp(tmp_path):
    a = model(tmp_path / "a", up_proj__bias=(0, 0.0))
    b = model(tmp_path / "b", up_proj__bias=(0, -0.0))
    (found,) = diff_checkpoints(a, b).different
    assert (found.bits, found.max_ulp) == (1, 0)


def test_not_a_numbers_of_two_payloads_differ(tmp_path):
    quiet = np.array(0x7FC00000, np.uint32).view(np.float32)[()]
    other = np.array(0x7FC00003, np.uint32).view(np.float32)[()]
    a = model(tmp_path / "a", up_proj__bias=(1, quiet))
    b = model(tmp_path / "b", up_proj__bias=(1, other))
    (found,) = diff_checkpoints(a, b).different
    assert (found.elements, found.bits, found.max_ulp) == (1, 2, 0)
    same = model(tmp_path / "c", up_proj__bias=(1, quiet))
    assert diff_checkpoints(a, same).identical


def test_counts_add_up_over_a_large_tensor(tmp_path):
    config = FeedForwardConfig(d_model=1100, d_ff=2000)
    a = model(tmp_path / "a", config=config)
    b = model(tmp_path / "b", config=config, up_proj__weight=(np.s_[1900:, 7], 2.0))
    (found,) = diff_checkpoints(a, b).different
    assert (found.elements, found.first) == (100, (1900, 7))
    assert found.bits == 100 * 8
    assert found.max_ulp == 1 << 23


def test_dtypes_shapes_and_settings_are_told_apart(tmp_path):
    a = model(tmp_path / "a")
    found = diff_checkpoints(a, model(tmp_path / "b", np.float16))
    assert {tensor.dtypes for tensor in found.different} == {("F32", "F16")}
    assert all(tensor.elements is None for tensor in found.different)
    wider = model(tmp_path / "c", config=FeedForwardConfig(d_model=2, d_ff=4))
    found = diff_checkpoints(a, wider)
    assert {t.name for t in found.different} == {
        "up_proj.weight",
        "up_proj.bias",
        "down_proj.weight",
    }
    assert found.settings == ("d_ff: 3, 4",)
    gelu = model(tmp_path / "d", config=FeedForwardConfig(d_model=2, d_ff=3, activation="gelu"))
    found = diff_checkpoints(a, gelu)
    assert found.identical
    assert found.settings == ("activation: 'relu', 'gelu'",)


def test_tensors_of_one_side_are_listed(tmp_path):
    a = write_checkpoint(tmp_path / "a", bert_tensors(), BERT_CONFIG)
    b = write_checkpoint(tmp_path / "b", bert_tensors(pooler=False), BERT_CONFIG)
    found = diff_checkpoints(a, b)
    assert found.only_in_a == ("pooler_proj.weight", "pooler_proj.bias")
    assert not found.identical
    assert diff_checkpoints(b, a).only_in_b == found.only_in_a


def test_a_bare_state_dict_borrows_the_others_settings(tmp_path):
    bare = write_checkpoint(tmp_path / "bare", bert_tensors(prefix="bert."))
    full = write_checkpoint(tmp_path / "full", bert_tensors(), BERT_CONFIG)
    assert diff_checkpoints(bare, full).identical
    assert diff_checkpoints(full, bare).identical
    with pytest.raises(CheckpointError, match="num_attention_heads: not in the checkpoint"):
        diff_checkpoints(bare, bare)


@pytest.mark.parametrize(("positions", "dtype"), [(4, np.int64), (5, np.int32)])
def test_buffers_that_both_recreate_are_compared(tmp_path, positions, dtype):
    def folder(name, ids):
        tensors = bert_tensors() | {"embeddings.position_ids": ids}
        return write_checkpoint(tmp_path / name, tensors, BERT_CONFIG)

    ids = np.arange(5)[None]
    a, same = folder("a", ids), folder("same", ids)
    assert diff_checkpoints(a, same).equal == len(bert_tensors()) + 1
    (found,) = diff_checkpoints(a, folder("b", np.arange(positions, dtype=dtype)[None])).different
    assert found.name == "embeddings.position_ids"
