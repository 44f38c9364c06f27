"""Reading our own layouts: the config says the component, the names say torch or flax."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...families import FAMILIES, Family, Recreated, named_family
from ...formats import Container
from ...rules.rules import Rule, inverse, raise_faults, rule
from ...spec import COMPONENTS, Config
from ...spec.checks.sizes import nearest
from ...spec.errors import CheckpointError
from .branches import choose_branch
from .leaf import read_leaves, source_names, stored_leaf
from .panels import BUFFER_PREFIX, layout_rules


def is_native(given: Mapping[str, Any]) -> bool:
    """Return whether a config.json is one of ours."""
    return given.keys() == {"component", "config"}


def read_native(
    container: Container,
    given: Mapping[str, Any],
    where: str,
    manifest: Mapping[str, Any] | None,
    family: str | Family | None,
) -> dict[str, Any]:
    """Return the fields of a ``Checkpoint`` in the layout "torch" or "flax".

    Args:
        container: The stored tensors.
        given: ``{"component": CLASS, "config": {...}}``.
        where: The file that says so.
        manifest: What was written with it, if that is there.
        family: The family that "hf" means for it, if the manifest does not say.

    Raises:
        CheckpointError: If the component or a tensor is unknown, missing, or of the wrong shape.
    """
    most_layers = max(_layer_counts(given["config"]), default=0)
    held = [container.tensors, *(branch.tensors for branch in container.tree.values())]
    most_tensors = max(map(len, held))
    if most_layers > most_tensors:
        cause = f"num_layers: {most_layers}, but there are {most_tensors} tensors"
        raise CheckpointError(f"{where}: {cause}")
    config = read_component(given, where)
    torch_rules = tuple(rule(name, name) for name in config.leaves())
    flax_rules = inverse(layout_rules(config))
    container, notes = _chosen(container, config, flax_rules)
    names = [name for name in container.tensors if not name.startswith(BUFFER_PREFIX)]
    manifest = manifest or {}
    layout = _layout(config, names, flax_rules, manifest.get("layout", "torch"))
    rules = flax_rules if layout == "flax" else torch_rules
    parameters = {name: container.tensors[name] for name in names}
    leaves, faults = read_leaves(parameters, rules, config.leaves())
    raise_faults(faults, where=str(container.files[0]))
    return {
        "container": container,
        "layout": layout,
        "config": config,
        "leaves": leaves,
        "buffers": {
            name.removeprefix(BUFFER_PREFIX): stored_leaf(tensor)
            for name, tensor in container.tensors.items()
            if name.startswith(BUFFER_PREFIX)
        },
        **recorded_origin(config, where, manifest, family),
        "ignored": manifest.get("ignored_settings", {}),
        "notes": (*container.notes, *notes),
    }


def read_component(given: Mapping[str, Any], where: str) -> Config:
    """Return the config of ``{"component": CLASS, "config": {...}}``.

    Raises:
        CheckpointError: If the class or a field is unknown or refused.
    """
    component = given["component"]
    if not isinstance(component, str) or component not in COMPONENTS:
        hint = nearest(str(component), COMPONENTS)
        raise CheckpointError(f"{where}: component: {component!r} is none of ours{hint}")
    try:
        return COMPONENTS[component].from_dict(given["config"])
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{where}: config: {error}") from None


def recorded_origin(
    config: Config, where: str, manifest: Mapping[str, Any], family: str | Family | None
) -> dict[str, Any]:
    """Return family, variants and recreated buffers, from the manifest or the family's usual.

    Raises:
        CheckpointError: If the manifest records another family, or another version of it.
    """
    recorded = manifest.get("family")
    asked = named_family(family) if family is not None else None
    if recorded is None or (asked is not None and asked.name != recorded):
        return {
            "family": asked,
            "variants": asked.usual_variants(config) if asked else (),
            "recreated": asked.usual_buffers(config) if asked else {},
        }
    origin = asked or FAMILIES.get(recorded)
    if origin is None:
        raise CheckpointError(f"{where}: family: came from {recorded!r}, which must be given")
    version = manifest.get("family_version")
    if version != origin.version:
        cause = f"written by version {version} of {recorded}, this is {origin.version}"
        raise CheckpointError(f"{where}: family: {cause}: convert the original again")
    return {
        "family": origin,
        "variants": tuple(manifest.get("variants", ())),
        "spelling": manifest.get("spelling", "hf"),
        "recreated": {
            name: Recreated(entry["dtype"], tuple(entry["shape"]), entry["recipe"])
            for name, entry in manifest.get("recreated", {}).items()
        },
    }


def _layer_counts(config: Any) -> Iterator[int]:
    """Yield every number of layers in a config, before anything is made for each layer."""
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if name == "num_layers" and isinstance(value, int):
            yield value
        yield from _layer_counts(value)


def _chosen(
    container: Container, config: Config, flax_rules: tuple[Rule, ...]
) -> tuple[Container, list[str]]:
    """Return the container with the dictionary that has the component's names, and notes."""
    layouts = config.leaves().keys(), _flax_names(config, flax_rules)

    def fits(names: Collection[str]) -> bool:
        parameters = {name for name in names if not name.startswith(BUFFER_PREFIX)}
        return parameters in layouts

    return choose_branch(container, fits, f"no {config.component}")


def _flax_names(config: Config, flax_rules: tuple[Rule, ...]) -> set[str]:
    return {n for names in source_names(flax_rules, config.leaves()).values() for n in names}


def _layout(config: Config, names: list[str], flax_rules: tuple[Rule, ...], usual: str) -> str:
    """Return the layout that more of the names are of; a tie is what the manifest says."""
    torch_names = config.leaves().keys()
    flax_names = _flax_names(config, flax_rules)
    in_torch, in_flax = len(torch_names & set(names)), len(flax_names & set(names))
    if in_torch == in_flax:
        return usual
    return "flax" if in_flax > in_torch else "torch"
