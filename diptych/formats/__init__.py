"""Containers: the files that checkpoints are stored in, read and written without a framework."""

from collections.abc import Mapping
from types import MappingProxyType

from .format import Format
from .msgpack import FORMAT as MSGPACK
from .orbax import FORMAT as ORBAX
from .safetensors import FORMAT as SAFETENSORS
from .torch_pickle import FORMAT as TORCH_PICKLE

FORMATS: Mapping[str, Format] = MappingProxyType(
    {form.kind: form for form in (SAFETENSORS, TORCH_PICKLE, MSGPACK, ORBAX)}
)
"""Every kind of container, in the order in which a folder is searched for them."""

WRITTEN = tuple(form.kind for form in FORMATS.values() if form.is_written)
"""The kinds that are also written."""

__all__ = ["FORMATS", "WRITTEN", "Format"]
