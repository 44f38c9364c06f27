"""Which family a checkpoint came from, and how it was spelled there."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...families import FAMILIES, Family, Recreated, Variants, named_family
from ...spec import Config
from ...spec.errors import CheckpointError


class Origin(NamedTuple):
    """What the way back to a family's own files needs to know.

    Attributes:
        family: The family, None where nothing says so.
        variants: Spellings of the family.
        recreated: Buffers that a recipe gives, by source name.
        spelling: The layout in which the spellings were found, "hf" or "hf-flax".
    """

    family: Family | None
    variants: Variants = ()
    recreated: Mapping[str, Recreated] = {}
    spelling: str = "hf"


def usual_origin(family: Family | None, config: Config) -> Origin:
    """Return the spelling that a family's files usually have."""
    if family is None:
        return Origin(None)
    return Origin(family, family.usual_variants(config), family.usual_buffers(config))


def recorded_origin(
    config: Config, where: str, manifest: Mapping[str, Any], family: str | Family | None
) -> Origin:
    """Return what a manifest records, or the usual of the family that is asked for instead.

    Raises:
        CheckpointError: If the manifest records a family that is not known, or another version.
    """
    recorded = manifest.get("family")
    asked = named_family(family) if family is not None else None
    if recorded is None or (asked is not None and asked.name != recorded):
        return usual_origin(asked, config)
    origin = asked or FAMILIES.get(recorded)
    if origin is None:
        raise CheckpointError(f"{where}: family: came from {recorded!r}, which must be given")
    version = manifest.get("family_version")
    if version != origin.version:
        cause = f"written by version {version} of {recorded}, this is {origin.version}"
        raise CheckpointError(f"{where}: family: {cause}: convert the original again")
    recreated = {
        name: Recreated(entry["dtype"], tuple(entry["shape"]), entry["recipe"])
        for name, entry in manifest.get("recreated", {}).items()
    }
    variants = tuple(manifest.get("variants", ()))
    return Origin(origin, variants, recreated, manifest.get("spelling", "hf"))
