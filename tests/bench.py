"""How fast the package is: `make bench`. A benchmark, not a test; nothing fails by it.

Every ratio compares medians over the same seeds, the two sides taking turns in one process, in
processor time on one core. Writes ``build/bench.json`` and ``build/scaling.csv``.
"""

import os

os.environ.update(
    dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
)

import csv  # the thread limits must be set before numpy is imported
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numba
import numpy as np
import original

from elfmem_sim.arms import ARMS
from elfmem_sim.kernel.state import TOP_K
from elfmem_sim.production import Life
from elfmem_sim.scenario import Scenario, load_scenario
from elfmem_sim.simulate import simulate

BUILD = Path(__file__).resolve().parents[1] / "build"
FINE = time.get_clock_info("process_time").resolution < 1e-5
clock = time.process_time if FINE else time.perf_counter

PUBLISHED = load_scenario("adr-0003/slow_drift")  # reviews answer: insufficient history
USED = load_scenario("adr-0004/slow_drift")  # reviews judge
BASELINE, REVIEW = ARMS["baseline"], ARMS["review"]

ORIGINAL_SEEDS = range(7)
WORST_SEEDS = range(3)  # of each arm and scenario of the other original simulators
SEEDS = range(40)
SCALING_SEEDS = range(5)
YEAR = 365
PRODUCTION_SEEDS = range(3)
PRODUCTION_DAYS = 20
SCALING = [(1, 5), (5, 5), (10, 5), (1, 1), (1, 20), (1, 50)]  # years, learns a day

TARGETS = {
    "baseline_vs_original": ("original / our baseline year", ">= 100"),
    "scoring_vs_original": ("original / ours, worst scoring arm and scenario", ">= 100"),
    "self_architect_vs_original": ("original / ours, worst self-architect run", ">= 100"),
    "review_vs_baseline": ("review / baseline year, reviews judge", "<= 2"),
    "review_vs_baseline_insufficient": ("review / baseline year, too little history", ""),
    "baseline_vs_floor": ("baseline year / bare compiled loop", "<= 3"),
    "ordinary_vs_thin": ("production: elfmem's own engine / thin engine", ""),
}


def seconds(case: Callable[[int], object], seed: int) -> float:
    start = clock()
    case(seed)
    return clock() - start


def in_turns(cases: dict[str, Callable[[int], object]], seeds: range) -> dict[str, float]:
    """Median seconds of each case over ``seeds``; all cases take a seed before the next one."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for seed in seeds:
        for name, case in cases.items():
            taken[name].append(seconds(case, seed))
    return {name: median(values) for name, values in taken.items()}


# The floor: a year's similarity products and top-five selections, and nothing else.

_CHUNK = 256  # blocks whose columns stay in the first-level cache while all queries pass
_DIMENSION = 8


@numba.njit(nogil=True, error_model="numpy", fastmath=True)
def bare_day(columns, count, queries, scores, indices, products):
    scores[:] = -np.inf
    for start in range(0, count, _CHUNK):
        stop = min(count, start + _CHUNK)
        a, b, c, d = (
            columns[0, start:stop],
            columns[1, start:stop],
            columns[2, start:stop],
            columns[3, start:stop],
        )
        e, f, g, h = (
            columns[4, start:stop],
            columns[5, start:stop],
            columns[6, start:stop],
            columns[7, start:stop],
        )
        for k in range(queries.shape[0]):
            q, r, s, t = queries[k, 0], queries[k, 1], queries[k, 2], queries[k, 3]
            u, v, w, x = queries[k, 4], queries[k, 5], queries[k, 6], queries[k, 7]
            bar = scores[k, TOP_K - 1]
            above = 0
            for i in range(stop - start):
                product = (
                    a[i] * q
                    + b[i] * r
                    + c[i] * s
                    + d[i] * t
                    + e[i] * u
                    + f[i] * v
                    + g[i] * w
                    + h[i] * x
                )
                products[i] = product
                above += product > bar
            if above == 0:
                continue
            for i in range(stop - start):
                if products[i] > scores[k, TOP_K - 1]:
                    slot = TOP_K - 1
                    while slot > 0 and scores[k, slot - 1] < products[i]:
                        scores[k, slot] = scores[k, slot - 1]
                        indices[k, slot] = indices[k, slot - 1]
                        slot -= 1
                    scores[k, slot] = products[i]
                    indices[k, slot] = start + i


@numba.njit(nogil=True, error_model="numpy", fastmath=True)
def bare_year(columns, queries, probes, first, a_day, measured_every):
    most = max(queries.shape[1], probes.shape[1])
    scores = np.empty((most, TOP_K))
    indices = np.empty((most, TOP_K), np.int64)
    products = np.empty(_CHUNK)
    row = 0
    for day in range(queries.shape[0]):
        count = first + a_day * (day + 1)
        bare_day(columns, count, queries[day], scores, indices, products)
        if day > 0 and day % measured_every == 0:
            bare_day(columns, count, probes[row], scores, indices, products)
            row += 1
    return indices


def floor_of(scenario: Scenario) -> Callable[[int], object]:
    """The bare loop with the sizes of ``scenario``."""
    assert scenario.identity.dimension == _DIMENSION
    work, every = scenario.workload, scenario.measurement.every_days
    size, days = scenario.constitution.size, scenario.horizon_days
    rng = np.random.default_rng(0)

    def units(*shape: int) -> np.ndarray:
        vectors = rng.normal(size=(*shape, _DIMENSION))
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    columns = np.ascontiguousarray(units(size + work.learns_per_day * days).T)
    queries = units(days, work.queries_per_day)
    probes = units((days - 1) // every, scenario.measurement.queries)
    return lambda _: bare_year(columns, queries, probes, size, work.learns_per_day, every)


def check_floor() -> None:
    """The bare loop does find the five nearest."""
    rng = np.random.default_rng(1)
    columns, queries = rng.normal(size=(_DIMENSION, 1000)), rng.normal(size=(7, _DIMENSION))
    scores, indices = np.empty((7, TOP_K)), np.empty((7, TOP_K), np.int64)
    bare_day(columns, 1000, queries, scores, indices, np.empty(_CHUNK))
    assert (indices == np.argsort(-(queries @ columns), axis=1)[:, :TOP_K]).all()


# The measurements.


def original_ratio() -> tuple[float | None, dict[str, float]]:
    try:
        module = original.load("mc_scenarios")
    except original.OriginalUnavailableError as reason:
        print(f"not compared with the original simulator: {reason}", file=sys.stderr)
        return None, {}
    strategy = module.STRATEGIES["C_baseline"]
    world = module.SCENARIOS["slow_drift"]
    taken = in_turns(
        {
            "original_baseline_year": partial(module.simulate, strategy, world),
            "baseline_year_beside_original": partial(simulate, PUBLISHED, BASELINE),
        },
        ORIGINAL_SEEDS,
    )
    ratio = taken["original_baseline_year"] / taken["baseline_year_beside_original"]
    return ratio, taken


def scoring_ratios() -> dict[str, float] | None:
    """The original's time by ours, for every scoring arm in every scenario."""
    try:
        module = original.load("mc_scoring_proposed")
    except original.OriginalUnavailableError:
        return None
    return {
        f"{scenario}/{arm}": ratio_of(
            partial(module.simulate, strategy, world),
            partial(simulate, load_scenario(f"adr-0001/{scenario}"), ARMS[arm]),
        )
        for scenario, world in module.SCENARIOS.items()
        for arm, strategy in module.STRATEGIES.items()
    }


def self_architect_ratios() -> dict[str, float] | None:
    """The same for the self-architect and the fixed arms beside it."""
    try:
        module = original.load("mc_self_architect")
    except original.OriginalUnavailableError:
        return None

    def theirs(arm: str, world: object, seed: int) -> object:
        start = module.Params(*original.PARAMETERS[arm])
        return module.simulate(start, world, seed, self_architect=arm == "self_architect")

    return {
        f"{scenario}/{arm}": ratio_of(
            partial(theirs, arm, module.SCENARIOS[scenario]),
            partial(simulate, load_scenario(f"adr-0003-self-architect/{scenario}"), ARMS[arm]),
        )
        for scenario in ("stable", "drift", "regime_change")
        for arm in original.PARAMETERS
    }


def ratio_of(theirs: Callable[[int], object], ours: Callable[[int], object]) -> float:
    ours(0)  # compiled before anything is timed
    taken = in_turns({"theirs": theirs, "ours": ours}, WORST_SEEDS)
    return taken["theirs"] / taken["ours"]


def own_ratios() -> tuple[dict[str, float], dict[str, float]]:
    check_floor()
    taken = in_turns(
        {
            "baseline_year": partial(simulate, PUBLISHED, BASELINE),
            "floor_year": floor_of(PUBLISHED),
            "review_year_insufficient": partial(simulate, PUBLISHED, REVIEW),
            "used_baseline_year": partial(simulate, USED, BASELINE),
            "review_year": partial(simulate, USED, REVIEW),
        },
        SEEDS,
    )
    ratios = {
        "review_vs_baseline": taken["review_year"] / taken["used_baseline_year"],
        "review_vs_baseline_insufficient": taken["review_year_insufficient"]
        / taken["baseline_year"],
        "baseline_vs_floor": taken["baseline_year"] / taken["floor_year"],
    }
    return ratios, taken


def production_life(seed: int, file: str = "") -> None:
    """The first weeks of a production agent, without vitals."""
    life = Life(USED, REVIEW, seed, file=file)
    life.be_born()
    for day in range(PRODUCTION_DAYS):
        life.live(day)
        life.evening(day)
    life.close()


def production_ratio() -> tuple[float, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        taken = in_turns(
            {
                "production_ordinary": lambda seed: production_life(seed, f"{folder}/{seed}.db"),
                "production_thin": production_life,
            },
            PRODUCTION_SEEDS,
        )
    return taken["production_ordinary"] / taken["production_thin"], taken


def grown(years: int, learns: int) -> Scenario:
    workload = USED.workload.model_copy(update={"learns_per_day": learns})
    return USED.model_copy(update={"horizon_days": years * YEAR, "workload": workload})


def scaling() -> list[dict[str, float | int | str]]:
    """Time of longer and busier lives, relative to the baseline's year of five learns a day."""
    cases = {
        (arm.name, years, learns): partial(simulate, grown(years, learns), arm)
        for years, learns in SCALING
        for arm in (BASELINE, REVIEW)
    }
    taken = in_turns(cases, SCALING_SEEDS)
    unit = taken[BASELINE.name, 1, 5]
    return [
        {
            "arm": arm,
            "horizon_years": years,
            "learns_per_day": learns,
            "blocks": USED.constitution.size + learns * years * YEAR,
            "relative_time": took / unit,
        }
        for (arm, years, learns), took in taken.items()
    ]


def warm_up() -> None:
    """Compile everything, and have elfmem imported and its template database made."""
    for scenario in (PUBLISHED, USED):
        for arm in (BASELINE, REVIEW):
            simulate(scenario, arm, 1)
    floor_of(PUBLISHED)(0)
    production_life(1)


def reviews_held(scenario: Scenario) -> dict[str, float]:
    """What the timed reviews did, on average per run: that they judged is the point."""
    runs = [simulate(scenario, REVIEW, seed).reviews for seed in SEEDS]
    return {
        "reviews": sum(map(len, runs)) / len(runs),
        "insufficient_history": sum(r.insufficient_history for run in runs for r in run)
        / len(runs),
        "accepted": sum(r.accepted for run in runs for r in run) / len(runs),
    }


def main() -> None:
    warm_up()
    against_original, original_taken = original_ratio()
    ratios, taken = own_ratios()
    by_case = {
        "scoring_vs_original": scoring_ratios(),
        "self_architect_vs_original": self_architect_ratios(),
    }
    worst = {name: min(cases.values()) if cases else None for name, cases in by_case.items()}
    engines, production_taken = production_ratio()
    ratios = {
        "baseline_vs_original": against_original,
        **worst,
        **ratios,
        "ordinary_vs_thin": engines,
    }
    rows = scaling()
    held = {scenario.name: reviews_held(scenario) for scenario in (PUBLISHED, USED)}

    print(f"{'ratio':<50}{'measured':>10}{'target':>10}")
    for name, (title, target) in TARGETS.items():
        ratio = ratios[name]
        print(f"{title:<50}{'none' if ratio is None else f'{ratio:.2f}':>10}{target:>10}")
    for name, cases in by_case.items():
        print(f"\n{name}")
        for case, ratio in (cases or {}).items():
            print(f"  {case:<44}{ratio:>10.2f}")
    print("\nreviews per run")
    for name, counts in held.items():
        print(f"  {name:<22}", ", ".join(f"{what} {n:.2f}" for what, n in counts.items()))
    print(f"\n{'arm':<10}{'years':>6}{'learns/day':>12}{'blocks':>8}{'relative time':>15}")
    for row in rows:
        print(
            f"{row['arm']:<10}{row['horizon_years']:>6}{row['learns_per_day']:>12}"
            f"{row['blocks']:>8}{row['relative_time']:>15.2f}"
        )

    BUILD.mkdir(exist_ok=True)
    environment = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name: version(name) for name in ("elfmem", "numba", "numpy")},
    }
    result = {
        **ratios,
        "by_case": by_case,
        "seconds": {**original_taken, **taken, **production_taken},
        "seeds": {
            "original": len(ORIGINAL_SEEDS),
            "worst": len(WORST_SEEDS),
            "ratios": len(SEEDS),
            "production": len(PRODUCTION_SEEDS),
            "scaling": len(SCALING_SEEDS),
        },
        "reviews_per_run": held,
        "scaling": rows,
        "environment": environment,
    }
    (BUILD / "bench.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    with (BUILD / "scaling.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
