"""ADR 0001's and 0002's simulations: exact, and their rescore against the closed form."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elfmem_sim.arms import ARMS
from elfmem_sim.kernel.rng import below, new_stream, reseed, sample
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.simulate import as_record, prepare, simulate

VALUES = json.loads(
    (Path(__file__).parent / "data" / "adr-0001-0002-scoring.json").read_text(encoding="utf-8")
)
KEYS = sorted({(r["scenario"], r["arm"]) for r in VALUES})


@pytest.mark.parametrize(("scenario", "arm"), KEYS)
def test_every_published_vital_of_every_seed_is_reproduced(scenario, arm):
    records = [r for r in VALUES if (r["scenario"], r["arm"]) == (scenario, arm)]
    assert {record["seed"] for record in records} == {0, 1, 2, 3}
    world = load_scenario(f"adr-0001/{scenario}")
    for record in records:
        ours = as_record(simulate(world, ARMS[arm], record["seed"]), ARMS[arm])
        for mine, theirs in zip(ours["snapshots"], record["snapshots"], strict=True):
            assert {key: mine[key] for key in theirs} == pytest.approx(theirs, rel=0, abs=1e-9)
        assert ours["rescore_damage_n"] == record["rescore_damage_n"]
        if record["rescore_damage_n"] == 0:
            assert ours["rescore_damage_mean"] is None
        else:
            assert ours["rescore_damage_mean"] == pytest.approx(
                record["rescore_damage_mean"], rel=0, abs=1e-9
            )


@given(st.integers(0, 2**40), st.integers(20, 3000))
def test_sample_is_cpythons(seed, n):
    stream, chosen = new_stream(64), np.empty(20, np.int64)
    reseed(stream, seed)
    sample(stream, n, chosen)
    assert chosen.tolist() == random.Random(seed).sample(range(n), 20)


@given(st.integers(0, 2**40), st.integers(1, 5), st.integers(5, 40))
def test_small_samples_are_cpythons(seed, k, n):
    stream, chosen = new_stream(64), np.empty(k, np.int64)
    reseed(stream, seed)
    sample(stream, n, chosen)
    assert chosen.tolist() == random.Random(seed).sample(range(n), k)


@given(st.integers(0, 2**40), st.integers(0, 2**31))
def test_below_is_cpythons_randint(seed, highest):
    stream = new_stream(64)
    reseed(stream, seed)
    assert below(stream, highest + 1) == random.Random(seed).randint(0, highest)


def test_scoring_scenarios_start_with_their_corpus_and_no_constitution():
    agent, *_ = prepare(load_scenario("adr-0001/uncertain_mix"), ARMS["current"], 0)
    assert agent.decay.shape[0] == 0
    evidence = (agent.alpha + agent.beta)[:200]
    assert evidence.tolist() == [1.0] * 100 + [10.0] * 100


def test_additive_rescore_moves_established_confidence_by_at_most_its_weight():
    run = simulate(load_scenario("adr-0001/weekly_rescore"), ARMS["v016_additive"], 3)
    damage, rescored = run.rescored
    # Evidence of 5 and a weight of .5 bound one change by .5 / 5.5.
    assert 0.0 < damage / rescored < 0.5 / 5.5


def test_a_rescore_of_most_blocks_stays_within_its_reserved_draws():
    # Many blocks judged, hardly anything else drawn: the rescore alone decides the room needed.
    settings = {
        "workload.rescore.blocks": "1000",
        "workload.learns_per_day": "1",
        "workload.queries_per_day": "1",
        "corpus.size": "1500",
        "horizon_days": "60",
    }
    world, arm = override(load_scenario("adr-0001/weekly_rescore"), ARMS["current"], settings)
    assert simulate(world, arm, 0).rescored[1] > 1000
