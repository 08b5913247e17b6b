"""Tests of `elfmem_sim.evaluations`: a few numbers of every run, kept whatever happens."""

import numpy as np
import pytest

import elfmem_sim.evaluations as module
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.evaluations import Evaluations, outcome_of
from elfmem_sim.fields import ESTIMANDS
from elfmem_sim.scenario import Identity, Scenario, Workload, override
from elfmem_sim.store import PARTIAL, Results, tidy
from elfmem_sim.study import Cell, run_study

SHARES = ESTIMANDS[:6]
WORLD = Scenario(
    name="small",
    description="Four months of fast drift.",
    horizon_days=120,
    identity=Identity(drift_per_day=0.05),
    workload=Workload(uses_per_learn=3),
)


def cell(*seeds, **settings):
    texts = {f"review.{key}": str(value) for key, value in settings.items()}
    return Cell(*override(WORLD, ARMS["review"], texts), seeds)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "out"


def evaluations(folder, workers=1):
    return Evaluations(Results(folder, "me"), workers)


@pytest.fixture
def simulated(monkeypatch):
    """Digests and seeds of everything that was really run."""
    runs = []

    def spy(cells, **options):
        runs.extend((c.digest, seed) for c in cells for seed in c.seeds)
        return run_study(cells, **options)

    monkeypatch.setattr(module, "run_study", spy)
    return runs


def test_outcomes_are_what_a_study_would_tabulate(folder):
    eager = cell(0, 1, proposer_failure_rate=0.3)
    found = evaluations(folder)
    found.run([eager])
    table = tidy([eager], run_study([eager]))
    for i, name in enumerate(ESTIMANDS):
        scale = 100.0 if name in SHARES else 1.0
        assert found.outcomes(eager)[:, i].tolist() == (scale * table[name]).tolist(), name


def test_the_example_has_something_to_tell(folder):
    found = evaluations(folder)
    found.run([cell(0, 1)])
    assert found.outcomes(cell(0, 1))[:, ESTIMANDS.index("amendments_per_year")].min() > 0.0


def test_counts_are_a_year(folder):
    (replicate,) = run_study([cell(0)])[cell(0).digest].values()
    half = outcome_of(replicate, 0.5)
    assert half[6] == 2 * replicate.tally("accepted")


def test_nothing_is_run_twice(folder, simulated):
    found = evaluations(folder)
    found.run([cell(0, 1)])
    found.run([cell(0, 1, 2)])
    assert [seed for _, seed in simulated] == [0, 1, 2]


def test_what_was_run_survives_the_process(folder, simulated):
    first = evaluations(folder)
    first.run([cell(0, 1)])
    again = evaluations(folder)
    again.run([cell(0, 1)])
    assert len(simulated) == 2
    assert (again.outcomes(cell(0, 1)) == first.outcomes(cell(0, 1))).all()


def test_a_record_cut_in_the_middle_is_run_again(folder, simulated):
    evaluations(folder).run([cell(0)])
    path = folder / PARTIAL
    path.write_bytes(path.read_bytes()[:-20])
    evaluations(folder).run([cell(0)])
    assert len(simulated) == 2


def test_a_damaged_record_is_refused(folder):
    evaluations(folder).run([cell(0)])
    path = folder / PARTIAL
    path.write_bytes(path.read_bytes().replace(b'"outcomes": "', b'"outcomes": "AAAA'))
    with pytest.raises(UserError, match="expected a record"):
        evaluations(folder)


def test_the_number_of_workers_changes_nothing(tmp_path):
    one, two = evaluations(tmp_path / "1"), evaluations(tmp_path / "2", workers=2)
    cells = [cell(0, 1), cell(0, 1, cadence_days=20)]
    one.run(cells)
    two.run(cells)
    assert all((one.outcomes(c) == two.outcomes(c)).all() for c in cells)


def test_progress_counts_what_was_known(folder):
    found = evaluations(folder)
    found.run([cell(0)])
    heard = []
    found.run([cell(0, 1)], lambda done, planned: heard.append((done, planned)))
    assert (heard[0], heard[-1]) == ((1, 2), (2, 2))


def test_a_run_without_calls_stands_for_another_proposer(folder, simulated):
    shy = {"config.drift_threshold": 0.9}
    usual, poor = cell(0, **shy), cell(0, proposer_move=0.5, **shy)
    found = evaluations(folder)
    found.run([usual])
    found.carry_over(usual, poor)
    found.run([poor])
    assert len(simulated) == 1
    simulated_anew = run_study([poor])[poor.digest][0]
    assert (found.outcomes(poor)[0] == outcome_of(simulated_anew, 120 / 365)).all()


def test_a_run_with_calls_does_not(folder, simulated):
    usual, poor = cell(0), cell(0, proposer_move=0.5)
    found = evaluations(folder)
    found.run([usual])
    found.carry_over(usual, poor)
    found.run([poor])
    assert len(simulated) == 2
    assert not np.array_equal(found.outcomes(usual), found.outcomes(poor))


@pytest.fixture
def settings():
    """Settings enough to be screened together, shy and eager ones."""
    return [cell(0, 1, **{"config.drift_threshold": t / 10}) for t in range(1, 10)]


def test_screening_changes_no_number(tmp_path, settings):
    screened, plain = evaluations(tmp_path / "1"), evaluations(tmp_path / "2")
    screened.run(settings)
    plain.run(settings, screen=False)
    for c in settings:
        assert (screened.outcomes(c) == plain.outcomes(c)).all()


def test_screening_spares_the_settings_that_do_nothing(folder, settings, simulated):
    found = evaluations(folder)
    found.run(settings)
    calls = ESTIMANDS.index("proposer_calls_per_year")
    active = sum(int((found.outcomes(c)[:, calls] > 0).sum()) for c in settings)
    assert len(simulated) == active < 2 * len(settings)


def test_what_was_screened_survives_the_process(folder, settings, simulated):
    evaluations(folder).run(settings)
    simulated.clear()
    evaluations(folder).run(settings)
    assert simulated == []


def test_progress_counts_what_was_screened(folder, settings):
    heard = []
    evaluations(folder).run(settings, lambda done, planned: heard.append((done, planned)))
    assert heard[0] == (0, 18)
    assert heard[-1] == (18, 18)
    assert heard == sorted(heard)


def test_a_setting_that_comes_twice_is_run_once(folder, simulated):
    found = evaluations(folder)
    found.run([cell(0), cell(0)])
    assert len(simulated) == 1
