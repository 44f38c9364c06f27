"""README and docs hold the tables of components and families that the code gives."""

import pytest

from diptych.convert import FAMILIES
from diptych.spec import COMPONENTS
from parity_tests.house.component_table import (
    FAMILY_KINDS,
    KINDS,
    TABLES,
    between,
    component_table,
    families_of,
)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_holds_the_table(name):
    page, before, found, after = between(name)
    assert (before + after).count(f"<!-- {name} -->") == 1
    run = f"{page.name}: run python -m parity_tests.house.component_table"
    assert found.strip() == TABLES[name][1]().strip(), run


def test_every_component_and_every_family_is_of_one_kind():
    assert sorted(name for names in KINDS.values() for name in names) == sorted(COMPONENTS)
    found = [name for kind in FAMILY_KINDS for name in families_of(kind)]
    assert sorted(found) == sorted(FAMILIES)


@pytest.mark.parametrize("kind", KINDS)
def test_every_component_has_a_row_that_says_all(kind):
    rows = component_table(kind).splitlines()[2:]
    assert len(rows) == len(KINDS[kind])
    for name, row in zip(KINDS[kind], rows, strict=True):
        cells = row.replace("\\\\|", "").split(" | ")
        assert cells[0].startswith(f"| `{name}` ")
        assert len(cells) == 4
        assert all(cell.strip(" |") for cell in cells)
