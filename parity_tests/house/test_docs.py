"""README and docs: what they show runs, prints what they say, and leads where it points."""

import os
import re
import subprocess
import sys
from collections import Counter
from urllib.parse import unquote

import pytest
import yaml

import diptych.convert
import jax_impl
import torch_impl
from parity_tests import ROOT
from parity_tests.house.pages import NOT_RUN, PAGES, blocks, matches, run_page

MKDOCS = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)
LINK = re.compile(r"(?<!`)!?\[[^\]\n]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TITLES = re.compile(r"^#+ (.*)$", re.MULTILINE)


def nav_pages(entries):
    """Return the titles and files of a nav, in order."""
    for entry in entries:
        ((title, target),) = entry.items() if isinstance(entry, dict) else ((None, entry),)
        if isinstance(target, str):
            yield title, target
        else:
            yield from nav_pages(target)


def anchors(page):
    """Return the anchors of a page: its headings as both GitHub and mkdocs write them."""
    headings = [re.sub(r"[`*]|\[|\]\([^)]*\)", "", title) for title in TITLES.findall(page)]
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in headings}


@pytest.mark.parametrize(
    "name", [name for name, path in PAGES.items() if "```" in path.read_text()]
)
def test_a_page_runs_and_prints_what_it_says(name):
    for result in run_page(PAGES[name].read_text()):
        assert result.agrees, f"{result.source}: run python -m parity_tests.house.pages {name}"


@pytest.mark.slow
def test_the_demo_prints_what_the_pages_say(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples/demo.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    for name in ("README.md", "docs/index.md"):
        consoles = [block.text for block in blocks(PAGES[name].read_text())]
        (said,) = (text for text in consoles if text.startswith("$ make demo\n"))
        assert matches(said.removeprefix("$ make demo\n"), done.stdout), name


def test_every_block_runs_but_those_of_a_short_list():
    found = Counter()
    for name, path in PAGES.items():
        text = path.read_text()
        assert text.count("```") == 2 * len(blocks(text)), f"{name}: a fence without a language"
        assert not re.search(r"^ +```|^~~~", text, re.MULTILINE), (
            f"{name}: a block that is not seen"
        )
        for block in blocks(text):
            lines = re.findall(r"^(?:\$ | *- run: )?(.*?)(?: +#.*)?$", block.text, re.MULTILINE)
            commands = [line.replace("'", "").replace('"', "") for line in lines if line]
            found.update(command for command in commands if command in NOT_RUN)
            if block.language == "sh":
                assert set(commands) <= NOT_RUN.keys(), f"{name}: {commands} never run"
    assert found == NOT_RUN


@pytest.mark.parametrize(
    ("said", "printed", "agrees"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("copied: a, ..., z\n", "copied: a, b, c, z\n", True),
        ("copied: a, ..., z\n", "copied: a, b\n, z\n", False),
        ("error 5.11e-15 equal\n", "error 4.00e-16 equal\n", True),
        ("error 5.11e-15 equal\n", "error 4.00e-16 DIFFERENT\n", False),
        ("error 5.11e-15 equal\n", "error 0 equal\n", False),
    ],
)
def test_what_is_printed_is_compared(said, printed, agrees):
    assert matches(said, printed) == agrees


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("```console\n$ diptych families --nonsense\n```\n", "No such option"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "1"),
        ("```python\nprint(1)\n```\n\nProse.\n", "prints"),
        ("```text\nx\n```\n", "the output of nothing"),
        ("```rust\nx\n```\n", "never runs"),
        ("```console\nx\n```\n", "no command"),
        ("```yaml\n- run: make x\n```\n", "make"),
        ("```console\n$ touch x\n```\n", "touch x"),
        ("```yaml\n- run: diptych verify minilm\n```\n", "has no diptych.json"),
    ],
)
def test_a_wrong_page_fails(page, words):
    try:
        wrong = [result.printed for result in run_page(page) if not result.agrees]
    except Exception as error:
        wrong = [str(error)]
    assert words in "".join(wrong)


@pytest.mark.parametrize("name", [*PAGES, "CONTRIBUTING.md", "llms.txt"])
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target in map("".join, LINK.findall(FENCED.sub("", page.read_text()))):
        path, _, anchor = target.partition("#")
        if target.startswith("https://"):
            continue
        file = (page.parent / unquote(path)).resolve() if path else page
        assert file.is_file(), f"{name}: {target}"
        if name.startswith("docs/"):
            assert file.is_relative_to(ROOT / "docs"), f"{name}: {target} is not in the site"
        if file.suffix == ".md" and anchor:
            assert anchor in anchors(file.read_text()), f"{name}: {target}"


def test_the_site_and_llms_txt_list_every_page():
    pages = list(nav_pages(MKDOCS["nav"]))
    files = sorted(path.removeprefix("docs/") for path in PAGES if path != "README.md")
    assert sorted(file for _, file in pages) == files
    listed = re.findall(r"^- \[(.*)\]\((.*)\): \S", (ROOT / "llms.txt").read_text(), re.MULTILINE)
    titles = [TITLES.search((ROOT / "docs" / file).read_text())[1] for _, file in pages]
    expected = zip(titles, (f"docs/{file}" for _, file in pages), strict=True)
    assert listed == list(expected)


def test_the_api_pages_show_every_public_name():
    shown = Counter(
        name for path in PAGES.values() for name in re.findall(r"::: (\S+)", path.read_text())
    )
    public = [f"{p.__name__}.{name}" for p in (torch_impl, jax_impl) for name in p.__all__]
    assert shown == Counter([*public, "diptych", "diptych.convert", "diptych.spec"])
    members = re.findall(r"^ +- (\w+)$", PAGES["docs/api.md"].read_text(), re.MULTILINE)
    errors = {"CheckpointError", "OutputError"}  # on the page of diptych.spec
    assert sorted(members) == sorted({*diptych.__all__, *diptych.convert.__all__} - errors)


def test_nothing_is_fetched_when_a_page_is_read():
    theme = MKDOCS["theme"]
    assert theme["font"] == "false"
    assert "https://" not in (ROOT / "docs/style.css").read_text()
    for name, path in PAGES.items():
        fetched = re.findall(r"(?:src|srcset)=\"http|!\[[^\]]*\]\(http", path.read_text())
        assert not fetched, name


def test_the_readme_fits_a_terminal():
    lines = PAGES["README.md"].read_text().splitlines()
    assert len(lines) <= 150
    assert PAGES["README.md"].stat().st_size <= 12_000
    assert all(len(line) <= 100 for line in lines if not line.startswith("|"))
