"""What a pickle can hold, as plain descriptions; nothing here was imported or called for it.

Texts, bytes, numbers, None, tuples and lists stand for themselves.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Global:
    """The name of a class or function."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object that is never built.

    Attributes:
        what: What it is, as the end of a sentence that begins with "is".
    """

    what: str


class Dictionary(list[tuple[object, object]]):
    """The pairs of a dictionary in their order, equal keys included."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """The memory under one or more tensors.

    Attributes:
        key: Its name in the file.
        dtype: A code of ``diptych.tensors.dtypes``; None when it is mere bytes.
        width: The bytes of an element.
        nbytes: Its size.
    """

    key: str
    dtype: str | None
    width: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class View:
    """A tensor: a view of a storage; offset and strides count elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(slots=True)
class NumpyDtype:
    """A numpy dtype.

    Attributes:
        text: numpy's own letters for it, such as "f4".
        big_endian: Whether values are stored most significant byte first.
    """

    text: str
    big_endian: bool = False


@dataclass(slots=True)
class NumpyArray:
    """A numpy array with its bytes; made empty and then filled, as pickles do."""

    dtype: NumpyDtype | None = None
    shape: tuple[int, ...] = ()
    data: bytes = b""
    fortran_order: bool = False


@dataclass(frozen=True, slots=True)
class NumpyScalar:
    """A number of a numpy dtype, with its bytes."""

    dtype: NumpyDtype
    data: bytes
