"""Tests of `elfmem_sim.experiment`: free studies, from names to a results folder."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from elfmem_sim import experiment, study
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.simulate import simulate
from elfmem_sim.stats import paired_difference
from elfmem_sim.store import Results

SMALL = """
description = "Two months of fast drift."
horizon_days = 60

[identity]
drift_per_day = 0.05

[workload]
uses_per_learn = 3
"""
EAGER = {"review.cadence_days": "15", "review.config.drift_threshold": "0.05"}
KEY = ["scenario", "arm", "seed"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory with one small scenario in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def run(*arms: str, scenarios=("small.toml",), seeds: int | None = 3, **options):
    options.setdefault("out", Path("out"))
    return experiment.run(scenarios, arms, seeds=seeds, quiet=True, **options)


def test_every_row_is_the_run_that_a_replay_shows():
    table = run("baseline", "review", settings=EAGER).replicates.set_index(KEY)
    assert len(table) == 6
    for name in ("baseline", "review"):
        own = EAGER if name == "review" else {}
        world, arm = override(load_scenario("small.toml"), ARMS[name], own)
        for seed in range(3):
            trajectory = simulate(world, arm, seed)
            row = table.loc["small", name, seed]
            assert row["quality_ratio"] == trajectory.final("quality_ratio")
            assert row["accepted"] == len(trajectory.amendments)


def test_differences_are_paired_by_seed_with_the_first_arm_and_in_pp():
    outcome = run("baseline", "model_c", "architecture_m")
    values = outcome.replicates.pivot(index="seed", columns="arm", values="quality_ratio")
    rows = outcome.differences
    rows = rows[rows["estimand"] == "quality_ratio"].set_index("arm")
    assert list(rows.index) == ["model_c", "architecture_m"]
    for arm in rows.index:
        expected = paired_difference(
            100.0 * values[arm].to_numpy(), 100.0 * values["baseline"].to_numpy()
        )
        assert rows.loc[arm, ["mean", "low", "high"]].tolist() == pytest.approx(
            [expected.mean, expected.low, expected.high]
        )
    assert set(rows["control"]) == {"baseline"}


def test_one_arm_has_a_summary_and_no_differences():
    outcome = run("review")
    assert set(outcome.summary["arm"]) == {"review"}
    assert len(outcome.differences) == 0


def test_one_seed_has_means_and_unbounded_intervals():
    row = run("baseline", seeds=1).summary.iloc[0]
    assert (row["n"], row["low"], row["high"]) == (1, -np.inf, np.inf)
    assert np.isnan(row["mcse"])


def test_without_a_number_of_seeds_there_are_a_hundred():
    outcome = run("baseline", seeds=None)
    assert outcome.replicates["seed"].tolist() == list(range(experiment.DEFAULT_SEEDS))


def test_several_scenarios_stay_apart(folder):
    (folder / "calm.toml").write_text(SMALL.replace("0.05", "0.0"), encoding="utf-8")
    outcome = run("baseline", "review", scenarios=["small.toml", "calm.toml"])
    table = outcome.replicates
    assert table[["scenario", "arm"]].drop_duplicates().to_numpy().tolist() == [
        ["small", "baseline"],
        ["small", "review"],
        ["calm", "baseline"],
        ["calm", "review"],
    ]
    assert set(outcome.differences["scenario"]) == {"small", "calm"}


# Settings.


def test_a_setting_of_the_scenario_is_for_every_arm():
    table = run("baseline", "review", settings={"horizon_days": "30"}).replicates
    assert set(table["day"]) == {28}


def test_a_setting_of_the_review_is_for_the_arms_that_review():
    plain = run("baseline", "review", out=Path("plain")).replicates.set_index(KEY)
    other = run("baseline", "review", settings=EAGER).replicates.set_index(KEY)
    pd.testing.assert_frame_equal(other.loc[:, "baseline", :], plain.loc[:, "baseline", :])
    assert set(plain.loc["small", "review", :]["reviews"]) == {2}
    assert set(other.loc["small", "review", :]["reviews"]) == {4}


def test_a_setting_of_ego_strength_is_for_the_arms_that_have_it():
    settings = {"ego.queries_per_day": "0"}
    table = run("baseline", "model_c", settings=settings).replicates.set_index(KEY)
    assert len(table) == 6


@pytest.mark.parametrize("arms", [["baseline"], ["baseline", "architecture_m"]])
def test_a_setting_that_concerns_no_arm_is_an_error(arms):
    with pytest.raises(UserError, match=r"--set: review\.cadence_days"):
        run(*arms, settings=EAGER)


# Sweeps.


def test_a_sweep_adds_one_variant_per_value_of_one_key_at_a_time():
    sweep = {"horizon_days": ["30", "90"], "workload.uses_per_learn": ["0"]}
    table = run("baseline", "architecture_m", sweep=sweep).replicates
    variants = ["", "horizon_days=30", "horizon_days=90", "workload.uses_per_learn=0"]
    expected = [(v, arm, 3) for v in variants for arm in ("baseline", "architecture_m")]
    found = table.groupby(["variant", "arm"], sort=False).size()
    assert [(*key, n) for key, n in found.items()] == expected
    assert table.groupby("variant")["day"].max().to_dict() == {
        "": 56, "horizon_days=30": 28, "horizon_days=90": 84, "workload.uses_per_learn=0": 56,
    }  # fmt: skip


def test_a_variant_is_the_study_with_that_setting():
    swept = run("baseline", "model_c", sweep={"horizon_days": ["30"]}, out=Path("swept"))
    alone = run("baseline", "model_c", settings={"horizon_days": "30"}).replicates
    variant = swept.replicates[swept.replicates["variant"] != ""].reset_index(drop=True)
    pd.testing.assert_frame_equal(variant.assign(variant=""), alone)


def test_the_plain_study_is_what_it_is_without_a_sweep():
    swept = run("baseline", "model_c", sweep={"horizon_days": ["30"]}, out=Path("swept"))
    plain = run("baseline", "model_c")
    for name in ("replicates", "summary", "differences"):
        table = getattr(swept, name)
        own = table[table["variant"] == ""]
        expected = getattr(plain, name)
        keys = ["scenario", "arm"]
        own, expected = (t.sort_values(keys, kind="stable", ignore_index=True)
                         for t in (own, expected))  # fmt: skip
        pd.testing.assert_frame_equal(own, expected)


def test_settings_hold_in_every_variant_but_for_the_swept_key():
    settings = {"horizon_days": "90", "workload.uses_per_learn": "0"}
    run("baseline", settings=settings, sweep={"horizon_days": ["30"]})
    cells = Results(Path("out")).manifest()["cells"]
    found = [
        (c["variant"], c["scenario"]["horizon_days"], c["scenario"]["workload"]["uses_per_learn"])
        for c in cells
    ]
    assert found == [("", 90, 0), ("horizon_days=30", 30, 0)]


def test_arms_are_compared_within_each_variant():
    outcome = run("baseline", "model_c", sweep={"horizon_days": ["30"]})
    rows = outcome.differences
    rows = rows[rows["estimand"] == "quality_ratio"].set_index("variant")
    assert list(rows.index) == ["", "horizon_days=30"]
    for variant in rows.index:
        own = outcome.replicates[outcome.replicates["variant"] == variant]
        values = own.pivot(index="seed", columns="arm", values="quality_ratio")
        expected = 100.0 * (values["model_c"] - values["baseline"]).mean()
        assert rows.loc[variant, "mean"] == pytest.approx(expected)


SWEPT_REVIEW = {"review.cadence_days": ["15", "30"]}


def test_an_arm_that_a_swept_key_does_not_concern_is_simulated_once(monkeypatch):
    simulated = []

    def run_cell(cell, seeds):
        simulated.extend((cell.digest, seed) for seed in seeds)
        return original(cell, seeds)

    original = study.run_cell
    monkeypatch.setattr(study, "run_cell", run_cell)
    table = run("baseline", "review", sweep=SWEPT_REVIEW).replicates
    cells = Results(Path("out")).manifest()["cells"]
    digests = {arm: [c["digest"] for c in cells if c["arm"]["name"] == arm]
               for arm in ("baseline", "review")}  # fmt: skip
    # A cadence of 30 days is the shipped one, so that variant is the plain study again.
    assert [len(set(own)) for own in digests.values()] == [1, 2]
    assert len(simulated) == len(set(simulated)) == 3 * 3
    baseline = table[table["arm"] == "baseline"]
    parts = [part.drop(columns="variant").reset_index(drop=True)
             for _, part in baseline.groupby("variant")]  # fmt: skip
    assert len(parts) == 3
    pd.testing.assert_frame_equal(parts[0], parts[1])
    pd.testing.assert_frame_equal(parts[0], parts[2])


def test_the_command_of_a_sweep_is_in_manifest_and_report(folder):
    sweep = {"horizon_days": ["30", "90"], "review.cadence_days": ["15"]}
    run("baseline", "review", sweep=sweep)
    command = Results(Path("out")).manifest()["command"]
    assert shlex.split(command)[-6:] == [
        *("--sweep", "horizon_days=30,90", "--sweep", "review.cadence_days=15", "--seeds", "3"),
    ]
    assert f"`{command}`" in (folder / "out" / "report.md").read_text()


def test_a_sweep_is_another_study_and_so_are_its_values():
    plain = run("baseline", out=None).folder
    swept = [run("baseline", out=None, sweep={"horizon_days": [v]}).folder for v in ("30", "31")]
    assert len({plain, *swept}) == 3


def test_a_sweep_does_not_depend_on_the_number_of_workers(folder):
    for workers in (1, 2):
        run("baseline", "review", sweep=SWEPT_REVIEW, out=Path(f"w{workers}"), workers=workers)
    one, two = ({p.name: p.read_bytes() for p in (folder / f"w{w}").iterdir()} for w in (1, 2))
    assert one == two


# Wrong input, before anything is simulated or written.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": 0}, "--seeds: got 0"),
        ({"seeds": -3}, "--seeds: got -3"),
        ({"scenarios": ["nowhere"]}, "got 'nowhere'"),
        ({"scenarios": ["small.toml", "small.toml"]}, "scenarios with different names"),
        ({"settings": {"workload.typo": "1"}}, "workload.typo"),
        ({"settings": {"review.config.typo": "1"}}, "review.config: got 'typo'"),
        ({"settings": {"review.config.drift_threshold": "7"}}, "got 7.0"),
        ({"sweep": {"workload.typo": ["1"]}}, "workload.typo"),
        ({"sweep": {"horizon_days": ["30", "0"]}}, "horizon_days: got 0"),
        ({"sweep": {"horizon_days": ["30", ""]}}, "horizon_days"),
        ({"sweep": {"review.config.typo": ["1"]}}, "review.config: got 'typo'"),
        ({"sweep": {"review.config.drift_threshold": ["0.3", "7"]}}, "got 7.0"),
    ],
)
def test_wrong_input_is_an_error_that_leaves_nothing_behind(folder, options, words):
    with pytest.raises(UserError, match=re.escape(words)):
        run("baseline", "review", **options)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arms", "words"),
    [(["model_x"], "got 'model_x'"), (["review", "review"], "Name each arm once")],
)
def test_arms_that_cannot_be_compared_are_an_error(arms, words):
    with pytest.raises(UserError, match=words):
        run(*arms)


# Precision.


def half_width(frame: pd.DataFrame) -> float:
    rows = frame[frame["estimand"] == "quality_ratio"]
    return ((rows["high"] - rows["low"]) / 2).max()


@pytest.fixture
def at_most_500_seeds(monkeypatch):
    """A study that misses its aim ends soon."""
    monkeypatch.setattr(experiment, "MAX_SEEDS", 500)


@pytest.mark.usefixtures("at_most_500_seeds")
def test_seeds_are_added_until_the_difference_is_as_precise_as_asked():
    outcome = run("baseline", "architecture_m", precision=4.0)
    assert half_width(outcome.differences) <= 4.0
    assert outcome.replicates["seed"].max() > 3
    (note,) = outcome.notes
    assert note.startswith("Precision 4 pp reached")
    assert note.endswith(f"at {outcome.replicates['seed'].nunique()} seeds.")


@pytest.mark.usefixtures("at_most_500_seeds")
def test_with_one_arm_the_mean_is_made_precise():
    outcome = run("baseline", precision=4.0)
    assert half_width(outcome.summary) <= 4.0
    assert outcome.notes[0].startswith("Precision 4 pp reached")


@pytest.mark.usefixtures("at_most_500_seeds")
def test_one_seed_is_enough_to_start_from():
    assert half_width(run("baseline", seeds=1, precision=20.0).summary) <= 20.0


def test_a_precision_out_of_reach_stops_at_the_cap_and_says_so(monkeypatch):
    monkeypatch.setattr(experiment, "MAX_SEEDS", 10)
    outcome = run("baseline", precision=0.001)
    assert outcome.replicates["seed"].nunique() == 10
    assert outcome.notes[0].startswith("Precision 0.001 pp capped at 10 seeds")


# The folder.


def test_the_default_folder_is_named_after_what_determines_the_results(folder):
    first = run("baseline", out=None)
    again = run("baseline", out=None)
    other = run("baseline", out=None, seeds=2)
    assert re.fullmatch(r"runs/run-[0-9a-f]{8}", first.folder.as_posix())
    assert again.folder == first.folder != other.folder


def test_other_results_are_refused_and_emptied_only_with_overwrite():
    run("baseline")
    with pytest.raises(UserError, match="--overwrite"):
        run("baseline", seeds=2)
    assert len(run("baseline", seeds=2, overwrite=True).replicates) == 2


def test_the_manifest_holds_the_command_and_every_cell_in_full():
    run("baseline", "review", settings=EAGER | {"workload.quiet": "[[1, 2]]"})
    manifest = Results(Path("out")).manifest()
    assert shlex.split(manifest["command"]) == [
        *("elfmem-sim", "run", "small.toml", "--arm", "baseline", "--arm", "review"),
        *("--set", "review.cadence_days=15", "--set", "review.config.drift_threshold=0.05"),
        *("--set", "workload.quiet=[[1, 2]]", "--seeds", "3"),
    ]
    baseline, review = manifest["cells"]
    assert baseline["scenario"]["workload"]["quiet"] == [[1, 2]]
    assert review["arm"]["review"]["config"] == {"drift_threshold": 0.05}
    assert review["seeds"] == [0, 2]
