"""``verify``: a checkpoint against its manifest, or two checkpoints against each other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..convert import Checkpoint, Diff, diff_checkpoints, open_pair, verify_manifest
from ..convert.manifest import MANIFEST
from ..spec import CheckpointError
from ..tensors.cast import CASTABLE
from .compare import HEADER, Comparison, compare_exact, compare_working, tie_fault
from .inputs import batches
from .panels import Outputs, missing_frameworks, run_jax, run_torch, torch_noise
from .rounding import FLOAT32, FLOAT64

_EXACT_TITLE = "float64: torch_impl against jax_impl (ties: values that differ in float32)"
_WORKING_TITLE = (
    "float32: each panel against float64, bound by 4 x the other's error or rounding noise"
)


@dataclass(frozen=True)
class Verification:
    """What was checked and what was found.

    Attributes:
        faults: Where a file disagrees with its manifest.
        weights: Tensor by tensor, of two checkpoints.
        cast: Code of the dtype that the first was cast to before comparing, because the second
            records that cast; None without one.
        exact: float64 outputs of the first in torch_impl against the second in jax_impl.
        working: Their float32 outputs, each against float64.
        not_run: Why outputs were not compared, "" if they were.
    """

    faults: tuple[str, ...] = ()
    weights: Diff | None = None
    cast: str | None = None
    exact: tuple[Comparison, ...] = ()
    working: tuple[Comparison, ...] = ()
    not_run: str = ""

    @property
    def tie_fault(self) -> str:
        """Return what is wrong with the number of float32 rounding ties, "" if nothing is."""
        return tie_fault(self.exact)

    @property
    def identical(self) -> bool:
        """Return whether nothing that was checked differs."""
        rows = self.exact + self.working
        same_weights = self.weights is None or (self.weights.identical and not self.settings)
        return not self.faults and same_weights and not self.tie_fault and all(r.ok for r in rows)

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the settings that differ and change numbers, on whatever inputs: all but rates."""
        found = () if self.weights is None else self.weights.settings
        return tuple(each for each in found if "dropout" not in each.partition(":")[0])

    @property
    def complete(self) -> bool:
        """Return whether everything that could be checked was."""
        return not self.not_run

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "identical": self.identical,
            "complete": self.complete,
            "faults": list(self.faults),
            "weights": self.weights and self.weights.to_dict(),
            "cast": self.cast,
            "outputs": {"float64": _dicts(self.exact), "float32": _dicts(self.working)},
            "outputs_not_run": self.not_run,
        }

    def __str__(self) -> str:
        if self.weights is None:
            return "\n".join(self.faults) or "every tensor and file is as the manifest says"
        lines = [str(self.weights)]
        if self.cast:
            lines.append(f"compared after casting {self.weights.a} to {self.cast}, as recorded")
        for title, rows in ((_EXACT_TITLE, self.exact), (_WORKING_TITLE, self.working)):
            if rows:
                lines += ["", title, HEADER, *map(str, rows)]
        lines += [""] if self.exact else []
        lines += [self.tie_fault] if self.tie_fault else []
        lines += [f"outputs: not run ({self.not_run})"] if self.not_run else []
        return "\n".join([*lines, self._verdict])

    @property
    def _verdict(self) -> str:
        if not self.identical:
            return "different"
        after = f" after the cast to {self.cast}" if self.cast else ""
        if self.complete:
            return f"identical{after}"
        return f"weights identical{after}, outputs not compared"


def verify(
    a: str | Path | Checkpoint,
    b: str | Path | Checkpoint | None = None,
    *,
    weights_only: bool = False,
) -> Verification:
    """Check a checkpoint against its manifest, or that two checkpoints are the same model.

    Two checkpoints are compared tensor by tensor, bit for bit; where ``b`` records a cast, ``a`` is
    cast likewise first, and the result says so. Then ``a`` runs in ``torch_impl`` and ``b`` in
    ``jax_impl``, on a padded batch and on a long input, in float64 and in float32, and every
    output, hidden state and attention weight is judged. Where a difference is above what is usual,
    ``torch_impl`` runs again with random rounding errors, and 4 times what these change is allowed.
    Settings that differ are a difference too, since these inputs cannot show all: a window above
    their length, say.

    Args:
        a: A checkpoint in any layout, or one that ``open_checkpoint`` opened with the settings that
            it lacks; without ``b``, a folder that Diptych wrote.
        b: The other checkpoint.
        weights_only: Whether to leave the outputs out.

    Raises:
        CheckpointError: If a checkpoint cannot be read, or ``a`` alone has no manifest.
    """
    if b is None:
        folder = a.path if isinstance(a, Checkpoint) else Path(a)
        if not (folder / MANIFEST).is_file():
            raise CheckpointError(
                f"{folder}: has no {MANIFEST}; name a second checkpoint to compare"
            )
        return Verification(faults=tuple(verify_manifest(folder)))
    first, second = open_pair(a, b)
    if second.dtype is not None:
        first = first.cast(second.dtype)
    weights = diff_checkpoints(first, second)
    known = Verification(weights=weights, cast=second.dtype)
    if weights_only:
        return replace(known, not_run="--weights-only")
    missing = missing_frameworks()
    if missing:
        extras = ", ".join(f"{name} missing" for name in missing)
        return replace(known, not_run=f"{extras}: pip install 'diptych[all]'")
    if not weights.identical:
        return replace(known, not_run="the weights differ")
    for name, leaf in first.leaves.items():
        if leaf.dtype not in CASTABLE:
            return replace(known, not_run=f"{name} is {leaf.dtype}, in which nothing computes")
    inputs = batches(first.config)
    if not inputs:
        return replace(known, not_run="the component takes no plain input")
    exact, working = [], []
    wide = list(
        zip(run_torch(first, inputs, "float64"), run_jax(second, inputs, "float64"), strict=True)
    )
    narrow = zip(
        run_torch(first, inputs, "float32"), run_jax(second, inputs, "float32"), strict=True
    )
    for batch, in_64, in_32 in zip(inputs, wide, narrow, strict=True):
        rows = _exact(in_64)
        if not all(row.ok for row in rows):
            rows = _exact(in_64, torch_noise(first, batch, FLOAT64))
        exact += _grouped(batch.name, rows)
        rows = _working(in_64[0], in_32)
        if not all(row.ok for row in rows):
            rows = _working(in_64[0], in_32, torch_noise(first, batch, FLOAT32))
        working += _grouped(batch.name, rows)
    return replace(known, exact=tuple(exact), working=tuple(working))


def _exact(panels: tuple[Outputs, Outputs], noise: Mapping[str, float] = {}) -> list[Comparison]:
    a, b = panels
    return [compare_exact(a[n], b[n], name=n, noise=noise.get(n, 0.0)) for n in a]


def _working(
    reference: Outputs, panels: tuple[Outputs, Outputs], noise: Mapping[str, float] = {}
) -> list[Comparison]:
    return [
        compare_working(value[n], reference[n], peer[n], name=n, noise=noise.get(n, 0.0))
        for n in reference
        for value, peer in (panels, panels[::-1])
    ]


def _grouped(batch: str, rows: list[Comparison]) -> list[Comparison]:
    """Return one row a kind of output; the one nearest to its bound speaks for all layers."""
    groups: dict[str, list[Comparison]] = {}
    for row in rows:
        groups.setdefault(row.name.split("[")[0], []).append(row)
    return [_merged(f"{batch}: {name.replace('_', ' ')}", group) for name, group in groups.items()]


def _merged(name: str, rows: list[Comparison]) -> Comparison:
    faulty = [row for row in rows if not row.ok]
    worst = faulty[0] if faulty else max(rows, key=lambda row: row.difference / (row.bound or 1.0))
    return Comparison(
        name=name,
        count=sum(row.count for row in rows),
        difference=worst.difference,
        bound=worst.bound,
        ties=sum(row.ties for row in rows),
        fault=worst.fault and f"{worst.name}: {worst.fault}",
    )


def _dicts(rows: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "values": row.count,
            "max_difference": row.difference,
            "bound": row.bound,
            "ties": row.ties,
            "verdict": row.verdict,
        }
        for row in rows
    ]
