"""Many runs: cells of scenario and arm, each at many seeds, through joblib.

A study only simulates. What its replicates mean is for :mod:`elfmem_sim.compare`; where they are
kept is for :mod:`elfmem_sim.store`.
"""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.fields import TIERS
from elfmem_sim.scenario import Arm, Scenario

if TYPE_CHECKING:
    from elfmem_sim.simulate import Trajectory

TALLIES = (
    "reviews",
    "insufficient",
    "first_judged_day",
    "proposals",
    "failed",
    "accepted",
    "reverted",
)
"""Counts of one run, in order; ``first_judged_day`` is -1 if no review could judge."""

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

_SECONDS_PER_TASK = 0.5
_SECONDS_PER_YEAR = 0.012  # for sizing tasks only

Progress = Callable[[int, int], None]
"""Called with replicates done and replicates planned."""


@dataclass(frozen=True)
class Cell:
    """One combination of scenario and arm, to be run at many seeds.

    Attributes:
        scenario: The world.
        arm: The agent's build.
        seeds: Seeds to run.
        variant: Label of the settings that differ from the arm's and scenario's own.
        tier: What runs it: one of ``fields.TIERS``.
    """

    scenario: Scenario
    arm: Arm
    seeds: tuple[int, ...]
    variant: str = ""
    tier: str = "model"

    @cached_property
    def digest(self) -> str:
        """Digest of everything that determines a replicate, but for its seed."""
        production = self.tier == "production"
        unread = {"description"} if production else {"description", "production"}
        parts = [
            self.scenario.model_dump(mode="json", exclude=unread),
            self.arm.model_dump(mode="json", exclude={"description"}),
            code_digest(self.tier),
            version("elfmem") if self.arm.review or production else "",
        ]
        text = json.dumps([*parts, self.tier] if production else parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Replicate:
    """The outcome of one run, small enough to keep by the hundred thousand.

    Attributes:
        digest: Digest of the cell.
        seed: The run's seed.
        snapshots: ``float64[measured, columns]``, the columns being those of the cell's tier.
        tallies: ``int64[len(TALLIES)]``.
    """

    digest: str
    seed: int
    snapshots: NDArray[np.float64]
    tallies: NDArray[np.int64]

    def tally(self, name: str) -> int:
        """Return the count called ``name``."""
        return int(self.tallies[TALLIES.index(name)])


@cache
def code_digest(tier: str = "model") -> str:
    """Digest of the sources that a replicate's numbers come from."""
    here = Path(__file__).parent
    names = ("fields", "study", "simulate", "review", "thin", "standins", "topics", "streams")
    folders = ["kernel", "production"] if tier == "production" else ["kernel"]
    sources = [here / f"{name}.py" for name in names]
    sources += [path for folder in folders for path in sorted(here.glob(f"{folder}/*.py"))]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def run_study(
    cells: Sequence[Cell],
    *,
    workers: int = 1,
    done: Iterable[Replicate] = (),
    keep: Callable[[Sequence[Replicate]], None] = lambda _: None,
    progress: Progress = lambda _done, _planned: None,
) -> dict[str, dict[int, Replicate]]:
    """Run every cell at every one of its seeds, each only once.

    Args:
        cells: What to run; cells with one digest share their replicates.
        workers: Processes; the result does not depend on it.
        done: Replicates from an earlier, interrupted run of the same cells.
        keep: Called with each batch of new replicates as soon as it is there.
        progress: Called after each batch.

    Returns:
        Replicates by cell digest and seed.

    Raises:
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    found: dict[str, dict[int, Replicate]] = {cell.digest: {} for cell in cells}
    for replicate in done:
        if replicate.digest in found:
            found[replicate.digest][replicate.seed] = replicate
    tasks = list(_tasks(cells, found))
    planned = len({(cell.digest, seed) for cell in cells for seed in cell.seeds})
    finished = planned - sum(len(seeds) for _, seeds in tasks)
    progress(finished, planned)
    for batch in _batches(tasks, workers):
        for replicate in batch:
            found[replicate.digest][replicate.seed] = replicate
        keep(batch)
        finished += len(batch)
        progress(finished, planned)
    return found


def in_order(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], workers: int
) -> Iterator[Outcome]:
    """Yield ``function`` of each task, in the order of the tasks whatever the ``workers``."""
    if workers == 1 or len(tasks) < 2:
        yield from map(function, tasks)
        return
    from joblib import Parallel, delayed

    # The first one here, for the kernel to be compiled once and not by every worker.
    yield function(tasks[0])
    parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
    yield from parallel(delayed(function)(task) for task in tasks[1:])


def release_workers() -> None:
    """End the idle worker processes that joblib keeps, and with them their memory."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(max_workers=1, reuse="auto").shutdown(wait=True)


def _tasks(
    cells: Sequence[Cell], found: dict[str, dict[int, Replicate]]
) -> Iterator[tuple[Cell, tuple[int, ...]]]:
    """Cut the missing replicates into pieces of about half a second."""
    planned = {digest: set(seeds) for digest, seeds in found.items()}
    for cell in cells:
        missing = sorted(set(cell.seeds) - planned[cell.digest])
        planned[cell.digest].update(missing)
        years = cell.scenario.horizon_days / 365
        size = max(1, math.ceil(_SECONDS_PER_TASK / (_SECONDS_PER_YEAR * years)))
        if cell.tier == "production":  # takes a minute
            size = 1
        for at in range(0, len(missing), size):
            yield cell, tuple(missing[at : at + size])


def _batches(tasks: list[tuple[Cell, tuple[int, ...]]], workers: int) -> Iterator[list[Replicate]]:
    if not tasks:
        return
    if workers == 1 or len(tasks) == 1:
        for cell, seeds in tasks:
            yield run_cell(cell, seeds)
        return
    from joblib import Parallel, delayed

    # Compile (or load) the kernel once, before the workers all try to.
    first, seeds = tasks[0]
    yield run_cell(first, seeds)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(run_cell)(cell, seeds) for cell, seeds in tasks[1:])


def run_cell(cell: Cell, seeds: Sequence[int]) -> list[Replicate]:
    """Run one cell at ``seeds``, in this process."""
    digest = cell.digest
    replicates = []
    for seed in seeds:
        run = _run(cell, seed)
        judged = [review.day for review in run.reviews if not review.insufficient_history]
        tallies = (
            len(run.reviews),
            len(run.reviews) - len(judged),
            min(judged, default=-1),
            sum(review.proposals for review in run.reviews),
            sum(review.failed for review in run.reviews),
            sum(review.accepted for review in run.reviews),
            sum(amendment.reverted_day is not None for amendment in run.amendments),
        )
        replicates.append(Replicate(digest, seed, run.snapshots, np.array(tallies, np.int64)))
    return replicates


def _run(cell: Cell, seed: int) -> "Trajectory":
    if cell.tier == "production":
        from elfmem_sim.production import live

        return live(cell.scenario, cell.arm, seed)
    from elfmem_sim.simulate import simulate

    return simulate(cell.scenario, cell.arm, seed)


def reuse_without_calls(
    replicates: dict[int, Replicate], cell: Cell
) -> tuple[dict[int, Replicate], Cell]:
    """Split a cell that differs from a finished one in its proposer only.

    A run in which the proposer was never called does not depend on the proposer: its replicate
    stands for the other cell too, and only the rest has to be simulated.

    Args:
        replicates: The finished cell's replicates by seed.
        cell: The other cell.

    Returns:
        The replicates that carry over, and ``cell`` with the seeds that are left.
    """
    carried = {
        seed: replace(replicates[seed], digest=cell.digest)
        for seed in cell.seeds
        if replicates[seed].tally("proposals") + replicates[seed].tally("failed") == 0
    }
    return carried, replace(cell, seeds=tuple(s for s in cell.seeds if s not in carried))


def to_plain(replicate: Replicate) -> dict[str, Any]:
    """Return a replicate as JSON-ready data; floats survive exactly."""
    packed = replicate.snapshots.astype("<f8").tobytes()
    return {
        "digest": replicate.digest,
        "seed": replicate.seed,
        "tallies": replicate.tallies.tolist(),
        "snapshots": base64.b64encode(packed).decode(),
        "columns": replicate.snapshots.shape[1],
    }


def from_plain(data: dict[str, Any]) -> Replicate:
    """Undo :func:`to_plain`.

    Raises:
        KeyError: If a field is missing.
        ValueError: If a field does not hold what it should.
    """
    packed = np.frombuffer(base64.b64decode(data["snapshots"], validate=True), "<f8")
    tallies = np.array(data["tallies"], np.int64)
    if tallies.shape != (len(TALLIES),):
        raise ValueError(f"{len(TALLIES)} tallies are needed, not {data['tallies']}")
    columns = int(data["columns"])
    if columns not in map(len, TIERS.values()):
        raise ValueError(f"no tier measures {columns} columns")
    return Replicate(
        str(data["digest"]),
        int(data["seed"]),
        packed.reshape(-1, columns).astype(np.float64),
        tallies,
    )
