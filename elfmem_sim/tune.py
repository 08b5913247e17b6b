"""Tuning elfmem's nine ``ReviewConfig`` fields: which matter, what to change, what it costs.

The search sees one set of seeds; every figure about a recommendation comes from seeds that it never
saw. Every evaluation holds its reviews with elfmem's own module.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.evaluations import Evaluations
from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.progress import ProgressReport
from elfmem_sim.review import require_elfmem, review_config
from elfmem_sim.scenario import Review, Scenario, load_scenario
from elfmem_sim.simulate import simulate
from elfmem_sim.stats import mean_interval, required_n
from elfmem_sim.store import Results, identity_of
from elfmem_sim.streams import generator
from elfmem_sim.study import Cell, code_digest, release_workers
from elfmem_sim.tuning import figures, tables
from elfmem_sim.tuning.objectives import OBJECTIVES, costs, front_of, per_seed, values_of
from elfmem_sim.tuning.plan import (
    ASSUMPTIONS,
    BUDGETS,
    DEFAULT_SCENARIOS,
    FRESH_SEEDS,
    RECORD,
    Budget,
    Condition,
    assume,
    conditions_of,
    review_arm,
    roles_of,
)
from elfmem_sim.tuning.recommend import RULES, Candidate, Judgement, judge, pick, simplify
from elfmem_sim.tuning.search import search
from elfmem_sim.tuning.sensitivity import (
    is_constant,
    morris_design,
    morris_effects,
    sobol_design,
    sobol_indices,
)
from elfmem_sim.tuning.space import (
    RANGES,
    Config,
    Field,
    Range,
    config_at,
    default_point,
    defaults_of,
)
from elfmem_sim.tuning.words import Findings, page, yaml_text

Array = NDArray[np.float64]

MOST_SEEDS = 5000
_BASELINE = ARMS["baseline"]
_PILOT_SEEDS = 16


@dataclass(frozen=True)
class Tuning:
    """The outcome of :func:`tune`.

    Attributes:
        folder: Where everything is kept.
        tables: The folder's tables by name, without ending.
        recommendations: Settings by name, without those that equal elfmem's defaults.
        page: The plain words: what to change, and how sure that is. Empty with ``explain``.
        notes: What the user should know about how it came about.
    """

    folder: Path
    tables: Mapping[str, pd.DataFrame]
    recommendations: Mapping[str, Config]
    page: str
    notes: tuple[str, ...]


def tune(
    scenarios: Sequence[str] = DEFAULT_SCENARIOS,
    *,
    budget: str | Budget = "quick",
    objectives: Sequence[str] = (),
    explain: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    seeds: int | None = None,
    precision: float | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    workers: int = 1,
    quiet: bool = False,
) -> Tuning:
    """Analyse elfmem's review settings, search for better ones, and judge what was found.

    Args:
        scenarios: Names of shipped scenarios or paths of TOML files to search in, one of them
            drifting.
        budget: ``quick``, ``full``, or a budget of one's own.
        objectives: What to search for; by default everything that the scenarios can express.
        explain: A field: sweep this one alone and do nothing else.
        ranges: Least and largest value of fields to vary otherwise than by default.
        seeds: Fresh seeds to judge recommendations on, or with ``explain`` seeds from 0 upwards;
            by default the budget's.
        precision: Half-width, in pp, wanted of a difference in gain, planned from the defaults'
            gain; sets or checks ``seeds``.
        out: Results folder; by default one under ``runs/`` named after the study's digest.
        overwrite: Whether a folder with other results may be emptied.
        workers: Processes; no number depends on it.
        quiet: Report no progress.

    Raises:
        UserError: For wrong input; nothing already computed is lost.
        InvariantError: If elfmem breaks one of ADR 0004's promises in any run.
    """
    elfmem = require_elfmem()
    size = _budget(budget)
    fields = review_fields(ranges or {})
    if explain is not None:
        check_field(explain, "--explain")
    worlds = _scenarios(scenarios)
    conditions = conditions_of(worlds)
    wanted = _objectives(objectives, conditions)
    if seeds is not None and seeds < 2:
        raise UserError(seeds, "at least 2 seeds", "Give a larger --seeds.", "--seeds")
    identity = identity_of(
        (
            *(Cell(s, review_arm({}), ()).digest for s in [*worlds, *map(load_scenario, RECORD)]),
            asdict(size), fields, wanted, explain, seeds, precision, elfmem, version("optuna"),
            code_digest(), _own_digest(),
        )
    )  # fmt: skip
    kind = "tune" if explain is None else "explain"
    results = Results(out or Path("runs") / f"{kind}-{identity[:8]}", identity, overwrite=overwrite)
    if not results.finished:
        run = _Run(results, fields, size, conditions, wanted, workers, quiet)
        command = _command(scenarios, budget, objectives, explain, ranges or {}, seeds, precision)
        if explain is None:
            run.complete(command, seeds, precision)
        else:
            run.seeds = tuple(range(seeds or size.judging))
            run.explain(command, explain)
    return _read(results)


def review_fields(ranges: Mapping[str, tuple[float, float]]) -> list[Field]:
    """Return elfmem's fields with the ranges in which they are varied.

    Args:
        ranges: Least and largest value of fields to vary otherwise than by default.

    Raises:
        UserError: If a field does not exist, elfmem refuses an end, or the ends are not in order.
    """
    shipped = review_config(Review())
    for name, (low, high) in ranges.items():
        where = f"--range {name}"
        check_field(name, "--range")
        if not low < high:
            raise UserError(f"{low:g}:{high:g}", "LOW below HIGH", "Swap or correct them.", where)
        for end in (low, high):
            review_config(Review(config={name: end}))
        if RANGES[name].log and low <= 0.0:
            raise UserError(
                low, "a LOW above 0, as the field is varied by factors", "Raise LOW.", where
            )
    fields = []
    for name, usual in RANGES.items():
        default = getattr(shipped, name)
        low, high = ranges.get(name, (usual.low, usual.high))
        fields.append(
            Field(name, default, Range(low, high, usual.log, usual.step), isinstance(default, int))
        )
    return fields


def check_field(name: str, where: str) -> None:
    """Refuse a field that is not elfmem's.

    Raises:
        UserError: With the fields that there are.
    """
    if name not in RANGES:
        raise UserError(name, f"one of {', '.join(RANGES)}", "Correct the field's name.", where)


def _budget(budget: str | Budget) -> Budget:
    if isinstance(budget, Budget):
        return budget
    if budget not in BUDGETS:
        raise UserError(
            budget, f"one of {', '.join(BUDGETS)}", "Correct the budget's name.", "--budget"
        )
    return BUDGETS[budget]


def _scenarios(names: Sequence[str]) -> list[Scenario]:
    worlds = [load_scenario(name) for name in names]
    called = [world.name for world in worlds]
    if len(set(called)) != len(called):
        raise UserError(", ".join(called), "different scenarios", "Name each once.", "--scenarios")
    if not roles_of(conditions_of(worlds)).drifting:
        raise UserError(
            ", ".join(called), "a scenario in which the self moves",
            "Add one, such as adr-0004/slow_drift.", "--scenarios",
        )  # fmt: skip
    return worlds


def _objectives(names: Sequence[str], conditions: Sequence[Condition]) -> list[str]:
    supported = roles_of(conditions).supported()
    for name in names:
        if name not in OBJECTIVES:
            raise UserError(
                name, f"one of {', '.join(OBJECTIVES)}", "Correct the name.", "--objective"
            )
        if name not in supported:
            raise UserError(
                name, f"an objective that these scenarios can show: {', '.join(supported)}",
                "Add a scenario or drop the objective.", "--objective",
            )  # fmt: skip
    return list(dict.fromkeys(names)) or supported


def _own_digest() -> str:
    here = Path(__file__).parent
    names = ("tune.py", "evaluations.py", "screen.py")
    sources = [*(here / name for name in names), *sorted(here.glob("tuning/*.py"))]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()


class _Run:
    def __init__(
        self,
        results: Results,
        fields: list[Field],
        budget: Budget,
        conditions: list[Condition],
        objectives: list[str],
        workers: int,
        quiet: bool,
    ) -> None:
        self.results = results
        self.fields = fields
        self.budget = budget
        self.conditions = conditions
        self.objectives = objectives
        self.workers = workers
        self.quiet = quiet
        self.defaults = defaults_of(fields)
        self.seeds = tuple(range(budget.seeds))
        self.evaluations = Evaluations(results, workers)
        self.notes: list[str] = []

    # Outcomes of settings, and of the agent that never reviews.

    def treated(
        self,
        label: str,
        configs: Sequence[Config],
        conditions: Sequence[Condition],
        seeds: tuple[int, ...],
    ) -> Array:
        """Return ``float64[configs, conditions, seeds, estimands]``."""
        rows = [
            [Cell(c.scenario, review_arm(config, poor=c.poor), seeds) for c in conditions]
            for config in configs
        ]
        self._simulate(label, rows, conditions)
        return np.array([[self.evaluations.outcomes(cell) for cell in row] for row in rows])

    def control(self, conditions: Sequence[Condition], seeds: tuple[int, ...]) -> Array:
        """Return ``float64[conditions, seeds, estimands]``."""
        cells = [Cell(condition.scenario, _BASELINE, seeds) for condition in conditions]
        self.evaluations.run(cells)
        return np.array([self.evaluations.outcomes(cell) for cell in cells])

    def _simulate(
        self, label: str, rows: Sequence[Sequence[Cell]], conditions: Sequence[Condition]
    ) -> None:
        """Run cells; where the usual proposer was never called, the poor one was not either.

        Without a label nothing is reported.
        """
        quiet = self.quiet or not label
        usual = {c.scenario.name: i for i, c in enumerate(conditions) if not c.poor}
        poor = [i for i, c in enumerate(conditions) if c.poor]
        with ProgressReport(label, quiet=quiet) as report:
            first = [row[i] for row in rows for i in usual.values()]
            self.evaluations.run(first, report.update)
        if not poor:
            return
        for row in rows:
            for i in poor:
                self.evaluations.carry_over(row[usual[conditions[i].scenario.name]], row[i])
        with ProgressReport(f"{label}, poor proposer", quiet=quiet) as report:
            runs = [
                row[i] for row in rows for i in poor
            ]  # that call, so there is nothing to screen
            self.evaluations.run(runs, report.update, screen=False)

    def objective_table(
        self, label: str, points: Array, conditions: Sequence[Condition]
    ) -> list[dict[str, float]]:
        """Return every supported objective at each point of the cube, on the search's seeds."""
        configs = [config_at(self.fields, point) for point in points]
        return self._objectives_of(label, configs, conditions)

    def _objectives_of(
        self, label: str, configs: Sequence[Config], conditions: Sequence[Condition]
    ) -> list[dict[str, float]]:
        control = self.control(conditions, self.seeds)
        outcomes = self.treated(label, configs, conditions, self.seeds)
        roles = roles_of(conditions)
        return [values_of(outcome, control, roles) for outcome in outcomes]

    # The parts of a study.

    def explain(self, command: str, field: str) -> None:
        """Sweep one field, with all estimands, and write the folder."""
        sweep = self.sweeps([f for f in self.fields if f.name == field])
        files: dict[str, pd.DataFrame | bytes | str] = {
            "sweep.csv": sweep,
            "sweep.png": figures.sweep(sweep, self.defaults[field]),
        }
        self.finish(files, command, {}, [])

    def complete(self, command: str, seeds: int | None, precision: float | None) -> None:
        """Run every part, then write the folder."""
        n = self.planned(seeds, precision)
        judged_in = self.judged_conditions()
        gates = self.gates([c.scenario for c in judged_in if not c.poor])
        morris = self.morris()
        sobol, constant = self.sobol()
        sweeps = self.sweeps(self.fields)
        defaults, front, trials = self.search(sobol)
        order = _least_important_first(self.fields, sobol)
        picked = {rule: self.recommend(rule, front, defaults, order) for rule in RULES}
        judged, differences, judgements = self.judge(picked, judged_in, n)
        robustness = self.robustness(picked)
        if self.workers > 1:
            release_workers()
        findings = Findings(
            fields=self.fields,
            scenarios=[c.scenario.name for c in self.conditions if not c.poor],
            defaults=defaults.values,
            recommended={rule: c.config for rule, c in picked.items()},
            judged=judged,
            judgements=judgements,
            differences=differences,
            gates=gates,
            morris=morris,
            sobol=sobol,
            constant=constant,
            front=front_table(self.fields, front),
            robustness=robustness,
            trials=len(trials),
            seeds=len(self.seeds),
            fresh=n,
        )
        files: dict[str, pd.DataFrame | bytes | str] = {
            "gates.csv": gates,
            "morris.csv": morris,
            "sobol.csv": sobol,
            "sweeps.csv": sweeps,
            "trials.csv.gz": trials,
            "front.csv": findings.front,
            "recommendations.csv": differences,
            "judgement.csv": judgements,
            "robustness.csv": robustness,
            "gates.png": figures.gates(gates),
            "tornado.png": figures.tornado(sobol),
            "front.png": figures.front(trials, {**_named(picked), "defaults": defaults.values}),
            "sweeps.png": figures.sweeps(sweeps, self.defaults),
            "report.md": page(findings),
        }
        for rule, candidate in picked.items():
            files[f"{rule}.yaml"] = yaml_text(rule, self.fields, candidate.config, command)
        self.finish(files, command, findings.recommended, constant)

    def planned(self, seeds: int | None, precision: float | None) -> int:
        """Return how many fresh seeds judge; refuse too few for the precision asked for."""
        if precision is None:
            return seeds or self.budget.judging
        if not precision > 0.0:
            raise UserError(precision, "a half-width above 0 pp", "Write 0.5pp.", "--precision")
        pilot = tuple(range(max(_PILOT_SEEDS, len(self.seeds))))
        usual = [c for c in self.conditions if not c.poor]
        control = self.control(usual, pilot)
        outcome = self.treated("pilot", [self.defaults], usual, pilot)[0]
        gain = per_seed(outcome, control, roles_of(usual))["gain_mean"]
        spread = float(gain.std(ddof=1))
        needed = required_n(spread, precision)
        told = f"the defaults' gain has a spread of {spread:.1f} pp over {len(pilot)} seeds"
        if needed > MOST_SEEDS:
            raise UserError(
                f"{precision:g}pp", f"a precision that {MOST_SEEDS} seeds reach; {told}",
                "Give a larger --precision.", "--precision",
            )  # fmt: skip
        if seeds is not None and seeds < needed:
            raise UserError(
                seeds, f"at least {needed} seeds for {precision:g} pp; {told}",
                f"Give --seeds {needed} or a larger --precision.", "--seeds",
            )  # fmt: skip
        self.notes.append(f"Planned for {precision:g} pp: {needed} fresh seeds; {told}.")
        return seeds or needed

    def judged_conditions(self) -> list[Condition]:
        """Return the conditions to judge in: the search's, and all of the record's."""
        searched = {c.scenario.name for c in self.conditions}
        others = [Condition(load_scenario(name)) for name in RECORD if name not in searched]
        return [*self.conditions, *others]

    def gates(self, scenarios: Sequence[Scenario]) -> pd.DataFrame:
        """Ask elfmem, at its defaults, why each block was not proposed."""
        seeds = range(FRESH_SEEDS, FRESH_SEEDS + self.budget.gates)
        arm = review_arm(self.defaults)
        reviews = []
        with ProgressReport("gates", quiet=self.quiet) as report:
            for i, scenario in enumerate(scenarios):
                for j, seed in enumerate(seeds):
                    lived = simulate(scenario, arm, seed, explain=True).reviews
                    reviews += [(scenario.name, scenario.constitution.size, r) for r in lived]
                    report.update(i * len(seeds) + j + 1, len(scenarios) * len(seeds))
        return tables.gate_shares(reviews)

    def morris(self) -> pd.DataFrame:
        """Screen the fields."""
        d = len(self.fields)
        points = morris_design(d, self.budget.trajectories, generator("morris", d))
        usual = [c for c in self.conditions if not c.poor]
        found = self.objective_table("Morris", points.reshape(-1, d), usual)
        effects = {
            name: morris_effects(points, _column(found, name).reshape(points.shape[:2]))
            for name in found[0]
        }
        return tables.morris_table(self.fields, effects, self.budget.trajectories)

    def sobol(self) -> tuple[pd.DataFrame, list[str]]:
        """Share out each objective's variance; also name the objectives that have none.

        Raises:
            UserError: If nothing that is to be searched for varies.
        """
        d = len(self.fields)
        points = sobol_design(d, self.budget.base, generator("sobol", d))
        usual = [c for c in self.conditions if not c.poor]
        found = self.objective_table("Sobol'", points.reshape(-1, d), usual)
        values = {name: _column(found, name).reshape(points.shape[:2]) for name in found[0]}
        constant = [name for name, v in values.items() if is_constant(v)]
        if set(self.objectives) <= set(constant):
            raise UserError(
                ", ".join(self.objectives),
                f"an objective that varies; over the {points[..., 0].size:,} settings of the "
                "design each of these has one value",
                "Search for another objective, in other scenarios, or in wider ranges.",
                "--objective",
            )
        indices = {
            name: sobol_indices(v, generator("sobol", "bootstrap", name))
            for name, v in values.items()
            if name not in constant
        }
        return tables.sobol_table(self.fields, indices, values), constant

    def sweeps(self, fields: Sequence[Field]) -> pd.DataFrame:
        """Vary one field at a time, all others at elfmem's defaults."""
        usual = [c for c in self.conditions if not c.poor]
        values = [(f.name, v) for f in fields for v in f.grid(self.budget.grid)]
        control = self.control(usual, self.seeds)
        configs = [{**self.defaults, name: value} for name, value in values]
        outcomes = self.treated("sweeps", configs, usual, self.seeds)
        rows = []
        for (name, value), outcome in zip(values, outcomes, strict=True):
            for condition, treated, untreated in zip(usual, outcome, control, strict=True):
                for i, estimand in enumerate(ESTIMANDS):
                    e = mean_interval(treated[:, i] - untreated[:, i])
                    rows.append((name, value, condition.name, estimand, *tables.numbers(e)))
        return pd.DataFrame(
            rows, columns=["field", "value", "scenario", "estimand", *tables.ESTIMATE]
        )

    def search(self, sobol: pd.DataFrame) -> tuple[Candidate, list[Candidate], pd.DataFrame]:
        """Search; return the defaults, the front, and a table of all trials."""
        found: list[dict[str, float]] = []

        def evaluate(points: Array) -> Array:
            batch = self.objective_table("", points, self.conditions)
            found.extend(batch)
            report.update(len(found) * per_trial, self.budget.trials * per_trial)
            return costs(batch, self.objectives)

        per_trial = len(self.conditions) * len(self.seeds)
        with ProgressReport("search", quiet=self.quiet) as report:
            points, cost = search(
                evaluate,
                [field.name for field in self.fields],
                objectives=len(self.objectives),
                trials=self.budget.trials,
                population=self.budget.population,
                identity=[c.name for c in self.conditions],
                start=default_point(self.fields),
            )
        kept = front_of(cost)
        candidates = [
            Candidate(config_at(self.fields, point), values)
            for point, values in zip(points, found, strict=True)
        ]
        trials = pd.DataFrame([{**c.config, **c.values} for c in candidates])
        trials.insert(0, "trial", np.arange(len(trials)))
        trials["front"] = kept
        values = self._objectives_of("", [self.defaults], self.conditions)[0]
        front = [c for c, is_kept in zip(candidates, kept, strict=True) if is_kept]
        return Candidate(self.defaults, values), front, trials

    def recommend(
        self, rule: str, front: Sequence[Candidate], defaults: Candidate, order: Sequence[str]
    ) -> Candidate:
        """Apply a rule, then put back every field that contributes nothing."""

        def evaluate(config: Config) -> dict[str, float]:
            return self._objectives_of("", [config], self.conditions)[0]

        chosen = pick(rule, self.fields, front, defaults)
        return simplify(rule, self.fields, chosen, defaults, order, evaluate)

    def judge(
        self, picked: Mapping[str, Candidate], conditions: Sequence[Condition], n: int
    ) -> tuple[list[Judgement], pd.DataFrame, pd.DataFrame]:
        """Compare the recommendations with the defaults on seeds that the search never saw."""
        fresh = tuple(range(FRESH_SEEDS, FRESH_SEEDS + n))
        control = self.control(conditions, fresh)
        configs = [self.defaults, *(c.config for c in picked.values())]
        default, *outcomes = self.treated("judgement", configs, conditions, fresh)
        roles = roles_of(conditions, [c.scenario.name for c in self.conditions])
        by_seed = {
            rule: per_seed(outcome, control, roles)
            for rule, outcome in zip(picked, outcomes, strict=True)
        }
        default_by_seed = per_seed(default, control, roles)
        settings = {rule: c.config for rule, c in picked.items()}
        judged = judge(settings, self.defaults, by_seed, default_by_seed)
        differences = tables.difference_table(
            dict(zip(picked, outcomes, strict=True)), default, [c.name for c in conditions]
        )
        return judged, differences, tables.judgement_table(judged, by_seed, default_by_seed)

    def robustness(self, picked: Mapping[str, Candidate]) -> pd.DataFrame:
        """Compare gain and tax under other assumptions, one at a time."""
        fresh = tuple(range(FRESH_SEEDS, FRESH_SEEDS + self.budget.robustness))
        usual = [c for c in self.conditions if not c.poor]
        settings = {"defaults": self.defaults, **{rule: c.config for rule, c in picked.items()}}
        arms = {
            "": _BASELINE,
            **{name: review_arm(config) for name, config in settings.items()},
        }
        cells: dict[tuple[int, str], list[Cell]] = {
            (i, name): [Cell(*assume(assumption, c, arm), fresh) for c in usual]
            for i, assumption in enumerate(ASSUMPTIONS)
            for name, arm in arms.items()
        }
        with ProgressReport("robustness", quiet=self.quiet) as report:
            self.evaluations.run([c for row in cells.values() for c in row], report.update)
        roles = roles_of(usual)
        rows = []
        for i, assumption in enumerate(ASSUMPTIONS):
            outcomes = {
                name: np.array([self.evaluations.outcomes(cell) for cell in cells[i, name]])
                for name in arms
            }
            control = outcomes.pop("")
            by_seed = {name: per_seed(o, control, roles) for name, o in outcomes.items()}
            rows += tables.robustness_rows(assumption.name, assumption.level, by_seed)
        return pd.DataFrame(rows, columns=tables.ROBUSTNESS)

    def finish(
        self,
        files: Mapping[str, pd.DataFrame | bytes | str],
        command: str,
        recommended: Mapping[str, Config],
        constant: Sequence[str],
    ) -> None:
        """Write the folder."""
        self.results.finish(
            files,
            {
                "kind": "tune",
                "command": command,
                "code": code_digest(),
                "optuna": version("optuna"),
                "notes": self.notes,
                "budget": asdict(self.budget),
                "objectives": self.objectives,
                "constant": list(constant),
                "fields": [asdict(field) for field in self.fields],
                "rules": dict(RULES),
                "recommended": {name: dict(config) for name, config in recommended.items()},
                "fresh_seeds_from": FRESH_SEEDS,
                "conditions": [
                    {"scenario": c.scenario.model_dump(mode="json"), "poor_proposer": c.poor}
                    for c in self.conditions
                ],
            },
        )


def _column(found: Sequence[Mapping[str, float]], name: str) -> Array:
    return np.array([values[name] for values in found])


def _named(picked: Mapping[str, Candidate]) -> dict[str, Mapping[str, float]]:
    return {rule: candidate.values for rule, candidate in picked.items()}


def _least_important_first(fields: Sequence[Field], sobol: pd.DataFrame) -> list[str]:
    """Order fields by the largest of their total indices."""
    largest = sobol.groupby("field", sort=False)["total"].max()
    return sorted((field.name for field in fields), key=lambda name: float(largest[name]))


def front_table(fields: Sequence[Field], front: Sequence[Candidate]) -> pd.DataFrame:
    """Return the front, one row per setting: fields, then objectives."""
    names = [field.name for field in fields]
    columns = [*names, *front[0].values]
    return pd.DataFrame([{**c.config, **c.values} for c in front], columns=columns)


def _command(
    scenarios: Sequence[str],
    budget: str | Budget,
    objectives: Sequence[str],
    explain: str | None,
    ranges: Mapping[str, tuple[float, float]],
    seeds: int | None,
    precision: float | None,
) -> str:
    parts = ["elfmem-sim", "tune"]
    if tuple(scenarios) != DEFAULT_SCENARIOS:
        parts += [part for name in scenarios for part in ("--scenarios", name)]
    parts += ["--budget", budget if isinstance(budget, str) else "own"]
    parts += [part for name in objectives for part in ("--objective", name)]
    if explain is not None:
        parts += ["--explain", explain]
    for name, (low, high) in ranges.items():
        parts += ["--range", f"{name}={low:g}:{high:g}"]
    if seeds is not None:
        parts += ["--seeds", f"{seeds}"]
    if precision is not None:
        parts += ["--precision", f"{precision:g}pp"]
    return shlex.join(parts)


def _read(results: Results) -> Tuning:
    manifest = results.manifest()
    names = [name for name in manifest["files"] if ".csv" in name]
    present = "report.md" in manifest["files"]
    return Tuning(
        folder=results.folder,
        tables={name.split(".")[0]: results.table(name) for name in names},
        recommendations=json.loads(json.dumps(manifest["recommended"])),
        page=results.read("report.md").decode() if present else "",
        notes=(*results.notes, *manifest["notes"]),
    )
