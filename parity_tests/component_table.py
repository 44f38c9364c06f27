"""The README's table of components, from the code: ``python -m parity_tests.component_table``."""

import inspect
import re
from typing import Any

import torch_impl
from diptych.spec import COMPONENTS

START, END = "<!-- components -->", "<!-- /components -->"


def component_table() -> str:
    """Return the table in Markdown: what each component is, takes and returns."""
    rows = [
        "| Component | Constructor | Call | Returns |",
        "| --- | --- | --- | --- |",
    ]
    for name in sorted(COMPONENTS):
        component = getattr(torch_impl, name)
        summary = _first_sentence(component)
        rows.append(
            f"| `{name}` {summary} | `{_arguments(component.__init__)}` "
            f"| `{_arguments(component.forward)}` | {_returns(component.forward)} |"
        )
    return "\n".join(rows) + "\n"


def _arguments(function: Any) -> str:
    """Return names and defaults, without types."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    text = str(inspect.Signature(bare))
    return re.sub(r"\|", r"\\|", text)


def _first_sentence(value: Any) -> str:
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0]
    return _one_line(paragraph)


def _returns(function: Any) -> str:
    found = re.search(r"^Returns:\n((?: +.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    text = found.group(1).split("\n\n")[0] if found else ""
    return _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(component_table(), end="")
