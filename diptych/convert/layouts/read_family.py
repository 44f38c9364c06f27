"""Reading the layouts of families: which family, which settings, which variants, which buffers."""

from collections.abc import Collection, Mapping
from typing import Any

from ...families import FAMILIES, Family, Recreated, named_family, recreate
from ...families.settings import with_settings
from ...formats.container import Container
from ...formats.errors import fault
from ...formats.tensor import Tensor
from ...rules import MAX_SUGGESTIONS, name_faults, raise_faults
from ...spec.checks.sizes import nearest
from ...spec.errors import CheckpointError
from ...tensors.bits import same_bytes
from ...tensors.dtypes import numpy_dtype
from ..checkpoint import Checkpoint, Opened, ReadOptions
from .layout import family_layout
from .lazy_tensors import LazyTensor, read_leaves, stored_tensor
from .origin import Origin
from .state_dicts import choose_state_dict

WRAPPERS = ("module", "_orig_mod")
"""What data-parallel training and compilation put into names, at any depth."""


def read_family(opened: Opened, options: ReadOptions) -> Checkpoint:
    """Return a checkpoint in one of the layouts with a family's own names.

    Raises:
        CheckpointError: If the family is not clear, a setting is refused, or a tensor is missing,
            unknown, or of the wrong shape; lists all.
    """
    ignored = options.ignore_settings
    container, notes = _chosen(opened.container, options.family)
    given, where = opened.given, opened.where
    if not given and container.model_args:
        given, where = container.model_args, f"{where}: model_args"
    raw = with_settings(given, options.settings)
    stored, unwrapped = unwrap_names(container)
    path = str(container.files[0])
    layout = family_layout(stored)
    tensors, travelling, faults = layout.as_torch(stored)
    raise_faults(faults, where=path)
    found = find_family(container, tensors, raw, where, options.family, ignored)
    raise_faults(_setting_faults(found, raw, ignored), where=where)
    values = found.settings.values(raw)
    variants = found.find_variants(tensors.keys())
    try:
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        config = found.read_config(values, shapes, variants)
        expected, rules = config.leaves(), found.rules(config, variants)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from None
    parameters = {name: t for name, t in tensors.items() if not found.is_buffer(name)}
    leaves, faults = read_leaves(parameters, rules, expected)
    if faults:
        raise_faults(layout.respell(faults, stored, found, config, rules), where=path)
    buffers, recreated = _read_buffers(found, tensors)
    origin = Origin(found, variants, recreated)
    return Checkpoint(
        path=opened.path,
        container=container,
        layout=layout.name,
        config=config,
        leaves=leaves,
        **layout.read_origin(origin, config, where, opened.manifest)._asdict(),
        buffers=buffers | travelling,
        ignored={key: raw[key] for key in sorted(ignored) if key in raw},
        source_config=raw,
        notes=(*container.notes, *notes, *unwrapped, *_default_notes(found, raw, values)),
    )


def find_family(
    container: Container,
    names: Collection[str],
    raw: Mapping[str, Any],
    where: str,
    family: str | Family | None,
    ignored: Collection[str] = (),
) -> Family:
    """Return the family asked for, or that ``model_type``, or else names and settings tell.

    Raises:
        CheckpointError: If none or several fit; says what is not covered.
    """
    if family is not None:
        return named_family(family)
    model_type = raw.get("model_type")
    if model_type is not None:
        for candidate in FAMILIES.values():
            if model_type in candidate.model_types:
                return candidate
        known = ", ".join(t for each in FAMILIES.values() for t in each.model_types)
        raise fault(where, f"{model_type!r} is of no family that is read ({known})", "model_type")
    uncovered = {candidate.name: candidate.uncovered(names) for candidate in FAMILIES.values()}
    fitting = [family for family in FAMILIES.values() if names and family.fits(names)]
    if len(fitting) > 1 and raw:
        fitting = [each for each in fitting if not each.settings.faults(raw, ignored)] or fitting
    if len(fitting) == 1:
        return fitting[0]
    path = container.files[0]
    if fitting:
        several = ", ".join(candidate.name for candidate in fitting)
        raise fault(path, f"its names fit several families: give --family ({several})")
    best = min(uncovered, key=lambda name: len(uncovered[name]))
    if len(uncovered[best]) == len(names):
        first = next(iter(names), None)
        cause = f"0 of {len(names)} tensors are of a family that is read ({', '.join(FAMILIES)})"
        raise fault(path, cause if first is None else f"{cause}; the first is {first}")
    faults = tuple(
        f"{path}: {name}: no rule of {best} covers it"
        + (nearest(name, FAMILIES[best].templates) if place < MAX_SUGGESTIONS else "")
        for place, name in enumerate(uncovered[best])
    )
    raise CheckpointError(faults[0], faults)


def unwrap_names(container: Container) -> tuple[dict[str, Tensor], list[str]]:
    """Return the tensors without wrappers in their names, and a note if there were any.

    Raises:
        CheckpointError: If two names become one, or one is a leaf and a folder of names.
    """
    tensors: dict[str, Tensor] = {}
    faults = []
    for name, tensor in container.tensors.items():
        plain = _unwrapped(name)
        if plain in tensors:
            faults.append(f"{name}: collides with {tensors[plain].name}")
        tensors[plain] = tensor
    raise_faults(faults + name_faults(list(tensors)), where=str(container.files[0]))
    count = sum(name not in tensors for name in container.tensors)
    wrappers = " and ".join(f"{wrapper}." for wrapper in WRAPPERS)
    return tensors, [f"{wrappers} taken out of {count} names"] if count else []


def _unwrapped(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def _chosen(container: Container, family: str | Family | None) -> tuple[Container, list[str]]:
    """Return the container with one dictionary of a training file chosen, and what lies outside."""
    wanted = list(FAMILIES.values()) if family is None else [named_family(family)]
    return choose_state_dict(container, lambda names: _fits(names, wanted), "no family")


def _fits(names: Collection[str], families: list[Family]) -> bool:
    plain = [_unwrapped(name) for name in names]
    layout = family_layout(plain)
    in_torch = [layout.torch_name(name) for name in plain]
    return any(family.fits(in_torch) for family in families)


def _setting_faults(family: Family, raw: Mapping[str, Any], ignored: Collection[str]) -> list[str]:
    model_type = raw.get("model_type")
    if model_type not in (None, *family.model_types) and "model_type" not in ignored:
        return [
            f"model_type: {model_type!r} is not of the family {family.name}; "
            "--ignore-setting model_type accepts it"
        ]
    return family.settings.faults(raw, ignored)


def _read_buffers(
    family: Family, tensors: Mapping[str, Tensor]
) -> tuple[dict[str, LazyTensor], dict[str, Recreated]]:
    """Return the buffers that must travel, and those whose very bytes a recipe gives."""
    buffers: dict[str, LazyTensor] = {}
    recreated: dict[str, Recreated] = {}
    for name, tensor in tensors.items():
        if not family.is_buffer(name):
            continue
        recipe = family.recipe(name)
        made = recreate(recipe, numpy_dtype(tensor.dtype), tensor.shape) if recipe else None
        if recipe and made is not None and same_bytes(made, tensor.read()):
            recreated[name] = Recreated(tensor.dtype, tensor.shape, recipe)
        else:
            buffers[name] = stored_tensor(tensor)
    return buffers, recreated


def _default_notes(family: Family, raw: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """Return a note of the defaults that a bare state dict was read with."""
    if "model_type" in raw:
        return []
    taken = [f"{k}={v!r}" for k, v in values.items() if k not in raw and v is not None]
    return (
        [f"settings of {family.name} taken at their default: {', '.join(taken)}"] if taken else []
    )
