"""Pickles and torch files put together opcode by opcode, so that they can be wrong at will."""

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
EIGHT_BYTES = struct.pack("<2f", 1.5, -2.0)


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<L", len(encoded)) + encoded


def integer(value: int) -> bytes:
    encoded = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(encoded)]) + encoded


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def sequence(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def call(module: str, attribute: str, *arguments: bytes) -> bytes:
    return name(module, attribute) + sequence(*arguments) + b"R"


def dictionary(*pairs: tuple[str | bytes, bytes]) -> bytes:
    """A dictionary; a key as text, or as opcodes."""
    keys_and_values = ((text(key) if isinstance(key, str) else key) + value for key, value in pairs)
    return b"}(" + b"".join(keys_and_values) + b"u"


def storage(
    kind: str = "FloatStorage", key: str = "0", count: int = 2, module: str = "torch"
) -> bytes:
    fields = (text("storage"), name(module, kind), text(key), text("cpu"), integer(count))
    return sequence(*fields) + b"Q"


def tensor(
    memory: bytes | None = None,
    offset: int = 0,
    shape: tuple[int, ...] = (2,),
    strides: tuple[int, ...] = (1,),
    more: bytes = b"",
) -> bytes:
    memory = storage() if memory is None else memory
    sizes = (sequence(*map(integer, shape)), sequence(*map(integer, strides)))
    hooks = call("collections", "OrderedDict")
    fields = (memory, integer(offset), *sizes, b"\x89", hooks, more)
    return call("torch._utils", "_rebuild_tensor_v2", *fields)


def pickled(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


def archive(
    body: bytes,
    storages: Mapping[str, bytes] | None = None,
    *,
    prefix: str = "archive/",
    more: Mapping[str, bytes] | None = None,
    compression: int = zipfile.ZIP_STORED,
) -> bytes:
    """What ``torch.save`` would write; ``body`` is the pickle without its first and last opcode."""
    records = {f"{prefix}data.pkl": pickled(body), f"{prefix}byteorder": b"little"}
    for key, data in ({"0": EIGHT_BYTES} if storages is None else storages).items():
        records[f"{prefix}data/{key}"] = data
    return zip_file(records | {f"{prefix}version": b"3\n"} | dict(more or {}), compression)


def zip_file(records: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for record, data in records.items():
            file.writestr(zipfile.ZipInfo(record), data, compression)
    return buffer.getvalue()


def legacy_storage(key: str = "0", count: int = 2, view: bytes = b"N") -> bytes:
    fields = (text("storage"), name("torch", "FloatStorage"), text(key), text("cpu"))
    return sequence(*fields, integer(count), view) + b"Q"


def legacy(
    body: bytes,
    *,
    magic: int = MAGIC_NUMBER,
    version: int = 1001,
    little_endian: bool = True,
    keys: object = ("0",),
    count: int = 2,
    data: bytes = EIGHT_BYTES,
) -> bytes:
    """What ``torch.save`` wrote before torch 1.6."""
    facts = {"protocol_version": version, "little_endian": little_endian}
    keys = list(keys) if isinstance(keys, tuple) else keys
    head = b"".join(pickle.dumps(part, 2) for part in (magic, version, facts))
    return head + pickled(body) + pickle.dumps(keys, 2) + struct.pack("<q", count) + data
