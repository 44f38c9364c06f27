"""The layout "hf-flax": names and axes of Linen, read and written, and what it refuses."""

import flax.serialization
import numpy as np
import pytest
import torch
from flax.traverse_util import unflatten_dict

from diptych import cli
from diptych.convert import (
    convert_checkpoint,
    diff_checkpoints,
    open_checkpoint,
    read_model,
    verify_manifest,
)
from diptych.convert.layouts.lazy_tensors import FLOATING
from diptych.convert.layouts.linen import Kernel, as_torch, is_linen, linen_rules, torch_name
from diptych.formats.find import find_container
from diptych.rules import Join, convert_tensors, inverse, rule
from diptych.spec import CheckpointError
from diptych.tensors.dtypes import numpy_dtype

from ..support.checkpoints import (
    BERT_CONFIG,
    assert_same_tensors,
    bert_tensors,
    stored_tensors,
    write_checkpoint,
)

KINDS = ("safetensors", "pt", "msgpack")
AXES = {2: (1, 0), 3: (2, 1, 0), 4: (2, 3, 1, 0)}


def in_linen(tensors):
    """Return a tiny BERT as Flax saves it, written down here by hand."""
    linen = {}
    for name, values in tensors.items():
        path, _, last = name.rpartition(".")
        if last != "weight":
            linen[name] = values
        elif path.endswith("LayerNorm"):
            linen[f"{path}.scale"] = values
        elif path.endswith("_embeddings"):
            linen[f"{path}.embedding"] = values
        else:
            linen[f"{path}.kernel"] = np.ascontiguousarray(values.T)
    return linen


def write_linen(folder, tensors, kind="msgpack"):
    name = {"msgpack": "flax_model.msgpack", "safetensors": "model.safetensors", "pt": "model.pt"}
    return write_checkpoint(folder, in_linen(tensors), BERT_CONFIG, kind=kind, name=name[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", [(), ("masked_lm", "next_sentence"), ("question_answering",)])
def test_a_flax_folder_of_any_container_goes_to_every_layout_and_back(tmp_path, kind, heads):
    prefix = "bert." if heads else ""
    tensors = bert_tensors(*heads, prefix=prefix)
    source = write_linen(tmp_path / "source", tensors, kind)
    hf = write_checkpoint(tmp_path / "plain", tensors, BERT_CONFIG)
    assert open_checkpoint(source).layout == "hf-flax"
    assert diff_checkpoints(source, hf).identical
    for to in ("hf", "torch", "flax", "hf-flax"):
        report = convert_checkpoint(source, tmp_path / to, to=to)
        assert report.layouts == ("hf-flax", to)
        assert f"hf-flax (bert) {kind} -> {to}" in str(report)
        assert verify_manifest(tmp_path / to) == []
        convert_checkpoint(tmp_path / to, tmp_path / f"{to}-back", to="hf-flax", format=kind)
        assert_same_tensors(stored_tensors(tmp_path / f"{to}-back"), in_linen(tensors))
    assert_same_tensors(stored_tensors(tmp_path / "hf"), tensors)
    convert_checkpoint(hf, tmp_path / "from-hf", to="hf-flax")
    tree = flax.serialization.msgpack_restore(
        (tmp_path / "from-hf/flax_model.msgpack").read_bytes()
    )
    expected = flax.serialization.msgpack_serialize(unflatten_dict(in_linen(tensors), sep="."))
    assert flax.serialization.msgpack_serialize(tree) == expected
    assert (tmp_path / "from-hf/flax_model.msgpack").read_bytes() == expected


def test_what_torch_alone_spells_is_restored_on_the_way_back(tmp_path):
    """huggingface/transformers#12545: nothing is missing after Flax, nothing drawn at random."""
    tensors = bert_tensors("masked_lm", prefix="bert.", norm=("gamma", "beta"))
    tensors["bert.embeddings.position_ids"] = np.arange(5)[None]
    tensors["bert.embeddings.token_type_ids"] = np.ones((1, 5), np.int64)
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    source = write_checkpoint(tmp_path / "source", tensors, BERT_CONFIG)
    report = convert_checkpoint(source, tmp_path / "linen", to="hf-flax")
    assert report.recreated == ("bert.embeddings.position_ids",)
    assert report.buffers == ("bert.embeddings.token_type_ids",)
    assert "left out, made anew on the way back" in str(report)
    names = set(find_container(tmp_path / "linen").tensors)
    assert "buffers.bert.embeddings.token_type_ids" in names
    assert "bert.embeddings.LayerNorm.scale" in names
    assert not any("decoder" in name or "position_ids" in name for name in names)
    assert diff_checkpoints(source, tmp_path / "linen").identical
    assert verify_manifest(tmp_path / "linen") == []
    convert_checkpoint(tmp_path / "linen", tmp_path / "flax", to="flax")
    for place, start in enumerate(("linen", "flax")):
        convert_checkpoint(tmp_path / start, tmp_path / f"back{place}", to="hf")
        assert_same_tensors(stored_tensors(tmp_path / f"back{place}"), tensors)
        convert_checkpoint(tmp_path / start, tmp_path / f"again{place}", to="hf-flax")
        first, second = (tmp_path / at / "flax_model.msgpack" for at in ("linen", f"again{place}"))
        assert first.read_bytes() == second.read_bytes()


def test_the_manifest_of_a_torch_spelling_is_checked(tmp_path):
    source = write_checkpoint(tmp_path / "source", bert_tensors(), BERT_CONFIG)
    convert_checkpoint(source, tmp_path / "linen", to="hf-flax")
    manifest = tmp_path / "linen/diptych.json"
    manifest.write_text(manifest.read_text().replace('"bert"', '"bart"'))
    with pytest.raises(CheckpointError, match="its own digest does not fit"):
        open_checkpoint(tmp_path / "linen")


@pytest.mark.parametrize("code", FLOATING)
def test_every_dtype_keeps_its_bits(tmp_path, code):
    """huggingface/transformers#12626: bfloat16 of Flax stays bfloat16 in torch, bit for bit."""
    random = np.random.default_rng(0)
    dtype = numpy_dtype(code)
    tensors = {
        name: random.integers(0, 256, values.size * dtype.itemsize, np.uint8)
        .view(dtype)
        .reshape(values.shape)
        for name, values in bert_tensors().items()
    }
    source = write_linen(tmp_path / "source", tensors)
    convert_checkpoint(source, tmp_path / "hf", to="hf")
    assert_same_tensors(stored_tensors(tmp_path / "hf"), tensors)
    convert_checkpoint(tmp_path / "hf", tmp_path / "back", to="hf-flax")
    assert_same_tensors(stored_tensors(tmp_path / "back"), in_linen(tensors))
    assert (tmp_path / "back/flax_model.msgpack").stat().st_size < 1.2 * sum(
        values.nbytes + 100 for values in tensors.values()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [None, 500])
@pytest.mark.parametrize("to", ["torch", "flax"])
def test_sharded_or_single_every_container_gives_equal_tensors(tmp_path, kind, shards, to):
    """huggingface/transformers#31210: sharded Flax files load like all others."""
    source = write_checkpoint(tmp_path / "source", bert_tensors(), BERT_CONFIG)
    convert_checkpoint(source, tmp_path / "linen", to="hf-flax", format=kind, max_shard_size=shards)
    assert (len(find_container(tmp_path / "linen").files) > 1) == (shards is not None)
    found = read_model(tmp_path / "linen", layout=to)
    expected = read_model(source, layout=to)
    assert found.config == expected.config
    assert_same_tensors(found.tensors, expected.tensors)


def test_torch_names_are_no_linen_names():
    assert not is_linen(bert_tensors())
    assert not is_linen(["logit_scale", "norm.scale", "embeddings.position_embeddings"])
    assert is_linen(["encoder.norm.weight", "encoder.layer.0.self.query.kernel"])
    assert is_linen(["shared.embedding"])
    names = {"a.kernel": "a.weight", "a.scale": "a.weight", "a.bias": "a.bias", "kernel": "weight"}
    assert {name: torch_name(name) for name in names} == names


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_kernels_of_every_rank_have_each_value_at_its_place(tmp_path, rank):
    random = np.random.default_rng(rank)
    weight = random.random((2, 3, 4, 5)[:rank])
    (kernel,) = Kernel().apply([weight])
    for index in np.ndindex(weight.shape):
        assert kernel[tuple(index[axis] for axis in AXES[rank])] == weight[index]
    assert np.array_equal(Kernel().inverse.apply([kernel])[0], weight)
    write_checkpoint(tmp_path, {"a.kernel": kernel}, kind="msgpack")
    found, faults = as_torch(find_container(tmp_path).tensors)
    assert faults == []
    assert np.array_equal(found["a.weight"].read(), weight)


def test_a_kernel_that_is_a_view_in_a_pickle_is_turned_by_its_strides(tmp_path):
    view = torch.arange(40.0).reshape(5, 8)[:, ::2].T
    torch.save({"a.kernel": view}, tmp_path / "model.pt")
    found, _ = as_torch(find_container(tmp_path).tensors)
    assert found["a.weight"].read().tolist() == view.T.tolist()


def test_rules_are_renamed_and_turned_by_the_kind_of_their_leaf():
    """A norm is called as the family says, a fused kernel is turned after it is joined."""
    table = (
        rule(
            ("layers.{i}.q_proj.weight", "layers.{i}.k_proj.weight"),
            "h.{i}.attn.weight",
            Join((2, 3)),
        ),
        rule(("layers.{i}.q_proj.bias", "layers.{i}.k_proj.bias"), "h.{i}.attn.bias", Join((2, 3))),
        rule("patch_conv.weight", "patch.weight"),
        rule("token_embed.weight", "words.weight"),
        rule("final_norm.weight", "ln_f.weight"),
        rule("class_token_param", "cls_token"),
    )
    random = np.random.default_rng(0)
    shapes = {
        "layers.0.q_proj.weight": (2, 5),
        "layers.0.k_proj.weight": (3, 5),
        "layers.0.q_proj.bias": (2,),
        "layers.0.k_proj.bias": (3,),
        "patch_conv.weight": (2, 3, 4, 5),
        "token_embed.weight": (7, 5),
        "final_norm.weight": (5,),
        "class_token_param": (1, 1, 5),
    }
    given = {name: random.random(shape) for name, shape in shapes.items()}
    for norm in ("scale", "weight"):
        rules = linen_rules(table, norm)
        linen = convert_tensors(given, rules)
        assert {name: x.shape for name, x in linen.items()} == {
            "h.0.attn.kernel": (5, 5),
            "h.0.attn.bias": (5,),
            "patch.kernel": (4, 5, 3, 2),
            "words.embedding": (7, 5),
            f"ln_f.{norm}": (5,),
            "cls_token": (1, 1, 5),
        }
        joined = np.concatenate([given[f"layers.0.{x}_proj.weight"] for x in "qk"])
        assert np.array_equal(linen["h.0.attn.kernel"], joined.T)
        assert_same_tensors(convert_tensors(linen, inverse(rules)), given)
    with pytest.raises(ValueError, match="leaves of several kinds in one rule"):
        linen_rules([rule(("a_proj.weight", "b_norm.weight"), "ab.weight", Join(2))], "scale")


def test_the_command_names_layout_and_container(tmp_path, monkeypatch, capsys):
    source = write_linen(tmp_path / "source", bert_tensors())
    monkeypatch.setattr("sys.argv", ["diptych", "inspect", str(source)])
    with pytest.raises(SystemExit):
        cli.main()
    out = capsys.readouterr().out
    assert "0.0 MB, msgpack\n" in out
    assert "Encoder in layout hf-flax, family bert\n" in out
    arguments = ["convert", str(source), str(tmp_path / "hf"), "--to", "hf", "--format", "msgpack"]
    monkeypatch.setattr("sys.argv", ["diptych", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    first = capsys.readouterr().out.split("\n")[0]
    assert first.endswith("hf: Encoder, hf-flax (bert) msgpack -> hf (bert) msgpack")
