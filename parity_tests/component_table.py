"""The README's tables of components and families: ``python -m parity_tests.component_table``."""

import inspect
import re
from typing import Any

import torch_impl
from diptych.convert import FAMILIES
from diptych.spec import COMPONENTS


def family_table() -> str:
    """Return the table in Markdown: what each family reads."""
    rows = ["| family | what it reads |", "| --- | --- |"]
    rows += [f"| `{family.name}` | {family.summary} |" for family in FAMILIES.values()]
    return "\n".join(rows) + "\n"


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


TABLES = {"components": component_table, "families": family_table}
"""By the name in the comments that stand around it in README."""


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"<!-- {name} -->\n{table()}<!-- /{name} -->\n")
