"""Tests of `elfmem_sim.audit`: the claims of all records in one table.

One small audit takes most of the time here; most tests are about what it left behind.
"""

import json
import re
import shlex
import sys

import numpy as np
import pandas as pd
import pytest

from elfmem_sim import audit as module
from elfmem_sim import cli
from elfmem_sim.arms import ARMS
from elfmem_sim.audit import CLIMBED, CLIMBERS, FIXED, QUANTILES, audit
from elfmem_sim.claims import claim_file_names, load_claims
from elfmem_sim.errors import UserError
from elfmem_sim.fields import KNOBS
from elfmem_sim.protocol import Sizes, last_day_only
from elfmem_sim.scenario import load_scenario
from elfmem_sim.stats import paired_difference
from elfmem_sim.store import Results, tidy
from elfmem_sim.study import Cell, run_study
from elfmem_sim.verification import verify

SEEDS = 3
COLUMNS = [
    "claim", "adr", "scenario", "horizon_days", "published", "replayed", "estimate", "low", "high",
    "n", "two_seed_probability", "verdict",
]  # fmt: skip
RECORDS = {name: load_claims(name)[0] for name in claim_file_names()}
CLAIMS = [(record, claim) for record in RECORDS.values() for claim in record.claim]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return audit(seeds=SEEDS, out=tmp_path_factory.mktemp("audit"), quiet=True)


@pytest.fixture(scope="module")
def runs():
    """Replicates of every effect's and every climber's cells, simulated apart from the audit."""
    pairs = [pair for record in RECORDS.values() for pair in record.cells()]
    pairs += [(f"adr-0003-self-architect/{s}", arm) for s in CLIMBED for arm in (*FIXED, *CLIMBERS)]
    cells = [
        Cell(last_day_only(load_scenario(name)), ARMS[arm], tuple(range(SEEDS)))
        for name, arm in dict.fromkeys(pairs)
    ]
    return tidy(cells, run_study(cells))


def quality(runs, scenario, arm):
    rows = runs[(runs["scenario"] == scenario) & (runs["arm"] == arm)]
    return 100.0 * rows["quality_ratio"].to_numpy()


# --- the table ---


def test_the_columns_are_these(small):
    assert list(small.table.columns) == COLUMNS
    header = (small.folder / "audit.csv").read_text().splitlines()[0]
    assert header == ",".join(COLUMNS)


def test_there_is_one_row_per_claim_of_every_record_in_order(small):
    expected = [(record.adr, claim.statement) for record, claim in CLAIMS]
    found = list(small.table[["adr", "claim"]].itertuples(index=False, name=None))
    assert found == expected
    assert len(found) == len(set(found))


def test_a_record_keeps_its_leading_zeros(small):
    assert list(dict.fromkeys(small.table["adr"])) == ["0001", "0002", "0003", "0004"]


def test_a_row_names_its_scenarios_and_their_days(small):
    for row, (_, claim) in zip(small.table.itertuples(), CLAIMS, strict=True):
        assert row.scenario == (" + ".join(claim.scenarios) or "all")
        days = {load_scenario(name).horizon_days for name in claim.scenarios}
        assert row.horizon_days == " + ".join(map(str, sorted(days)))


def test_a_row_is_its_verdict(small):
    verdicts = [v for group in small.verdicts.values() for v in group]
    assert [v.id for v in verdicts] == [claim.id for _, claim in CLAIMS]
    for row, v in zip(small.table.itertuples(), verdicts, strict=True):
        assert (row.estimate, row.low, row.high, row.n) == (v.estimate, v.low, v.high, v.n)
        assert row.verdict == v.verdict
        for name in ("published", "replayed", "two_seed_probability"):
            shown, own = getattr(row, name), getattr(v, name)
            assert np.isnan(shown) if own is None else shown == own


def test_what_is_read_back_is_what_was_written(small):
    written = (small.folder / "audit.csv").read_text()
    assert small.table.to_csv(index=False, na_rep="nan") == written
    numbers = set(COLUMNS) - {"claim", "adr", "scenario", "horizon_days", "verdict"}
    assert {small.table[name].dtype.kind for name in numbers} == {"f", "i"}


def test_the_audit_judges_as_a_verification_does(small, tmp_path):
    alone = verify("adr-0002", seeds=SEEDS, out=tmp_path / "out", quiet=True)
    assert small.verdicts["0002"] == alone.verdicts


def test_published_figures_are_reproduced_to_the_digit(small):
    replays = {adr: v for adr, group in small.verdicts.items() for v in group if v.rule == "replay"}
    assert {adr: (v.verdict, v.n) for adr, v in replays.items()} == {
        "0001": ("REPRODUCED", 32),
        "0003": ("REPRODUCED", 45),
    }


def test_no_claim_rests_on_what_is_measured_before_the_last_day():
    used = {claim.estimand or record.protocol.estimand for record, claim in CLAIMS}
    assert "quality_ratio_over_time" not in used


# --- sizes ---


def test_seeds_alone_run_no_precision_loop(small):
    effects = small.table[(small.table["scenario"] != "all")]
    assert set(effects["n"]) == {SEEDS}
    assert small.notes == ()


@pytest.mark.parametrize(
    ("seeds", "precision", "expected"),
    [
        (None, None, Sizes(precision=0.3, coarse=0.5, last_day_only=True)),
        (7, None, Sizes(seeds=7, last_day_only=True)),
        (None, 0.4, Sizes(precision=0.4, last_day_only=True)),
        (7, 0.4, Sizes(seeds=7, precision=0.4, last_day_only=True)),
    ],
)
def test_the_options_say_how_large_an_audit_is(seeds, precision, expected):
    assert module._sizes(seeds, precision) == expected


# --- what two seeds show ---


@pytest.fixture(scope="module")
def two_seed(small):
    return Results(small.folder).table("two_seed.csv")


def test_two_seed_distributions_are_of_effects_in_points_with_a_claimed_size(small, two_seed):
    verdicts = [v for group in small.verdicts.values() for v in group]
    expected = [
        (record.adr, claim.id)
        for (record, claim), v in zip(CLAIMS, verdicts, strict=True)
        if v.unit == "pp" and (claim.published is not None or claim.rule == "range")
    ]
    assert list(two_seed[["adr", "claim"]].itertuples(index=False, name=None)) == expected
    claims = {claim.id: claim for _, claim in CLAIMS}
    for row in two_seed.itertuples():
        claim = claims[row.claim]
        single = claim.published is not None
        assert np.isnan(row.published) == (not single)
        shown = (row.claimed_low, row.claimed_high)
        assert np.isnan(shown).all() if single else shown == (claim.low, claim.high)


def test_the_quantiles_are_those_of_the_effects_of_all_pairs(two_seed, runs):
    names = [f"q{round(100 * at):02d}" for at in QUANTILES]
    assert [name for name in two_seed.columns if name[0] == "q"] == names
    for scenario in ("slow_drift", "regime_change"):
        gains = [quality(runs, f"adr-0003/{scenario}", arm) for arm in ("architecture_m",
                                                                       "baseline")]  # fmt: skip
        gain = gains[0] - gains[1]
        pairs = np.sort([(gain[0] + gain[1]) / 2, (gain[0] + gain[2]) / 2, (gain[1] + gain[2]) / 2])
        row = two_seed[two_seed["claim"] == f"m.{scenario}"].iloc[0]
        found = row[names].to_numpy(float)
        # Three pairs, each as likely: a third of the quantiles at each, but for sampling.
        for share, pair in ((0.15, pairs[0]), (0.5, pairs[1]), (0.85, pairs[2])):
            assert found[round(100 * share) - 1] == pytest.approx(pair)
        counts = [np.sum(np.abs(found - pair) < 1e-9) for pair in pairs]
        assert max(counts) - min(counts) <= 3
        assert sum(counts) >= 97  # a quantile may fall between two pairs


# --- climbers ---


def test_every_climber_is_compared_with_every_control_in_every_scenario(small):
    expected = {
        (f"adr-0003-self-architect/{scenario}", arm, control)
        for scenario in CLIMBED
        for arm in CLIMBERS
        for control in (*FIXED, "self_architect", "self_architect_blind")
        if arm != control
    }
    keys = ["scenario", "arm", "control"]
    rows = small.climbers[small.climbers["estimand"] == "quality_ratio"]
    found = list(rows[keys].itertuples(index=False, name=None))
    assert (len(found), set(found)) == (len(expected), expected)


@pytest.mark.parametrize("arm", CLIMBERS)
def test_a_climber_has_moved_if_any_knob_is_not_where_it_started(small, runs, arm):
    own = small.climbers.query("estimand == 'moved' and arm == @arm").set_index("scenario")["mean"]
    for scenario, share in own.items():
        knobs = runs[(runs["scenario"] == scenario) & (runs["arm"] == arm)][list(KNOBS)]
        assert share == 100.0 * (knobs.to_numpy(float) != (0.0, 0.0, 1.0, 2.0)).any(axis=1).mean()


def test_a_climbers_difference_is_paired_by_seed(small, runs):
    for row in small.climbers[small.climbers["estimand"] == "quality_ratio"].itertuples():
        e = paired_difference(
            quality(runs, row.scenario, row.arm), quality(runs, row.scenario, row.control)
        )
        assert (row.mean, row.low, row.high, row.n) == pytest.approx((e.mean, e.low, e.high, SEEDS))


# --- the folder ---


def test_every_file_is_there_and_vouched_for(small):
    files = set(contents(small.folder))
    expected = {
        "audit.csv", "audit.md", "audit.png", "two_seed.csv", "climbers.csv", "claims.json",
        "worlds.csv", "responses.csv", "choices.csv",
    }  # fmt: skip
    assert files == expected | {"manifest.json"}
    assert set(Results(small.folder).manifest()["files"]) == files - {"manifest.json"}


def test_the_manifest_names_the_command_and_every_claim_file(small):
    manifest = Results(small.folder).manifest()
    assert manifest["command"] == f"elfmem-sim verify all --seeds {SEEDS}"
    assert manifest["claims"] == {name: load_claims(name)[1] for name in RECORDS}


def test_the_report_concludes_on_every_claim_and_shows_the_table(small):
    text = (small.folder / "audit.md").read_text()
    bullets = [line for line in text.splitlines() if line.startswith("- **")]
    assert len(bullets) == len(CLAIMS)
    assert f"| {' | '.join(COLUMNS)} |" in text


def test_what_stands_beside_the_claims_is_read_back(small):
    assert small.worlds["n"].max() == SEEDS
    assert set(small.responses["objective"]) == set(CLIMBERS) - {"self_architect_blind"}
    assert set(small.choices["chooser"]) == set(CLIMBERS)


def test_claims_json_holds_the_verdicts_by_record(small):
    stored = json.loads((small.folder / "claims.json").read_text())
    assert [(entry["adr"], entry["id"]) for entry in stored] == [(r.adr, c.id) for r, c in CLAIMS]


def test_the_same_bytes_for_any_number_of_workers(tmp_path):
    for workers in (1, 2):
        audit(seeds=2, out=tmp_path / f"{workers}", workers=workers, quiet=True)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def again(small, **more):
    return audit(**{"seeds": SEEDS, "out": small.folder, "quiet": True, **more})


def test_a_finished_audit_is_read_not_run(small, monkeypatch):
    before = contents(small.folder)
    monkeypatch.setattr(module, "gather", None)
    monkeypatch.setattr(module, "run_study", None)
    second = again(small, workers=2)
    pd.testing.assert_frame_equal(second.table, small.table, check_exact=True)
    assert second.verdicts == small.verdicts
    assert contents(small.folder) == before


@pytest.mark.parametrize("more", [{"seeds": 2}, {"precision": 9.0}], ids=["seeds", "precision"])
def test_the_folder_of_another_audit_is_refused(small, more):
    with pytest.raises(UserError, match="results of this very command"):
        again(small, **more)


@pytest.mark.parametrize("name", ["v017_full", "review", "self_architect", *CLIMBERS[2:]])
def test_the_folder_of_another_version_of_an_arm_is_refused(small, monkeypatch, name):
    monkeypatch.setitem(ARMS, name, ARMS["model_c"].model_copy(update={"name": name}))
    with pytest.raises(UserError, match="results of this very command"):
        again(small)


# --- the command line ---


@pytest.fixture
def call(monkeypatch, capfd):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["elfmem-sim", "verify", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capfd.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def options(small):
    return ["--seeds", str(SEEDS), "--out", str(small.folder), "--workers", "1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["al"], "got 'al'"),
        (["all", "--seeds", "1"], "--seeds: got 1"),
        (["all", "--precision", "0"], "--precision: got '0'"),
        (["all", "--out", "foreign"], "an empty folder or results of this very command"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(call, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("words")
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert {path.name for path in tmp_path.rglob("*")} == {"foreign", "thesis.txt"}


def test_the_table_is_printed_with_its_folder(small, call):
    code, out, _ = call("all", *options(small))
    assert code == 0
    assert "The published evidence, audited" in out
    assert out.endswith(f"Results: {small.folder}\n")
    assert [c.statement for _, c in CLAIMS if c.statement not in out] == []


def test_the_audit_as_json_is_the_table_with_nulls(small, call):
    code, out, _ = call("all", *options(small), "--json")
    document = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert code == 0
    assert [list(row) for row in document["audit"]] == [COLUMNS] * len(CLAIMS)
    assert [row["published"] for row in document["audit"]] == [c.published for _, c in CLAIMS]


def test_a_quiet_and_strict_audit_says_what_it_found_by_its_exit_code(small, call):
    words = set(small.table["verdict"])
    assert "CONTRADICTED" in words
    assert call("all", *options(small), "--strict", "--quiet") == (1, "", "")


def test_the_command_in_the_manifest_is_one_that_makes_the_same_audit(small, call):
    command = shlex.split(Results(small.folder).manifest()["command"])
    assert command[:2] == ["elfmem-sim", "verify"]
    code, out, _ = call(*command[2:], "--out", str(small.folder), "--workers", "1")
    assert (code, bool(re.search(r"Results: ", out))) == (0, True)
