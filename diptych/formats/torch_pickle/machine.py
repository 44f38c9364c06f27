"""Walks the opcodes of a pickle and says what it holds, without importing or calling anything.

The opcodes are those of Python's ``pickletools``; the documentation of each is there.
"""

import pickletools
import warnings
from collections.abc import Callable
from io import BufferedReader, FileIO, RawIOBase
from typing import Any

from ..source import FileSource
from .globals import build, reduce
from .values import Dictionary, Global, Opaque, Storage

_BUFFER = 1 << 16
_LONGEST_LINE = 1 << 20
_NEWEST_PROTOCOL = 5


class PickleStream:
    """A part of a file, for ``pickletools``; a length in the pickle allocates nothing beyond it.

    Args:
        source: The file.
        file: The same file, opened.
        start: The part's first byte.
        size: Its bytes.
    """

    def __init__(self, source: FileSource, file: FileIO, start: int, size: int):
        self._buffered = BufferedReader(_Part(source, file, start, size), _BUFFER)
        self._size = size

    @property
    def position(self) -> int:
        """Return how many of the part's bytes were read."""
        return self._buffered.tell()

    def read(self, count: int) -> bytes:
        if count > _BUFFER:
            count = min(count, self._size - self.position)
        return self._buffered.read(count)

    def readline(self) -> bytes:
        return self._buffered.readline(_LONGEST_LINE)


class PickleMachine:
    """The stack and memo of one pickle.

    Args:
        most_steps: The opcodes that are walked at most.
        find_storage: Makes a storage of a persistent id.
    """

    def __init__(self, most_steps: int, find_storage: Callable[[object], Storage | Opaque]):
        self._most_steps = most_steps
        self._find_storage = find_storage

    def run(self, stream: PickleStream) -> object:
        """Return what the pickle at the stream's position holds.

        Raises:
            ValueError: If it is damaged, or too large.
        """
        self._stack: list = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}
        try:
            with warnings.catch_warnings():
                # Python only warns of a broken escape in an old text; a file must not print that.
                warnings.simplefilter("error", DeprecationWarning)
                self._walk(stream)
        except (ValueError, DeprecationWarning) as error:
            raise ValueError(f"its pickle: {error}") from error
        return self._stack[0]

    def _walk(self, stream: PickleStream) -> None:
        instructions = pickletools.genops(stream)  # type: ignore[arg-type]
        for count, (opcode, argument, _) in enumerate(instructions, start=1):
            if count > self._most_steps:
                raise ValueError(f"more than {self._most_steps} instructions")
            step = _STEPS.get(opcode.name)
            if step is None:
                raise ValueError(f"instruction {opcode.name} is not read")
            step(self, argument)
        if len(self._stack) != 1 or self._marks:
            raise ValueError("things are left over at its end")

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _pop(self) -> object:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise ValueError("an instruction lacks its operand")
        return self._stack.pop()

    def _top(self) -> object:
        value = self._pop()
        self._stack.append(value)
        return value

    def _pop_mark(self) -> list:
        if not self._marks:
            raise ValueError("an instruction lacks its mark")
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _pop_any(self) -> None:
        if self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()
        else:
            self._pop()

    def _pop_tuple(self, count: int) -> tuple:
        values = [self._pop() for _ in range(count)]
        return tuple(reversed(values))

    def _put(self, index: int) -> None:
        self._memo[index] = self._top()

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise ValueError(f"entry {index} of its memo is missing")
        self._push(self._memo[index])

    def _append(self, values: list) -> None:
        target = self._top()
        if isinstance(target, list) and not isinstance(target, Dictionary):
            target.extend(values)
        elif not isinstance(target, Opaque):
            raise ValueError("items are added to what is no list")

    def _set_items(self, values: list) -> None:
        target = self._top()
        if isinstance(target, Dictionary):
            target.extend(zip(values[::2], values[1::2], strict=True))
        elif not isinstance(target, Opaque):
            raise ValueError("items are set in what is no dictionary")

    def _dictionary(self, _: object) -> None:
        values = self._pop_mark()
        self._push(Dictionary())
        self._set_items(values)

    def _frozen_set(self, _: object) -> None:
        self._pop_mark()
        self._push(Opaque("a set"))

    def _add_items(self, values: list) -> None:
        if not isinstance(self._top(), Opaque):
            raise ValueError("items are added to what is no set")

    def _stack_global(self, _: object) -> None:
        module, name = self._pop_tuple(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a global without a name")
        self._push(Global(module, name))

    def _reduce(self, _: object) -> None:
        callee, arguments = self._pop_tuple(2)
        self._push(reduce(callee, arguments))

    def _build(self, _: object) -> None:
        target, state = self._pop_tuple(2)
        build(target, state)
        self._push(target)

    def _new_object(self, count: int) -> None:
        self._push(reduce(self._pop_tuple(count)[0], None))

    def _object(self, _: object) -> None:
        self._push(reduce((self._pop_mark() or [None])[0], None))

    def _instance(self, argument: str) -> None:
        self._pop_mark()
        self._push(reduce(_global_of(argument), None))

    def _persistent(self, _: object) -> None:
        self._push(self._find_storage(self._pop()))


class _Part(RawIOBase):
    def __init__(self, source: FileSource, file: FileIO, start: int, size: int):
        self._source, self._file, self._start, self._size = source, file, start, size
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self._size - self._position)
        data = self._source.read_from(self._file, self._start + self._position, count)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _global_of(argument: str) -> Global:
    module, _, name = argument.partition(" ")
    return Global(module, name)


def _check_protocol(_: PickleMachine, protocol: int) -> None:
    if protocol > _NEWEST_PROTOCOL:
        raise ValueError(f"protocol {protocol} is newer than {_NEWEST_PROTOCOL}")


_PUSHED = (
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_STEPS: dict[str, Callable[[PickleMachine, Any], object]] = {
    "PROTO": _check_protocol,
    "FRAME": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "NONE": lambda machine, _: machine._push(None),
    "NEWTRUE": lambda machine, _: machine._push(True),
    "NEWFALSE": lambda machine, _: machine._push(False),
    **dict.fromkeys(_PUSHED, PickleMachine._push),
    "MARK": lambda machine, _: machine._marks.append(len(machine._stack)),
    "POP": lambda machine, _: machine._pop_any(),
    "POP_MARK": lambda machine, _: machine._pop_mark(),
    "DUP": lambda machine, _: machine._push(machine._top()),
    "PUT": PickleMachine._put,
    "BINPUT": PickleMachine._put,
    "LONG_BINPUT": PickleMachine._put,
    "MEMOIZE": lambda machine, _: machine._put(len(machine._memo)),
    "GET": PickleMachine._get,
    "BINGET": PickleMachine._get,
    "LONG_BINGET": PickleMachine._get,
    "EMPTY_TUPLE": lambda machine, _: machine._push(()),
    "TUPLE1": lambda machine, _: machine._push(machine._pop_tuple(1)),
    "TUPLE2": lambda machine, _: machine._push(machine._pop_tuple(2)),
    "TUPLE3": lambda machine, _: machine._push(machine._pop_tuple(3)),
    "TUPLE": lambda machine, _: machine._push(tuple(machine._pop_mark())),
    "EMPTY_LIST": lambda machine, _: machine._push([]),
    "LIST": lambda machine, _: machine._push(machine._pop_mark()),
    "APPEND": lambda machine, _: machine._append([machine._pop()]),
    "APPENDS": lambda machine, _: machine._append(machine._pop_mark()),
    "EMPTY_DICT": lambda machine, _: machine._push(Dictionary()),
    "DICT": PickleMachine._dictionary,
    "SETITEM": lambda machine, _: machine._set_items([*machine._pop_tuple(2)]),
    "SETITEMS": lambda machine, _: machine._set_items(machine._pop_mark()),
    "EMPTY_SET": lambda machine, _: machine._push(Opaque("a set")),
    "ADDITEMS": lambda machine, _: machine._add_items(machine._pop_mark()),
    "FROZENSET": PickleMachine._frozen_set,
    "GLOBAL": lambda machine, argument: machine._push(_global_of(argument)),
    "STACK_GLOBAL": PickleMachine._stack_global,
    "REDUCE": PickleMachine._reduce,
    "BUILD": PickleMachine._build,
    "NEWOBJ": lambda machine, _: machine._new_object(2),
    "NEWOBJ_EX": lambda machine, _: machine._new_object(3),
    "OBJ": PickleMachine._object,
    "INST": PickleMachine._instance,
    "PERSID": lambda machine, argument: machine._push(machine._find_storage(argument)),
    "BINPERSID": PickleMachine._persistent,
}
