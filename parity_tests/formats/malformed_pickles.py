"""Damaged and hostile torch files: what each is, its bytes, words that the error has."""

import gzip
import pickle
import zipfile
from collections.abc import Iterator

from .malformed_safetensors import VALID as SAFETENSORS
from .pickle_bytes import (
    archive,
    call,
    dictionary,
    integer,
    legacy,
    legacy_storage,
    name,
    pickled,
    sequence,
    storage,
    tensor,
    text,
    zip_file,
)

Case = tuple[str, bytes, str]

VALID = archive(dictionary(("w", tensor())))
VALID_LEGACY = legacy(dictionary(("w", tensor(legacy_storage()))))


def malformed_files() -> Iterator[Case]:
    """Every case."""
    yield from _other_files()
    yield from _archives()
    yield from _machines()
    yield from _roots()
    yield from _tensors()
    yield from _entries()
    yield from _legacy_files()


def bombs() -> Iterator[Case]:
    """Small or middling files that make a careless reader allocate or loop."""
    megabyte = 1 << 20
    zeros = {"0": bytes(4 * megabyte)}
    big = tensor(storage(count=megabyte), shape=(megabyte,))
    packed = archive(dictionary(("w", big)), zeros, compression=zipfile.ZIP_DEFLATED)
    yield "a packed tensor", packed, "compressed"
    long_pickle = dictionary(("w", text("a" * 64 * megabyte)))
    packed = archive(dictionary(("w", text("a" * megabyte))), compression=zipfile.ZIP_DEFLATED)
    yield "a packed pickle", packed, "compressed"
    yield "a long pickle", archive(long_pickle), "over 67108864"
    expanded = tensor(shape=(10**6, 10**6), strides=(0, 0))
    yield "an expanded tensor", archive(dictionary(("w", expanded))), "overlapping"
    overlapping = tensor(shape=(2, 2**40), strides=(1, 0))
    yield "an overlapping tensor", archive(dictionary(("w", overlapping))), "overlapping"
    promised = b"\x80\x02\x8d" + (2**60).to_bytes(8, "little") + b"ab."
    yield "a text of 2^60 bytes", zip_file({"a/data.pkl": promised}), ""
    promised = b"\x80\x02X\xff\xff\xff\xff" + b"ab."
    yield "a text of 2^32 bytes", zip_file({"a/data.pkl": promised}), ""
    promised = b"\x80\x02\x8b\xff\xff\xff\x7f" + b"ab."
    yield "an integer of 2^31 bytes", zip_file({"a/data.pkl": promised}), ""
    digits = b"\x80\x02L" + b"9" * megabyte + b"L\n."
    yield "an integer of a million digits", zip_file({"a/data.pkl": digits}), ""
    yield "a million tuples", archive(b")0" * megabyte + b"}"), "instructions"
    yield "a million dictionaries", archive(b"}" * 2 * megabyte), "instructions"
    for levels, words in ((25, "unfolds into too many"), (1000, "nested deeper")):
        doubling = b"}" + b"2\x86" * levels
        yield f"{levels} tuples that double", archive(dictionary(("a", doubling))), words
    deep = b"(" * 100_000 + b"l" * 100_000
    yield "lists 100,000 deep", archive(dictionary(("a", deep))), "nested deeper"
    tuples = b")" + b"\x85" * 100_000
    yield "tuples 100,000 deep", archive(dictionary(("a", tuples))), "nested deeper"
    key = b")" + b"2\x86" * 60
    yield "a key that doubles", archive(dictionary((key, text("a")), ("w", b"(l"))), "no tensors"


def _other_files() -> Iterator[Case]:
    yield "empty file", b"", "an empty file"
    yield "web page", b"<!DOCTYPE html><html><body>Not found</body></html>", "a web page"
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    yield "git-lfs pointer", pointer, "git lfs pull"
    yield "safetensors", SAFETENSORS, "name it .safetensors"
    yield "gzip", gzip.compress(VALID), "a gzip file"
    yield "tar", b"storages".ljust(257, b"\0") + b"ustar\0" + bytes(300), "torch before 0.2"
    yield "zeros", bytes(4096), "filled with zeros"
    yield "some text", b"hello, world", "neither a zip archive nor a pickle"
    yield "protocol 0", pickle.dumps({"a": 1}, 0), "neither a zip archive nor a pickle"
    yield "plain pickle", pickle.dumps({"a": 1}, 2), "torch.save did not write"
    yield "plain pickle of protocol 5", pickle.dumps({"a": 1}, 5), "torch.save did not write"
    script = {"m/data.pkl": b"", "m/constants.pkl": b"", "m/code/m.py": b""}
    yield "TorchScript", zip_file(script), "TorchScript"
    yield "npz", zip_file({"a.npy": b""}), ".npz"
    yield "another zip", zip_file({"a.txt": b""}), "torch.save did not write"


def _archives() -> Iterator[Case]:
    for size in (4, 40, len(VALID) // 2, len(VALID) - 23, len(VALID) - 1):
        yield f"cut to {size} bytes", VALID[:size], "truncated"
    yield "two bytes more", VALID + b"ab", "bytes behind it"
    yield "bytes before", b"PK\x03\x04" + VALID, "directory is not where it says"
    packed = archive(dictionary(("w", tensor())), compression=zipfile.ZIP_DEFLATED)
    yield "packed", packed, "compressed"
    central = VALID.index(b"PK\x01\x02")
    for kind, position, value, words in (
        ("encrypted", central + 8, b"\1", "encrypted"),
        ("directory damaged", central, b"PK\x09\x09", "damaged directory"),
        ("two sizes", central + 20, b"\1\0\0\0", "two sizes"),
        ("another local name", 30, b"Z", "another name"),
        ("local header damaged", 0, b"PK\x03\x04\x14\0\0\0\x08", "damaged header"),
        ("too many members", len(VALID) - 12, b"\x09", "truncated directory"),
        ("too few members", len(VALID) - 12, b"\x01", "more than it says"),
        ("directory elsewhere", len(VALID) - 6, b"\0\0\0\0", "not where it says"),
    ):
        yield kind, VALID[:position] + value + VALID[position + len(value) :], words
    sizes = VALID[central + 20 : central + 28]
    grown = VALID[:central] + VALID[central:].replace(sizes, b"\xff\xff\0\0" * 2, 1)
    yield "a member beyond the end", grown, "truncated or reaches"
    entry = VALID[central : VALID.index(b"PK\x01\x02", central + 1)]
    end = bytearray(VALID[-22:])
    end[8:12] = b"\x05\0\x05\0"
    end[12:16] = (int.from_bytes(end[12:16], "little") + len(entry)).to_bytes(4, "little")
    yield "a member twice", VALID[:-22] + entry + end, "twice"
    body = dictionary(("w", tensor()))
    yield "two pickles", archive(body, more={"other/data.pkl": pickled(b"}")}), "one data.pkl"
    yield "a foreign member", archive(body, more={"../x": b""}), "foreign member"
    yield "no folder", archive(body, prefix=""), "one data.pkl"
    yield "byte order", archive(body, more={"archive/byteorder": b"middle"}), "byte order"


def _machines() -> Iterator[Case]:
    for kind, body, words in (
        ("no instruction", b"", "left over"),
        ("left on the stack", b"}}", "left over"),
        ("a mark left over", b"}(", "left over"),
        ("no operand", b"R", "lacks its operand"),
        ("an operand below the mark", b"}(\x85", "lacks its operand"),
        ("no mark", b"}t", "lacks its mark"),
        ("no such memo", b"h\7", "entry 7 of its memo"),
        ("a newer protocol", b"\x80\x09}", "protocol 9"),
        ("an extension", b"\x82\1", "instruction EXT1"),
        ("a buffer from outside", b"\x97", "instruction NEXT_BUFFER"),
        ("an unknown instruction", b"\xff", "opcode"),
        ("odd pairs", b"}(K\1u", ""),
        ("items in a tuple", b")K\1a", "no list"),
        ("items in a number", b"K\1(K\1e", "no list"),
        ("pairs in a list", b"](K\1K\1u", "no dictionary"),
        ("items of no set", b"](K\1\x90", "no set"),
        ("a global without a name", b"K\1K\1\x93", "without a name"),
        ("a state for a number", b"K\1}b", "impossible state"),
        ("bad UTF-8", b"X\1\0\0\0\xff", "utf-8"),
        ("a broken escape", b"S'\\8'\n", "escape"),
        ("a float of letters", b"Fabc\n", ""),
        ("an integer of letters", b"Iabc\n", ""),
        ("a persistent text", b"Pabc\n", "torch would not name so"),
        ("a persistent number", b"K\1Q", "torch would not name so"),
    ):
        yield kind, archive(body), words
    yield "no end", zip_file({"a/data.pkl": b"\x80\x02}"}), "STOP"
    yield "an empty pickle", zip_file({"a/data.pkl": b""}), "STOP"
    yield "bytes behind the pickle", archive(b"}.}"), "behind the end"


def _roots() -> Iterator[Case]:
    for kind, body, words in (
        ("a number", b"K\1", "holds integer 1"),
        ("nothing", b"N", "holds None"),
        ("a text", text("\x1b[31m"), "holds text"),
        ("a list", b"(" + tensor() + b"l", "holds a list of 1"),
        ("a tensor", tensor(), "holds a single tensor"),
        ("a class", name("os", "system"), "holds os.system"),
        ("a module", name("torch.nn.modules.linear", "Linear") + b")\x81}b", "state_dict()"),
        ("a namespace", call("argparse", "Namespace"), "state_dict()"),
        ("a set", b"\x8f(K\1\x90", "holds a set"),
        ("numbers only", dictionary(("a", b"K\1")), "no tensors"),
    ):
        yield f"root: {kind}", archive(body), words


def _tensors() -> Iterator[Case]:
    two = storage()
    sizes = sequence(integer(2)) + sequence(integer(1))
    rebuild = ("torch._utils", "_rebuild_tensor_v2")
    fields = (b"\x89", call("collections", "OrderedDict"))
    conjugate = dictionary(("conj", b"\x88"))
    untyped = storage("UntypedStorage", count=8, module="torch.storage")
    for kind, value, words in (
        ("no such storage", tensor(storage(key="9")), "storage '9' is not in"),
        ("a path as storage", tensor(storage(key="../../etc/passwd")), "is not in the archive"),
        ("a larger storage", tensor(storage(count=3)), "8 bytes in the archive, 12"),
        ("a smaller storage", tensor(storage(count=1), shape=(1,)), "8 bytes in the archive, 4"),
        ("a storage of another dtype", tensor(storage("DoubleStorage")), "8 bytes in the archive"),
        ("a negative storage", tensor(storage(count=-2)), "torch would not name so"),
        ("2^80 elements", tensor(storage(count=2**80)), "8 bytes in the archive"),
        ("beyond the storage", tensor(shape=(3,)), "12 bytes of a storage of 8"),
        ("an offset beyond", tensor(offset=1), "12 bytes of a storage of 8"),
        ("a stride beyond", tensor(strides=(2,)), "12 bytes of a storage of 8"),
        ("a negative offset", tensor(offset=-1), "no tensor has"),
        ("a negative stride", tensor(strides=(-1,)), "no tensor has"),
        ("a negative size", tensor(shape=(-2,)), "negative size"),
        ("too few strides", tensor(shape=(2, 1)), "no tensor has"),
        ("33 axes", tensor(shape=(1,) * 33, strides=(1,) * 33), "more than 32"),
        ("a huge shape", tensor(shape=(2**62, 4), strides=(4, 1)), "does not fit"),
        ("an expanded view", tensor(shape=(4,), strides=(0,)), "overlapping"),
        ("an overlapping view", tensor(shape=(2, 2), strides=(1, 1)), "overlapping"),
        ("no storage", tensor(b"N"), "without a storage"),
        ("no arguments", call(*rebuild), "without a storage"),
        ("a shape of texts", call(*rebuild, two, b"K\0", b"(U\1at", b"(K\1t", *fields), "integers"),
        (
            "a list as shape",
            call(*rebuild, two, b"K\0", b"(K\2l", b"(K\1t", *fields),
            "shape or strides",
        ),
        ("a boolean offset", call(*rebuild, two, b"\x88", sizes, *fields), "no integers"),
        ("a conjugate view", tensor(more=conjugate), "resolve_conj()"),
        ("bytes without a dtype", tensor(untyped), "dtype that is not carried"),
        ("a quantised storage", tensor(storage("QInt8Storage")), "torch.QInt8Storage"),
        ("a storage of cuda", tensor(storage(module="os")), "os.FloatStorage"),
        ("a storage that is a number", tensor(b"K\1"), "without a storage"),
        ("sparse", call("torch._utils", "_rebuild_sparse_tensor"), "sparse"),
        ("quantised", call("torch._utils", "_rebuild_qtensor"), "dequantise"),
        ("nested", call("torch._utils", "_rebuild_nested_tensor"), "nested"),
        ("meta", call("torch._utils", "_rebuild_meta_tensor_no_storage"), "meta"),
        ("a parameter of nothing", call("torch._utils", "_rebuild_parameter"), "parameter"),
    ):
        yield kind, archive(dictionary(("w", value))), words


def _entries() -> Iterator[Case]:
    one = tensor()
    system = call("os", "system", text("true"))
    array = call("numpy._core.multiarray", "_reconstruct") + b"("
    float_dtype = call("numpy", "dtype", text("f4")) + b"(K\3" + text("<") + b"tb"
    object_dtype = call("numpy", "dtype", text("O8"))
    two = sequence(integer(2))
    eight = call("_codecs", "encode", text("12345678"), text("latin1"))
    for kind, pairs, words in (
        ("a key twice", [("w", one), ("w", one)], "w: two entries, 'w' and 'w'"),
        ("1 and '1'", [(b"K\1", one), ("1", one)], "1: two entries, 1 and '1'"),
        ("two spellings", [("caf\u00e9", one), ("cafe\u0301", one)], "another spelling"),
        ("no name", [("", one)], "the name is empty"),
        ("a control character", [("a\x1b[31m", one)], "a\\x1b[31m: the name has"),
        ("a path", [("../x", one)], "leaves its folder"),
        ("half a surrogate", [("\ud800", one)], "unprintable"),
        ("an object beside", [("w", one), ("x", system)], "x: is an object of os.system"),
        (
            "one path, two dictionaries",
            [("a.b", dictionary(("w", one))), ("a", dictionary(("b", dictionary(("w", one)))))],
            "a.b: two dictionaries",
        ),
        (
            "an array of objects",
            [("w", one), ("x", array + b"K\1" + two + object_dtype + b"\x89(ltb")],
            "x: is a numpy array of a dtype",
        ),
        (
            "an array of fewer bytes",
            [("x", array + b"K\1" + sequence(integer(3)) + float_dtype + b"\x89" + eight + b"tb")],
            "x: 8 bytes for F32 [3]",
        ),
        (
            "an array of texts",
            [("w", one), ("x", call("numpy._core.multiarray", "_reconstruct") + b"}b")],
            "impossible state",
        ),
        ("bytes in an unknown encoding", [("x", call("_codecs", "encode", text("a")))], "encoding"),
        ("a pair of three", [("x", call("collections", "OrderedDict", b"((tl"))], "no pairs"),
    ):
        yield kind, archive(dictionary(*pairs)), words
    itself = b"}q\0(" + text("a") + b"h\0u"
    yield "a dictionary in itself", archive(itself), "nested deeper"


def _legacy_files() -> Iterator[Case]:
    body = dictionary(("w", tensor(legacy_storage())))
    yield "legacy, cut", VALID_LEGACY[:-1], "truncated"
    yield "legacy, cut early", VALID_LEGACY[:30], "not enough data"
    yield "legacy, more", VALID_LEGACY + b"a", "corrupt: 1 bytes behind"
    yield "legacy, another number", legacy(body, magic=1), "torch.save did not write"
    yield "legacy, another version", legacy(body, version=1002), "unknown version"
    yield "legacy, big-endian", legacy(body, little_endian=False), "byte order"
    yield "legacy, elements", legacy(body, count=3), "3 elements"
    yield "legacy, negative elements", legacy(body, count=-1), "elements"
    yield "legacy, no list of storages", legacy(body, keys={"0": 1}), "list of its storages"
    yield "legacy, a storage twice", legacy(body, keys=("0", "0")), "or twice"
    yield "legacy, an unknown storage", legacy(body, keys=("1",)), "no tensor has"
    yield "legacy, a storage left out", legacy(body, keys=(), data=b""), ""
    yield "legacy, a view", legacy(dictionary(("w", tensor(legacy_storage(view=b")"))))), "views"
    pair = (("w", tensor(legacy_storage())), ("v", tensor(legacy_storage(count=3))))
    yield "legacy, two sizes", legacy(dictionary(*pair)), "two sizes"
    module = sequence(text("module"), name("m", "Net"), text("m.py"), text("")) + b"Q)\x81"
    module += body + b"b"
    yield "legacy, a module", legacy(module), "an object of m.Net"
