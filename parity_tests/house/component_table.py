"""The tables of components and families: ``python -m parity_tests.house.component_table``.

Each is written between the comments that stand around it, in README and in docs.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch_impl
from diptych.convert import FAMILIES
from diptych.spec import Config
from parity_tests import ROOT

KINDS = {  # the components of a page of docs/components, parts before what is made of them
    "attention": (
        "ScaledDotProductAttention",
        "HeadAttention",
        "MultiHeadAttention",
        "LatentAttention",
        "AttentionPooling",
    ),
    "positions": ("PositionalEncoding", "RelativePositionBias"),
    "feed-forward": (
        "LayerNorm",
        "RMSNorm",
        "FeedForward",
        "GatedFeedForward",
        "MixtureOfExperts",
    ),
    "embeddings": ("Embedding", "TextEmbedding", "PatchEmbedding"),
    "layers": ("TransformerEncoderLayer", "TransformerDecoderLayer", "Block"),
    "models": (
        "Encoder",
        "Decoder",
        "EncoderDecoder",
        "VisionEncoder",
        "AudioEncoder",
        "DualEncoder",
        "EncoderWithProjection",
        "EncoderWithHeads",
    ),
    "heads": (
        "LogitsHead",
        "MaskedLMHead",
        "NextSentenceHead",
        "SequenceClassificationHead",
        "TokenClassificationHead",
        "QuestionAnsweringHead",
    ),
}
FAMILY_KINDS = {  # by the folder in diptych/families
    "decoders": "Decoders",
    "encoders": "Encoders of text",
    "encoder_decoders": "Encoder-decoders",
    "vision": "Vision, and vision with text",
    "training_files": "People's own training files",
}


def component_table(kind: str) -> str:
    """Return the table in Markdown: what each component of a kind is, takes and returns."""
    rows = [
        "| Component | Constructor | Call | Returns |",
        "| --- | --- | --- | --- |",
    ]
    for name in KINDS[kind]:
        component = getattr(torch_impl, name)
        summary = _first_sentence(component)
        rows.append(
            f"| `{name}` {summary} | `{_arguments(component.__init__)}` "
            f"| `{_arguments(component.forward)}` | {_returns(component.forward)} |"
        )
    return "\n".join(rows) + "\n"


def component_api(kind: str) -> str:
    """Return the directives in Markdown that show the docstrings of both panels."""
    panels = "\n\n".join(f'=== "{p}"\n\n    ::: {p}.NAME' for p in ("torch_impl", "jax_impl"))
    return "\n".join(f"## NAME\n\n{panels}\n".replace("NAME", name) for name in KINDS[kind])


def family_table(kind: str) -> str:
    """Return the table in Markdown: what each family of a kind reads."""
    rows = ["| family | what it reads |", "| --- | --- |"]
    rows += [f"| `{name}` | {FAMILIES[name].summary} |" for name in families_of(kind)]
    return "\n".join(rows) + "\n"


def kinds_table() -> str:
    """Return the table in Markdown: the families of every kind."""
    rows = ["| kind | families |", "| --- | --- |"]
    for kind, title in FAMILY_KINDS.items():
        names = ", ".join(f"`{name}`" for name in families_of(kind))
        rows.append(f"| {title} | {names} |")
    return "\n".join(rows) + "\n"


def families_of(kind: str) -> list[str]:
    """Return the names of the families that the files of a folder make, as they are registered."""
    package = import_module(f"diptych.families.{kind}")
    files = [
        import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    made = {id(value) for file in files for value in vars(file).values()}
    return [name for name, family in FAMILIES.items() if id(family) in made]


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


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "kinds": ("README.md", kinds_table),
    **{
        f"components: {kind}": (f"docs/components/{kind}.md", partial(component_table, kind))
        for kind in KINDS
    },
    **{
        f"api: {kind}": (f"docs/components/{kind}.md", partial(component_api, kind))
        for kind in KINDS
    },
    **{
        f"families: {kind}": ("docs/families.md", partial(family_table, kind))
        for kind in FAMILY_KINDS
    },
}
"""By the name in the comments that stand around it: the page, and what makes it."""


def between(name: str) -> tuple[Path, str, str, str]:
    """Return the page of a table, and its text before, between and after the comments."""
    page = ROOT / TABLES[name][0]
    before, start, rest = page.read_text().partition(f"<!-- {name} -->\n")
    table, end, after = rest.partition(f"<!-- /{name} -->\n")
    assert end, f"{page}: {name} stands in no pair of comments"
    return page, before + start, table, end + after


if __name__ == "__main__":
    for name, (_, make) in TABLES.items():
        page, before, _, after = between(name)
        page.write_text(before + make() + after)
