"""What every test shares: the tally of the exact tier, judged once over the whole run."""

from collections.abc import Iterator

import jax
import pytest

from diptych.parity.compare import tie_fault, tie_limit
from parity_tests.harness import Tally

TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Iterator[Tally]:
    """Collect exact comparisons; the run fails if too many values part in float32."""
    pytestconfig.stash[TALLY] = tally = Tally()
    yield tally
    fault = tie_fault(tally.outputs)
    assert not fault, fault


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory() -> Iterator[None]:
    """Forget what was compiled for one file's tests: the whole run's programs fill many GiB."""
    yield
    jax.clear_caches()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the claim of the exact tier with its numbers."""
    tally = config.stash.get(TALLY, None)
    if tally is None:
        return
    for kind, rows in (("outputs", tally.outputs), ("gradients", tally.gradients)):
        count, ties = sum(row.count for row in rows), sum(row.ties for row in rows)
        limit = f", at most {tie_limit(count)} allowed" if kind == "outputs" else ""
        terminalreporter.write_line(
            f"exact tier, {kind}: {count:,} values compared, {ties} differ in float32{limit}"
        )
