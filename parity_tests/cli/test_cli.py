"""The command: exit codes, one error line, JSON, and what it does not import."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import torch_impl
from diptych import __main__, __version__, cli
from diptych.families import FAMILIES


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command; return its exit code, its output and its error output."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["diptych", *map(str, arguments)])
        previous = signal.getsignal(signal.SIGTERM)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        signal.signal(signal.SIGTERM, previous)
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


@pytest.fixture
def source(tmp_path):
    """A layer in the torch layout."""
    torch.manual_seed(0)
    torch_impl.save_model(torch_impl.TransformerEncoderLayer(6, 3, 10), tmp_path / "source")
    return tmp_path / "source"


def one_line(err):
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


def test_version(run):
    assert run("--version") == (0, f"diptych {__version__}\n", "")


def test_families_lists_every_family(run):
    code, out, _ = run("families", "--json")
    assert (code, set(json.loads(out))) == (0, set(FAMILIES))
    assert {"bert", "llama", "seed_encoder"} <= FAMILIES.keys()
    code, out, _ = run("families")
    assert [line.split()[0] for line in out.splitlines()] == list(FAMILIES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "a command is needed"),
        (["convert"], "Missing argument 'SRC'"),
        (["convert", "a", "b"], "--to"),
        (["convert", "a", "b", "--to", "onnx"], "onnx"),
        (["convert", "a", "b", "--to", "hf", "--format", "npz"], "npz"),
        (["convert", "a", "b", "--to", "hf", "--set", "num_heads"], "must have the form K=V"),
        (["convert", "a", "b", "--to", "hf", "--set", "a=1", "--set", "a=2"], "a is given twice"),
        (["inspect", "a", "--set", "a=" + "9" * 5000], "cannot be opened"),
        (["nonsense"], "nonsense"),
        (["inspect", "no/such\nfile"], "no/such"),
        (["verify", "no/such"], "no/such"),
        (["diff", "no/such", "no/such"], "no/such"),
    ],
)
def test_usage_is_refused_in_one_line(run, arguments, words):
    code, _, err = run(*arguments)
    assert code == 2
    assert words in one_line(err)


def test_convert_verify_and_back(run, source, tmp_path):
    code, out, err = run("convert", source, tmp_path / "flax", "--to", "flax", "--verify")
    assert (code, err) == (0, "")
    assert "identical" in out
    assert run("convert", tmp_path / "flax", tmp_path / "back", "--to", "torch")[0] == 0
    code, out, _ = run("diff", source, tmp_path / "back", "--json")
    assert (code, json.loads(out)["identical"]) == (0, True)
    code, out, _ = run("verify", source, tmp_path / "flax", "--json")
    assert (code, json.loads(out)["identical"], json.loads(out)["complete"]) == (0, True, True)


def test_a_difference_exits_1(run, source, tmp_path):
    other = torch_impl.load_model(source)
    other.feed_forward.up_proj.bias.data += 1
    torch_impl.save_model(other, tmp_path / "other")
    for command in ("diff", "verify"):
        code, out, err = run(command, source, tmp_path / "other")
        assert (code, err) == (1, "")
        assert "feed_forward.up_proj.bias: 10 elements differ" in out


def test_dry_run_writes_nothing(run, source, tmp_path):
    code, out, _ = run("convert", source, tmp_path / "dst", "--to", "flax", "--dry-run", "--json")
    assert (code, json.loads(out)["dry_run"]) == (0, True)
    assert not (tmp_path / "dst").exists()


def test_an_existing_destination_needs_overwrite(run, source, tmp_path):
    arguments = ("convert", source, tmp_path / "dst", "--to", "flax")
    assert run(*arguments)[0] == 0
    code, _, err = run(*arguments)
    assert code == 2
    assert "--overwrite" in one_line(err)
    assert run(*arguments, "--overwrite")[0] == 0


def test_an_unwritable_destination_exits_3(run, source, tmp_path):
    code, _, err = run("convert", source, tmp_path / "no" / "dst", "--to", "flax")
    assert code == 3
    assert str(tmp_path / "no") in one_line(err)


def test_json_lists_every_fault(run, source):
    path = source / "config.json"
    config = json.loads(path.read_text())
    config["config"]["d_ff"] = 11
    path.write_text(json.dumps(config))
    code, _, err = run("verify", source, source)
    assert code == 2
    assert "more: --json lists all)" in one_line(err)
    code, out, err = run("verify", source, source, "--json")
    assert len(json.loads(out)["faults"]) == 3
    one_line(err)


def test_control_characters_are_escaped(run, tmp_path):
    code, _, err = run("inspect", tmp_path / "\x1b[31mred")
    assert code == 2
    assert "\\x1b" in one_line(err)


def test_a_fault_of_our_own_is_internal(run, source, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr("diptych.inspect_checkpoint", broken, raising=False)
    code, _, err = run("inspect", source)
    assert (code, one_line(err)) == (70, "error: internal: RuntimeError: broken\n")


@pytest.mark.parametrize(
    ("number", "exit_code", "words"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupt_has_its_code_and_line(run, source, monkeypatch, number, exit_code, words):
    monkeypatch.setattr(
        "diptych.inspect_checkpoint", lambda *_, **__: signal.raise_signal(number), raising=False
    )
    code, _, err = run("inspect", source)
    assert (code, one_line(err)) == (exit_code, f"error: {words}\n")


def run_command(*arguments, **options):
    program = [sys.executable, "-c", "from diptych.cli import main; main()"]
    return subprocess.run(
        [*program, *arguments], stderr=subprocess.PIPE, text=True, check=False, **options
    )


@pytest.mark.parametrize("arguments", [["families"], ["families", "--json"], ["--help"]])
def test_an_output_that_nobody_reads_is_no_difference(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = run_command(*arguments, stdout=writer)
    os.close(writer)
    assert (done.returncode, one_line(done.stderr)) == (3, "error: output: Broken pipe\n")


def test_names_are_printed_in_every_encoding_and_steer_no_terminal(source, tmp_path):
    dst = tmp_path / "\u00fc\x1b[31m"
    done = run_command(
        *("convert", source, dst, "--to", "flax"),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        stdout=subprocess.PIPE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xfc\\x1b[31m: TransformerEncoderLayer" in done.stdout


def test_settings_are_read_as_json_where_they_are_json(run, tmp_path):
    bare = {
        f"_{letter}.{leaf}": torch.zeros(shape)
        for letter in "qkv"
        for leaf, shape in (("weight", (3, 5)), ("bias", (3,)))
    }
    torch.save(bare, tmp_path / "head.pt")
    code, _, err = run("convert", tmp_path / "head.pt", tmp_path / "dst", "--to", "flax")
    assert code == 2
    assert "max_seq_len" in one_line(err)
    arguments = ("convert", tmp_path / "head.pt", tmp_path / "dst", "--to", "flax")
    assert run(*arguments, "--set", "max_seq_len=7")[0] == 0
    config = json.loads((tmp_path / "dst" / "config.json").read_text())
    assert config["config"]["max_seq_len"] == 7


@pytest.mark.parametrize("command", ["inspect", "convert", "diff"])
def test_no_framework_is_imported(command, source, tmp_path):
    arguments = {
        "inspect": [str(source)],
        "convert": [str(source), str(tmp_path / "dst"), "--to", "flax"],
        "diff": [str(source), str(source)],
    }[command]
    program = (
        "import sys\nfrom diptych import cli\n"
        f"sys.argv = ['diptych', {command!r}, *{arguments!r}]\n"
        "try:\n    cli.main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "loaded = {'torch', 'jax', 'flax', 'transformers', 'torch_impl', 'jax_impl'}\n"
        "assert not loaded & sys.modules.keys(), loaded & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_numbers_of_a_cast_are_printed(run, source, tmp_path):
    model = torch_impl.load_model(source)
    model.feed_forward.up_proj.bias.data[:2] = torch.tensor([1e30, 1e-30])
    torch_impl.save_model(model, tmp_path / "big")
    arguments = ("convert", tmp_path / "big", tmp_path / "half", "--to", "torch")
    code, out, _ = run(*arguments, "--dtype", "float16")
    assert code == 0
    assert "1 became inf, 1 became 0" in out
    half = torch_impl.export_state(torch_impl.load_model(tmp_path / "half"))
    assert half["feed_forward.up_proj.bias"].dtype == np.float16


def test_an_interrupt_while_the_command_is_imported_exits_130(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "diptych.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "diptych.cli")
    monkeypatch.delattr("diptych.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as stop:
        __main__.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_verify_after_convert_reads_the_source_likewise(run, tmp_path):
    def head():
        shapes = {"weight": (3, 5), "bias": (3,)}
        return {f"_{n}.{p}": torch.randn(s) for n in "qkv" for p, s in shapes.items()}

    torch.save({"model": head(), "average": head()}, tmp_path / "head.pt")
    (tmp_path / "config.json").write_text(json.dumps({"max_seq_len": 7, "colour": "red"}))
    arguments = ["convert", tmp_path / "head.pt", tmp_path / "dst", "--to", "flax", "--verify"]
    assert run(*arguments)[0] == 2
    options = [
        "--key",
        "average",
        "--config",
        tmp_path / "config.json",
        "--ignore-setting",
        "colour",
    ]
    code, out, err = run(*arguments, *options)
    assert (code, err) == (0, "")
    assert out.endswith("identical\n")
