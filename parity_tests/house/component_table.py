"""The tables of components and families: ``python -m parity_tests.house.component_table``."""

import inspect
import re
from dataclasses import fields
from typing import Any

import torch_impl
from diptych.convert import FAMILIES
from diptych.spec import COMPONENTS, Config

_FILES = (
    "head_attention",
    "scaled_dot_product_attention",
    "multi_head_attention",
    "latent_attention",
    "attention_pooling",
    "position",
    "position_bias",
    "norm",
    "feed_forward",
    "mixture",
    "embedding",
    "patch_embedding",
    "transformer_layer",
    "block",
    "encoder",
    "decoder",
    "encoder_decoder",
    "vision",
    "audio",
    "dual_encoder",
    "encoder_with_heads",
    "task_heads",
    "logits_head",
)
"""In the order that a reader meets them; components of another file come last."""


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
    for name in ordered():
        component = getattr(torch_impl, name)
        summary = _first_sentence(component)
        rows.append(
            f"| `{name}` {summary} | `{_arguments(component.__init__)}` "
            f"| `{_arguments(component.forward)}` | {_returns(component.forward)} |"
        )
    return "\n".join(rows) + "\n"


def ordered() -> list[str]:
    """Return the components by the file that they are in, parts before what is made of them."""
    files = {name: getattr(torch_impl, name).__module__.split(".")[-1] for name in COMPONENTS}
    place = {file: i for i, file in enumerate(_FILES)}
    return sorted(COMPONENTS, key=lambda name: (place.get(files[name], len(_FILES)), name))


def _arguments(function: Any) -> str:
    """Return names and defaults, without types."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    bare = [
        p.replace(annotation=inspect.Parameter.empty, default=_Short(p.default))
        if isinstance(p.default, Config)
        else p.replace(annotation=inspect.Parameter.empty)
        for p in parameters
    ]
    text = str(inspect.Signature(bare))
    return re.sub(r"\|", r"\\|", text)


class _Short:
    """A config whose representation leaves out what is as it is by default."""

    def __init__(self, config: Config):
        changed = [f for f in fields(config) if getattr(config, f.name) != f.default]
        given = ", ".join(f"{f.name}={getattr(config, f.name)!r}" for f in changed)
        self.text = f"{type(config).__name__}({given})"

    def __repr__(self) -> str:
        return self.text


def _first_sentence(value: Any) -> str:
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0]
    return _one_line(paragraph)


def _returns(function: Any) -> str:
    found = re.search(r"^Returns:\n((?: +.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    text = found.group(1).split("\n\n")[0] if found else ""
    kind = inspect.signature(function).return_annotation
    names = ", ".join(getattr(kind, "_fields", ()))
    return _one_line(text) + (f" `{kind.__name__}({names})`" if names else "")


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


TABLES = {"components": component_table, "families": family_table}
"""By the name in the comments that stand around it in README."""


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"<!-- {name} -->\n{table()}<!-- /{name} -->\n")
