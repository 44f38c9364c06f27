"""Reading the panels' layouts: the config says the component, the names say torch or flax."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...families import Family
from ...formats.container import Container
from ...rules import Rule, inverse, raise_faults
from ...spec import COMPONENTS, Config
from ...spec.checks.sizes import nearest
from ...spec.errors import CheckpointError
from ..checkpoint import Checkpoint, Opened
from .layout import PANEL_LAYOUTS, TORCH
from .lazy_tensors import BUFFER_PREFIX, read_leaves, source_names, split_buffers
from .origin import recorded_origin
from .state_dicts import choose_state_dict


def is_component(given: Mapping[str, Any]) -> bool:
    """Return whether a config.json is one of ours."""
    return given.keys() == {"component", "config"}


def read_panel(opened: Opened, asked: str | Family | None) -> Checkpoint:
    """Return a checkpoint in the layout of a panel.

    Args:
        opened: The stored tensors, and as configuration ``{"component": CLASS, "config": {...}}``.
        asked: The family that "hf" means for it, if the manifest does not say.

    Raises:
        CheckpointError: If the component or a tensor is unknown, missing, or of the wrong shape.
    """
    container, given, where = opened.container, opened.given, opened.where
    most_layers = max(_layer_counts(given["config"]), default=0)
    held = [container.tensors, *(branch.tensors for branch in container.tree.values())]
    most_tensors = max(map(len, held))
    if most_layers > most_tensors:
        cause = f"num_layers: {most_layers}, but there are {most_tensors} tensors"
        raise CheckpointError(f"{where}: {cause}")
    config = read_component(given, where)
    rules = {layout.name: inverse(layout.rules_of(config)) for layout in PANEL_LAYOUTS}
    names = {name: _source_names(config, table) for name, table in rules.items()}
    container, notes = _chosen(container, config, names.values())
    parameters, buffers = split_buffers(container.tensors)
    manifest = opened.manifest or {}
    layout = _best(names, parameters, manifest.get("layout", TORCH.name))
    leaves, faults = read_leaves(parameters, rules[layout], config.leaves())
    raise_faults(faults, where=str(container.files[0]))
    return Checkpoint(
        path=opened.path,
        container=container,
        layout=layout,
        config=config,
        leaves=leaves,
        **recorded_origin(config, where, manifest, asked)._asdict(),
        buffers=buffers,
        ignored=manifest.get("ignored_settings", {}),
        notes=(*container.notes, *notes),
    )


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


def _layer_counts(config: Any) -> Iterator[int]:
    """Yield every number of layers in a config, before anything is made for each layer."""
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if name == "num_layers" and isinstance(value, int):
            yield value
        yield from _layer_counts(value)


def _chosen(
    container: Container, config: Config, layouts: Collection[set[str]]
) -> tuple[Container, list[str]]:
    """Return the container with the dictionary that has the component's names, and notes."""

    def fits(names: Collection[str]) -> bool:
        parameters = {name for name in names if not name.startswith(BUFFER_PREFIX)}
        return parameters in layouts

    return choose_state_dict(container, fits, f"no {config.component}")


def _source_names(config: Config, rules: Sequence[Rule]) -> set[str]:
    return {n for names in source_names(rules, config.leaves()).values() for n in names}


def _best(names: Mapping[str, set[str]], given: Collection[str], usual: str) -> str:
    """Return the layout that most of the names given are of; of several, what the manifest says."""
    counts = {layout: len(own.intersection(given)) for layout, own in names.items()}
    best = [layout for layout, count in counts.items() if count == max(counts.values())]
    return usual if usual in best else best[0]
