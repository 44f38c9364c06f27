"""The layouts: whose names, shapes and small files a checkpoint has on disk.

There are two kinds. A family's layout has the names of the library that the model is from; which
family it is, and the component's config, are found from them. A panel's layout has the names of
``torch_impl`` or ``jax_impl``, and the component's own config beside them. Canonical names are
those of ``torch_impl``: every layout gives the rules from them to its own.

What the methods need is imported inside them: the command names all layouts at its start.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...families import Family
    from ...formats.tensor import Tensor
    from ...rules import Rule
    from ...spec import Config
    from ...spec.checks.sizes import Shape
    from ..checkpoint import Checkpoint
    from .lazy_tensors import LazyTensor
    from .origin import Origin


class Layout:
    """What is asked of a layout, whatever its kind; the one instance of each is in ``LAYOUTS``.

    Attributes:
        name: What users call it.
        framework: "pt" or "flax": what the header of safetensors says, and whether Orbax wraps
            arrays as an ``nnx.State`` does.
        usual_format: The kind of container that it is written in unless another is asked for.
        is_of_family: Whether its names are a family's own.
        is_original: Whether its files are like those that the family's models come in: buffers
            have their own names, those that a recipe gives are there, and the names of all tensors
            tell how the model is spelled.
    """

    name: str
    framework: str = "pt"
    usual_format: str = "safetensors"
    is_of_family: bool = False
    is_original: bool = False

    def rules(self, checkpoint: "Checkpoint") -> "tuple[Rule, ...]":
        """Return the rules from canonical names to those on disk."""
        raise NotImplementedError

    def files(self, checkpoint: "Checkpoint", dtype: str | None) -> dict[str, bytes]:
        """Return the small files beside the weights, by name.

        Args:
            checkpoint: What is read.
            dtype: Code that floating tensors are cast to, None for no cast.
        """
        raise NotImplementedError

    def buffers(self, checkpoint: "Checkpoint") -> "dict[str, LazyTensor]":
        """Return what is written beside the parameters, by name on disk."""
        from .lazy_tensors import BUFFER_PREFIX, made_tensor

        if self.is_original:
            made = {name: made_tensor(entry) for name, entry in checkpoint.recreated.items()}
            return {**checkpoint.buffers, **made}
        return {f"{BUFFER_PREFIX}{name}": buffer for name, buffer in checkpoint.buffers.items()}


class FamilyLayout(Layout):
    """A family's own names, as ``transformers`` or the author saved them in torch."""

    name = "hf"
    is_of_family = True
    is_original = True

    def recognises(self, names: Collection[str]) -> bool:
        """Return whether a family's tensors are named as in this layout; all names are torch's."""
        return True

    def torch_name(self, name: str) -> str:
        """Return the family's own name in torch for a name on disk."""
        return name

    def as_torch(
        self, stored: "Mapping[str, Tensor]"
    ) -> "tuple[dict[str, Tensor], dict[str, LazyTensor], list[str]]":
        """Return tensors as the family has them in torch, from headers only.

        Returns:
            Tensors by their names in torch, the buffers that travel beside them by source name,
            and faults as ``NAME: CAUSE``.
        """
        return dict(stored), {}, []

    def respell(
        self,
        faults: list[str],
        stored: Collection[str],
        family: "Family",
        config: "Config",
        rules: "Iterable[Rule]",
    ) -> list[str]:
        """Return faults, which name tensors as in torch, with the names on disk."""
        return faults

    def read_origin(
        self, found: "Origin", config: "Config", where: str, manifest: Mapping[str, Any] | None
    ) -> "Origin":
        """Return family and spelling of what is read, given what its names alone tell."""
        return found

    def rules(self, checkpoint: "Checkpoint") -> "tuple[Rule, ...]":
        from ...rules import inverse

        assert checkpoint.family is not None
        return inverse(checkpoint.family.rules(checkpoint.config, checkpoint.variants))

    def files(self, checkpoint: "Checkpoint", dtype: str | None) -> dict[str, bytes]:
        from ...formats.json import render_json
        from ...spec import CheckpointError
        from ...tensors.cast import CAST_DTYPES

        assert checkpoint.family is not None
        try:
            settings = checkpoint.family.write_config(checkpoint.config, checkpoint.source_config)
        except CheckpointError:
            raise
        except ValueError as error:
            raise CheckpointError(f"{checkpoint.path}: {error}") from None
        names = {code: name for name, code in CAST_DTYPES.items()}
        cast = dtype or checkpoint.dtype
        for key in ("dtype", "torch_dtype"):
            if cast is not None and key in settings:
                settings[key] = names[cast]
        return {"config.json": render_json(settings)}


class LinenLayout(FamilyLayout):
    """A family's own names in Linen, as ``transformers`` up to 4.57 saved Flax models.

    Linen's names do not tell how the same model was spelled in torch; a manifest does.
    """

    name = "hf-flax"
    framework = "flax"
    usual_format = "msgpack"
    is_original = False

    def recognises(self, names: Collection[str]) -> bool:
        from .linen import is_linen

        return is_linen(names)

    def torch_name(self, name: str) -> str:
        from .linen import torch_name

        return torch_name(name)

    def as_torch(
        self, stored: "Mapping[str, Tensor]"
    ) -> "tuple[dict[str, Tensor], dict[str, LazyTensor], list[str]]":
        from .lazy_tensors import split_buffers
        from .linen import as_torch

        parameters, buffers = split_buffers(stored)
        tensors, faults = as_torch(parameters)
        return tensors, buffers, faults

    def respell(
        self,
        faults: list[str],
        stored: Collection[str],
        family: "Family",
        config: "Config",
        rules: "Iterable[Rule]",
    ) -> list[str]:
        from .linen import linen_names, respell

        known = {self.torch_name(name): name for name in stored}
        return respell(faults, linen_names(rules, config.leaves(), family.linen_norm) | known)

    def read_origin(
        self, found: "Origin", config: "Config", where: str, manifest: Mapping[str, Any] | None
    ) -> "Origin":
        from .origin import recorded_origin

        assert found.family is not None
        if manifest and manifest["layout"] == self.name:
            return recorded_origin(config, where, manifest, found.family)
        recreated = found.family.usual_buffers(config)
        return found._replace(recreated=recreated, spelling=self.name)

    def rules(self, checkpoint: "Checkpoint") -> "tuple[Rule, ...]":
        from ...rules import inverse
        from .linen import linen_rules

        family, config, variants = checkpoint.family, checkpoint.config, checkpoint.variants
        assert family is not None
        if checkpoint.spelling != self.name:
            # Flax never had the spellings of old torch files, nor copies of tied weights.
            variants = family.usual_variants(config)
        return linen_rules(inverse(family.rules(config, variants)), family.linen_norm)


class PanelLayout(Layout):
    """The names of ``torch_impl``, which are the canonical ones."""

    name = "torch"

    def rules_of(self, config: "Config") -> "tuple[Rule, ...]":
        """Return the rules from a component's canonical names to those on disk."""
        from ...rules import rule

        return tuple(rule(name, name) for name in config.leaves())

    def shapes(self, config: "Config") -> "dict[str, Shape]":
        """Return the name and shape of every parameter of a component."""
        from ...rules import assign_rules
        from ...tensors.bits import TensorSpec

        specs = {name: TensorSpec("F32", leaf.shape) for name, leaf in config.leaves().items()}
        steps, _ = assign_rules(specs, self.rules_of(config))
        return {
            name: spec.shape
            for step in steps
            for name, spec in zip(
                step.targets,
                step.transform.outputs([specs[source] for source in step.sources]),
                strict=True,
            )
        }

    def rules(self, checkpoint: "Checkpoint") -> "tuple[Rule, ...]":
        return self.rules_of(checkpoint.config)

    def files(self, checkpoint: "Checkpoint", dtype: str | None) -> dict[str, bytes]:
        return self.files_of(checkpoint.config, checkpoint.source_config)

    def files_of(self, config: "Config", source: Mapping[str, Any] | None) -> dict[str, bytes]:
        """Return the component's ``config.json``, and the source's own configuration beside it."""
        from ...formats.json import render_json

        own = {"component": config.component, "config": config.to_dict()}
        files = {"config.json": render_json(own)}
        return files | ({"source_config.json": render_json(source)} if source else {})


class FlaxLayout(PanelLayout):
    """The names of ``jax_impl``."""

    name = "flax"
    framework = "flax"

    def rules_of(self, config: "Config") -> "tuple[Rule, ...]":
        from .torch_to_flax import layout_rules

        return layout_rules(config)


HF, HF_FLAX, TORCH, FLAX = FamilyLayout(), LinenLayout(), PanelLayout(), FlaxLayout()

FAMILY_LAYOUTS: tuple[FamilyLayout, ...] = (HF_FLAX, HF)
"""Those with a family's own names, the special before the usual: the first that recognises wins."""

PANEL_LAYOUTS: tuple[PanelLayout, ...] = (TORCH, FLAX)
"""Those with a panel's names."""

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {layout.name: layout for layout in (*reversed(FAMILY_LAYOUTS), *PANEL_LAYOUTS)}
)
"""Every layout by name."""


def family_layout(names: Collection[str]) -> FamilyLayout:
    """Return the layout in which a family's tensors have these names."""
    return next(layout for layout in FAMILY_LAYOUTS if layout.recognises(names))
