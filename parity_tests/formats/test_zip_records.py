"""The archives that we write, with 64-bit sizes throughout, refused when they are damaged."""

import numpy as np
import pytest

from diptych.formats.find import find_container

from .pickle_bytes import archive, dictionary, tensor, zip_file
from .pickle_files import error_of, write


@pytest.fixture(scope="module")
def small_archive(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("small")
    write(folder, {"w": np.array([1.5, -2.0], np.float32)})
    return (folder / "model.pt").read_bytes()


def test_data_is_aligned_so_that_it_can_be_mapped(tmp_path, small_archive):
    (tmp_path / "model.pt").write_bytes(small_archive)
    assert find_container(tmp_path / "model.pt").tensors["w"].position % 64 == 0


def test_a_member_inside_another_is_refused(tmp_path):
    plain = zip_file({"archive/version": b"3\n"})
    inner = plain[: plain.index(b"PK\x01\x02")]
    outer = archive(dictionary(("w", tensor())), {"0": bytes(8) + inner})
    offset = outer.rindex(b"PK\x01\x02") + 42
    position = outer.index(inner)
    changed = outer[:offset] + position.to_bytes(4, "little") + outer[offset + 4 :]
    (tmp_path / "model.pt").write_bytes(changed)
    assert "'archive/version' overlaps the one before it" in error_of(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("find", "replacement", "words"),
    [
        (b"PK\x06\x06", b"PK\x06\x09", "damaged end"),
        (b"PK\x06\x07", b"PK\x06\x09", "directory is not where it says"),
        (b"\1\0\x18\0", b"\2\0\x18\0", "has no size"),
        (b"\1\0\x18\0" + (8).to_bytes(8, "little"), b"\1\0\x18\0" + b"\xff" * 8, "two sizes"),
        (b"\1\0\x18\0" + b"\2" + bytes(7), b"\1\0\x18\0" + b"\3" + bytes(7), "two sizes"),
    ],
)
def test_a_damaged_64_bit_archive_is_refused(tmp_path, small_archive, find, replacement, words):
    data = small_archive
    assert find in data
    (tmp_path / "model.pt").write_bytes(data.replace(find, replacement, 1))
    assert words in error_of(tmp_path / "model.pt")


def test_a_member_far_beyond_the_end_is_refused(tmp_path, small_archive):
    data = small_archive
    last = data.rindex(b"\1\0\x18\0") + 20
    for position in (2**63, 2**64 - 1, len(data)):
        changed = data[:last] + position.to_bytes(8, "little") + data[last + 8 :]
        (tmp_path / "model.pt").write_bytes(changed)
        assert "truncated" in error_of(tmp_path / "model.pt")
