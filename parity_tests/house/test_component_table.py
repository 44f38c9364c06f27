"""The README holds the tables of components and families that the code gives."""

import pytest

from diptych.spec import COMPONENTS
from parity_tests import ROOT
from parity_tests.house.component_table import TABLES, component_table, ordered

README = ROOT / "README.md"


@pytest.mark.parametrize("name", TABLES)
def test_the_readme_holds_the_table(name):
    text, start, end = README.read_text(), f"<!-- {name} -->", f"<!-- /{name} -->"
    assert text.count(start) == text.count(end) == 1
    found = text.split(start)[1].split(end)[0]
    run = "run python -m parity_tests.house.component_table"
    assert found.strip() == TABLES[name]().strip(), run


def test_every_component_has_a_row_that_says_all():
    rows = component_table().splitlines()[2:]
    assert len(rows) == len(COMPONENTS)
    for name, row in zip(ordered(), rows, strict=True):
        cells = row.replace("\\\\|", "").split(" | ")
        assert cells[0].startswith(f"| `{name}` ")
        assert len(cells) == 4
        assert all(cell.strip(" |") for cell in cells)
