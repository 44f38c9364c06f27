"""What the families of an encoder of images and one of text do alike, whole or one encoder alone.

Variants: ``prefix`` (names begin with ``text_model.`` or ``vision_model.``, which one encoder alone
may lack).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ... import spec
from ...rules import Rule, Transform, rule
from ...spec.checks.sizes import Shape
from .. import transformers_settings as hf
from ..family import LEFT_OUT, Family, Part, Variants
from ..modules import Modules, module_rules, module_templates
from ..settings import SIZE, Setting, SettingsTable
from ..shapes import check_layer_count, fill_sizes, layer_count
from ..stacks import StackKind
from .image_family import image_side
from .parts import SIZES, UNDERSTOOD

TOWERS = {"image": "vision", "text": "text"}
"""What they call an encoder, by what we do."""

_PREFIXES = tuple(f"{theirs}_model." for theirs in TOWERS.values())
_FOUND_BY = {
    "image": "embeddings.patch_embedding.weight",
    "text": "embeddings.token_embedding.weight",
}
_STACK_KIND = StackKind(feed_forward=spec.FeedForwardConfig)


@dataclass(frozen=True, kw_only=True)
class TwoTowerFamily(Family):
    """One family of two encoders, as tables and functions.

    Attributes:
        stem: Of the names of its classes.
        towers: Of each encoder, our modules by theirs; theirs without the prefix.
        transforms: From their tensors to ours, by their name in ``towers``.
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
    """

    stem: str
    towers: Mapping[str, Modules]
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
    buffers: Mapping[str, str | None] = field(
        default_factory=lambda: {"embeddings.position_ids": "arange"}
    )

    @property
    def prefixes(self) -> tuple[str, ...]:
        return ("", *_PREFIXES)

    @property
    def head_names(self) -> tuple[str, ...]:
        return ("logit_scale", *(["logit_bias"] if self.logit_bias else []))

    @property
    def templates(self) -> tuple[str, ...]:
        names = [*super().templates]
        for tower, theirs in TOWERS.items():
            for prefix in ("", f"{theirs}_model."):
                names += [f"{prefix}{name}" for name in module_templates(self.towers[tower])]
        for prefix in self.prefixes if self.projection_within else [""]:
            names += [f"{prefix}{name}" for name in module_templates(self.projections.values())]
        return tuple(names)

    def find_variants(self, names: Collection[str]) -> Variants:
        return ("prefix",) if any(name.startswith(_PREFIXES) for name in names) else ()

    def usual_variants(self, config: spec.Config) -> Variants:
        return ("prefix",)

    def read_config(
        self, settings: Mapping[str, Any], shapes: Mapping[str, Shape], variants: Variants
    ) -> spec.Config:
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
    ) -> spec.Config:
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
                found[tower] = spec.EncoderWithProjectionConfig(
                    encoder=found[tower], projection_dim=width, bias=self.projection_within
                )
        if not found:
            raise ValueError(
                f"there is no encoder of {self.name}: {' or '.join(_FOUND_BY.values())}"
            )
        if len(found) == 1:
            return next(iter(found.values()))
        return spec.DualEncoderConfig(**found, logit_bias=self.logit_bias)

    def _tower_values(
        self, tower: str, values: Mapping[str, Any], shapes: Mapping[str, Shape]
    ) -> dict[str, Any]:
        """Return the settings of one encoder, from its object or, alone, from the top."""
        key = f"{TOWERS[tower]}_config"
        given = values[key] if values[f"{key}_dict"] is None else values[f"{key}_dict"]
        own = {**values} if given is None else self.settings.nested[key].values(given)
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

    @property
    def components(self) -> tuple[type[spec.Config], ...]:
        return (
            spec.DualEncoderConfig,
            spec.EncoderWithProjectionConfig,
            spec.EncoderConfig,
            spec.VisionEncoderConfig,
        )

    def parts(self, config: spec.Config) -> Mapping[str, Part]:
        towers = _towers(config)
        parts: dict[str, Part] = {}
        for tower, part in towers.items():
            place = f"{tower}." if len(towers) > 1 else ""
            place += "encoder." if isinstance(part, spec.EncoderWithProjectionConfig) else ""
            parts |= _STACK_KIND.parts(_encoder(part), place)
        return parts

    def write_settings(
        self, config: spec.Config, source: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        towers = _towers(config)
        wanted: dict[str, Any] = {}
        for tower, part in towers.items():
            theirs = TOWERS[tower]
            own = self.write[tower](_encoder(part))
            if isinstance(part, spec.EncoderWithProjectionConfig):
                own[self.projection_setting] = part.projection_dim
                if not self.projection_within:
                    wanted[self.projection_setting] = part.projection_dim
            nested = (source or {}).get(f"{theirs}_config")
            if len(towers) == 1 and nested is None:
                wanted |= own
                continue
            own["model_type"] = f"{self.name}_{theirs}_model"
            # The object of old files, which would go before the other.
            wanted[f"{theirs}_config_dict"] = LEFT_OUT
            wanted[f"{theirs}_config"] = {**(nested or {}), **own}
        return wanted

    def model_type(self, config: spec.Config) -> str:
        towers = [*_towers(config)]
        return self.name if len(towers) > 1 else f"{self.name}_{TOWERS[towers[0]]}_model"

    def architecture(self, config: spec.Config) -> str | None:
        towers = _towers(config)
        if len(towers) > 1:
            return f"{self.stem}Model"
        ((tower, part),) = towers.items()
        projected = (
            isinstance(part, spec.EncoderWithProjectionConfig) and not self.projection_within
        )
        return f"{self.stem}{TOWERS[tower].capitalize()}Model{'WithProjection' * projected}"

    def read_back(self, config: spec.Config, values: Mapping[str, Any]) -> spec.Config:
        towers = _towers(config)
        rows: dict[str, int | None] = {
            tower: None
            for tower, part in towers.items()
            if tower in self.projections and isinstance(part, spec.EncoderWithProjectionConfig)
        }
        return self._component(values, {tower: {} for tower in towers}, rows)

    def rules(self, config: spec.Config, variants: Variants) -> tuple[Rule, ...]:
        leaves, towers = config.leaves(), _towers(config)
        rules: list[Rule] = []
        for tower, part in towers.items():
            theirs = f"{TOWERS[tower]}_model." if "prefix" in variants else ""
            outer = f"{tower}." if len(towers) > 1 else ""
            projected = isinstance(part, spec.EncoderWithProjectionConfig)
            rules += module_rules(
                self.towers[tower],
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


def tower_settings(
    own: Mapping[str, Mapping[str, Setting]],
    projection_setting: str,
    bookkeeping: Collection[str] = (),
) -> SettingsTable:
    """Return the settings of a family: those of both encoders together, and an object for each.

    Args:
        own: Of each encoder, those of its settings that are not in ``UNDERSTOOD``.
        projection_setting: The setting of the width of projections.
        bookkeeping: Settings that change no number, in this family.
    """
    understood = {tower: UNDERSTOOD[tower] | dict(own[tower]) for tower in TOWERS}
    ignored = hf.BOOKKEEPING | {*bookkeeping}
    nested = {
        f"{theirs}_config{end}": SettingsTable(
            understood=understood[tower],
            bookkeeping=(ignored | {projection_setting}) - understood[tower].keys(),
            fixed=hf.FIXED,
        )
        for tower, theirs in TOWERS.items()
        for end in ("", "_dict")
    }
    flat = {
        **hf.ARCHITECTURES,
        **understood["image"],
        **understood["text"],
        **dict.fromkeys(nested, Setting(dict)),
        "model_type": Setting(str),
        projection_setting: SIZE,
    }
    return SettingsTable(
        understood=flat,
        bookkeeping=ignored - (flat.keys() - {"model_type"}),
        fixed=hf.FIXED,
        nested=nested,
    )


def _towers(config: spec.Config) -> dict[str, spec.Config]:
    """Return the encoders that a component has."""
    if isinstance(config, spec.DualEncoderConfig):
        return {"image": config.image, "text": config.text}
    return {"image" if isinstance(_encoder(config), spec.VisionEncoderConfig) else "text": config}


def _encoder(config: spec.Config) -> spec.EncoderConfig | spec.VisionEncoderConfig:
    encoder = config.encoder if isinstance(config, spec.EncoderWithProjectionConfig) else config
    assert isinstance(encoder, spec.EncoderConfig | spec.VisionEncoderConfig)
    return encoder
