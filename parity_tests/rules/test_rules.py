"""Every name is taken by exactly one rule, in both directions; all faults are listed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.rules import (
    MAX_SUGGESTIONS,
    Chain,
    Split,
    TemplateIndex,
    Tie,
    Transpose,
    assign_rules,
    convert_tensors,
    inverse,
    match_template,
    name_faults,
    rule,
)
from diptych.spec import CheckpointError

FUSED = (
    rule("h.{i}.ln.{j}.w", "layers.{i}.norms.{j}.weight"),
    rule(
        "h.{i}.qkv",
        ("layers.{i}.q", "layers.{i}.k", "layers.{i}.v"),
        Chain((Transpose(), Split(3))),
    ),
    rule(("wte", "head"), "token_embed", Tie(2)),
    rule("extra.{*path}", "kept.{*path}"),
)


def tensors(names, shape=(2, 6)):
    return {name: np.full(shape, place, np.float32) for place, name in enumerate(names)}


@settings(max_examples=60, deadline=None)
@given(
    layers=st.sets(st.integers(0, 200), max_size=5),
    paths=st.sets(st.from_regex(r"[a-z_]{1,4}(\.[a-z_]{1,3})?", fullmatch=True), max_size=3),
)
def test_there_and_back(layers, paths):
    names = [f"h.{i}.ln.{i + 1}.w" for i in layers] + [f"h.{i}.qkv" for i in layers]
    given_tensors = tensors(names + [f"extra.{path}x" for path in paths])
    given_tensors |= {"wte": np.ones((2, 6)), "head": np.ones((2, 6))}
    if name_faults(list(given_tensors)):
        return
    there = convert_tensors(given_tensors, FUSED)
    assert len(there) == len(layers) * 4 + len(paths) + 1
    back = convert_tensors(there, inverse(FUSED))
    assert back.keys() == given_tensors.keys()
    assert all(np.array_equal(back[name], given_tensors[name]) for name in back)


def test_fused_projection_is_cut_in_order():
    fused = np.arange(12, dtype=np.float32).reshape(2, 6)
    cut = convert_tensors({"h.0.qkv": fused}, FUSED)
    assert {name: x.tolist() for name, x in cut.items()} == {
        "layers.0.q": [[0, 6], [1, 7]],
        "layers.0.k": [[2, 8], [3, 9]],
        "layers.0.v": [[4, 10], [5, 11]],
    }


def test_inputs_are_not_changed():
    given_tensors = {"h.0.qkv": np.ones((2, 6))}
    convert_tensors(given_tensors, FUSED)["layers.0.q"][:] = 5
    assert given_tensors.keys() == {"h.0.qkv"}
    assert (given_tensors["h.0.qkv"] == 1).all()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["h.0.qk"], ["h.0.qk: no rule covers it (nearest: h.{i}.qkv)"]),
        (["h.01.qkv"], ["h.01.qkv: no rule covers it"]),
        (["h.x.qkv"], ["h.x.qkv: no rule covers it"]),
        (["h.\u0661.qkv"], ["h.\u0661.qkv: no rule covers it"]),
        (["h.0.qkv\n"], ["no rule covers it"]),
        (["ah.0.qkv", "h.0.qkv.b"], ["ah.0.qkv: no rule", "h.0.qkv.b: no rule"]),
        (["wte"], ["head: missing beside wte"]),
        (["extra.a", "extra.a.b"], ["extra.a.b: extra.a is a tensor and a folder of names"]),
        (["extra.x.1", "extra.x.01"], ["extra.x.01: collides with extra.x.1"]),
        (["extra."], ["extra.: no rule covers it"]),
    ],
)
def test_names_that_are_refused(names, words):
    with pytest.raises(CheckpointError) as caught:
        convert_tensors(tensors(names), FUSED)
    faults = "\n".join(caught.value.faults)
    assert all(word in faults for word in words), faults


def test_all_faults_are_collected_and_suggestions_are_limited():
    names = [f"unknown{place}" for place in range(50)]
    _, faults = assign_rules(names, FUSED, known=["unknown"])
    assert len(faults) == 50
    assert sum("nearest" in fault for fault in faults) == MAX_SUGGESTIONS


def test_two_rules_for_one_name_are_refused():
    ambiguous = (*FUSED, rule("h.{i}.{*path}", "other.{i}.{*path}"))
    with pytest.raises(CheckpointError, match=r"several rules: .*h\.\{i\}\.qkv"):
        convert_tensors(tensors(["h.0.qkv"]), ambiguous)


def test_two_sources_for_one_target_are_refused():
    colliding = (rule("a.{i}", "c.{i}"), rule("b.{i}", "c.{i}"))
    with pytest.raises(CheckpointError, match=r"c\.0: collides with c\.0"):
        convert_tensors(tensors(["a.0", "b.0"]), colliding)


def test_a_target_that_is_also_a_folder_is_refused():
    with pytest.raises(CheckpointError, match="x is a tensor and a folder"):
        convert_tensors(tensors(["a", "b"]), (rule("a", "x"), rule("b", "x.y")))


def test_shapes_that_do_not_fit_name_the_tensor():
    with pytest.raises(CheckpointError, match=r"h\.3\.qkv: shape \(7,\) needs rank 2"):
        convert_tensors({"h.3.qkv": np.zeros(7)}, FUSED)


def test_templates_of_a_rule_need_the_same_placeholders():
    with pytest.raises(ValueError, match="same placeholders"):
        rule("a.{i}", "b")


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["a.0", "a.00"], 1),
        (["a.10", "a.010", "a.0010"], 2),
        (["a0.x", "a00.x"], 0),
        (["layer.01.w", "layer.1.w"], 1),
        (["a", "a.b", "a.b.c"], 3),
        (["a.b", "ab"], 0),
        (["1", "1.0"], 1),
    ],
)
def test_names_that_mean_one_place(names, count):
    assert len(name_faults(names)) == count


@pytest.mark.parametrize(
    ("template", "name", "values"),
    [
        ("a.{i}.b", "a.0.b", {"i": "0"}),
        ("a.{i}.b", "a.10.b", {"i": "10"}),
        ("a.{i}.b", "a.1.2.b", None),
        ("a.2.{i}", "a.2.7", {"i": "7"}),
        ("a.2.{i}", "a.3.7", None),
        ("{*p}_proj", "x.1.q_proj", {"p": "x.1.q"}),
        ("{*p}_proj", "_proj", None),
        ("a+b", "aab", None),
    ],
)
def test_templates(template, name, values):
    assert match_template(template, name) == values
    found = TemplateIndex([(template, "here"), ("other.{k}", "there")]).find(name)
    assert found == ([] if values is None else [("here", values)])
