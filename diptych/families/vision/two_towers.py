"""What the families of an encoder of images and one of text do alike, whole or one encoder alone.

Variants: ``prefix`` (names begin with ``text_model.`` or ``vision_model.``, which one encoder alone
may lack).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...rules.rules import Rule, rule
from ...rules.transforms import Transform
from ...spec import Config, DualEncoderConfig, EncoderWithProjectionConfig, VisionEncoderConfig
from ...spec.checks.sizes import Shape
from ..family import Family, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import Setting, SettingsTable, check_layer_count, fill_sizes, layer_count
from ..transformers_settings import (
    ARCHITECTURES,
    BOOKKEEPING,
    FIXED,
    first_difference,
    written_settings,
)
from .image_family import image_side
from .parts import SIZES, UNDERSTOOD

TOWERS = {"image": "vision", "text": "text"}
"""What they call an encoder, by what we do."""

_PREFIXES = tuple(f"{theirs}_model." for theirs in TOWERS.values())
_FOUND_BY = {
    "image": "embeddings.patch_embedding.weight",
    "text": "embeddings.token_embedding.weight",
}


@dataclass(frozen=True, kw_only=True)
class TwoTowerFamily:
    """One family of two encoders, as tables and functions; ``family`` makes the rest.

    Attributes:
        name: What ``--family`` calls it, and the ``model_type`` of both encoders together.
        stem: Of the names of its classes.
        summary: One line for ``diptych families``.
        modules: Of each encoder, our modules by theirs; theirs without the prefix.
        transforms: From their tensors to ours, by their name in ``modules``.
        settings: Of each encoder, those of its settings that are not in ``UNDERSTOOD``.
        defaults: Of each encoder, the sizes that a config.json which lacks them means.
        read: Of each encoder, from settings to its config; raises ValueError, ``KEY: CAUSE``, where
            a setting is missing or refused.
        write: Of each encoder, from its config to settings in the current spelling.
        projections: Of each encoder that may have one, their name of the projection.
        projection_setting: The setting of its width.
        projection_within: Whether name and setting are the encoder's own, and there is a bias.
        logit_bias: Whether a number is added to the logits.
        logits: From their factor and their number to ours.
        flags: Settings that a bare state dict shows by a tensor, without the prefix.
        bookkeeping: Settings that change no number, in this family.
    """

    name: str
    stem: str
    summary: str
    modules: Mapping[str, Modules]
    settings: Mapping[str, Mapping[str, Setting]]
    defaults: Mapping[str, Mapping[str, int]]
    read: Mapping[str, Callable[[dict[str, Any]], Any]]
    write: Mapping[str, Callable[[Any], dict[str, Any]]]
    projections: Mapping[str, str]
    projection_setting: str
    projection_within: bool = False
    logit_bias: bool = False
    logits: Transform | None = None
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    bookkeeping: frozenset[str] = frozenset()

    @property
    def family(self) -> Family:
        """Return the family as the converter takes it."""
        buffers = [f"{prefix}embeddings.position_ids" for prefix in ("", *_PREFIXES)]
        within = ("", *_PREFIXES) if self.projection_within else ("",)
        return Family(
            name=self.name,
            summary=self.summary,
            model_types=(self.name, *(f"{self.name}_{prefix[:-1]}" for prefix in _PREFIXES)),
            templates=(
                *(
                    name
                    for tower, theirs in TOWERS.items()
                    for name in module_templates(self.modules[tower], ("", f"{theirs}_model."))
                ),
                *module_templates(self.projections.values(), within),
                *buffers,
                "logit_scale",
                *(["logit_bias"] if self.logit_bias else []),
            ),
            settings=self._table(),
            find_variants=_find_variants,
            usual_variants=lambda config: ("prefix",),
            read_config=self._read_config,
            write_config=self._write_config,
            rules=self._rules,
            buffers=dict.fromkeys(buffers, "arange"),
        )

    def _table(self) -> SettingsTable:
        own = {tower: UNDERSTOOD[tower] | dict(self.settings[tower]) for tower in TOWERS}
        bookkeeping = BOOKKEEPING | self.bookkeeping
        nested = {
            f"{theirs}_config{end}": SettingsTable(
                understood=own[tower],
                bookkeeping=(bookkeeping | {self.projection_setting}) - own[tower].keys(),
                fixed=FIXED,
            )
            for tower, theirs in TOWERS.items()
            for end in ("", "_dict")
        }
        flat = {
            **ARCHITECTURES,
            **own["image"],
            **own["text"],
            **dict.fromkeys(nested, Setting(dict)),
            "model_type": Setting(str),
            self.projection_setting: Setting(int),
        }
        return SettingsTable(
            understood=flat,
            bookkeeping=bookkeeping - (flat.keys() - {"model_type"}),
            fixed=FIXED,
            nested=nested,
        )

    def _read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> Config:
        own: dict[str, dict[str, Shape]] = {}
        for tower, theirs in TOWERS.items():
            prefix = f"{theirs}_model." if "prefix" in variants else ""
            own[tower] = {n.removeprefix(prefix): shapes[n] for n in shapes if n.startswith(prefix)}
        own = {tower: found for tower, found in own.items() if _FOUND_BY[tower] in found}
        rows = {}
        for tower, name in self.projections.items():
            place = own.get(tower, {}) if self.projection_within else shapes
            if tower in own and f"{name}.weight" in place:
                rows[tower] = place[f"{name}.weight"][0]
        return self._component(settings, own, rows)

    def _component(
        self,
        values: Mapping[str, Any],
        shapes: Mapping[str, Mapping[str, Shape]],
        rows: Mapping[str, int | None],
    ) -> Config:
        """Return the config.

        Args:
            values: Settings.
            shapes: Of each encoder that is there, its shapes by name without the prefix.
            rows: Of each projection that is there, its width.
        """
        found: dict[str, Any] = {}
        for tower in shapes:
            own = self._tower_values(tower, values, shapes[tower])
            try:
                found[tower] = self.read[tower](own)
            except ValueError as error:
                within = f"{TOWERS[tower]}_config." if len(shapes) > 1 else ""
                cause = str(error).replace("--set ", f"--set {within}")
                raise ValueError(f"{within}{cause}") from None
            if tower in rows:
                place = own if self.projection_within else values
                width = place[self.projection_setting] or rows[tower]
                if width is None:
                    width = own["hidden_size"] if self.projection_within else 512
                found[tower] = EncoderWithProjectionConfig(
                    encoder=found[tower], projection_dim=width, bias=self.projection_within
                )
        if not found:
            raise ValueError(
                f"there is no encoder of {self.name}: {' or '.join(_FOUND_BY.values())}"
            )
        if len(found) == 1:
            return next(iter(found.values()))
        return DualEncoderConfig(**found, logit_bias=self.logit_bias)

    def _tower_values(
        self, tower: str, values: Mapping[str, Any], shapes: Mapping[str, Shape]
    ) -> dict[str, Any]:
        """Return the settings of one encoder, from its object or, alone, from the top."""
        key = f"{TOWERS[tower]}_config"
        given = values[key] if values[f"{key}_dict"] is None else values[f"{key}_dict"]
        own = {**values} if given is None else self._table().nested[key].values(given)
        fill_sizes(own, SIZES[tower], shapes)
        if own["num_hidden_layers"] is None:
            own["num_hidden_layers"] = layer_count(shapes, "encoder.layers.")
        if tower == "image" and own["image_size"] is None and own["patch_size"]:
            others = int("embeddings.class_embedding" in shapes)
            table = shapes.get("embeddings.position_embedding.weight", ())
            own["image_size"] = image_side(table, others, own["patch_size"])
        if shapes:
            check_layer_count(own["num_hidden_layers"], shapes, "num_hidden_layers")
            for name, tensor in self.flags.items():
                if own.get(name) is None:
                    own[name] = tensor in shapes
        if values["model_type"] is not None:
            for name, size in self.defaults[tower].items():
                own[name] = size if own[name] is None else own[name]
        return own

    def _write_config(self, config: Config, source: Mapping[str, Any] | None) -> dict[str, Any]:
        towers = _towers(config)
        wanted: dict[str, Any] = {}
        for tower, part in towers.items():
            theirs = TOWERS[tower]
            try:
                own = self.write[tower](_encoder(part))
            except (AttributeError, TypeError) as error:
                raise ValueError(f"{self.name} has no such {part.component}: {error}") from None
            if isinstance(part, EncoderWithProjectionConfig):
                own[self.projection_setting] = part.projection_dim
                if not self.projection_within:
                    wanted[self.projection_setting] = part.projection_dim
            nested = (source or {}).get(f"{theirs}_config")
            if len(towers) == 1 and nested is None:
                wanted |= own
                continue
            own["model_type"] = f"{self.name}_{theirs}_model"
            wanted |= {f"{theirs}_config": {**(nested or {}), **own}, f"{theirs}_config_dict": None}
        model_type, architecture = self._identity(towers)
        return written_settings(
            self.name,
            source,
            {"model_type": model_type, "architectures": [architecture]},
            wanted,
            lambda settings: self._difference(config, settings),
        )

    def _identity(self, towers: Mapping[str, Config]) -> tuple[str, str]:
        """Return the ``model_type`` and the class."""
        if len(towers) > 1:
            return self.name, f"{self.stem}Model"
        ((tower, part),) = towers.items()
        projected = isinstance(part, EncoderWithProjectionConfig) and not self.projection_within
        theirs, end = TOWERS[tower], "WithProjection" if projected else ""
        return f"{self.name}_{theirs}_model", f"{self.stem}{theirs.capitalize()}Model{end}"

    def _difference(self, config: Config, settings: Mapping[str, Any]) -> str:
        """Return where a config differs from what its settings would be read as."""
        towers = _towers(config)
        rows: dict[str, int | None] = {
            tower: None
            for tower, part in towers.items()
            if tower in self.projections and isinstance(part, EncoderWithProjectionConfig)
        }
        try:
            values = self._table().values(settings)
            read = self._component(values, {tower: {} for tower in towers}, rows)
        except (TypeError, ValueError) as error:
            return str(error)
        return first_difference(config, read)

    def _rules(self, config: Config, variants: Variants) -> tuple[Rule, ...]:
        leaves, towers = config.leaves(), _towers(config)
        rules: list[Rule] = []
        for tower, part in towers.items():
            theirs = f"{TOWERS[tower]}_model." if "prefix" in variants else ""
            outer = f"{tower}." if len(towers) > 1 else ""
            projected = isinstance(part, EncoderWithProjectionConfig)
            rules += module_rules(
                self.modules[tower],
                leaves,
                theirs=theirs,
                ours=f"{outer}encoder." if projected else outer,
                transforms=self.transforms,
            )
            if projected:
                rules += module_rules(
                    {self.projections[tower]: "output_proj"},
                    leaves,
                    theirs=theirs if self.projection_within else "",
                    ours=outer,
                )
        if len(towers) > 1:
            rules.append(rule("logit_scale", "logit_scale_param", self.logits))
            if self.logit_bias:
                rules.append(rule("logit_bias", "logit_bias_param", self.logits))
        return tuple(rules)


def _find_variants(names: Collection[str]) -> Variants:
    return ("prefix",) if any(name.startswith(_PREFIXES) for name in names) else ()


def _towers(config: Any) -> dict[str, Any]:
    """Return the encoders that a component has."""
    if isinstance(config, DualEncoderConfig):
        return {"image": config.image, "text": config.text}
    return {"image" if isinstance(_encoder(config), VisionEncoderConfig) else "text": config}


def _encoder(config: Any) -> Any:
    return config.encoder if isinstance(config, EncoderWithProjectionConfig) else config
