"""Tests of `elfmem_sim.study`: many runs, each once, whatever the order and the processes."""

import ast
import os
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elfmem_sim
from elfmem_sim import simulate, study
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import InvariantError, UserError
from elfmem_sim.fields import SNAPSHOT_FIELDS
from elfmem_sim.review import Amendment, ReviewRecord
from elfmem_sim.scenario import (
    Ego,
    Noise,
    Production,
    Regime,
    Review,
    load_scenario,
    parse_scenario,
)
from elfmem_sim.study import (
    TALLIES,
    Cell,
    Replicate,
    code_digest,
    from_plain,
    in_order,
    reuse_without_calls,
    run_cell,
    run_study,
    to_plain,
)

WORLD = parse_scenario(
    """
    description = "Two months of fast drift."
    horizon_days = 60

    [identity]
    drift_per_day = 0.05

    [workload]
    uses_per_learn = 3
    """,
    name="small",
    where="small.toml",
)
BASELINE = ARMS["baseline"]
# Half of the proposals accepted and all of them reverted, so that every tally has work to do.
REVIEW = ARMS["review"].model_copy(
    update={
        "review": Review(
            cadence_days=15,
            config={"drift_threshold": 0.05, "min_age_days": 5.0},
            accept_probability=0.5,
            revert_probability=1.0,
            revert_after_days=10,
        )
    }
)
SEEDS = (0, 1, 2, 3, 4)
CELLS = (Cell(WORLD, BASELINE, SEEDS), Cell(WORLD, REVIEW, SEEDS))


def bits(replicate: Replicate) -> tuple:
    return (
        replicate.digest,
        replicate.seed,
        replicate.snapshots.shape,
        replicate.snapshots.tobytes(),
        replicate.tallies.tobytes(),
    )


def all_bits(found) -> list:
    return sorted(bits(replicate) for by_seed in found.values() for replicate in by_seed.values())


def pieces_of(monkeypatch, size: int) -> None:
    """Cut the study into tasks of ``size`` runs."""
    years = WORLD.horizon_days / 365
    monkeypatch.setattr(study, "_SECONDS_PER_TASK", (size - 0.5) * study._SECONDS_PER_YEAR * years)


@pytest.fixture(scope="module")
def reference():
    return run_study(CELLS)


def forbid_simulating(monkeypatch) -> None:
    def refuse(*_args, **_more):
        raise AssertionError("something was simulated")

    monkeypatch.setattr(simulate, "simulate", refuse)


# The same numbers, however they come about.


def test_the_study_of_these_tests_makes_use_of_what_a_review_can_do(reference):
    runs = reference[CELLS[1].digest].values()
    counts = {name: sum(run.tally(name) for run in runs) for name in TALLIES}
    assert 0 < counts["reverted"] <= counts["accepted"] < counts["proposals"]


def test_every_cell_has_a_replicate_of_every_seed(reference):
    assert {digest: set(by_seed) for digest, by_seed in reference.items()} == {
        cell.digest: set(SEEDS) for cell in CELLS
    }


def test_two_workers_give_the_bits_of_one(monkeypatch, reference):
    pieces_of(monkeypatch, 1)
    assert all_bits(run_study(CELLS, workers=2)) == all_bits(reference)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_size_of_the_tasks_changes_no_bit(monkeypatch, reference, size):
    pieces_of(monkeypatch, size)
    batches = []
    found = run_study(CELLS, keep=batches.append)
    assert max(map(len, batches)) == size
    assert all_bits(found) == all_bits(reference)


@pytest.mark.parametrize("shuffle", range(3))
def test_the_order_of_cells_and_seeds_changes_no_bit(reference, shuffle):
    order = random.Random(shuffle)
    cells = [replace(cell, seeds=tuple(order.sample(SEEDS, len(SEEDS)))) for cell in CELLS]
    order.shuffle(cells)
    assert all_bits(run_study(cells)) == all_bits(reference)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.arm.name)
def test_a_replay_has_the_bits_of_its_row_in_a_study(reference, cell):
    for seed in SEEDS:
        run = simulate.simulate(cell.scenario, cell.arm, seed)
        assert run.snapshots.tobytes() == reference[cell.digest][seed].snapshots.tobytes()


# What a replicate counts.


def test_the_tallies_of_a_run_are_those_of_its_reviews_and_amendments(monkeypatch):
    def review(day, insufficient, proposals, failed, accepted):
        return ReviewRecord(day, insufficient, 10, 10 - proposals, proposals, failed, accepted)

    trajectory = simulate.Trajectory(
        scenario="small",
        arm="review",
        seed=7,
        snapshots=np.zeros((1, len(SNAPSHOT_FIELDS))),
        n_blocks=310,
        self_query_concentration=0.0,
        identity=np.zeros((61, 8)),
        reviews=(
            review(14, True, 0, 0, 0),
            review(29, False, 3, 1, 2),
            review(44, False, 2, 2, 1),
        ),
        amendments=(Amendment(1, 29, 0, 0.2, 0.5, 0.6, 39), Amendment(2, 29, 1, 0.2, 0.5, 0.6)),
    )
    monkeypatch.setattr(simulate, "simulate", lambda *_: trajectory)
    (replicate,) = run_cell(CELLS[1], (7,))
    assert {name: replicate.tally(name) for name in TALLIES} == {
        "reviews": 3,
        "insufficient": 1,
        "first_judged_day": 29,
        "proposals": 5,
        "failed": 3,
        "accepted": 3,
        "reverted": 1,
    }


def test_the_first_judged_day_is_minus_one_if_no_review_could_judge(reference):
    assert reference[CELLS[0].digest][0].tally("first_judged_day") == -1


# Each run only once.


def test_cells_that_differ_in_words_only_share_their_runs():
    twin = Cell(
        WORLD.model_copy(update={"description": "Said otherwise."}),
        BASELINE.model_copy(update={"description": "So is this."}),
        (1, 2, 3),
        "a variant",
    )
    kept = []
    found = run_study([Cell(WORLD, BASELINE, (0, 1)), twin], keep=kept.extend)
    assert sorted(replicate.seed for replicate in kept) == [0, 1, 2, 3]
    assert [set(by_seed) for by_seed in found.values()] == [{0, 1, 2, 3}]


def test_what_is_done_is_not_run_again(reference):
    review = CELLS[1].digest
    done = [*reference[CELLS[0].digest].values(), reference[review][1], reference[review][3]]
    kept = []
    found = run_study(CELLS, done=done, keep=kept.extend)
    assert sorted((replicate.digest, replicate.seed) for replicate in kept) == [
        (review, 0),
        (review, 2),
        (review, 4),
    ]
    assert all_bits(found) == all_bits(reference)


def test_a_finished_study_simulates_nothing(monkeypatch, reference):
    forbid_simulating(monkeypatch)
    done = [replicate for by_seed in reference.values() for replicate in by_seed.values()]
    assert all_bits(run_study(CELLS, done=done, workers=2)) == all_bits(reference)


def test_replicates_of_other_cells_are_left_out(reference):
    done = reference[CELLS[1].digest].values()
    assert list(run_study(CELLS[:1], done=done)) == [CELLS[0].digest]


def test_every_new_replicate_is_kept_before_it_is_reported(monkeypatch):
    pieces_of(monkeypatch, 2)
    kept, reports = [], []
    run_study(
        CELLS, keep=kept.extend, progress=lambda *counts: reports.append((*counts, len(kept)))
    )
    assert reports[0] == (0, 10, 0)
    assert reports[-1] == (10, 10, 10)
    assert all(done == len_kept for done, _, len_kept in reports)


def test_progress_starts_with_what_is_done(reference):
    reports = []
    done = reference[CELLS[0].digest].values()
    run_study(CELLS, done=done, progress=lambda *counts: reports.append(counts))
    assert reports == [(5, 10), (10, 10)]


# The digest: everything that determines a replicate, and nothing else.


RICH_WORLD = WORLD.model_copy(
    update={
        "identity": WORLD.identity.model_copy(
            update={"regimes": (Regime(day=10, blend=(0.5, 0.866)),)}
        ),
        "workload": WORLD.workload.model_copy(
            update={
                "noise": (Noise(first_day=1, last_day=5, outcome_noise=0.5),),
                "quiet": ((20, 25),),
                "quiet_weekdays": (5, 6),
            }
        ),
    }
)
RICH_ARM = REVIEW.model_copy(update={"ego": Ego()})


def variations(value):
    """Yield (path, changed value) for every single leaf of plain data."""
    if isinstance(value, dict):
        for key, entry in value.items():
            for path, changed in variations(entry):
                yield f"{key}.{path}".strip("."), {**value, key: changed}
        return
    if isinstance(value, list | tuple):
        yield "", value[:-1]
        for i, entry in enumerate(value):
            for path, changed in variations(entry):
                yield f"{i}.{path}".strip("."), [*value[:i], changed, *value[i + 1 :]]
        return
    if isinstance(value, bool):
        yield "", not value
    elif isinstance(value, int | float):
        yield "", value + 1
    elif isinstance(value, str):
        yield "", value + "x"
    else:
        yield "", 7  # for None


def changed_models(model):
    """Yield (path, copy of the model that differs in that one leaf), without validation."""
    for name in type(model).model_fields:
        if name == "description":
            continue
        value = getattr(model, name)
        if hasattr(value, "model_dump"):
            for path, inner in changed_models(value):
                yield f"{name}.{path}", model.model_copy(update={name: inner})
        elif isinstance(value, tuple) and value and hasattr(value[0], "model_dump"):
            yield name, model.model_copy(update={name: ()})
            for path, inner in changed_models(value[0]):
                yield f"{name}[].{path}", model.model_copy(update={name: (inner, *value[1:])})
        else:
            for path, changed in variations(value):
                yield f"{name}.{path}".strip("."), model.model_copy(update={name: changed})


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_the_digest_changes_with_every_field_of_scenario_arm_and_review_and_with_the_tier():
    tier = "production"  # which reads everything
    cells = [("nothing", Cell(RICH_WORLD, RICH_ARM, SEEDS, tier=tier))]
    cells += [("tier", Cell(RICH_WORLD, RICH_ARM, SEEDS))]
    for path, world in changed_models(RICH_WORLD):
        cells.append((path, Cell(world, RICH_ARM, SEEDS, tier=tier)))
        if not path.startswith("production."):
            cells.append((f"{path} of the model", Cell(world, RICH_ARM, SEEDS)))
    cells += [
        (path, Cell(RICH_WORLD, arm, SEEDS, tier=tier)) for path, arm in changed_models(RICH_ARM)
    ]
    assert {"workload.noise[].outcome_noise", "ego.gain", "review.config.min_age_days"} <= {
        path for path, _ in cells
    }
    by_digest = {}
    for path, cell in cells:
        by_digest.setdefault(cell.digest, []).append(path)
    assert [paths for paths in by_digest.values() if len(paths) > 1] == []


@pytest.mark.parametrize(
    "other",
    [
        Cell(RICH_WORLD.model_copy(update={"description": "Otherwise."}), RICH_ARM, SEEDS),
        Cell(RICH_WORLD, RICH_ARM.model_copy(update={"description": "Otherwise."}), SEEDS),
        Cell(RICH_WORLD, RICH_ARM, (5,)),
        Cell(RICH_WORLD, RICH_ARM, SEEDS, "variant"),
        Cell(
            RICH_WORLD.model_copy(update={"production": Production(wording=0.9)}), RICH_ARM, SEEDS
        ),
    ],
    ids=["scenario's description", "arm's description", "seeds", "variant", "other tier's"],
)
def test_the_digest_does_not_change_with_what_no_number_depends_on(other):
    assert other.digest == Cell(RICH_WORLD, RICH_ARM, SEEDS).digest


def test_the_digest_changes_with_the_code(monkeypatch):
    before = CELLS[0].digest
    monkeypatch.setattr(study, "code_digest", lambda *_: "other")
    assert replace(CELLS[0]).digest != before


def test_the_digest_changes_with_elfmem_where_elfmem_is_used(monkeypatch):
    before = [cell.digest for cell in CELLS]
    monkeypatch.setattr(study, "version", lambda _: "0.19.9")
    baseline, review = (replace(cell).digest for cell in CELLS)
    assert (baseline == before[0], review == before[1]) == (True, False)


def imported(source: Path, package: Path) -> set[Path]:
    """The package's modules that a module imports, at any level."""
    names = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
    paths = (package.parent / f"{name.replace('.', '/')}.py" for name in names)
    return {path for path in paths if path.is_file() and path.is_relative_to(package)}


def test_the_code_digest_covers_every_module_that_a_run_goes_through(monkeypatch):
    package = Path(elfmem_sim.__file__).parent
    reached, new = set(), {package / "study.py"}
    while new:
        reached |= new
        new = {other for source in new for other in imported(source, package)} - reached
    read, original = set(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.add(path) or original(path))
    code_digest.cache_clear()
    code_digest()
    # A scenario's every value is in the digest itself; an error is words.
    assert package / "kernel" / "loop.py" in read
    assert reached - read == {package / "scenario.py", package / "errors.py"}


# A proposer that is never called changes nothing.


def test_a_run_without_calls_stands_for_the_same_run_with_another_proposer():
    world = load_scenario("adr-0004/slow_drift")
    arms = [
        ARMS["review"].model_copy(update={"review": Review(proposer_move=move)})
        for move in (1.0, 0.5)
    ]
    full, half = (Cell(world, arm, tuple(range(6))) for arm in arms)
    really = run_study([full, half])
    carried, rest = reuse_without_calls(really[full.digest], half)
    assert carried
    assert rest.seeds
    assert sorted([*carried, *rest.seeds]) == list(range(6))
    for seed, replicate in carried.items():
        assert bits(replicate) == bits(really[half.digest][seed])


@pytest.mark.parametrize("call", ["proposals", "failed"])
def test_any_call_of_the_proposer_rules_the_reuse_out(call):
    tallies = np.zeros(len(TALLIES), np.int64)
    tallies[TALLIES.index(call)] = 1
    called = Replicate("digest", 0, np.zeros((1, len(SNAPSHOT_FIELDS))), tallies)
    quiet = replace(called, seed=1, tallies=np.zeros(len(TALLIES), np.int64))
    carried, rest = reuse_without_calls({0: called, 1: quiet}, replace(CELLS[1], seeds=(0, 1)))
    assert (list(carried), rest.seeds) == ([1], (0,))


# To the disk and back.


@given(
    rows=st.lists(
        st.lists(st.floats(), min_size=len(SNAPSHOT_FIELDS), max_size=len(SNAPSHOT_FIELDS)),
        min_size=1,
        max_size=4,
    ),
    tallies=st.lists(
        st.integers(-(2**63), 2**63 - 1), min_size=len(TALLIES), max_size=len(TALLIES)
    ),
    seed=st.integers(0, 2**64 - 1),
)
def test_plain_data_hold_a_replicate_to_the_last_bit(rows, tallies, seed):
    before = Replicate("0a1b", seed, np.array(rows, np.float64), np.array(tallies, np.int64))
    after = from_plain(to_plain(before))
    assert bits(after) == bits(before)
    assert (after.snapshots.dtype, after.tallies.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"snapshots": "AAAA"}, ValueError),
        ({"snapshots": "!"}, ValueError),
        ({"snapshots": "AAAAAAAAAAA="}, ValueError),
        ({"tallies": [1, 2]}, ValueError),
        ({"seed": "x"}, ValueError),
    ],
    ids=["half a float", "no base64", "one float", "two tallies", "a seed in words"],
)
def test_plain_data_that_are_no_replicate_are_refused(reference, change, error):
    plain = to_plain(reference[CELLS[0].digest][0])
    with pytest.raises(error):
        from_plain({**plain, **change})


def test_plain_data_without_a_field_are_refused(reference):
    plain = to_plain(reference[CELLS[0].digest][0])
    del plain["tallies"]
    with pytest.raises(KeyError, match="tallies"):
        from_plain(plain)


# Errors on their way from a worker.


def cell_that_fails_elsewhere(error):
    """A cell whose digest, which its run asks for, fails in any process but this one."""

    @dataclass(frozen=True)
    class FailingCell(Cell):
        variant: str = str(os.getpid())

        @property
        def digest(self) -> str:
            if str(os.getpid()) != self.variant:
                raise error
            return "failing"

    return FailingCell(WORLD, BASELINE, SEEDS)


@pytest.mark.parametrize(
    "error",
    [
        UserError(5.0, "at most 1", "Choose less.", "review.config.drift_threshold"),
        InvariantError(
            "a review changes nothing",
            scenario="small",
            arm="review",
            seed=3,
            day=29,
            detail="rows were written",
        ),
    ],
    ids=["UserError", "InvariantError"],
)
def test_an_error_in_a_worker_reaches_the_caller_with_its_words(error):
    with pytest.raises(type(error)) as caught:
        run_study([CELLS[0], cell_that_fails_elsewhere(error)], workers=2)
    assert str(caught.value) == str(error)


def test_what_was_kept_before_an_error_is_kept():
    arm = REVIEW.model_copy(update={"review": Review(config={"no_such_field": 1.0})})
    kept = []
    with pytest.raises(UserError, match="no_such_field"):
        run_study([CELLS[0], Cell(WORLD, arm, SEEDS)], keep=kept.extend)
    assert {replicate.digest for replicate in kept} == {CELLS[0].digest}


@pytest.mark.parametrize("workers", [1, 2])
def test_outcomes_come_in_the_order_of_their_tasks(workers):
    assert list(in_order(abs, [-3, 1, -2, 0], workers)) == [3, 1, 2, 0]
