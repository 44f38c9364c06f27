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

# Compiling takes seconds, and eager JAX compiles every operation of every new shape. What another
# row or test proves too is run by hand: make slow.
STACKS = ("Block", "Latent", "Decoder", "Encoder", "TransformerLayer", "MixtureOfExperts")
STACKED = (*STACKS, "Encoder", "Embedding")
EAGER_JAX = tuple(f"{kind}-jax_impl" for kind in ("positions", "T5 bias", "global", "ALiBi"))
LONG_TAIL = {
    "test_functional_call_is_the_call": STACKED,
    "test_torch_compile": STACKED,
    "test_jax_jit_and_grad": STACKED,
    "test_jax_vmap": STACKED,
    "test_16_bits": STACKED,
    "test_component": (
        "Block, p",
        "Block, branch",
        "Block, sandwich",
        "(Mixtral)",
        "(gpt-oss)",
        "(DeepSeek-V3)",
        "(Qwen2-MoE)",
        "[Decoder, l",
        "[Decoder, ALiBi",
        "narrow tables",
        "class and mean",
        "tanh, no final norm",
        "EncoderWithProjection, images",
        "pooled at the last token",
    ),
    "test_a_converted_model_is_verified": ("Dual", "Audio", "With", "Layer", "Decoder", "Vision"),
    "test_component_without_jit": STACKS,
    "test_every_field_changes_something": STACKS,
}
"""By the name of a test: its cases whose ids hold one of the words are slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long tail."""
    for item in items:
        name, _, case = item.name.partition("[")
        words = LONG_TAIL.get(name, ())
        if "torch-" not in case and not case.endswith("-torch]") and any(w in case for w in words):
            item.add_marker(pytest.mark.slow)


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
