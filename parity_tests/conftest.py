"""What every test shares: the tally of the exact tier, judged once over the whole run."""

import os
from collections import Counter
from collections.abc import Iterator

import jax
import pytest

from diptych.parity.compare import tie_fault, tie_limit
from parity_tests.support.harness import Tally

TALLY = pytest.StashKey[Tally]()
COUNTS = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Iterator[Tally]:
    """Collect exact comparisons; the run fails if too many values part in float32."""
    pytestconfig.stash[TALLY] = tally = Tally()
    yield tally
    fault = tie_fault(tally.outputs)
    assert not fault, fault


@pytest.fixture
def there(tmp_path):
    """The folder that destinations lie in, alone with a decoy that is nobody's to touch."""
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / ".diptych-decoy").write_text("mine")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory() -> Iterator[None]:
    """Forget what was compiled for one file's tests: the whole run's programs fill many GiB."""
    yield
    jax.clear_caches()


def pytest_configure(config: pytest.Config) -> None:
    """Keep what XLA compiles: eager JAX spends most of a run compiling the same small programs."""
    config.stash[COUNTS] = Counter()
    for name, value in (
        ("jax_compilation_cache_dir", str(config.cache.mkdir("xla"))),
        ("jax_persistent_cache_min_compile_time_secs", 0),
    ):
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # for the processes that tests start


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Count what this process compared; a worker hands its counts to the process it works for."""
    config = session.config
    counts = config.stash[COUNTS]
    tally = config.stash.get(TALLY, Tally())
    for kind in ("outputs", "gradients"):
        rows = getattr(tally, kind)
        counts[kind] += sum(row.count for row in rows)
        counts[f"{kind}, ties"] += sum(row.ties for row in rows)
    if hasattr(config, "workeroutput"):
        config.workeroutput["counts"] = dict(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Add the counts of a worker."""
    node.config.stash[COUNTS].update(getattr(node, "workeroutput", {}).get("counts", {}))


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the claim of the exact tier with its numbers."""
    counts = config.stash[COUNTS]
    for kind in ("outputs", "gradients"):
        count, ties = counts[kind], counts[f"{kind}, ties"]
        limit = f", at most {tie_limit(count)} allowed" if kind == "outputs" else ""
        if count:
            terminalreporter.write_line(
                f"exact tier, {kind}: {count:,} values compared, {ties} differ in float32{limit}"
            )
