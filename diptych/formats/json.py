"""The one reader of JSON: of configurations, manifests, headers, indices and metadata.

A whole-text parser builds everything before anyone can look at it (twenty bytes for one) and keeps
the last of two equal keys. With ``JsonReader`` the caller says what it expects next, and stops at
the first fault, so that a hostile text costs no more than its own length.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from .errors import fault
from .source import FileSource

_SPACES = (" ", "\t", "\n", "\r")
_SPACE = re.compile(r"[ \t\n\r]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})(?![0-9.eE])")
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LITERALS = {"true": True, "false": False, "null": None}
_NO_NUMBER = re.compile(r"NaN|-?Infinity")
_DEEPEST = 64
_LONGEST_NUMBER = 1000  # Python itself refuses integers of more than some thousand digits


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds.

    Raises:
        CheckpointError: If it is no regular file, no JSON object, or holds a key twice; names the
            file.
    """
    source = FileSource(path)
    try:
        value = parse_json(source.read(0, source.size))
    except ValueError as error:
        raise fault(path, f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise fault(path, f"a JSON object expected, found {type(value).__name__}")
    return value


def parse_json(data: bytes) -> Any:
    """Return the value that a whole JSON text in UTF-8, UTF-16 or UTF-32 stands for.

    Raises:
        ValueError: If it is none, or an object in it holds a key twice.
    """
    reader = JsonReader(data.decode(json.detect_encoding(data)))
    value = reader.value()
    reader.end()
    return value


def render_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON file's bytes, as ``transformers`` writes them."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


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
        """Yield the keys of an object; the caller reads each value before it takes the next key."""
        seen: set[str] = set()
        for _ in self._between("{", "}"):
            key = self.string()
            if key in seen:
                raise ValueError(f"key {key!r} stands twice")
            seen.add(key)
            self._expect(":")
            yield key

    def items(self) -> Iterator[None]:
        """Yield once per item of an array; the caller reads the item before it takes the next."""
        return self._between("[", "]")

    def string(self) -> str:
        """Return a string."""
        if not self.next_is('"'):
            raise self._unexpected("a string")
        value, end = scanstring(self._text, self._position + 1, True)
        self._move_to(end)
        return value

    def integer(self) -> int:
        """Return an integer of at most 19 digits, without fraction or exponent."""
        match = _INTEGER.match(self._text, self._position)
        if match is None:
            raise self._unexpected("an integer")
        self._move_to(match.end())
        return int(match.group())

    def value(self, depth: int = 0) -> Any:
        """Return any value, as ``json.loads`` does."""
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST}")
        if self.next_is("{"):
            return {key: self.value(depth + 1) for key in self.members()}
        if self.next_is("["):
            return [self.value(depth + 1) for _ in self.items()]
        if self.next_is('"'):
            return self.string()
        text = self._scalar()
        if text in _LITERALS:
            return _LITERALS[text]
        if len(text) > _LONGEST_NUMBER:
            raise ValueError(f"a number of {len(text)} characters, over {_LONGEST_NUMBER}")
        number = float(text) if any(char in text for char in ".eE") else int(text)
        if number in (math.inf, -math.inf):
            raise ValueError(f"{text} is beyond every float64")
        return number

    def skip(self, depth: int = 0) -> None:
        """Read any value without keeping it."""
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
            self._scalar()

    def next_is(self, start: str) -> bool:
        """Return whether the text goes on with ``start``."""
        return self._text.startswith(start, self._position)

    def next_is_integer(self) -> bool:
        """Return whether ``integer`` would find one."""
        return _INTEGER.match(self._text, self._position) is not None

    def end(self) -> None:
        """Raise ValueError unless this is the end of the text."""
        if self._position != len(self._text):
            raise self._unexpected("the end")

    def _scalar(self) -> str:
        match = _SCALAR.match(self._text, self._position)
        if match is None:
            constant = _NO_NUMBER.match(self._text, self._position)
            if constant is not None:
                raise ValueError(f"a value expected, {constant.group()} is no JSON number")
            raise self._unexpected("a value")
        self._move_to(match.end())
        return match.group()

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
