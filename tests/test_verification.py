"""Tests of `elfmem_sim.verification`: a decision record in, verdicts and a results folder out.

Simulation takes the time here, so most tests share two finished runs and are about what those left
behind; the rest use a protocol cut down to two scenarios.
"""

import json
import shutil
from pathlib import Path

import pytest

import elfmem_sim.verification as module
from elfmem_sim import protocol
from elfmem_sim.arms import ARMS
from elfmem_sim.claims import load_claims
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import load_scenario
from elfmem_sim.store import Results

verify = module.verify

SEEDS = 3
DRIFT, CALM = "adr-0004/slow_drift", "adr-0004/stable"

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


def no_protocol(*_args, **_kwargs):
    raise AssertionError("a finished study was run again")


def test_a_finished_study_is_not_run_again(audit, monkeypatch):
    monkeypatch.setattr(module, "gather", no_protocol)
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
    monkeypatch.setattr(protocol, "load_scenario", changed)
    with pytest.raises(UserError, match="results of this very command"):
        rerun(audit, "adr-0004")


def test_the_folder_of_another_version_of_an_arm_is_refused(audit, monkeypatch):
    review = ARMS["review"]
    later = review.review.model_copy(update={"cadence_days": 31})
    monkeypatch.setitem(ARMS, "review", review.model_copy(update={"review": later}))
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
    (verdict,) = (v for v in replay.verdicts if v.rule == "replay")
    assert (verdict.verdict, verdict.estimate, verdict.n) == ("REPRODUCED", 100.0, 20 + 10 + 15)


def test_every_published_figure_is_replayed(replay):
    table = replay.replay
    assert len(table.drop_duplicates(["scenario", "arm", "estimand"])) == len(table) == 45


def test_replayed_figures_round_to_the_published_ones(replay):
    for row in replay.replay.itertuples():
        assert f"{row.replayed:.{row.digits}f}" == f"{row.published:.{row.digits}f}"


def test_a_replayed_effect_is_that_of_the_table(replay):
    figures = replay.replay.query("scenario == 'adr-0003/slow_drift'")
    values = figures[figures["estimand"] == "quality_ratio"].set_index("arm")["replayed"]
    (verdict,) = (v for v in replay.verdicts if v.id == "m.slow_drift")
    assert verdict.replayed == pytest.approx(values["architecture_m"] - values["baseline"])
    assert round(verdict.replayed, 1) == verdict.published == 9.9


def test_the_spread_of_the_replay_is_that_of_the_table_which_is_not_the_published_one(replay):
    figures = replay.replay.query("arm == 'model_c' and estimand == 'quality_ratio'")
    values = figures[figures["scenario"].str.startswith("adr-0003/")]["replayed"]
    (verdict,) = (v for v in replay.verdicts if v.id == "c.range")
    assert verdict.replayed == pytest.approx(values.max() - values.min())
    assert (round(verdict.replayed, 1), verdict.published) == (6.7, 7.3)


def test_a_record_without_reversions_and_sensitivity_has_no_files_of_them(replay):
    assert set(contents(replay.folder)) == (FILES - {"replay.png"}) | {"quality.png"}


def test_a_replay_compares_every_arm_with_the_baseline_where_it_was_run(replay):
    differences = Results(replay.folder).table("differences.csv")
    differences = differences[differences["estimand"] == "quality_ratio"]
    arms = {
        scenario: set(part["arm"])
        for scenario, part in differences.groupby(differences["scenario"].str.split("/").str[0])
    }
    fixed = {"architecture_m", "model_c", "model_d"}
    climbers = {"self_architect", "self_architect_blind"}
    assert arms == {"adr-0003": fixed, "adr-0003-self-architect": fixed | climbers}
    assert set(differences["control"]) == {"baseline"}


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """A record whose claims have other controls than the protocol's in some scenarios."""
    return verify("adr-0002", seeds=2, out=tmp_path_factory.mktemp("sparse"), quiet=True)


def test_a_record_may_have_no_published_table(sparse):
    assert sparse.replay is None
    assert set(contents(sparse.folder)) == (FILES - {"replay.csv", "replay.png"}) | {"quality.png"}


def test_a_scenario_without_the_control_is_left_out_of_the_differences(sparse):
    differences = Results(sparse.folder).table("differences.csv")
    assert set(differences["scenario"]) == {"adr-0001/weekly_rescore", "adr-0001/baseline"}
    assert set(differences["control"]) == {"current"}


def test_a_ratio_read_back_has_no_bootstrap_interval_and_its_own_unit(sparse):
    (ratio,) = (v for v in sparse.verdicts if v.rule == "ratio")
    assert (ratio.bootstrap, ratio.unit, ratio.published) == (None, "fold", 22.0)


# --- a small protocol ---


def small(**more):
    own, _ = load_claims("adr-0004")
    claims = {claim.id: claim for claim in own.claim}
    kept = ("gain.slow_drift", "tax.stable", "promise.revert")
    sensitivity = own.sensitivity.model_copy(
        update={"drifting": (DRIFT,), "uses_per_learn": (0, 3), "cadence_days": (30,)}
    )
    update = {
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


@pytest.fixture(scope="module")
def precise(tmp_path_factory):
    """Asked for a half-width that 3 seeds do not reach for the gain, and a few more do."""
    with pytest.MonkeyPatch.context() as patch:
        bare(patch)
        out = tmp_path_factory.mktemp("precise")
        return verify("small", seeds=3, precision=20.0, out=out, quiet=True)


def test_a_precision_is_reached_claim_by_claim(precise):
    gain, tax = precise.verdicts
    assert (gain.high - gain.low) / 2 <= 20.0
    assert gain.n > 3
    # A tax that is exactly zero in every seed is known as well as it can be.
    assert (tax.n, tax.low, tax.high) == (3, 0.0, 0.0)


def test_every_cell_has_the_seeds_of_its_claim_in_manifest_and_tables(precise):
    gain, tax = precise.verdicts
    expected = {DRIFT: gain.n, CALM: tax.n}
    cells = Results(precise.folder).manifest()["cells"]
    assert {c["scenario"]: c["seeds"][1] + 1 for c in cells} == expected
    assert replicates(precise.folder).groupby("scenario")["seed"].nunique().to_dict() == expected
    differences = Results(precise.folder).table("differences.csv")
    assert differences.groupby("scenario")["n"].unique().map(list).to_dict() == {
        DRIFT: [gain.n],
        CALM: [tax.n],
    }


def test_a_precision_that_was_reached_is_noted(precise):
    gain, _ = precise.verdicts
    (note,) = precise.notes
    half = (gain.high - gain.low) / 2
    assert note == f"Precision 20 pp reached: widest half-width {half:.2f} pp at {gain.n} seeds."


def test_the_note_is_in_the_report(precise):
    assert precise.notes[0] in (precise.folder / "report.md").read_text()


def test_the_command_names_the_precision(precise):
    command = Results(precise.folder).manifest()["command"]
    assert command == "elfmem-sim verify small --seeds 3 --precision 20pp"


# --- figures ---


DIAMONDS = " (diamonds: published, mean of two seeds)"
FIGURES = [
    ("adr-0001", "", {"ADR 0001" + DIAMONDS: 16}),
    ("adr-0002", "", {"ADR 0002": 0}),
    ("adr-0002", "adr-0003", {"ADR 0003 replayed" + DIAMONDS: 20, "ADR 0002": 0}),
]


@pytest.mark.parametrize(("name", "replay", "marks"), FIGURES)
def test_a_figure_names_its_record_and_marks_its_qualities(
    tmp_path, monkeypatch, name, replay, marks
):
    drawn = {}

    def quality_over_time(series, published=None, title=""):
        drawn[title] = len(published)
        assert set(published["estimand"]) <= {"quality_ratio"}
        return b""

    def load(asked):
        own, sha = load_claims(asked)
        return own.model_copy(update={"replay": replay if asked == name else own.replay}), sha

    monkeypatch.setattr(module, "quality_over_time", quality_over_time)
    monkeypatch.setattr(module, "load_claims", load)
    verify(name, seeds=2, out=tmp_path / "out", quiet=True)
    assert drawn == marks


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
