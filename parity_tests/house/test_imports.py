"""Who may import whom, and what importing a package loads: the arrows of the architecture."""

import ast
import graphlib
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from parity_tests import ROOT

TORCH, JAX = {"torch"}, {"jax", "flax"}
PANELS = {"torch_impl", "jax_impl"}


def below(*rooms: str) -> set[str]:
    """Return rooms of ``diptych`` by their modules' names."""
    return {f"diptych.{room}" for room in rooms}


AT_MODULE_LEVEL = {  # the longest prefix of a file's path wins; the standard library is free
    "diptych/spec": {"numpy", "diptych.spec"},
    "diptych/tensors": {"numpy", "ml_dtypes", *below("spec", "tensors")},
    "diptych/rules": {"numpy", *below("spec", "tensors", "rules")},
    "diptych/formats": {"numpy", *below("spec", "tensors", "formats")},
    "diptych/families": {"numpy", *below("spec", "tensors", "rules", "formats", "families")},
    "diptych/convert": {
        "numpy",
        *below("spec", "tensors", "rules", "formats", "families", "convert"),
    },
    "diptych/parity": {
        "numpy",
        *below("spec", "tensors", "rules", "formats", "families", "convert", "parity"),
    },
    "diptych": {"typer", "rich", "diptych"},
    "torch_impl/functional": {"torch", "diptych.spec", "torch_impl.functional"},
    "jax_impl/functional": {"jax", "diptych.spec", "jax_impl.functional"},
    "torch_impl": {"torch", "diptych.spec", "torch_impl"},
    "jax_impl": {*JAX, "diptych.spec", "jax_impl"},
    "torch_impl/state.py": {"torch", "numpy", "ml_dtypes", "diptych.spec", "torch_impl"},
    "jax_impl/state.py": {*JAX, "numpy", "ml_dtypes", "diptych.spec", "jax_impl"},
}
INSIDE_FUNCTIONS = {
    "diptych/parity": {*TORCH, *JAX, *PANELS},
    "diptych/cli.py": {*PANELS},
    "torch_impl/state.py": {"diptych.convert"},
    "jax_impl/state.py": {"diptych.convert"},
    "diptych/formats/orbax/store.py": {"tensorstore"},
}
FILES = [
    str(path.relative_to(ROOT))
    for top in ("diptych", "torch_impl", "jax_impl")
    for path in sorted((ROOT / top).rglob("*.py"))
]

LOADS = {  # what a fresh process must not have loaded after importing the package
    "diptych": {*TORCH, *JAX, *PANELS},
    "diptych.spec": {*TORCH, *JAX, *PANELS, "safetensors"},
    "diptych.convert": {*TORCH, *JAX, *PANELS},
    "diptych.parity": {*TORCH, *JAX, *PANELS},
    "torch_impl": {*JAX, "jax_impl", "diptych.convert"},
    "jax_impl": {*TORCH, "torch_impl", "diptych.convert"},
}


@pytest.mark.parametrize("file", FILES)
def test_arrows(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    for name, is_inside in imported(tree, file):
        allowed = longest(AT_MODULE_LEVEL, file)
        if is_inside:
            allowed = allowed | longest(INSIDE_FUNCTIONS, file)
        assert is_allowed(name, allowed), f"{file} imports {name}; it may import {sorted(allowed)}"


@pytest.mark.parametrize("top", ["diptych", "torch_impl", "jax_impl"])
def test_no_file_imports_itself_through_others(top: str) -> None:
    """Not inside a function either; the package itself may be asked for a class by its name."""
    files = {module_of(file): file for file in FILES if file.startswith(top)}
    arrows = {
        module: {name for name, _ in imported(ast.parse((ROOT / file).read_text()), file)}
        for module, file in files.items()
    }
    order = graphlib.TopologicalSorter(
        {m: names & files.keys() - {top} for m, names in arrows.items()}
    )
    assert len([*order.static_order()]) == len(files)


@pytest.mark.parametrize("package", LOADS)
def test_importing_loads_nothing_else(package: str) -> None:
    code = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert package in loaded
    assert not loaded & LOADS[package]


def test_an_arrow_the_wrong_way_is_seen() -> None:
    tree = ast.parse("import jax\ndef f():\n    from ..convert import run\n")
    found = list(imported(tree, "diptych/spec/norm.py"))
    assert found == [("jax", False), ("diptych.convert.run", True)]
    assert not is_allowed("jax", AT_MODULE_LEVEL["diptych/spec"])
    assert not is_allowed("diptych.convert", AT_MODULE_LEVEL["diptych/spec"])
    assert not is_allowed("diptych", AT_MODULE_LEVEL["diptych/spec"])


def imported(tree: ast.AST, file: str) -> Iterator[tuple[str, bool]]:
    """Yield every module that a file imports, and whether only a call or a type checker does so."""
    package = pathlib.PurePath(file).parent.parts
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) or is_type_checking(function)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if is_ours(inner) else module, id(node) in inside


def module_of(file: str) -> str:
    """Return the name under which a file is imported."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_ours(module: str) -> bool:
    """Return whether a name is that of a file or folder of this tree."""
    path = ROOT / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def is_type_checking(node: ast.AST) -> bool:
    """Return whether a block is skipped when the file is run."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def is_allowed(name: str, allowed: set[str]) -> bool:
    """Return whether a module is in the standard library or below one that is allowed."""
    return name.split(".")[0] in sys.stdlib_module_names or any(
        name == known or name.startswith(f"{known}.") for known in allowed
    )


def longest(table: dict[str, set[str]], file: str) -> set[str]:
    """Return the entry of the longest prefix of a file's path."""
    prefixes = [prefix for prefix in table if file == prefix or file.startswith(f"{prefix}/")]
    return table[max(prefixes, key=len)] if prefixes else set()


@pytest.mark.parametrize(("panel", "module"), [("torch_impl", "torch"), ("jax_impl", "flax")])
def test_a_missing_framework_names_the_extra(panel: str, module: str) -> None:
    program = f"import sys\nsys.modules[{module!r}] = None\nimport {panel}"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    extra = panel.removesuffix("_impl")
    assert f"pip install 'diptych[{extra}]'" in result.stderr.splitlines()[-1]
