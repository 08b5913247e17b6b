"""Tests of `elfmem_sim.protocol`: the cells that a record's claims need, until they are precise.

Most protocols here are about worlds cut down to two months, in which a run takes milliseconds.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from elfmem_sim import protocol as module
from elfmem_sim import study
from elfmem_sim.arms import ARMS
from elfmem_sim.claims import Claim, ClaimFile, Protocol, Published, load_claims
from elfmem_sim.compare import values_of
from elfmem_sim.errors import UserError
from elfmem_sim.protocol import (
    Sizes,
    check_precision,
    check_seeds,
    gather,
    inputs,
    last_day_only,
    precision_note,
    published_frame,
    replayed_table,
)
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.simulate import simulate
from elfmem_sim.stats import larger_n
from elfmem_sim.store import Results, tidy
from elfmem_sim.study import Cell, run_study
from elfmem_sim.verification import index

DRIFT, CALM, NOISE = "adr-0003/slow_drift", "adr-0003/stable", "adr-0003/adversarial"
NOISY = "uses_per_learn=3 cadence_days=30 proposer=noisy"


# --- checks and notes ---


@pytest.mark.parametrize(("seeds", "least"), [(1, 2), (0, 1), (-3, 2)])
def test_too_few_seeds_are_refused(seeds, least):
    with pytest.raises(UserError, match=f"got {seeds}; expected at least {least} seeds"):
        check_seeds(seeds, least=least)


@pytest.mark.parametrize("seeds", [None, 2, 400])
def test_enough_seeds_and_the_default_pass(seeds):
    check_seeds(seeds, least=2)


@pytest.mark.parametrize("precision", [0.0, -1.0, math.nan])
def test_a_precision_that_is_not_positive_is_refused(precision):
    with pytest.raises(UserError, match="a half-width above 0"):
        check_precision(precision)


@pytest.mark.parametrize("precision", [None, 0.01, 20.0])
def test_a_positive_precision_and_none_pass(precision):
    check_precision(precision)


@pytest.mark.parametrize(
    ("widest", "words"), [(0.3, "reached"), (0.2, "reached"), (0.31, "capped at 70 seeds")]
)
def test_a_note_says_whether_a_precision_was_reached(widest, words):
    note = f"Precision 0.3 pp {words}: widest half-width {widest:.2f} pp at 70 seeds."
    assert precision_note(0.3, widest, 70) == note


# --- published figures ---


def test_published_figures_are_rows_in_the_tables_order():
    first = Published(estimand="x", arms=("a", "b"), values={"s": (1.5, 2.5), "t": (3.5, 4.5)})
    second = Published(estimand="y", digits=2, arms=("b",), values={"s": (0.25,)})
    assert published_frame([first, second]).to_dict("split")["data"] == [
        ["s", "a", "x", 1.5, 1],
        ["s", "b", "x", 2.5, 1],
        ["t", "a", "x", 3.5, 1],
        ["t", "b", "x", 4.5, 1],
        ["s", "b", "y", 0.25, 2],
    ]


def test_no_published_figures_are_a_table_without_rows():
    frame = published_frame([])
    columns = ["scenario", "arm", "estimand", "value", "digits"]
    assert (len(frame), list(frame.columns)) == (0, columns)


def test_the_table_that_another_record_replays_is_the_first_of_that_record():
    assert replayed_table(load_claims("adr-0004")[0]) == load_claims("adr-0003")[0].published[0]


@pytest.mark.parametrize("name", ["adr-0001", "adr-0002", "adr-0003"])
def test_a_record_may_replay_no_other(name):
    assert replayed_table(load_claims(name)[0]) is None


# --- inputs ---


@pytest.mark.parametrize(("name", "replayed"), [("adr-0002", 0), ("adr-0003", 0), ("adr-0004", 20)])
def test_every_cell_counts_towards_a_records_identity(name, replayed):
    own = load_claims(name)[0]
    digests = list(inputs(own))
    assert len(digests) == replayed + len(own.cells())
    assert len(set(digests)) == len(digests)


# --- measuring the last day only ---

RUNS = [
    ("adr-0001/weekly_rescore", "current"),
    ("adr-0001/weekly_rescore", "v016_additive"),
    ("adr-0001/long_horizon", "v017_full"),
    ("adr-0001/long_horizon", "v017_exploration"),
    ("adr-0003/adversarial", "model_d"),
    ("adr-0003/quiet_burst", "model_c"),
    ("adr-0003/regime_change", "baseline"),
    ("adr-0003-self-architect/drift", "self_architect"),
    ("adr-0003-self-architect/regime_change", "self_architect_blind"),
    ("adr-0004/slow_drift", "review"),
    ("adr-0004/adversarial", "review"),
    ("life/weekly_rhythm", "review"),
]


@pytest.mark.parametrize(("name", "arm"), RUNS)
def test_measuring_the_last_day_only_changes_no_number_of_it(name, arm):
    whole, last = load_scenario(name), last_day_only(load_scenario(name))
    for seed in (0, 5):
        one, other = (simulate(world, ARMS[arm], seed) for world in (whole, last))
        assert len(other.snapshots) == 1 < len(one.snapshots)
        assert other.snapshots[-1].tobytes() == one.snapshots[-1].tobytes()
        assert (other.amendments, other.reviews) == (one.amendments, one.reviews)


@pytest.mark.parametrize(("name", "arm"), [RUNS[0], RUNS[7], RUNS[9]])
def test_measuring_the_last_day_only_changes_nothing_in_the_table_but_the_mean_over_time(name, arm):
    worlds = (load_scenario(name), last_day_only(load_scenario(name)))
    cells = [Cell(world, ARMS[arm], (0, 1)) for world in worlds]
    whole, last = (tidy([cell], run_study([cell])) for cell in cells)
    moved = "quality_ratio_over_time"
    pd.testing.assert_frame_equal(
        last.drop(columns=moved), whole.drop(columns=moved), check_exact=True
    )
    assert (last[moved] == last["quality_ratio"]).all()
    assert (whole[moved] != whole["quality_ratio"]).all()


@pytest.mark.parametrize(("days", "every"), [(365, 28), (364, 28), (57, 28), (56, 28), (730, 14)])
def test_the_last_measured_day_stays_the_last(days, every):
    world = load_scenario(CALM)
    measurement = world.measurement.model_copy(update={"every_days": every})
    world = world.model_copy(update={"horizon_days": days, "measurement": measurement})
    last = range(every, days, every)[-1]
    assert last_day_only(world).measurement.every_days == last


# --- a protocol in two months ---


def brief(name):
    return load_scenario(name).model_copy(update={"horizon_days": 57})


def claim(rule="range", id="c", **more):
    fields = {"scenarios": (DRIFT,), "low": -9.0, "high": -1.0, **more}
    return Claim(id=id, statement="It is so.", rule=rule, **fields)


def record(*claims, seeds=4, **more):
    return ClaimFile(
        format=1, adr="0000", title="Constructed", statement="It gains.",
        protocol=Protocol(seeds=seeds, assumption="assumed", treatment="architecture_m",
                          control="baseline"),
        claim=claims, **more,
    )  # fmt: skip


def run(own, out, *, found=None, workers=1, load=brief, **sizes):
    """Gather the evidence, in worlds of two months."""
    results = Results(out, "me")
    found = {} if found is None else found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load_scenario", load)
        return gather(own, results, found, Sizes(**sizes), workers=workers, quiet=True)


def sizes_of(evidence):
    """Seeds by scenario and arm."""
    assert all(cell.seeds == tuple(range(len(cell.seeds))) for cell in evidence.own)
    return {(cell.scenario.name, cell.arm.name): len(cell.seeds) for cell in evidence.own}


def half(verdict):
    return (verdict.high - verdict.low) / 2


def test_every_cell_of_figures_and_claims_is_run_at_the_protocols_seeds(tmp_path):
    table = Published(estimand="quality_ratio", arms=("baseline", "model_d"), values={CALM: (0, 0)})
    own = record(claim(), claim("level", "l", treatment="model_c"), published=(table,))
    assert sizes_of(run(own, tmp_path)) == {
        (CALM, "baseline"): 4,
        (CALM, "model_d"): 4,
        (DRIFT, "baseline"): 4,
        (DRIFT, "architecture_m"): 4,
        (DRIFT, "model_c"): 4,
    }


def test_a_number_of_seeds_replaces_the_protocols(tmp_path):
    evidence = run(record(claim()), tmp_path, seeds=3)
    assert set(sizes_of(evidence).values()) == {3}
    assert [v.n for v in evidence.verdicts] == [3]


def test_the_table_has_every_replicate_of_every_cell(tmp_path):
    evidence = run(record(claim()), tmp_path)
    assert len(evidence.table) == sum(len(cell.seeds) for cell in evidence.cells) == 8


def test_replicates_found_are_not_simulated_again(tmp_path, monkeypatch):
    found = {}
    first = run(record(claim()), tmp_path / "a", found=found)
    monkeypatch.setattr(study, "run_cell", None)
    again = run(record(claim()), tmp_path / "b", found=found)
    pd.testing.assert_frame_equal(again.table, first.table, check_exact=True)
    assert again.verdicts == first.verdicts


def test_what_was_simulated_is_added_to_what_is_found_and_kept(tmp_path):
    found = {}
    evidence = run(record(claim()), tmp_path, found=found)
    assert {cell.digest for cell in evidence.cells} == set(found)
    kept = Results(tmp_path, "me").replicates_so_far()
    assert {(r.digest, r.seed) for r in kept} == {
        (digest, seed) for digest, by_seed in found.items() for seed in by_seed
    }


def test_one_record_shares_its_runs_with_the_next(tmp_path, monkeypatch):
    found, simulated = {}, []

    def run_cell(cell, seeds):
        simulated.extend((cell.digest, seed) for seed in seeds)
        return original(cell, seeds)

    original = study.run_cell
    monkeypatch.setattr(study, "run_cell", run_cell)
    run(record(claim()), tmp_path / "a", found=found)
    run(record(claim(treatment="model_c"), seeds=6), tmp_path / "b", found=found)
    assert len(simulated) == len(set(simulated)) == 4 + 4 + 2 + 6


def test_only_the_last_day_is_measured_if_asked(tmp_path):
    whole = run(record(claim()), tmp_path / "a")
    last = run(record(claim()), tmp_path / "b", last_day_only=True)
    assert {cell.scenario.measurement.every_days for cell in last.cells} == {56}
    assert last.verdicts == whole.verdicts


# --- precision, claim by claim ---


@pytest.fixture(scope="module")
def two_claims():
    return (
        claim(id="m"),
        claim(id="c", treatment="model_c", scenarios=(CALM,)),
        claim("equivalence", "zero", treatment="v016_additive", control="current"),
    )


def test_a_claim_gets_the_seeds_that_its_effect_needs_and_no_more(tmp_path):
    found = {}
    evidence = run(record(claim()), tmp_path, found=found, precision=2.0)
    (verdict,) = evidence.verdicts
    assert half(verdict) <= 2.0
    assert set(sizes_of(evidence).values()) == {verdict.n}
    # The rounds are those that the spread seen so far calls for, each from the one before.
    values = [values_of(evidence.table, DRIFT, arm, "quality_ratio") for arm in
              ("architecture_m", "baseline")]  # fmt: skip
    gains = (values[0] - values[1]).to_numpy()
    n = 4
    while (width := width_of(gains[:n])) > 2.0:
        n = larger_n(n, width, 2.0)
    assert verdict.n == n


def width_of(values):
    n = len(values)
    return scipy_stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n)


def test_every_effect_is_as_precise_as_asked(tmp_path, two_claims):
    evidence = run(record(*two_claims), tmp_path, precision=2.0)
    assert max(map(half, evidence.verdicts)) <= 2.0


def test_a_claim_takes_the_seeds_that_it_takes_alone(tmp_path, two_claims):
    together = run(record(*two_claims), tmp_path / "all", precision=2.0)
    alone = [run(record(c), tmp_path / c.id, precision=2.0).verdicts[0] for c in two_claims]
    assert list(together.verdicts) == alone
    assert len({v.n for v in alone}) == 3


def test_an_effect_that_is_exactly_zero_takes_no_more_seeds(tmp_path, two_claims):
    evidence = run(record(*two_claims), tmp_path, precision=2.0)
    sizes = sizes_of(evidence)
    assert (sizes[DRIFT, "current"], sizes[DRIFT, "v016_additive"]) == (4, 4)
    assert evidence.verdicts[2].n == 4 < min(v.n for v in evidence.verdicts[:2])


def test_a_cell_has_the_seeds_of_the_claim_on_it_that_needs_most(tmp_path):
    own = (claim(id="m"), claim(id="c", treatment="model_c"), claim(id="d", treatment="model_d"))
    evidence = run(record(*own), tmp_path, precision=1.5)
    n = {v.id: v.n for v in evidence.verdicts}
    assert len(set(n.values())) > 1
    assert sizes_of(evidence) == {
        (DRIFT, "baseline"): max(n.values()),
        (DRIFT, "architecture_m"): n["m"],
        (DRIFT, "model_c"): n["c"],
        (DRIFT, "model_d"): n["d"],
    }


def test_a_precision_that_is_there_already_adds_no_seed(tmp_path):
    evidence = run(record(claim()), tmp_path, precision=1000.0)
    assert set(sizes_of(evidence).values()) == {4}


def test_without_a_precision_there_is_no_more_than_the_plan(tmp_path, monkeypatch):
    monkeypatch.setattr(module._Run, "_wanted", None)
    assert set(sizes_of(run(record(claim()), tmp_path)).values()) == {4}


def test_a_mean_over_scenarios_takes_the_same_seeds_in_each(tmp_path):
    own = record(claim(scenarios=(DRIFT, CALM)))
    evidence = run(own, tmp_path, precision=2.0)
    (verdict,) = evidence.verdicts
    assert len(sizes_of(evidence)) == 4
    assert set(sizes_of(evidence).values()) == {verdict.n} != {4}
    assert half(verdict) <= 2.0


def test_a_claim_on_several_scenarios_is_judged_where_their_cells_overlap(tmp_path):
    own = record(
        claim(id="fine", treatment="model_c", control="model_d", scenarios=(NOISE,)),
        claim("spread", "coarse", treatment="model_c", scenarios=(NOISE, CALM), low=0, high=99),
    )
    evidence = run(own, tmp_path, precision=1.0)
    fine, coarse = evidence.verdicts
    sizes = sizes_of(evidence)
    assert sizes[NOISE, "model_c"] == max(fine.n, coarse.n)
    assert sizes[CALM, "model_c"] == coarse.n
    assert fine.n != coarse.n
    assert max(half(fine), half(coarse)) <= 1.0


def test_a_spread_grows_until_it_is_precise(tmp_path):
    own = record(claim("spread", treatment="model_c", scenarios=(NOISE, CALM), low=0, high=99))
    evidence = run(own, tmp_path, precision=1.5)
    assert set(sizes_of(evidence).values()) == {evidence.verdicts[0].n} != {4}
    assert half(evidence.verdicts[0]) <= 1.5


HOARDING = claim("level", "h", treatment="model_d", estimand="es_concentration", low=0, high=9)


def test_an_effect_in_another_unit_asks_for_no_seeds(tmp_path):
    evidence = run(record(HOARDING), tmp_path, precision=1e-9)
    assert sizes_of(evidence) == {(DRIFT, "model_d"): 4}
    assert evidence.notes == ()


def test_an_effect_in_another_unit_takes_what_the_others_leave_it(tmp_path):
    both = HOARDING.model_copy(update={"scenarios": (DRIFT, CALM)})
    gain = claim(treatment="model_d")
    # Whichever of the two comes first in the file.
    for name, claims in {"ab": (gain, both), "ba": (both, gain)}.items():
        evidence = run(record(*claims), tmp_path / name, precision=2.0)
        n = {v.id: v.n for v in evidence.verdicts}
        assert sizes_of(evidence) == dict.fromkeys(
            [(DRIFT, "baseline"), (DRIFT, "model_d"), (CALM, "model_d")], n["c"]
        )
        assert n["h"] == n["c"] > 4


def test_published_figures_alone_ask_for_no_seeds(tmp_path):
    table = Published(estimand="quality_ratio", arms=("model_c",), values={CALM: (81.0,)})
    own = record(claim(), published=(table,))
    evidence = run(own, tmp_path, precision=2.0)
    assert sizes_of(evidence)[CALM, "model_c"] == 4
    assert evidence.replay["n"].tolist() == [4]


# --- the cap, and what to settle for ---


def test_a_precision_out_of_reach_stops_at_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SEEDS", 10)
    evidence = run(record(claim()), tmp_path, precision=0.01)
    (verdict,) = evidence.verdicts
    assert (set(sizes_of(evidence).values()), verdict.n) == ({10}, 10)
    widest = f"widest half-width {half(verdict):.2f} pp at 10 seeds."
    assert evidence.notes == (f"Precision 0.01 pp capped at 10 seeds: {widest}",)


def test_a_precision_is_approached_in_leaps(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SEEDS", 10)
    rounds = []

    def run_study(cells, **more):
        rounds.append([len(cell.seeds) for cell in cells])
        return original(cells, **more)

    original = module.run_study
    monkeypatch.setattr(module, "run_study", run_study)
    run(record(claim()), tmp_path, precision=0.01)
    assert rounds == [[4, 4], [10, 10]]


def test_where_a_precision_is_too_dear_the_coarse_one_is_settled_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SEEDS", 200)
    own = record(claim(), claim("equivalence", "zero", treatment="v016_additive",
                                control="current"), seeds=20)  # fmt: skip
    evidence = run(own, tmp_path, precision=0.1, coarse=1.5)
    dear, zero = evidence.verdicts
    assert 0.1 < half(dear) <= 1.5
    assert 20 < dear.n < 200
    assert zero.n == 20
    assert evidence.notes == (
        "Precision 0.1 pp reached: widest half-width 0.00 pp at 20 seeds.",
        f"Precision 1.5 pp reached: widest half-width {half(dear):.2f} pp at {dear.n} seeds.",
    )


def test_a_precision_that_is_not_too_dear_is_not_given_up(tmp_path):
    fine = run(record(claim()), tmp_path / "a", precision=1.5)
    same = run(record(claim()), tmp_path / "b", precision=1.5, coarse=4.0)
    assert same.verdicts == fine.verdicts
    assert same.notes == fine.notes


def test_a_coarse_precision_may_be_out_of_reach_too(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SEEDS", 10)
    evidence = run(record(claim()), tmp_path, precision=0.01, coarse=0.02)
    assert evidence.verdicts[0].n == 10
    assert evidence.notes[0].startswith("Precision 0.02 pp capped at 10 seeds")


def test_a_note_names_the_widest_effect_of_its_precision(tmp_path):
    own = record(claim(id="m"), claim(id="c", treatment="model_c", scenarios=(CALM,)))
    evidence = run(own, tmp_path, precision=2.0)
    widest = max(evidence.verdicts, key=half)
    expected = (
        f"Precision 2 pp reached: widest half-width {half(widest):.2f} pp at {widest.n} seeds."
    )
    assert evidence.notes == (expected,)


# --- interruption and workers ---


@pytest.mark.parametrize("batches", [1, 3, 5])
def test_an_interrupted_protocol_ends_with_the_same_evidence(tmp_path, monkeypatch, batches):
    own = record(claim(id="m"), claim(id="c", treatment="model_c", scenarios=(CALM,)))
    whole = run(own, tmp_path / "whole", precision=2.0)
    append, left = Results.append, iter(range(batches))

    def interrupted(self, batch):
        append(self, batch)
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Results, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(own, tmp_path / "cut", precision=2.0)
    so_far = Results(tmp_path / "cut", "me").replicates_so_far()
    assert so_far
    resumed = run(own, tmp_path / "cut", found=index(so_far), precision=2.0)
    pd.testing.assert_frame_equal(resumed.table, whole.table, check_exact=True)
    assert (resumed.verdicts, resumed.notes) == (whole.verdicts, whole.notes)


def test_the_evidence_does_not_depend_on_the_number_of_workers(tmp_path):
    own = record(claim(id="m"), claim("spread", "s", treatment="model_c", scenarios=(NOISE, CALM),
                                      low=0, high=99))  # fmt: skip
    one, two = (run(own, tmp_path / f"{w}", workers=w, precision=2.0) for w in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    assert (one.verdicts, one.notes) == (two.verdicts, two.notes)


# --- replays ---


def test_the_replay_is_of_the_cells_own_figures(tmp_path):
    values = {DRIFT: (81.0, 82.0)}
    table = Published(estimand="quality_ratio", arms=("architecture_m", "model_d"), values=values)
    evidence = run(record(claim(), published=(table,)), tmp_path)
    for row, arm in zip(evidence.replay.itertuples(), table.arms, strict=True):
        values = values_of(evidence.table, DRIFT, arm, "quality_ratio")
        assert (row.arm, row.replayed, row.n) == (arm, values[:2].mean(), 4)


def test_a_record_without_published_figures_has_no_replay(tmp_path):
    evidence = run(record(claim()), tmp_path)
    assert (evidence.replay, evidence.replayed, evidence.sensitivity) == (None, (), None)


def test_a_precision_does_not_make_a_replay_of_another_record_larger(tmp_path):
    own = record(claim(scenarios=("adr-0004/slow_drift",)), replay="adr-0003", seeds=3)
    evidence = run(own, tmp_path, load=load_scenario, precision=3.0)
    assert {len(cell.seeds) for cell in evidence.replayed} == {3}
    assert set(evidence.replay["n"]) == {3}
    assert evidence.verdicts[0].n > 3


# --- ADR 0004's reversions and sensitivity table, in a whole year of two scenarios ---

SLOW, STABLE = "adr-0004/slow_drift", "adr-0004/stable"


def whole(**more):
    own, _ = load_claims("adr-0004")
    claims = {claim.id: claim for claim in own.claim}
    sensitivity = own.sensitivity.model_copy(
        update={"drifting": (SLOW,), "uses_per_learn": (0, 3), "cadence_days": (30,)}
    )
    kept = ("gain.slow_drift", "tax.stable", "promise.revert")
    update = {
        "claim": tuple(claims[id] for id in kept),
        "replay": "",
        "sensitivity": sensitivity,
        "reversions": own.reversions.model_copy(update={"scenarios": (SLOW,)}),
        **more,
    }
    return own.model_copy(update=update)


def run_whole(own, out, **sizes):
    return run(own, out, load=load_scenario, **sizes)


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    return run_whole(whole(), tmp_path_factory.mktemp("reviewed"), seeds=3)


def test_the_reversions_really_revert(reviewed):
    reverted = reviewed.table.groupby("variant")["reverted"].sum()
    assert reverted["reversions"] > 0
    assert reverted.drop("reversions").sum() == 0


def test_cells_carried_over_equal_simulated_ones(reviewed):
    table = reviewed.table
    kept = table[(table["scenario"] == SLOW) & (table["variant"] == NOISY)].reset_index(drop=True)
    settings = load_claims("adr-0004")[0].sensitivity.proposers["noisy"]
    scenario, arm = override(load_scenario(SLOW), ARMS["review"], settings)
    cell = Cell(scenario, arm, tuple(range(3)), NOISY)
    # The comparison means something only if some seeds were carried over and others were not.
    assert set(kept["proposals"] == 0) == {True, False}
    pd.testing.assert_frame_equal(kept, tidy([cell], run_study([cell])), check_exact=True)


def test_the_sensitivity_table_has_every_combination_at_every_seed(reviewed):
    keys = ["uses_per_learn", "cadence_days", "proposer"]
    found = list(reviewed.sensitivity[keys].itertuples(index=False, name=None))
    plan = reviewed.record.sensitivity
    assert found == [(v.uses_per_learn, v.cadence_days, v.proposer) for v in plan.variants]
    assert set(reviewed.sensitivity["n"]) == {3}


def test_runs_without_a_proposal_are_not_repeated_with_other_proposers(tmp_path, monkeypatch):
    # Unused blocks leave every review without a history, so no proposer is ever called.
    plan = whole().sensitivity.model_copy(update={"uses_per_learn": (0,)})
    moves = []

    def run_cell(cell, seeds):
        moves.append(cell.arm.review and cell.arm.review.proposer_move)
        return original(cell, seeds)

    original = study.run_cell
    monkeypatch.setattr(study, "run_cell", run_cell)
    run_whole(whole(sensitivity=plan, reversions=None), tmp_path, seeds=2)
    assert set(moves) == {None, 1.0}


def test_a_precision_leaves_reversions_and_sensitivity_at_their_plan(tmp_path):
    evidence = run_whole(whole(claim=whole().claim[:1]), tmp_path, seeds=2, precision=9.0)
    assert {len(cell.seeds) for cell in evidence.others} <= {0, 1, 2}
    assert len(evidence.own[0].seeds) > 2


def test_no_digit_of_a_verdict_depends_on_measuring_the_other_days(tmp_path, reviewed):
    last = run_whole(whole(), tmp_path, seeds=3, last_day_only=True)
    assert last.verdicts == reviewed.verdicts
    pd.testing.assert_frame_equal(last.sensitivity, reviewed.sensitivity, check_exact=True)


def test_the_parts_of_the_evidence_are_in_the_tables_order(reviewed):
    sizes = [len(cell.seeds) for cell in reviewed.cells]
    names = [(c.scenario.name, c.arm.name, c.variant) for c in reviewed.cells]
    keys = ["scenario", "arm", "variant"]
    expected = [name for name, n in zip(names, sizes, strict=True) for _ in range(n)]
    assert list(reviewed.table[keys].itertuples(index=False, name=None)) == expected
    assert np.array_equal(reviewed.table["seed"], [s for c in reviewed.cells for s in c.seeds])
