"""The seed documents' state dicts: one layer, any class inside it, N layers, one head."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from diptych.convert import convert_checkpoint, diff_checkpoints, open_checkpoint, read_model
from diptych.spec import CheckpointError

from ..support.checkpoints import assert_same_tensors, stored_tensors, write_checkpoint

D_MODEL, D_FF, LENGTH = 6, 7, 5


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        for letter in "qkvo":
            setattr(self, f"W_{letter}", nn.Linear(D_MODEL, D_MODEL))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)


class TransformerEncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.multi_head_attention = MultiHeadAttention()
        self.feed_forward = FeedForward()
        self.norm1, self.norm2 = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)


class PositionalEncoding(nn.Module):
    def __init__(self):
        super().__init__()
        pe = torch.zeros(LENGTH, D_MODEL)
        position = torch.arange(0, LENGTH, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(
            torch.arange(0, D_MODEL, 2, dtype=torch.float) * -(math.log(10000.0) / D_MODEL)
        )
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(TransformerEncoderLayer() for _ in range(3))


class HeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self._k, self._q, self._v = (nn.Linear(D_MODEL, 4) for _ in range(3))
        self.register_buffer("_tril_mask", torch.tril(torch.ones(LENGTH, LENGTH)).bool())


def state(module):
    torch.manual_seed(0)
    built = module()
    for parameter in built.parameters():
        nn.init.normal_(parameter)
    return {name: value.numpy().copy() for name, value in built.state_dict().items()}


HEADS = {"num_heads": 3}
CASES = {
    "layer": (TransformerEncoderLayer, HEADS, "TransformerEncoderLayer"),
    "attention": (MultiHeadAttention, HEADS, "MultiHeadAttention"),
    "feed forward": (FeedForward, {}, "FeedForward"),
    "norm": (lambda: nn.LayerNorm(D_MODEL), {}, "LayerNorm"),
    "positions": (PositionalEncoding, {}, "PositionalEncoding"),
    "layers": (Stack, {**HEADS, "dropout": 0.0}, "Encoder"),
    "head": (HeadAttention, {}, "HeadAttention"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("to", ["flax", "torch"])
def test_there_and_back_is_byte_for_byte(tmp_path, case, to):
    module, settings, component = CASES[case]
    tensors = state(module)
    source = write_checkpoint(tmp_path / "source", tensors)
    convert_checkpoint(source, tmp_path / "there", to=to, settings=settings)
    assert open_checkpoint(tmp_path / "there").component == component
    convert_checkpoint(tmp_path / "there", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)
    again = open_checkpoint(tmp_path / "back")
    assert again.config == open_checkpoint(tmp_path / "there").config
    module().load_state_dict({n: torch.from_numpy(x) for n, x in tensors.items()})
    assert diff_checkpoints(source, tmp_path / "there").identical


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("multi_head_attention.W_q.weight", "attention.q_proj.weight"),
        ("multi_head_attention.W_k.weight", "attention.k_proj.weight"),
        ("multi_head_attention.W_v.bias", "attention.v_proj.bias"),
        ("multi_head_attention.W_o.weight", "attention.out_proj.weight"),
        ("feed_forward.linear1.weight", "feed_forward.up_proj.weight"),
        ("feed_forward.linear2.weight", "feed_forward.down_proj.weight"),
        ("norm1.weight", "attention_norm.weight"),
        ("norm2.bias", "feed_forward_norm.bias"),
    ],
)
def test_values_of_a_layer_arrive_under_their_own_name(tmp_path, theirs, ours):
    tensors = state(TransformerEncoderLayer)
    opened = open_checkpoint(write_checkpoint(tmp_path, tensors), settings=HEADS)
    assert np.array_equal(opened.leaves[ours].read(), tensors[theirs])


def test_defaults_are_those_of_the_seed(tmp_path):
    opened = open_checkpoint(write_checkpoint(tmp_path, state(Stack)), settings=HEADS)
    layer = opened.config.layer
    assert opened.config.num_layers == 3
    assert (layer.d_model, layer.attention.num_heads, layer.feed_forward.d_ff) == (D_MODEL, 3, D_FF)
    assert (layer.norm_placement, layer.feed_forward.activation) == ("post", "relu")
    assert layer.norm.eps == 1e-5
    assert layer.dropout == 0.1


def test_the_position_table_always_travels(tmp_path):
    source = write_checkpoint(tmp_path / "source", state(PositionalEncoding))
    opened = open_checkpoint(source)
    assert (opened.config.d_model, opened.config.max_seq_len) == (D_MODEL, LENGTH)
    assert opened.buffers.keys() == {"pe"}
    convert_checkpoint(source, tmp_path / "flax", to="flax")
    assert stored_tensors(tmp_path / "flax").keys() == {"buffers.pe"}
    assert read_model(tmp_path / "flax", layout="torch").unused == ("pe",)


def test_the_mask_says_the_longest_sequence_and_is_recreated(tmp_path):
    tensors = state(HeadAttention)
    opened = open_checkpoint(write_checkpoint(tmp_path / "bool", tensors))
    assert opened.config.max_seq_len == LENGTH
    assert opened.recreated.keys() == {"_tril_mask"}
    assert opened.buffers == {}
    old = tensors | {"_tril_mask": tensors["_tril_mask"].astype(np.uint8)}
    opened = open_checkpoint(write_checkpoint(tmp_path / "byte", old))
    assert opened.recreated["_tril_mask"].dtype == "U8"
    odd = tensors | {"_tril_mask": ~tensors["_tril_mask"]}
    opened = open_checkpoint(write_checkpoint(tmp_path / "odd", odd))
    assert opened.buffers.keys() == {"_tril_mask"}


def test_a_panel_head_gets_its_mask_again(tmp_path):
    from diptych.convert import write_model

    tensors = state(HeadAttention)
    model = read_model(write_checkpoint(tmp_path / "source", tensors), layout="flax")
    parts = {"component": model.component, "config": model.config, "tensors": model.tensors}
    write_model(tmp_path / "panel", layout="flax", **parts)
    convert_checkpoint(tmp_path / "panel", tmp_path / "back", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)


@pytest.mark.parametrize(
    ("case", "settings", "words"),
    [
        (
            "layer",
            {},
            "num_heads: not in the checkpoint; give --set num_heads=... or --config FILE",
        ),
        ("layer", {"num_heads": 4}, "num_heads=4 must divide d_model=6"),
        ("layer", {"num_heads": "3"}, 'num_heads: "3" has the wrong type'),
        ("layer", {"num_heads": 3, "n_heads": 3}, "n_heads: setting not understood"),
        ("layer", {"num_heads": 3, "d_model": 12}, "shape (6, 6), expected (12, 12)"),
        ("layers", {"num_heads": 3, "num_layers": 2}, "layers.2."),
        ("layers", {"num_heads": 3, "num_layers": 4}, "layers.3."),
        ("layers", {"num_heads": 3, "num_layers": 10**9}, "there are only 48 tensors"),
        ("layer", {"num_heads": 3, "num_layers": 1}, "num_layers: TransformerEncoderLayer has no"),
        ("feed forward", {"num_heads": 3}, "num_heads: FeedForward has no such setting"),
        ("head", {"max_seq_len": 4}, "max_seq_len: 4 given, but _tril_mask has 5 rows"),
    ],
)
def test_settings_that_are_refused(tmp_path, case, settings, words):
    source = write_checkpoint(tmp_path, state(CASES[case][0]))
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(source, settings=settings)
    assert any(words in fault for fault in caught.value.faults), caught.value.faults


@pytest.mark.parametrize("lost", ["_q.bias", "_k.weight"])
def test_a_missing_tensor_is_named_as_the_source_would(tmp_path, lost):
    tensors = state(HeadAttention)
    del tensors[lost]
    with pytest.raises(CheckpointError, match=f"{lost}: missing"):
        open_checkpoint(write_checkpoint(tmp_path, tensors))


def test_a_head_without_its_mask_needs_the_length(tmp_path):
    tensors = state(HeadAttention)
    del tensors["_tril_mask"]
    source = write_checkpoint(tmp_path, tensors)
    with pytest.raises(CheckpointError, match="max_seq_len: not in the checkpoint"):
        open_checkpoint(source)
    assert open_checkpoint(source, settings={"max_seq_len": 9}).config.max_seq_len == 9


def test_a_gap_between_layers_is_refused(tmp_path):
    tensors = {n.replace("layers.2.", "layers.999999999."): x for n, x in state(Stack).items()}
    with pytest.raises(CheckpointError, match=r"layers\.999999999: there are only 3 layers"):
        open_checkpoint(write_checkpoint(tmp_path, tensors), settings=HEADS)


def test_a_linear_layer_is_no_norm(tmp_path):
    source = write_checkpoint(tmp_path, state(lambda: nn.Linear(3, 4)))
    with pytest.raises(CheckpointError, match=r"weight: shape \(4, 3\) must have rank 1"):
        open_checkpoint(source)


def test_names_of_no_family_are_counted_and_of_one_are_listed(tmp_path):
    strange = {"foo.w": np.ones(2), "bar.w": np.ones(2)}
    with pytest.raises(CheckpointError, match="0 of 2 tensors are of a family that is read"):
        open_checkpoint(write_checkpoint(tmp_path / "none", strange))
    mixed = state(TransformerEncoderLayer) | {"norm3.weight": np.ones(D_MODEL, np.float32)}
    with pytest.raises(CheckpointError, match=r"norm3\.weight: no rule .*nearest: norm"):
        open_checkpoint(write_checkpoint(tmp_path / "some", mixed))
