"""Every kind of container answers for itself, and the command offers what the registries hold."""

import pytest

from diptych import cli
from diptych.convert.layouts.layout import FAMILY_LAYOUTS, LAYOUTS, PANEL_LAYOUTS
from diptych.formats import FORMATS, WRITTEN
from diptych.formats.format import Format

from ..support.checkpoints import bert_tensors, write_checkpoint


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_what_is_written_is_found_first(form):
    written = {form.name_in(layout) for layout in LAYOUTS}
    assert written <= set(form.preferred)
    assert all(name.endswith(form.suffixes) for name in form.preferred)
    assert form.bookkeeping.isdisjoint(form.preferred)


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if kind != "orbax"])
def test_a_file_without_an_ending_is_told_by_its_start(tmp_path, kind):
    write_checkpoint(tmp_path, bert_tensors(), kind=kind, name="weights")
    start = (tmp_path / "weights").read_bytes()
    told = [form.kind for form in FORMATS.values() if form.sniff(start[:512], len(start))]
    assert told == [kind]


def test_no_two_kinds_share_an_ending():
    endings = [suffix for form in FORMATS.values() for suffix in form.suffixes]
    assert len(set(endings)) == len(endings)


def test_a_kind_that_is_only_read_says_so():
    class ReadOnly(Format):
        kind, suffixes, preferred = "npz", (".npz",), ("weights.npz",)

    assert not ReadOnly().is_written
    assert all(FORMATS[kind].is_written for kind in WRITTEN)


def test_the_command_offers_every_layout_and_container():
    assert [each.value for each in cli.To] == list(LAYOUTS)
    assert [each.value for each in cli.Format] == list(WRITTEN)


def test_every_layout_is_read_too():
    assert {layout.name for layout in (*FAMILY_LAYOUTS, *PANEL_LAYOUTS)} == LAYOUTS.keys()
    assert all(layout.usual_format in WRITTEN for layout in LAYOUTS.values())
