"""What a file is, by its first bytes, when it is not what its name says."""

_STARTS = (
    (b"version https://git-lfs", "a git-lfs pointer, not the weights: run git lfs pull"),
    (b"PK\x03\x04", "a zip archive, perhaps a torch checkpoint: name it .pt if it is one"),
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"BZh", "a bzip2 file: unpack it first"),
    (b"\xfd7zXZ", "an xz file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file: unpack it first"),
    (b"\x89HDF", "an HDF5 file, perhaps of Keras, which is not read"),
    (b"GGUF", "a GGUF file, which is not read"),
    (b"\x93NUMPY", "a numpy .npy file, which is not read"),
    (b"\x80", "a Python pickle, perhaps a torch checkpoint: name it .pt if it is one"),
)
_WEB_PAGES = (b"<!doctype", b"<html", b"<?xml", b"<head")


def identify(start: bytes, size: int) -> str | None:
    """Return what a file is, as the end of a sentence that begins with "is".

    Args:
        start: Its first bytes, 512 are enough.
        size: Its size in bytes.

    Returns:
        What it is and what to do, or None when nothing known fits.
    """
    if size == 0:
        return "an empty file"
    for prefix, kind in _STARTS:
        if start.startswith(prefix):
            return kind
    if start.lstrip().lower().startswith(_WEB_PAGES):
        return "a web page, not the weights: download the file itself"
    if start[257:262] == b"ustar":
        return "a tar archive, perhaps of torch before 0.2: load and save it there again"
    if is_safetensors(start, size):
        return "a safetensors file: name it .safetensors"
    if not start.strip(b"\0"):
        return "filled with zeros, perhaps a download that broke off"
    return None


def is_safetensors(start: bytes, size: int) -> bool:
    """Return whether a file begins as safetensors files do: a length that fits, then an object."""
    return start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size - 8
