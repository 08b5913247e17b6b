"""Tests of `elfmem_sim.verification`: a decision record in, verdicts and a results folder out.

Simulation takes the time here, so most tests share two finished runs and are about what those left
behind; the rest use a protocol cut down to two scenarios.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import elfmem_sim.verification as module
from elfmem_sim import study
from elfmem_sim.arms import ARMS
from elfmem_sim.claims import load_claims
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.store import Results, tidy
from elfmem_sim.study import Cell, run_study

verify = module.verify

SEEDS = 3
DRIFT, CALM = "adr-0004/slow_drift", "adr-0004/stable"
NOISY = "uses_per_learn=3 cadence_days=30 proposer=noisy"

FILES = {
    "claims.json",
    "differences.csv",
    "manifest.json",
    "over_time.csv",
    "replay.csv",
    "replay.png",
    "replicates.csv.gz",
    "report.md",
    "summary.csv",
}


def rerun(done, name, **more):
    """Ask for a finished run once more."""
    return verify(name, seeds=SEEDS, out=done.folder, quiet=True, **more)


def replicates(folder):
    return Results(folder).table("replicates.csv.gz")


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# --- the whole of ADR 0004 ---


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    return verify("adr-0004", seeds=SEEDS, out=tmp_path_factory.mktemp("audit"), quiet=True)


def test_every_file_is_there(audit):
    assert set(contents(audit.folder)) == FILES | {"quality.png", "sensitivity.csv"}


def test_every_file_is_vouched_for(audit):
    manifest = Results(audit.folder).manifest()
    assert set(manifest["files"]) == set(contents(audit.folder)) - {"manifest.json"}


def test_one_verdict_per_claim_in_the_files_order(audit):
    assert [v.id for v in audit.verdicts] == [c.id for c in audit.record.claim]


def test_claims_json_holds_the_verdicts_returned(audit):
    stored = json.loads((audit.folder / "claims.json").read_text())
    assert stored == json.loads(json.dumps([v.plain() for v in audit.verdicts]))


def test_a_bootstrap_interval_read_back_is_a_pair_of_numbers(audit):
    (gain,) = (v for v in audit.verdicts if v.id == "gain.drifting")
    assert isinstance(gain.bootstrap, tuple)
    assert gain.bootstrap[0] < gain.estimate < gain.bootstrap[1]


def test_the_manifest_names_the_hashes_of_the_claims_and_of_what_is_replayed(audit):
    expected = {name: load_claims(name)[1] for name in ("adr-0004", "adr-0003")}
    assert Results(audit.folder).manifest()["claims"] == expected


def test_the_manifest_names_the_command(audit):
    command = Results(audit.folder).manifest()["command"]
    assert command == "elfmem-sim verify adr-0004 --seeds 3"


def test_no_promise_lacks_an_occasion(audit):
    promises = [v for v in audit.verdicts if v.rule == "promise"]
    assert {v.verdict for v in promises} == {"HELD"}


def test_the_sensitivity_table_has_all_36_combinations(audit):
    keys = ["uses_per_learn", "cadence_days", "proposer"]
    found = list(audit.sensitivity[keys].itertuples(index=False, name=None))
    plan = audit.record.sensitivity
    expected = [(v.uses_per_learn, v.cadence_days, v.proposer) for v in plan.variants]
    assert (len(found), found) == (36, expected)


def test_the_sensitivity_table_has_every_seed(audit):
    assert set(audit.sensitivity["n"]) == {SEEDS}


def test_the_headlines_assumption_is_a_row_of_the_sensitivity_table(audit):
    (gain,) = (v for v in audit.verdicts if v.id == "gain.drifting")
    row = audit.sensitivity.query("uses_per_learn == 3 and cadence_days == 30").iloc[0]
    assert (row["gain"], row["gain_low"]) == pytest.approx((gain.estimate, gain.low))


def test_the_reversions_really_revert(audit):
    reverted = replicates(audit.folder).groupby("variant")["reverted"].sum()
    assert reverted["reversions"] > 0


def test_nothing_but_the_reversions_reverts(audit):
    reverted = replicates(audit.folder).groupby("variant")["reverted"].sum()
    assert reverted.drop("reversions").sum() == 0


def test_amendments_that_were_reverted_are_among_those_accepted(audit):
    rows = replicates(audit.folder).query("variant == 'reversions'")
    assert (rows["reverted"] <= rows["accepted"]).all()


def test_the_report_has_its_sections_in_order(audit):
    report = (audit.folder / "report.md").read_text()
    sections = [line[3:] for line in report.splitlines() if line.startswith("## ")]
    assert sections == [
        "What the claim needs to be true",
        "Published figures, replayed",
        "The same comparison in other estimands",
        "Threats to validity",
    ]


def test_differences_are_of_the_review_against_the_baseline(audit):
    differences = Results(audit.folder).table("differences.csv")
    assert set(zip(differences["arm"], differences["control"], strict=True)) == {
        ("review", "baseline")
    }


def test_the_gain_is_the_same_in_verdict_and_differences(audit):
    differences = Results(audit.folder).table("differences.csv")
    row = differences.query(f"scenario == '{DRIFT}' and estimand == 'quality_ratio'").iloc[0]
    (gain,) = (v for v in audit.verdicts if v.id == "gain.slow_drift")
    assert (row["mean"], row["low"], row["high"]) == pytest.approx(
        (gain.estimate, gain.low, gain.high)
    )


def noisy_cell():
    own = load_claims("adr-0004")[0]
    scenario, arm = override(
        load_scenario(DRIFT), ARMS["review"], own.sensitivity.proposers["noisy"]
    )
    return Cell(scenario, arm, tuple(range(SEEDS)), NOISY)


def test_cells_carried_over_equal_simulated_ones(audit):
    table = replicates(audit.folder)
    kept = table.query(f"scenario == '{DRIFT}' and variant == '{NOISY}'").reset_index(drop=True)
    cell = noisy_cell()
    simulated = tidy([cell], run_study([cell]))
    # The comparison means something only if some seeds were carried over and others were not.
    assert set(kept["proposals"] == 0) == {True, False}
    pd.testing.assert_frame_equal(kept, simulated, check_exact=True, check_dtype=False)


def no_study(*_args, **_kwargs):
    raise AssertionError("a finished study was run again")


def test_a_finished_study_is_not_run_again(audit, monkeypatch):
    monkeypatch.setattr(module, "run_study", no_study)
    assert rerun(audit, "adr-0004").verdicts == audit.verdicts


def test_a_finished_study_is_left_as_it_is(audit):
    before = contents(audit.folder)
    rerun(audit, "adr-0004", workers=2)
    assert contents(audit.folder) == before


@pytest.mark.parametrize("more", [{"seeds": 4}, {"precision": 1.0}], ids=["seeds", "precision"])
def test_the_folder_of_another_study_is_refused(audit, more):
    with pytest.raises(UserError, match="results of this very command"):
        verify("adr-0004", **{"seeds": SEEDS, **more}, out=audit.folder, quiet=True)


def changed(name):
    scenario = load_scenario(name)
    return scenario.model_copy(update={"horizon_days": scenario.horizon_days + 1})


def test_the_folder_of_another_version_of_a_scenario_is_refused(audit, monkeypatch):
    monkeypatch.setattr(module, "load_scenario", changed)
    with pytest.raises(UserError, match="results of this very command"):
        rerun(audit, "adr-0004")


def test_a_damaged_file_is_refused(audit, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(audit.folder, folder)
    (folder / "claims.json").write_text("[]")
    with pytest.raises(UserError, match="Rebuild it: elfmem-sim verify adr-0004 --seeds 3"):
        verify("adr-0004", seeds=SEEDS, out=folder, quiet=True)


# --- ADR 0003, replayed ---


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    return verify("adr-0003", seeds=SEEDS, out=tmp_path_factory.mktemp("replay"), quiet=True)


def test_adr_0003_is_reproduced_to_the_digit(replay):
    assert [(v.id, v.verdict) for v in replay.verdicts] == [("replay", "REPRODUCED")]


def test_every_published_figure_is_replayed(replay):
    table = replay.replay
    assert len(table.drop_duplicates(["scenario", "arm"])) == len(table) == 20


def test_replayed_figures_round_to_the_published_ones(replay):
    rounded = [f"{value:.1f}" for value in replay.replay["replayed"]]
    assert rounded == [f"{value:.1f}" for value in replay.replay["published"]]


def test_a_replay_has_no_figure_and_no_table_of_an_experiment_it_lacks(replay):
    assert set(contents(replay.folder)) == FILES


def test_a_replay_compares_every_arm_with_the_baseline(replay):
    differences = Results(replay.folder).table("differences.csv")
    assert set(differences["arm"]) == {"architecture_m", "model_c", "model_d"}


# --- a small protocol ---


def small(**more):
    own, _ = load_claims("adr-0004")
    claims = {claim.id: claim for claim in own.claim}
    kept = ("gain.slow_drift", "tax.stable", "promise.revert")
    sensitivity = own.sensitivity.model_copy(
        update={"drifting": (DRIFT,), "uses_per_learn": (0, 3), "cadence_days": (30,)}
    )
    update = {
        "protocol": own.protocol.model_copy(update={"scenarios": (CALM, DRIFT)}),
        "claim": tuple(claims[id] for id in kept),
        "replay": "",
        "sensitivity": sensitivity,
        "reversions": own.reversions.model_copy(update={"scenarios": (DRIFT,)}),
        **more,
    }
    return own.model_copy(update=update)


def use(record, monkeypatch):
    monkeypatch.setattr(module, "load_claims", lambda _name: (record, "0" * 64))


def bare(monkeypatch):
    """Gain and tax, and nothing else."""
    own = small()
    use(small(claim=own.claim[:2], sensitivity=None, reversions=None), monkeypatch)


def test_the_folder_does_not_depend_on_the_number_of_workers(tmp_path, monkeypatch):
    use(small(), monkeypatch)
    one = verify("small", seeds=2, out=tmp_path / "one", quiet=True)
    two = verify("small", seeds=2, out=tmp_path / "two", workers=2, quiet=True)
    assert contents(one.folder) == contents(two.folder)


def test_an_interrupted_study_ends_as_if_it_had_not_been(tmp_path, monkeypatch):
    bare(monkeypatch)
    whole = verify("small", seeds=2, out=tmp_path / "whole", quiet=True)
    append = Results.append
    left = iter(range(3))

    def interrupted(self, batch):
        append(self, batch)
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verify("small", seeds=2, out=tmp_path / "cut", quiet=True)
    cut = verify("small", seeds=2, out=tmp_path / "cut", quiet=True)
    assert contents(cut.folder) == contents(whole.folder)


def test_runs_without_a_proposal_are_not_repeated_with_other_proposers(tmp_path, monkeypatch):
    # Unused blocks leave every review without a history, so no proposer is ever called.
    own = small()
    plan = own.sensitivity.model_copy(update={"uses_per_learn": (0,)})
    use(small(sensitivity=plan, reversions=None), monkeypatch)
    moves = []

    def run_cell(cell, seeds):
        moves.append(cell.arm.review and cell.arm.review.proposer_move)
        return original(cell, seeds)

    original = study.run_cell
    monkeypatch.setattr(study, "run_cell", run_cell)
    verify("small", seeds=2, out=tmp_path / "out", quiet=True)
    assert set(moves) == {None, 1.0}


def test_the_claim_files_own_seeds_are_the_default(tmp_path, monkeypatch):
    own = small()
    protocol = own.protocol.model_copy(update={"seeds": 2})
    use(small(claim=own.claim[:2], sensitivity=None, reversions=None, protocol=protocol),
        monkeypatch)  # fmt: skip
    outcome = verify("small", out=tmp_path / "out", quiet=True)
    assert {v.n for v in outcome.verdicts} == {2}


def test_the_default_folder_is_named_after_the_study(tmp_path, monkeypatch):
    bare(monkeypatch)
    monkeypatch.chdir(tmp_path)
    outcome = verify("small", seeds=2, quiet=True)
    identity = Results(outcome.folder).manifest()["identity"]
    assert outcome.folder == Path("runs") / f"small-{identity[:8]}"


def test_a_quiet_run_says_nothing(tmp_path, monkeypatch, capfd):
    bare(monkeypatch)
    verify("small", seeds=2, out=tmp_path / "out", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_standard_error(tmp_path, monkeypatch, capfd):
    bare(monkeypatch)
    verify("small", seeds=2, out=tmp_path / "out")
    streams = capfd.readouterr()
    assert (streams.out, "replay and headline: 8 of 8 runs" in streams.err) == ("", True)


# --- precision ---


def half_widths(outcome):
    return [(v.high - v.low) / 2 for v in outcome.verdicts]


@pytest.fixture(scope="module")
def precise(tmp_path_factory):
    """Asked for a half-width that 3 seeds do not reach, and a few more do."""
    with pytest.MonkeyPatch.context() as patch:
        bare(patch)
        out = tmp_path_factory.mktemp("precise")
        return verify("small", seeds=3, precision=20.0, out=out, quiet=True)


def test_a_precision_is_reached(precise):
    assert max(half_widths(precise)) <= 20.0


def test_a_precision_takes_more_seeds_than_planned(precise):
    assert {v.n > 3 for v in precise.verdicts} == {True}


def test_a_precision_is_approached_in_leaps(tmp_path, monkeypatch):
    bare(monkeypatch)
    monkeypatch.setattr(module, "MAX_SEEDS", 8)
    rounds = []

    def run_study(cells, **more):
        rounds.append(len(cells[0].seeds))
        return original(cells, **more)

    original = module.run_study
    monkeypatch.setattr(module, "run_study", run_study)
    verify("small", seeds=2, precision=0.01, out=tmp_path / "out", quiet=True)
    assert rounds == [2, 8]


def test_a_precision_that_was_reached_is_noted(precise):
    (note,) = precise.notes
    widest, n = max(half_widths(precise)), precise.verdicts[0].n
    expected = f"Precision 20 pp reached: widest half-width {widest:.2f} pp at {n} seeds."
    assert note == expected


def test_the_note_is_in_the_report(precise):
    assert precise.notes[0] in (precise.folder / "report.md").read_text()


def test_the_command_names_the_precision(precise):
    command = Results(precise.folder).manifest()["command"]
    assert command == "elfmem-sim verify small --seeds 3 --precision 20pp"


def test_the_replays_figure_names_the_record_that_it_replays(tmp_path, monkeypatch):
    titles = []
    original = module.quality_over_time

    def quality_over_time(series, published=None, title=""):
        titles.append(title)
        return original(series, published, title)

    monkeypatch.setattr(module, "quality_over_time", quality_over_time)
    verify("adr-0001", seeds=2, out=tmp_path / "out", quiet=True)
    assert [title.split(" (")[0] for title in titles] == ["ADR 0001 replayed"]


def test_all_arms_of_a_protocol_count_towards_its_identity():
    own, _ = load_claims("adr-0002")
    assert len(list(module._inputs(own))) == len(own.protocol.scenarios) * len(own.protocol.arms)


def test_a_record_without_effects_is_made_precise_in_its_means(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SEEDS", 5)
    done = verify("adr-0003", seeds=3, precision=0.1, out=tmp_path / "out", quiet=True)
    assert done.notes[0].startswith("Precision 0.1 pp capped at 5 seeds")
    assert set(done.replay["n"]) == {5}


def test_a_precision_out_of_reach_stops_at_the_cap(tmp_path, monkeypatch):
    bare(monkeypatch)
    monkeypatch.setattr(module, "MAX_SEEDS", 5)
    outcome = verify("small", seeds=2, precision=0.01, out=tmp_path / "out", quiet=True)
    assert {v.n for v in outcome.verdicts} == {5}
    assert outcome.notes[0].startswith("Precision 0.01 pp capped at 5 seeds: widest")


def test_a_precision_that_is_there_already_adds_no_seed(tmp_path, monkeypatch):
    bare(monkeypatch)
    outcome = verify("small", seeds=2, precision=1000.0, out=tmp_path / "out", quiet=True)
    assert {v.n for v in outcome.verdicts} == {2}


# --- what is refused ---


@pytest.mark.parametrize("seeds", [1, 0, -3])
def test_too_few_seeds_are_refused(tmp_path, seeds):
    with pytest.raises(UserError, match="at least 2 seeds"):
        verify("adr-0004", seeds=seeds, out=tmp_path / "out", quiet=True)


@pytest.mark.parametrize("precision", [0.0, -1.0, float("nan")])
def test_a_precision_that_is_not_positive_is_refused(tmp_path, precision):
    with pytest.raises(UserError, match="a half-width above 0"):
        verify("adr-0004", precision=precision, out=tmp_path / "out", quiet=True)


def test_an_unknown_record_is_refused(tmp_path):
    with pytest.raises(UserError, match="one of adr-0001, "):
        verify("adr-0009", out=tmp_path / "out", quiet=True)


def test_wrong_input_leaves_no_folder(tmp_path):
    with pytest.raises(UserError):
        verify("adr-0004", seeds=1, out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("words")
    with pytest.raises(UserError, match="an empty folder"):
        verify("adr-0003", seeds=SEEDS, out=tmp_path, quiet=True)
