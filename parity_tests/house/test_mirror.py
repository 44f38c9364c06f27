"""The two panels mirror each other: files, names, signatures and docstrings."""

import dataclasses
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import jax_impl
import torch_impl
from diptych.spec import COMPONENTS
from parity_tests import ROOT

ONLY_IN_JAX = {"rngs", "rng_key"}
CALL = {"forward": "__call__"}  # a call's name in torch, and in JAX


def files(panel: str) -> list[str]:
    """Return the panel's files, but for those that are its own (their name begins with _)."""
    paths = [path.relative_to(ROOT / panel) for path in (ROOT / panel).rglob("*.py")]
    return sorted(str(p) for p in paths if p.name == "__init__.py" or p.name[0] != "_")


def load(panel: str, file: str) -> ModuleType:
    """Import one file of a panel."""
    name = f"{panel}/{file}".removesuffix(".py").removesuffix("/__init__")
    return importlib.import_module(name.replace("/", "."))


def public(module: ModuleType) -> dict[str, Any]:
    """Return the public functions, classes and methods that a file defines, in its order."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        found[name] = value
        if not inspect.isclass(value) or issubclass(value, tuple):
            continue
        for member, method in vars(value).items():
            method = getattr(method, "__func__", method)
            is_public = not member.startswith("_") or member in ("__init__", "__call__")
            if inspect.isfunction(method) and is_public and member != "__init__":
                found[f"{name}.{to_call(member)}"] = method
    return found


def to_call(member: str) -> str:
    """Return a method's name as JAX has it."""
    return CALL.get(member, member)


def parameters(value: Any) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of the parameters of a function or a constructor."""
    function = value.__init__ if inspect.isclass(value) else value
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def common(values: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """Return the parameters but those that JAX adds."""
    return [value for value in values if value[0] not in ONLY_IN_JAX]


def docstring(value: Any) -> str:
    """Return a docstring without the entries of what JAX adds, and with one name for arrays."""
    text = inspect.getdoc(value) or ""
    entry = "|".join(ONLY_IN_JAX)
    text = re.sub(rf"^( +)(?:{entry}): .*\n(?:\1 +.*\n)*", "", text + "\n", flags=re.MULTILINE)
    text = re.sub(r"^Args:\n\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\bTensor\b", "Array", text)


FILES = files("torch_impl")
PAIRS = [
    (file, name)
    for file in FILES
    for name in sorted({*public(load("torch_impl", file)), *public(load("jax_impl", file))})
]


def test_same_files() -> None:
    assert files("jax_impl") == FILES


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_and_its_config_stand_in_files_of_one_name(name: str) -> None:
    places = [COMPONENTS[name], getattr(torch_impl, name), getattr(jax_impl, name)]
    assert len({place.__module__.split(".")[-1] for place in places}) == 1


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_constructor_takes_the_fields_of_its_config_and_their_defaults(name: str) -> None:
    config = {field.name: field.default for field in dataclasses.fields(COMPONENTS[name])}
    _, *given = parameters(getattr(torch_impl, name))
    none = {inspect.Parameter.empty: dataclasses.MISSING}
    assert {name: none.get(default, default) for name, _, default in given} == config


@pytest.mark.parametrize("file", FILES)
def test_same_names_in_the_same_order(file: str) -> None:
    of_torch, of_jax = load("torch_impl", file), load("jax_impl", file)
    assert list(public(of_torch)) == list(public(of_jax))
    assert getattr(of_torch, "__all__", None) == getattr(of_jax, "__all__", None)
    if file not in ("__init__.py", "functional/__init__.py"):
        assert docstring(of_torch) == docstring(of_jax)


@pytest.mark.parametrize(("file", "name"), PAIRS, ids=[f"{f}:{n}" for f, n in PAIRS])
def test_same_signature_and_docstring(file: str, name: str) -> None:
    of_torch, of_jax = public(load("torch_impl", file))[name], public(load("jax_impl", file))[name]
    assert common(parameters(of_torch)) == common(parameters(of_jax))
    assert docstring(of_torch) == docstring(of_jax)
    assert docstring(of_torch).strip() or issubclass(of_torch, tuple)


@pytest.mark.parametrize(("file", "name"), PAIRS, ids=[f"{f}:{n}" for f, n in PAIRS])
def test_what_jax_adds(file: str, name: str) -> None:
    assert not ONLY_IN_JAX & {n for n, _, _ in parameters(public(load("torch_impl", file))[name])}
    value = public(load("jax_impl", file))[name]
    text = inspect.getdoc(value) or ""
    for parameter, kind, default in parameters(value):
        if parameter not in ONLY_IN_JAX:
            continue
        assert kind is inspect.Parameter.KEYWORD_ONLY
        assert re.search(rf"^ +{parameter}: ", text, re.MULTILINE), "no entry in Args"
        if parameter == "rng_key":
            assert default is None
            assert "ValueError" in re.split(r"^ +rng_key: ", text, flags=re.MULTILINE)[1]


@pytest.mark.parametrize("panel", ["torch_impl", "jax_impl"])
@pytest.mark.parametrize("package", ["__init__.py", "functional/__init__.py"])
def test_all_is_sorted_and_there(panel: str, package: str) -> None:
    module = load(panel, package)
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_a_difference_is_seen() -> None:
    """Check the checker: what must differ differs, what may differ does not."""

    def ours(x: int, *, rate: float = 0.1) -> None:
        """Do it.

        Args:
            x: A Tensor.
        """

    def theirs(x: int, *, rate: float = 0.1, rng_key: int | None = None) -> None:
        """Do it.

        Args:
            x: An Array.
            rng_key: A key; without one, in
                training, a ValueError.
        """

    def other(x: int, *, rate: float = 0.2) -> None:
        """Do something else."""

    assert common(parameters(ours)) == common(parameters(theirs))
    assert common(parameters(ours)) != common(parameters(other))
    assert docstring(ours).replace("A Array", "An Array") == docstring(theirs)
    assert docstring(ours) != docstring(other)
