"""A family from a user's own file: by command, by object, or refused in one line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from diptych.convert import convert_checkpoint, load_family
from diptych.spec import CheckpointError
from parity_tests import ROOT
from parity_tests.support.checkpoints import assert_same_tensors, stored_tensors, write_checkpoint

RULES = ROOT / "examples" / "my_family.py"
W, F, V, T, L = 12, 20, 17, 9, 2
SETTINGS = {
    "model_type": "my_gpt",
    "width": W,
    "vocabulary": V,
    "heads": 3,
    "hidden": F,
    "depth": L,
    "length": T,
}


def my_tensors() -> dict[str, np.ndarray]:
    shapes = {"tok.weight": (V, W), "pos.weight": (T, W), "last.weight": (W,)}
    for i in range(L):
        shapes |= {
            f"blocks.{i}.norm1.weight": (W,),
            f"blocks.{i}.mix.qkv.weight": (3 * W, W),
            f"blocks.{i}.mix.out.weight": (W, W),
            f"blocks.{i}.norm2.weight": (W,),
            f"blocks.{i}.up.weight": (F, W),
            f"blocks.{i}.down.weight": (W, F),
        }
    random = np.random.default_rng(0)
    return {
        f"model.{n}": (0.3 * random.normal(size=s)).astype(np.float32) for n, s in shapes.items()
    }


@pytest.fixture
def source(tmp_path):
    return write_checkpoint(tmp_path / "source", my_tensors(), SETTINGS)


def diptych(*arguments, cwd):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "diptych", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_by_command(source, tmp_path):
    code, _, err = diptych("convert", source, "flax", "--to", "flax", cwd=tmp_path)
    assert (code, "'my_gpt' is of no family that is read" in err) == (2, True)
    options = ("--rules", RULES)
    steps = (
        ("convert", source, "flax", "--to", "flax", *options),
        ("verify", source, "flax", *options),
        ("convert", "flax", "back", "--to", "hf", *options),
        ("diff", source, "back", *options),
    )
    for step in steps:
        code, out, err = diptych(*step, cwd=tmp_path)
        assert code == 0, out + err
        assert err.splitlines()[0] == f"running {RULES}"
    assert_same_tensors(stored_tensors(tmp_path / "back"), my_tensors())
    code, out, _ = diptych("inspect", source, "--json", *options, cwd=tmp_path)
    assert json.loads(out)["family"] == "my_gpt"
    code, out, _ = diptych("families", *options, cwd=tmp_path)
    assert "my_gpt" in out


def test_by_object(source, tmp_path):
    family = load_family(RULES)
    convert_checkpoint(source, tmp_path / "flax", to="flax", family=family)
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf", family=family)
    assert_same_tensors(stored_tensors(tmp_path / "back"), my_tensors())
    assert json.loads((tmp_path / "back/config.json").read_text())["hidden"] == F


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FAMILY = 3", "FAMILY: must be a diptych.convert.Family, is int"),
        ("x = 1", "FAMILY: must be a diptych.convert.Family, is nothing"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("FAMILY = (", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        (None, "no such file of rules"),
    ],
)
def test_files_without_a_family_are_refused(tmp_path, text, words):
    path = tmp_path / "rules.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CheckpointError) as caught:
        load_family(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_a_file_without_a_family_ends_the_command(source, tmp_path):
    (tmp_path / "rules.py").write_text("1 / 0")
    code, out, err = diptych(
        "convert", source, "out", "--to", "flax", "--rules", "rules.py", cwd=tmp_path
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "error: rules.py: ZeroDivisionError: division by zero"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("find_variants", ("convert", "source", "out", "--to", "flax")),
        ("is_buffer", ("convert", "source", "out", "--to", "flax")),
        ("rules", ("convert", "source", "out", "--to", "flax")),
        ("write_config", ("convert", "flax", "out", "--to", "hf")),
    ],
)
def test_a_fault_in_a_function_names_file_and_function(source, tmp_path, name, step):
    convert_checkpoint(source, tmp_path / "flax", to="flax", family=load_family(RULES))
    text = f"""
class Broken(DecoderFamily):
    def {name}(self, *arguments):
        return {{}}["nothing"]


FAMILY = Broken("""
    (tmp_path / "rules.py").write_text(RULES.read_text().replace("FAMILY = DecoderFamily(", text))
    code, _, err = diptych(*step, "--rules", "rules.py", cwd=tmp_path)
    assert code == 2, err
    assert err.splitlines()[-1] == f"error: rules.py: {name}: KeyError: 'nothing'"
    assert not (tmp_path / "out").exists()


def test_rules_that_are_none_are_refused(source, tmp_path):
    text = "class Broken(DecoderFamily):\n    def rules(self, *arguments):\n        return (1, 2)\n"
    text += "\n\nFAMILY = Broken("
    (tmp_path / "rules.py").write_text(RULES.read_text().replace("FAMILY = DecoderFamily(", text))
    family = load_family(tmp_path / "rules.py")
    with pytest.raises(CheckpointError, match=r"rules\.py: rules: must return rules alone, found"):
        convert_checkpoint(source, tmp_path / "out", to="flax", family=family)


OWN = """
from diptych.convert import Family, Setting, SettingsTable
from diptych.spec import FeedForwardConfig


class Mine(Family):
    def read_config(self, settings, shapes, variants):
        d_ff, d_model = shapes["in.weight"]
        return FeedForwardConfig(d_model=d_model, d_ff=d_ff, activation=settings["act"])

    def write_settings(self, config, source):
        return {"act": config.activation}


FAMILY = Mine(
    name="mine",
    summary="two linear maps",
    model_types=("mine",),
    modules={"in": "up_proj", "out": "down_proj"},
    settings=SettingsTable(understood={"act": Setting(str, "relu")}),
)
"""


def test_a_family_that_is_no_decoder_is_a_class_of_its_own(tmp_path):
    """What it writes is read back, too, beside the tensors that would be written."""
    path = tmp_path / "rules.py"
    path.write_text(OWN)
    shapes = {"in.weight": (F, W), "in.bias": (F,), "out.weight": (W, F), "out.bias": (W,)}
    tensors = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    settings = {"model_type": "mine", "act": "gelu"}
    source = write_checkpoint(tmp_path / "source", tensors, settings)
    family = load_family(path)
    convert_checkpoint(source, tmp_path / "flax", to="flax", family=family)
    for name in ("source_config.json", "diptych.json"):
        (tmp_path / "flax" / name).unlink()
    convert_checkpoint(tmp_path / "flax", tmp_path / "back", to="hf", family=family)
    assert_same_tensors(stored_tensors(tmp_path / "back"), tensors)
    assert json.loads((tmp_path / "back/config.json").read_text()) == settings
    path.write_text(OWN.replace('{"act": config.activation}', '{"act": "silu"}'))
    cause = "mine has no such FeedForward: activation='gelu', only 'silu'"
    with pytest.raises(CheckpointError, match=cause):
        convert_checkpoint(tmp_path / "flax", tmp_path / "out", to="hf", family=load_family(path))
