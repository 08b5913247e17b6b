"""Tests of `elfmem_sim.tune`: a whole study, small enough to run twice.

Simulation takes the time here, so most tests share one finished study.
"""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from elfmem.config import ElfmemConfig, ReviewConfig

from elfmem_sim import evaluations
from elfmem_sim.errors import UserError
from elfmem_sim.experiment import run
from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.store import PARTIAL, Results
from elfmem_sim.study import run_study
from elfmem_sim.tune import check_field, review_fields, tune
from elfmem_sim.tuning.objectives import OBJECTIVES
from elfmem_sim.tuning.plan import ASSUMPTIONS, FRESH_SEEDS, RECORD, Budget
from elfmem_sim.tuning.recommend import RULES
from elfmem_sim.tuning.space import RANGES

SCENARIO = """
description = "A small world."
horizon_days = 91

[identity]
drift_per_day = {drift}

[workload]
uses_per_learn = 3
outcome_noise = {noise}
"""
WORLDS = {"calm": (0.002, 0.0), "moving": (0.06, 0.0), "lying": (0.06, 0.3)}
TINY = Budget(
    seeds=2, trajectories=2, base=4, grid=2, trials=8, population=4, judging=3, robustness=2,
    gates=2,
)  # fmt: skip
FILES = {
    "gates.csv", "morris.csv", "sobol.csv", "sweeps.csv", "trials.csv.gz", "front.csv",
    "recommendations.csv", "judgement.csv", "robustness.csv", "gates.png", "tornado.png",
    "front.png", "sweeps.png", "report.md", "manifest.json",
    *(f"{rule}.yaml" for rule in RULES),
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    paths = []
    for name, (drift, noise) in WORLDS.items():
        path = folder / f"{name}.toml"
        path.write_text(SCENARIO.format(drift=drift, noise=noise), encoding="utf-8")
        paths.append(str(path))
    return paths


@pytest.fixture(scope="module")
def study(worlds, tmp_path_factory):
    """One finished study, and the seeds at which each review arm's setting was run."""
    seeds = []

    def spy(cells, **options):
        seeds.extend(seed for c in cells if c.arm.review for seed in c.seeds)
        return run_study(cells, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluations, "run_study", spy)
        done = tune(worlds, budget=TINY, out=tmp_path_factory.mktemp("tuned"), quiet=True)
    return done, set(seeds)


@pytest.fixture
def done(study):
    return study[0]


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# --- the whole study ---


def test_everything_is_there(done):
    assert set(contents(done.folder)) == FILES


def test_the_search_never_saw_the_fresh_seeds(study):
    old = {seed for seed in study[1] if seed < FRESH_SEEDS}
    assert old == set(range(TINY.seeds))
    assert study[1] - old == set(range(FRESH_SEEDS, FRESH_SEEDS + TINY.judging))


def test_recommendations_are_judged_in_every_scenario_of_the_record(done):
    judged = set(done.tables["recommendations"]["condition"])
    assert judged == {*RECORD, *WORLDS, "moving (poor proposer)"}


def test_every_figure_says_how_many_seeds_it_rests_on(done):
    n = {name: set(done.tables[name]["n"]) for name in ("recommendations", "judgement", "sweeps")}
    assert n == {"recommendations": {3}, "judgement": {3}, "sweeps": {2}}


def test_gates_are_asked_in_every_scenario(done):
    assert set(done.tables["gates"]["scenario"]) == {*RECORD, *WORLDS}


def test_every_field_is_screened_for_every_objective(done):
    table = done.tables["morris"]
    assert set(table["field"]) == set(RANGES)
    assert set(table["objective"]) == set(OBJECTIVES) - {"harm_poor_proposer"}


def test_every_trial_is_listed_with_its_settings_and_objectives(done):
    trials = done.tables["trials"]
    assert len(trials) == TINY.trials
    assert list(trials) == ["trial", *RANGES, *OBJECTIVES, "front"]


def test_the_search_begins_at_the_defaults(done):
    first = done.tables["trials"].iloc[0]
    assert {name: first[name] for name in RANGES} == ReviewConfig().model_dump(exclude={"corpus"})


def test_the_front_is_what_the_trials_say(done):
    trials = done.tables["trials"]
    kept = trials[trials["front"].astype(str) == "True"]
    assert done.tables["front"]["gain_mean"].tolist() == kept["gain_mean"].tolist()


def test_settings_are_compared_under_every_assumption(done):
    table = done.tables["robustness"]
    assert len(table) == len(ASSUMPTIONS) * (1 + len(RULES))


def test_the_defaults_differ_from_themselves_by_nothing(done):
    table = done.tables["robustness"]
    rows = table[table["setting"] == "defaults"]
    assert set(rows["difference"]) | set(rows["low"]) | set(rows["high"]) == {0.0}


@pytest.mark.parametrize("rule", RULES)
def test_elfmem_reads_every_recommendation(done, rule):
    read = ElfmemConfig.from_yaml(str(done.folder / f"{rule}.yaml")).review
    assert read.model_dump(exclude={"corpus"}) == done.recommendations[rule]


def test_the_page_answers_first(done):
    heading, _, rest = done.page.partition("## What we would change\n\n")
    assert heading.startswith("# Tuning")
    assert rest.startswith(("**Change nothing.**", "**Change `"))


def test_a_finished_study_is_read_not_run(done, worlds, monkeypatch):
    monkeypatch.setattr(evaluations, "run_study", None)
    again = tune(worlds, budget=TINY, out=done.folder, quiet=True)
    assert again.page == done.page
    pd.testing.assert_frame_equal(again.tables["front"], done.tables["front"])


def test_another_study_does_not_take_the_folder(done, worlds):
    with pytest.raises(UserError, match="--overwrite"):
        tune(worlds, budget=replace(TINY, trials=9), out=done.folder, quiet=True)


def test_interrupted_or_not_and_by_however_many_the_result_is_the_same(
    done, worlds, tmp_path, monkeypatch
):
    appended = []
    append = Results.append_records

    def fail_late(self, records):
        append(self, records)
        appended.append(list(records))
        if len(appended) == 60:
            raise KeyboardInterrupt

    monkeypatch.setattr(Results, "append_records", fail_late)
    with pytest.raises(KeyboardInterrupt):
        tune(worlds, budget=TINY, out=tmp_path, quiet=True)
    kept = (tmp_path / PARTIAL).read_bytes().count(b"\n") - 1
    tune(worlds, budget=TINY, out=tmp_path, workers=2, quiet=True)
    assert kept == sum(map(len, appended[:60]))
    assert contents(tmp_path) == contents(done.folder)


# --- one field ---


@pytest.fixture(scope="module")
def sweep(worlds, tmp_path_factory):
    out = tmp_path_factory.mktemp("explained")
    return tune(worlds, budget=TINY, explain="drift_threshold", out=out, quiet=True)


def test_a_sweep_goes_through_the_range_and_the_default(sweep):
    assert sorted(set(sweep.tables["sweep"]["value"])) == [0.05, 0.35, 0.65]


def test_a_sweep_shows_every_estimand_in_every_scenario(sweep):
    table = sweep.tables["sweep"]
    assert len(table) == 3 * len(ESTIMANDS) * len(WORLDS)


def test_at_the_default_a_sweep_is_an_ordinary_comparison(sweep, worlds, tmp_path):
    ordinary = run(worlds, seeds=TINY.judging, out=tmp_path, quiet=True).differences
    expected = ordinary.set_index(["scenario", "estimand"])
    table = sweep.tables["sweep"]
    rows = table[table["value"] == 0.35].set_index(["scenario", "estimand"])
    for key in rows.index:
        for column in ("mean", "low", "high"):
            assert rows.loc[key, column] == pytest.approx(expected.loc[key, column], abs=1e-9)


def test_the_fields_value_reaches_elfmem(sweep):
    table = sweep.tables["sweep"]
    rows = table[(table["scenario"] == "moving") & (table["estimand"] == "amendments_per_year")]
    by_value = rows.set_index("value")["mean"]
    assert by_value[0.05] > by_value[0.65]


def test_a_sweep_has_as_many_seeds_as_asked_for(worlds, tmp_path):
    found = tune(worlds, budget=TINY, explain="top_n", seeds=5, out=tmp_path, quiet=True)
    assert set(found.tables["sweep"]["n"]) == {5}


def test_a_sweep_has_a_figure_and_no_page(sweep):
    assert set(contents(sweep.folder)) == {"sweep.csv", "sweep.png", "manifest.json"}
    assert sweep.page == ""


# --- wrong input ---


@pytest.mark.parametrize(
    ("options", "where", "words"),
    [
        ({"explain": "drift"}, "--explain", "one of drift_threshold"),
        ({"ranges": {"drift": (0, 1)}}, "--range", "one of drift_threshold"),
        ({"ranges": {"drift_threshold": (0.1, 1.5)}}, "review.config.drift_threshold", "less than"),
        ({"ranges": {"top_n": (0, 50)}}, "review.config.top_n", "greater than"),
        ({"ranges": {"top_n": (50, 20)}}, "--range top_n", "LOW below HIGH"),
        ({"ranges": {"cooldown_hours": (0, 20)}}, "--range cooldown_hours", "above 0"),
        ({"objectives": ["speed"]}, "--objective", "one of gain_mean"),
        ({"budget": "huge"}, "--budget", "one of quick, full"),
        ({"seeds": 1}, "--seeds", "at least 2"),
        ({"scenarios": ["adr-0004/stable"]}, "--scenarios", "the self moves"),
        ({"scenarios": ["adr-0004/slow_drift"] * 2}, "--scenarios", "different"),
        ({"scenarios": ["adr-0004/slow_drift"], "objectives": ["tax"]}, "--objective", "can show"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(options, where, words, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match=words) as refused:
        tune(out=out, **options)
    assert refused.value.where == where
    assert not out.exists()


def test_an_objective_that_never_varies_is_refused(worlds, tmp_path):
    with pytest.raises(UserError, match="an objective that varies") as refused:
        tune(worlds, budget=TINY, objectives=["tax"], out=tmp_path, quiet=True)
    assert refused.value.where == "--objective"


def test_too_few_seeds_for_the_precision_are_refused(worlds, tmp_path):
    with pytest.raises(UserError, match=r"at least \d+ seeds for 1 pp") as refused:
        tune(worlds, budget=TINY, seeds=2, precision=1.0, out=tmp_path, quiet=True)
    assert refused.value.where == "--seeds"


def test_a_precision_out_of_reach_is_refused(worlds, tmp_path):
    with pytest.raises(UserError, match="seeds reach") as refused:
        tune(worlds, budget=TINY, precision=1e-6, out=tmp_path, quiet=True)
    assert refused.value.where == "--precision"


# --- elfmem's fields ---


def test_the_fields_are_elfmems():
    assert {f.name: f.default for f in review_fields({})} == ReviewConfig().model_dump(
        exclude={"corpus"}
    )


@pytest.mark.parametrize("name", RANGES)
def test_elfmem_accepts_the_whole_range(name):
    for value in (RANGES[name].low, RANGES[name].high):
        assert getattr(ReviewConfig(**{name: value}), name) == value


def test_a_range_of_ones_own_is_used():
    (field,) = (f for f in review_fields({"top_n": (10, 20)}) if f.name == "top_n")
    assert (field.range.low, field.range.high) == (10, 20)


@pytest.mark.parametrize("name", RANGES)
def test_elfmems_fields_are_known(name):
    check_field(name, "--explain")


def test_the_manifest_says_how_it_came_about(done):
    manifest = json.loads((done.folder / "manifest.json").read_bytes())
    assert manifest["rules"] == dict(RULES)
    assert manifest["budget"]["trials"] == TINY.trials
    assert manifest["fresh_seeds_from"] == FRESH_SEEDS
    assert [f["name"] for f in manifest["fields"]] == list(RANGES)
    assert manifest["optuna"]
