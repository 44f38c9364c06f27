"""How many lines differ between the panels: ``python -m parity_tests.house.pair_diff``.

What differs should be what the frameworks make different, so that a pair can be read side by side.
"""

import difflib
from dataclasses import dataclass

from parity_tests import ROOT

PANELS = ("torch_impl", "jax_impl")


@dataclass(frozen=True)
class PairDiff:
    """One pair of files.

    Attributes:
        name: Path within each panel.
        differing: Lines of the torch file that the JAX file has not, or has otherwise, or the
            number of those that the JAX file has instead, whichever is larger.
        total: Lines of the torch file.
    """

    name: str
    differing: int
    total: int

    @property
    def share(self) -> float:
        """Return the part of the torch file's lines that differ."""
        return self.differing / max(self.total, 1)

    def __str__(self) -> str:
        return f"{self.name:32} {self.differing:4} of {self.total:4} lines  {self.share:6.1%}"


def pair_diffs() -> list[PairDiff]:
    """Return the difference of every pair of files that both panels have."""
    torch_root, jax_root = (ROOT / panel for panel in PANELS)
    names = sorted(str(path.relative_to(torch_root)) for path in torch_root.rglob("*.py"))
    return [
        diff_lines(name, *((root / name).read_text("utf-8") for root in (torch_root, jax_root)))
        for name in names
        if (jax_root / name).exists()
    ]


def diff_lines(name: str, in_torch: str, in_jax: str) -> PairDiff:
    """Return how much of a file differs from its partner."""
    left, right = in_torch.splitlines(), in_jax.splitlines()
    blocks = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    differing = sum(max(b - a, d - c) for kind, a, b, c, d in blocks if kind != "equal")
    return PairDiff(name, differing, len(left))


if __name__ == "__main__":
    for pair in pair_diffs():
        print(pair)
