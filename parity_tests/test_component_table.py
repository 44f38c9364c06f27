"""The README holds the table of components that the code gives."""

import pathlib

from diptych.spec import COMPONENTS
from parity_tests.component_table import END, START, component_table

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_readme_holds_the_table():
    text = README.read_text()
    assert text.count(START) == text.count(END) == 1
    found = text.split(START)[1].split(END)[0]
    assert found.strip() == component_table().strip(), "run python -m parity_tests.component_table"


def test_every_component_has_a_row_that_says_all():
    rows = component_table().splitlines()[2:]
    assert len(rows) == len(COMPONENTS)
    for name, row in zip(sorted(COMPONENTS), rows, strict=True):
        cells = row.replace("\\\\|", "").split(" | ")
        assert cells[0].startswith(f"| `{name}` ")
        assert len(cells) == 4
        assert all(cell.strip(" |") for cell in cells)
