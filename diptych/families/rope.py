"""Rotary settings in both spellings.

Old: ``rope_theta`` and ``rope_scaling``. New (``transformers`` 5): ``rope_parameters`` with both,
or one such object for every type of layer. Both are read, and both are written.
"""

from collections.abc import Mapping
from typing import Any

from .. import spec
from .settings import NUMBER, SIZE, Setting

ROPE_SETTINGS = {
    "max_position_embeddings": Setting(int, 2048),
    "original_max_position_embeddings": Setting(int),
    "partial_rotary_factor": Setting(NUMBER),
    "rope_parameters": Setting(dict),
    "rope_scaling": Setting(dict),
    "rope_theta": Setting(NUMBER),
}
ROPE_SPELLINGS = ("rope_theta", "rope_local_base_freq", "rope_scaling", "rope_parameters")
"""Settings that are written beside each other, in both spellings."""

_LENGTH = "original_max_position_embeddings"
_FACTORS = ("factor", "low_freq_factor", "high_freq_factor", "attention_factor")
_OBJECT = {
    **dict.fromkeys((*_FACTORS, "beta_fast", "beta_slow", "mscale"), Setting(NUMBER)),
    **dict.fromkeys(("mscale_all_dim", "partial_rotary_factor", "rope_theta"), Setting(NUMBER)),
    **dict.fromkeys(("long_factor", "short_factor"), Setting(list)),
    "truncate": Setting(bool),
    _LENGTH: SIZE,
}
"""Settings in one object of ``rope_parameters``; which it may have depends on its type."""

_NOT_SCALING = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
_YARN = ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim", "truncate")
_KEYS = {
    "default": set(),
    "linear": {"factor"},
    "dynamic": {"factor", _LENGTH},
    "yarn": {"factor", _LENGTH, *_YARN},
    "llama3": {"factor", _LENGTH, "low_freq_factor", "high_freq_factor"},
    "longrope": {"factor", _LENGTH, "short_factor", "long_factor", "attention_factor"},
}


def read_rotary(
    values: Mapping[str, Any],
    head_dim: int,
    *,
    theta: float = 10000.0,
    layer_type: str | None = None,
    interleaved: bool = False,
    partial: float | None = None,
) -> spec.RotaryConfig:
    """Return how a family's settings rotate.

    Args:
        values: Settings of ``ROPE_SETTINGS``.
        head_dim: Width of a head.
        theta: The base where no setting gives one.
        layer_type: Whose object of ``rope_parameters`` is read, if there is one for every type.
        interleaved: Whether neighbouring channels form a pair.
        partial: The rotated part of a head where no setting gives one; None where heads are rotated
            whole, whatever a setting says.

    Raises:
        ValueError: If the spellings contradict each other, or something is not understood.
    """
    where, given = _given(values, layer_type)
    for key, value in given.items():
        if key in _OBJECT and (cause := _OBJECT[key].fault(value)):
            raise ValueError(f"{where}: {key}: {cause}")
    _check_agreement(values, where, given)
    theta = _agreed(values, where, given, "rope_theta", theta)
    part = _agreed(values, where, given, "partial_rotary_factor", partial or 1.0)
    if partial is None and part != 1.0:
        raise ValueError(
            f"partial_rotary_factor: {part} is not supported: this family rotates whole heads"
        )
    kind = given.get("rope_type", given.get("type", "default"))
    kind = {"su": "longrope"}.get(kind, kind) if isinstance(kind, str) else str(kind)
    if kind not in _KEYS:
        raise ValueError(f"{where}: rope_type {kind!r} must be one of {', '.join(_KEYS)}")
    settings = {k: v for k, v in given.items() if k not in _NOT_SCALING and v is not None}
    for key in settings.keys() - _KEYS[kind]:
        raise ValueError(f"{where}: {key} is not understood beside rope_type {kind!r}")
    longest = values["max_position_embeddings"]
    if kind in ("yarn", "llama3", "longrope"):
        # As transformers does: a length beside the object wins over the one in it.
        trained = values[_LENGTH] or settings.get(_LENGTH) or longest
        settings[_LENGTH] = trained
    try:
        scaling = _scaling(kind, settings, longest)
    except KeyError as error:
        raise ValueError(f"{where}: rope_type {kind!r} needs {error.args[0]}") from None
    dim = int(head_dim * part)
    return spec.RotaryConfig(
        theta=float(theta),
        dim=None if dim == head_dim else dim,
        interleaved=interleaved,
        scaling=scaling,
    )


def write_rotary(rotary: spec.RotaryConfig, head_dim: int) -> dict[str, Any]:
    """Return the settings of a rotation, in both spellings.

    Args:
        rotary: How heads are rotated.
        head_dim: Their width.
    """
    scaling = rotary_object(rotary, head_dim)
    theta = scaling.pop("rope_theta")
    old = {key: value for key, value in scaling.items() if key != "partial_rotary_factor"}
    settings = {
        "rope_theta": theta,
        "rope_scaling": None if old == {"rope_type": "default"} else old,
        "rope_parameters": {**scaling, "rope_theta": theta},
    }
    if isinstance(rotary.scaling, spec.DynamicScaling):
        settings["max_position_embeddings"] = rotary.scaling.max_seq_len
    if "partial_rotary_factor" in scaling:
        settings["partial_rotary_factor"] = scaling["partial_rotary_factor"]
    return settings


def rotary_object(rotary: spec.RotaryConfig, head_dim: int) -> dict[str, Any]:
    """Return one object of ``rope_parameters``."""
    scaling = rotary.scaling
    found: dict[str, Any] = {"rope_type": "default", "rope_theta": rotary.theta}
    if rotary.dim is not None:
        found["partial_rotary_factor"] = rotary.dim / head_dim
    if isinstance(scaling, spec.LinearScaling):
        found |= {"rope_type": "linear", "factor": scaling.factor}
    elif isinstance(scaling, spec.DynamicScaling):
        found |= {"rope_type": "dynamic", "factor": scaling.factor}
    elif isinstance(scaling, spec.Llama3Scaling):
        found |= {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            _LENGTH: scaling.max_seq_len,
        }
    elif isinstance(scaling, spec.YarnScaling):
        found |= {"rope_type": "yarn", "factor": scaling.factor, _LENGTH: scaling.max_seq_len}
        plain = spec.YarnScaling(factor=scaling.factor, max_seq_len=scaling.max_seq_len)
        for key in _YARN:
            if getattr(scaling, key) != getattr(plain, key):
                found[key] = getattr(scaling, key)
    elif isinstance(scaling, spec.LongRopeScaling):
        found |= {
            "rope_type": "longrope",
            "short_factor": list(scaling.short_factor),
            "long_factor": list(scaling.long_factor),
            _LENGTH: scaling.max_seq_len,
        }
        for key in ("factor", "attention_factor"):
            if getattr(scaling, key) is not None:
                found[key] = getattr(scaling, key)
    return found


def _given(values: Mapping[str, Any], layer_type: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return the object that is read, and its setting's name."""
    for key in ("rope_parameters", "rope_scaling"):
        given = values[key]
        if not given:
            continue
        nested = [name for name, part in given.items() if isinstance(part, dict)]
        if not nested:
            return key, given
        if layer_type not in nested:
            raise ValueError(f"{key}: has {', '.join(nested)}, not {layer_type}")
        return f"{key}.{layer_type}", given[layer_type]
    return "rope_scaling", {}


def _check_agreement(values: Mapping[str, Any], where: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError if ``rope_scaling`` says another scaling than the object that is read."""
    old = values["rope_scaling"]
    if not old or not where.startswith("rope_parameters") or where.endswith("sliding_attention"):
        return
    if any(isinstance(part, dict) for part in old.values()):
        return
    if _plain(old) != _plain(given):
        raise ValueError(
            f"rope_scaling: {old} beside {where}, which says otherwise: they contradict each other"
        )


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an object says of the scaling, whatever its spelling."""
    found = {k: v for k, v in given.items() if k not in _NOT_SCALING and v is not None}
    kind = given.get("rope_type", given.get("type", "default"))
    return found | {"rope_type": {"su": "longrope"}.get(kind, kind)}


def _agreed(
    values: Mapping[str, Any], where: str, given: Mapping[str, Any], key: str, default: float
) -> float:
    inside, beside = given.get(key), values.get(key)
    if None not in (inside, beside) and inside != beside and "." not in where:
        raise ValueError(f"{key}: {beside} beside {inside} in {where}: they contradict each other")
    return next((value for value in (inside, beside) if value is not None), default)


def _scaling(kind: str, settings: Mapping[str, Any], longest: int) -> Any:
    if kind == "default":
        return None
    if kind == "linear":
        return spec.LinearScaling(factor=settings["factor"])
    if kind == "dynamic":
        return spec.DynamicScaling(factor=settings["factor"], max_seq_len=longest)
    trained = settings[_LENGTH]
    if kind == "llama3":
        return spec.Llama3Scaling(
            factor=settings["factor"],
            low_freq_factor=settings["low_freq_factor"],
            high_freq_factor=settings["high_freq_factor"],
            max_seq_len=trained,
        )
    if kind == "yarn":
        options = {key: settings[key] for key in _YARN if key in settings}
        return spec.YarnScaling(factor=settings["factor"], max_seq_len=trained, **options)
    attention_factor = settings.get("attention_factor")
    factor = settings.get("factor")
    if factor is None and attention_factor is None:
        factor = longest / trained
    return spec.LongRopeScaling(
        short_factor=tuple(settings["short_factor"]),
        long_factor=tuple(settings["long_factor"]),
        max_seq_len=trained,
        attention_factor=attention_factor,
        factor=factor,
    )
