"""JSON read member by member, so that a hostile text costs no more than its own length.

A whole-text parser builds everything before anyone can look at it (twenty bytes for one) and keeps
the last of two equal keys. Here the caller says what it expects next, and stops at the first fault.
"""

import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]

_SPACES = (" ", "\t", "\n", "\r")
_SPACE = re.compile(r"[ \t\n\r]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?![0-9.eE])")
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DEEPEST = 64


class JsonReader:
    """A position in a JSON text; each method reads one thing and moves behind it.

    Args:
        text: The whole text.

    Raises:
        ValueError: From every method, when the text has something else; it names the character.
    """

    def __init__(self, text: str):
        self._text = text
        self._move_to(0)

    def members(self) -> Iterator[str]:
        """The keys of an object; the caller reads each value before it asks for the next key."""
        seen: set[str] = set()
        for _ in self._between("{", "}"):
            key = self.string()
            if key in seen:
                raise ValueError(f"key {key!r} twice")
            seen.add(key)
            self._expect(":")
            yield key

    def items(self) -> Iterator[None]:
        """One step per item of an array; the caller reads the item before it takes the next."""
        return self._between("[", "]")

    def string(self) -> str:
        """A string."""
        if not self.next_is('"'):
            raise self._unexpected("a string")
        value, end = scanstring(self._text, self._position + 1, True)
        self._move_to(end)
        return value

    def integer(self) -> int:
        """An integer of at most 19 digits, without fraction or exponent."""
        match = _INTEGER.match(self._text, self._position)
        if match is None:
            raise self._unexpected("an integer")
        self._move_to(match.end())
        return int(match.group())

    def skip(self, depth: int = 0) -> None:
        """Any value, thrown away."""
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST}")
        if self.next_is("{"):
            for _ in self.members():
                self.skip(depth + 1)
        elif self.next_is("["):
            for _ in self.items():
                self.skip(depth + 1)
        elif self.next_is('"'):
            self.string()
        else:
            match = _SCALAR.match(self._text, self._position)
            if match is None:
                raise self._unexpected("a value")
            self._move_to(match.end())

    def next_is(self, start: str) -> bool:
        """Whether the text goes on with ``start``."""
        return self._text.startswith(start, self._position)

    def next_is_integer(self) -> bool:
        """Whether ``integer`` would find one."""
        return _INTEGER.match(self._text, self._position) is not None

    def end(self) -> None:
        """The end of the text."""
        if self._position != len(self._text):
            raise self._unexpected("the end")

    def _between(self, opening: str, closing: str) -> Iterator[None]:
        self._expect(opening)
        if not self.next_is(closing):
            yield
            while self.next_is(","):
                self._expect(",")
                yield
        self._expect(closing)

    def _expect(self, char: str) -> None:
        if not self._text.startswith(char, self._position):
            raise self._unexpected(repr(char))
        self._move_to(self._position + 1)

    def _move_to(self, position: int) -> None:
        # Most texts have no space between their parts, and this is called for every part.
        if self._text.startswith(_SPACES, position):
            match = _SPACE.match(self._text, position)
            assert match is not None
            position = match.end()
        self._position = position

    def _unexpected(self, wanted: str) -> ValueError:
        found = repr(self._text[self._position : self._position + 1])
        return ValueError(f"{wanted} expected at character {self._position}, found {found}")
