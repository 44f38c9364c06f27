"""What ``flax.serialization`` writes: one tree of arrays in msgpack."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..format import Format, WriteFile

if TYPE_CHECKING:
    from ..container import Container


class Msgpack(Format):
    """A tree of maps with an array at each leaf."""

    kind = "msgpack"
    suffixes = (".msgpack",)
    preferred = ("flax_model.msgpack",)
    bookkeeping = frozenset(("opt_state.msgpack", "optimizer_state.msgpack"))
    separator = "/"
    file_name = "flax_model.msgpack"

    def sniff(self, start: bytes, size: int) -> bool:
        """Return whether a file begins with a map of one entry at least, the first key a text."""
        if not start or start[0] not in (*range(0x81, 0x90), 0xDE, 0xDF):
            return False
        key = start[{0xDE: 3, 0xDF: 5}.get(start[0], 1) :][:1]
        return bool(key) and (0xA0 <= key[0] < 0xC0 or key[0] in (0xD9, 0xDA))

    def reader(self) -> Callable[[Path], "Container"]:
        from .reader import read_msgpack

        return read_msgpack

    def pick(self, container: "Container") -> "Container":
        from .collections import pick_parameters

        return pick_parameters(container)

    def writer(self, metadata: Mapping[str, str]) -> WriteFile:
        from .writer import write_msgpack

        return write_msgpack


FORMAT = Msgpack()
