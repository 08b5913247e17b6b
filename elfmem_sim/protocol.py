"""Running a decision record's protocol: every cell that its claims need, until they are precise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from elfmem_sim.arms import ARMS
from elfmem_sim.claims import WITHOUT_CELLS, ClaimFile, Published, load_claims
from elfmem_sim.compare import replay_table
from elfmem_sim.errors import UserError
from elfmem_sim.progress import ProgressReport
from elfmem_sim.scenario import Scenario, load_scenario, override
from elfmem_sim.stats import larger_n
from elfmem_sim.store import Results, tidy
from elfmem_sim.study import Cell, Replicate, reuse_without_calls, run_study
from elfmem_sim.verdict import Verdict, judge, judge_sensitivity

MAX_SEEDS = 20_000

Found = dict[str, dict[int, Replicate]]


@dataclass(frozen=True)
class Sizes:
    """How large the parts of a protocol are.

    Attributes:
        seeds: Seeds per cell in every part; None for the claim file's own numbers.
        precision: Go on until the half-width of every effect in percentage points is at most this.
        coarse: The half-width to settle for where ``precision`` would take more than
            ``MAX_SEEDS`` seeds; None to stop there.
        last_day_only: Measure no day but the last, which changes no number measured then.
    """

    seeds: int | None = None
    precision: float | None = None
    coarse: float | None = None
    last_day_only: bool = False


@dataclass(frozen=True)
class Evidence:
    """What a record's protocol yields.

    Attributes:
        record: The claim file.
        own: Cells of its published figures and of its claims.
        replayed: Cells of another record's published table that it replays.
        others: Cells of the reversions and of the sensitivity table.
        table: Tidy replicates of all cells.
        verdicts: One per claim.
        replay: Published figures beside replay and population, or None.
        sensitivity: Gain and tax under other assumptions, or None.
        notes: What the user should know about how it came about.
    """

    record: ClaimFile
    own: tuple[Cell, ...]
    replayed: tuple[Cell, ...]
    others: tuple[Cell, ...]
    table: pd.DataFrame
    verdicts: tuple[Verdict, ...]
    replay: pd.DataFrame | None
    sensitivity: pd.DataFrame | None
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the table."""
        return self.replayed + self.own + self.others


def check_seeds(seeds: int | None, *, least: int) -> None:
    """Refuse a number of seeds that supports no estimate.

    Raises:
        UserError: If ``seeds`` is below ``least``.
    """
    if seeds is not None and seeds < least:
        raise UserError(seeds, f"at least {least} seeds", "Give a larger --seeds.", "--seeds")


def check_precision(precision: float | None) -> None:
    """Refuse a half-width that no number of seeds reaches.

    Raises:
        UserError: If ``precision`` is not a positive number.
    """
    if precision is not None and not precision > 0.0:
        raise UserError(
            precision, "a half-width above 0 in percentage points", "Write 0.5pp.", "--precision"
        )


def precision_note(precision: float, widest: float, n: int) -> str:
    """Say whether a precision was reached."""
    reached = "reached" if widest <= precision else f"capped at {n} seeds"
    return f"Precision {precision:g} pp {reached}: widest half-width {widest:.2f} pp at {n} seeds."


def replayed_table(record: ClaimFile) -> Published | None:
    """Return the table of another record that ``record`` replays, if there is one."""
    return load_claims(record.replay)[0].published[0] if record.replay else None


def published_frame(tables: Sequence[Published]) -> pd.DataFrame:
    """Return published figures as rows: columns scenario, arm, estimand, value, digits."""
    return pd.DataFrame(
        [
            (scenario, arm, table.estimand, value, table.digits)
            for table in tables
            for scenario, values in table.values.items()
            for arm, value in zip(table.arms, values, strict=True)
        ],
        columns=["scenario", "arm", "estimand", "value", "digits"],
    )


def inputs(record: ClaimFile) -> Iterator[str]:
    """Digests of the shipped scenarios and arms that the record rests on."""
    table = replayed_table(record)
    pairs = record.cells() if table is None else table.cells() + record.cells()
    for scenario, arm in pairs:
        yield Cell(load_scenario(scenario), ARMS[arm], ()).digest


def last_day_only(scenario: Scenario) -> Scenario:
    """Return the scenario without any measurement but the last."""
    every = scenario.measurement.every_days
    last = (scenario.horizon_days - 1) // every * every
    measurement = scenario.measurement.model_copy(update={"every_days": last})
    return scenario.model_copy(update={"measurement": measurement})


def gather(
    record: ClaimFile, results: Results, found: Found, sizes: Sizes, *, workers: int, quiet: bool
) -> Evidence:
    """Run a record's protocol and judge its claims.

    Args:
        record: The claim file.
        results: Folder to which replicates are appended.
        found: Replicates that there are already; those of this protocol are added.
        sizes: How large each part is.
        workers: Processes; no number depends on it.
        quiet: Report no progress.

    Raises:
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    return _Run(record, results, found, sizes, workers, quiet).evidence()


class _Run:
    def __init__(
        self,
        record: ClaimFile,
        results: Results,
        found: Found,
        sizes: Sizes,
        workers: int,
        quiet: bool,
    ) -> None:
        self.record = record
        self.results = results
        self.found = found
        self.sizes = sizes
        self.workers = workers
        self.quiet = quiet
        self.notes: list[str] = []

    def evidence(self) -> Evidence:
        record = self.record
        other = replayed_table(record)
        seeds = self._seeds(record.protocol.seeds)
        replayed = self._cells([] if other is None else other.cells(), seeds)
        own = self._cells(record.cells(), seeds)
        reversions = list(self._reversions())
        self._simulate("replay and headline", [*replayed, *own, *reversions])
        own = self._until_precise(own)
        first, rest = self._sensitivity_cells()
        self._simulate("sensitivity", first)
        self._simulate("sensitivity, other proposers", self._carry_over(first, rest))
        others = [*reversions, *first, *rest]
        table = tidy([*replayed, *own, *others], self.found)
        published = record.published if other is None else (other,)
        replay = None
        if published:
            replay = replay_table(table[table["variant"] == ""], published_frame(published))
        sensitivity = None
        if record.sensitivity is not None:
            protocol = record.protocol
            sensitivity = judge_sensitivity(
                record.sensitivity, protocol.treatment, protocol.control, table, protocol.estimand
            )
        return Evidence(
            record=record,
            own=tuple(own),
            replayed=tuple(replayed),
            others=tuple(others),
            table=table,
            verdicts=tuple(judge(record, table, replay)),
            replay=replay,
            sensitivity=sensitivity,
            notes=tuple(self.notes),
        )

    def _seeds(self, planned: int) -> tuple[int, ...]:
        return tuple(range(self.sizes.seeds if self.sizes.seeds is not None else planned))

    def _load(self, name: str) -> Scenario:
        scenario = load_scenario(name)
        return last_day_only(scenario) if self.sizes.last_day_only else scenario

    def _cells(self, pairs: Sequence[tuple[str, str]], seeds: tuple[int, ...]) -> list[Cell]:
        return [Cell(self._load(scenario), ARMS[arm], seeds) for scenario, arm in pairs]

    def _simulate(self, part: str, cells: Sequence[Cell]) -> None:
        if not cells:
            return
        with ProgressReport(f"ADR {self.record.adr}, {part}", quiet=self.quiet) as report:
            new = run_study(
                cells,
                workers=self.workers,
                done=[r for by_seed in self.found.values() for r in by_seed.values()],
                keep=self.results.append,
                progress=report.update,
            )
        for digest, by_seed in new.items():
            self.found.setdefault(digest, {}).update(by_seed)

    def _reversions(self) -> Iterator[Cell]:
        plan = self.record.reversions
        if plan is None:
            return
        treatment = ARMS[self.record.protocol.treatment]
        for name in plan.scenarios:
            scenario, arm = override(self._load(name), treatment, plan.settings)
            yield Cell(scenario, arm, self._seeds(plan.seeds), "reversions")

    def _until_precise(self, cells: list[Cell]) -> list[Cell]:
        """Add seeds where an effect needs them, until each is as precise as asked."""
        if self.sizes.precision is None:
            return cells
        claims = tuple(c for c in self.record.claim if c.rule not in WITHOUT_CELLS)
        effects = self.record.model_copy(update={"claim": claims})
        while True:
            verdicts = judge(effects, tidy(cells, self.found), None)
            wanted = self._wanted(effects, verdicts, cells)
            grown = [
                replace(cell, seeds=tuple(range(wanted[cell.scenario.name, cell.arm.name])))
                for cell in cells
            ]
            if grown == cells:
                self.notes += self._precision_notes(verdicts)
                return cells
            cells = grown
            self._simulate("more seeds", cells)

    def _wanted(
        self, effects: ClaimFile, verdicts: Sequence[Verdict], cells: Sequence[Cell]
    ) -> dict[tuple[str, str], int]:
        """Return, by scenario and arm, the seeds that the effects resting on the cell need.

        An effect in another unit than percentage points takes what the others leave it: as many
        seeds as any cell of its has.
        """
        wanted = {(cell.scenario.name, cell.arm.name): len(cell.seeds) for cell in cells}
        in_points = [verdict.unit == "pp" for verdict in verdicts]
        for turn in (True, False):
            for claim, verdict, points in zip(effects.claim, verdicts, in_points, strict=True):
                if points is not turn:
                    continue
                pairs = [(name, arm) for name in claim.scenarios for arm in effects.arms_of(claim)]
                n = self._enough(verdict) if points else max(wanted[pair] for pair in pairs)
                for pair in pairs:
                    wanted[pair] = max(wanted[pair], n)
        return wanted

    def _enough(self, verdict: Verdict) -> int:
        """Return the seeds that a verdict's effect needs: those it has, if it is precise."""
        target, half = self._target(verdict), _half_width(verdict)
        return verdict.n if half <= target else min(MAX_SEEDS, larger_n(verdict.n, half, target))

    def _target(self, verdict: Verdict) -> float:
        """Return the half-width to reach: ``precision``, or ``coarse`` where that is too dear."""
        precision, coarse = self.sizes.precision, self.sizes.coarse
        assert precision is not None
        half = _half_width(verdict)
        if coarse is None or half <= precision:
            return precision
        return precision if larger_n(verdict.n, half, precision) <= MAX_SEEDS else coarse

    def _precision_notes(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        by_target: dict[float, list[Verdict]] = {}
        for verdict in verdicts:
            if verdict.unit == "pp":
                by_target.setdefault(self._target(verdict), []).append(verdict)
        for target, group in sorted(by_target.items()):
            widest = max(group, key=_half_width)
            yield precision_note(target, _half_width(widest), widest.n)

    def _sensitivity_cells(self) -> tuple[list[Cell], list[Cell]]:
        """Cells to run first, and cells whose proposer differs from one of the first."""
        plan = self.record.sensitivity
        if plan is None:
            return [], []
        protocol = self.record.protocol
        control, treatment = ARMS[protocol.control], ARMS[protocol.treatment]
        seeds = self._seeds(plan.seeds)
        first: list[Cell] = []
        rest: list[Cell] = []
        proposers = list(plan.proposers)
        for name in (*plan.drifting, plan.stable):
            for uses in plan.uses_per_learn:
                world = _with_uses(self._load(name), uses)
                first.append(Cell(world, control, seeds, f"uses_per_learn={uses}"))
                for variant in plan.variants:
                    if variant.uses_per_learn != uses:
                        continue
                    settings = plan.proposers[variant.proposer] | {
                        "review.cadence_days": str(variant.cadence_days)
                    }
                    _, arm = override(world, treatment, settings)
                    target = first if variant.proposer == proposers[0] else rest
                    target.append(Cell(world, arm, seeds, variant.label))
        return first, rest

    def _carry_over(self, first: Sequence[Cell], rest: Sequence[Cell]) -> list[Cell]:
        """Reuse what does not depend on the proposer; return what is left to simulate."""
        by_key = {
            (c.scenario.name, c.scenario.workload.uses_per_learn, c.arm.review.cadence_days): c
            for c in first
            if c.arm.review
        }
        remaining = []
        for cell in rest:
            review = cell.arm.review
            assert review is not None
            uses = cell.scenario.workload.uses_per_learn
            finished = by_key[cell.scenario.name, uses, review.cadence_days]
            carried, left = reuse_without_calls(self.found[finished.digest], cell)
            self.found.setdefault(cell.digest, {}).update(carried)
            remaining.append(left)
        return remaining


def _with_uses(scenario: Scenario, uses: int) -> Scenario:
    workload = scenario.workload.model_copy(update={"uses_per_learn": uses})
    return scenario.model_copy(update={"workload": workload})


def _half_width(verdict: Verdict) -> float:
    return (verdict.high - verdict.low) / 2
