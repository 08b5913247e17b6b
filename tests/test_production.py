"""Tests of `elfmem_sim.production`: whole agents on elfmem's API.

They hold on every supported release of elfmem; what a release answers is for the ladder to say.
"""

import inspect
import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from elfmem.api import MemorySystem
from elfmem.operations.review import fetch_recent_reinforced_embeddings

from elfmem_sim import cli
from elfmem_sim.arms import ARMS, get_arm
from elfmem_sim.errors import UserError
from elfmem_sim.fields import PRODUCTION_FIELDS, SNAPSHOT_FIELDS
from elfmem_sim.production import Life, check_production, live, vitals, world_of
from elfmem_sim.production.system import digest_of, move_back, new_database, principles
from elfmem_sim.production.world import probes_of
from elfmem_sim.review import review_config
from elfmem_sim.scenario import Review, override, parse_scenario
from elfmem_sim.simulate import simulate
from elfmem_sim.store import Results
from elfmem_sim.thin import ThinConnection, ThinEngine, drive
from elfmem_sim.topics import encode_query

TEXT = """
description = "Three weeks of fast drift, with a jump, a quiet weekend and noise."
horizon_days = 21

[identity]
drift_per_day = 0.05
regimes = [{day = 9, angle_degrees = 60.0}]

[workload]
learns_per_day = 3
outcome_noise = 0.1
quiet = [[3, 4]]

[measurement]
every_days = 4
queries = 5
"""
WORLD = parse_scenario(TEXT, name="small", where="small.toml")
BASELINE = ARMS["baseline"]
EAGER = {
    "review.cadence_days": "5",
    "review.revert_probability": "0.5",
    "review.revert_after_days": "3",
    "review.config.min_age_days": "1.0",
    "review.config.drift_threshold": "0.05",
    "review.config.min_recent_reinforced_blocks": "3",
    "review.config.min_block_evidence": "0.5",
}
_, REVIEW = override(WORLD, ARMS["review"], EAGER)


def changed(**settings):
    """The small world with other settings, written as `section__key`."""
    keys = {key.replace("__", "."): str(value) for key, value in settings.items()}
    return override(WORLD, BASELINE, keys)[0]


def lived(world, arm=BASELINE, seed=1, *, days=3, **keywords):
    """An agent after its first days."""
    life = Life(world, arm, seed, **keywords)
    life.be_born()
    for day in range(days):
        life.live(day)
        life.evening(day)
    return life


def ask(life, query, *parameters):
    return life.database.execute(query, parameters).fetchall()


def column(run, name):
    return run.snapshots[:, PRODUCTION_FIELDS.index(name)]


@pytest.fixture(scope="module")
def reviewed():
    return live(WORLD, REVIEW, 1)


@pytest.fixture(scope="module")
def unreviewed():
    return live(WORLD, BASELINE, 1)


# One seed, one life.


def test_two_runs_of_a_seed_are_equal_in_every_frame_table_and_number(reviewed):
    again = live(WORLD, REVIEW, 1)
    assert again.digest == reviewed.digest
    assert again.snapshots.tobytes() == reviewed.snapshots.tobytes()
    assert (again.reviews, again.amendments) == (reviewed.reviews, reviewed.amendments)


def test_another_process_gives_the_same_and_leaves_the_home_folder_alone(tmp_path, reviewed):
    code = (
        "import socket, sys; from elfmem_sim.production import live; import test_production as t;"
        "socket.socket.connect = None;"  # a connection would fail
        "print(live(t.WORLD, t.REVIEW, 1).digest)"
    )
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PYTHONHASHSEED": "7",  # elfmem walks through sets of names
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.strip() == reviewed.digest
    assert list(tmp_path.iterdir()) == []


def test_another_seed_is_another_life(unreviewed):
    assert live(WORLD, BASELINE, 2).digest != unreviewed.digest


def test_the_thin_engine_gives_what_elfmems_own_engine_gives(tmp_path):
    world = changed(production__task_per_day=1, production__rescore_every_days=3)
    thin = lived(world, REVIEW, days=21)
    ordinary = lived(world, REVIEW, days=21, file=str(tmp_path / "agent.db"))
    # Every kind of statement has been made, or the equality would say little.
    assert any(amendment.reverted_day for amendment in thin.owner.amendments)
    assert thin.digest() == ordinary.digest()
    assert thin.owner.reviews == ordinary.owner.reviews
    assert thin.measure(20) == ordinary.measure(20)
    thin.close()
    ordinary.close()


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("UPDATE blocks SET confidence = confidence + 1e-12", True),
        ("UPDATE edges SET reinforcement_count = reinforcement_count + 1", True),
        ("DELETE FROM block_tags WHERE rowid = 1", True),
        ("UPDATE blocks SET last_scored_at = NULL", True),
        ("UPDATE blocks SET created_at = '2000-01-01T00:00:00.000+00:00'", False),
        ("UPDATE sessions SET id = id || 'x'", False),
    ],
)
def test_the_digest_sees_everything_but_stamps_and_random_names(statement, seen):
    life = lived(WORLD)
    before = life.digest()
    life.database.execute(statement)
    assert (life.digest() != before) == seen
    life.close()


# The world.


@pytest.mark.parametrize("arm", [BASELINE, REVIEW], ids=["baseline", "review"])
def test_the_world_is_the_model_tiers(arm):
    model = simulate(WORLD, arm, 5)
    world = world_of(WORLD, 5)
    assert world.identity.tobytes() == model.identity.tobytes()


def test_what_is_learned_on_a_day_lies_around_that_days_self():
    world = world_of(changed(workload__learn_spread_min=0.01, workload__learn_spread_width=0.0), 5)
    assert [len(topics) for topics in world.learned] == [0 if d in (3, 4) else 3 for d in range(21)]
    for day, topics in enumerate(world.learned):
        assert (topics @ world.identity[day + 1] > 0.99).all()


def test_probe_queries_are_the_models_own():
    world = world_of(WORLD, 5)
    rng = random.Random(99 + 8)
    for probe in probes_of(WORLD, world, 8):
        vector = [x + rng.gauss(0.0, 1.0) * 0.2 for x in world.identity[9]]
        assert probe == pytest.approx(np.array(vector) / np.linalg.norm(vector), abs=1e-15)


def test_the_constitution_starts_as_the_models_and_moves_away_from_the_self_alike(unreviewed):
    model = simulate(WORLD, BASELINE, 1)
    place = SNAPSHOT_FIELDS.index("const_align_to_self")
    assert column(unreviewed, "const_align_to_self") == pytest.approx(
        model.snapshots[:, place], abs=1e-12
    )
    assert column(unreviewed, "retention") == pytest.approx(1.0)


def test_arms_share_the_world_down_to_the_last_bit(unreviewed):
    _, idle = override(WORLD, REVIEW, {"review.accept_probability": "0"})
    watched = live(WORLD, idle, 1)
    assert sum(review.proposals for review in watched.reviews) > 0
    assert watched.snapshots.tobytes() == unreviewed.snapshots.tobytes()


def test_amendments_change_the_agent_and_not_what_it_is_told(reviewed, unreviewed):
    assert len(reviewed.amendments) > 0
    assert reviewed.snapshots.tobytes() != unreviewed.snapshots.tobytes()
    assert reviewed.identity.tobytes() == unreviewed.identity.tobytes()
    assert reviewed.n_blocks == unreviewed.n_blocks


def test_an_amendment_brings_its_block_to_where_the_agent_is(reviewed):
    assert np.mean([a.align_after - a.align_before for a in reviewed.amendments]) > 0.0


def test_a_shorter_life_is_the_beginning_of_a_longer_one(unreviewed):
    short = live(WORLD, BASELINE, 1, days=9)
    assert column(short, "day").tolist() == [4.0, 8.0]
    assert short.snapshots.tobytes() == unreviewed.snapshots[:2].tobytes()


def test_principles_point_where_topic_blocks_would():
    world = changed(production__principles="true")
    life = lived(world, days=0)
    texts = [text for (text,) in ask(life, "SELECT content FROM blocks ORDER BY rowid")]
    assert texts == list(principles())
    assert dict(zip(PRODUCTION_FIELDS, life.measure(0), strict=True))["retention"] == (
        pytest.approx(1.0)
    )
    life.close()


# Days and clocks.


def test_a_day_is_a_session_of_its_hours_and_a_quiet_day_is_none():
    life = lived(WORLD, days=6)
    starts = ask(life, "SELECT start_active_hours FROM sessions ORDER BY rowid")
    assert [hours for (hours,) in starts] == [0.0, 0.0, 4.0, 8.0, 12.0]  # the first is the birth
    assert ask(life, "SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(0,)]
    total = ask(life, "SELECT value FROM system_config WHERE key = 'total_active_hours'")
    assert total == [("16.0",)]
    life.close()


def test_events_are_spread_over_the_days_active_hours():
    life = lived(changed(production__attention_per_day=3), days=2)
    used = [hours for (hours,) in ask(life, "SELECT DISTINCT last_reinforced_at FROM blocks")]
    assert max(used) == pytest.approx(4.0 + 4.0 * (0.5 + 0.5 * 3 / 4))
    assert all(0.0 <= hours <= 8.0 for hours in used)
    life.close()


def test_elfmem_is_not_used_outside_a_session():
    life = lived(WORLD)
    with pytest.raises(RuntimeError, match="outside a session"):
        life._runner.run(life.system.outcome(["x"], 1.0))
    life.close()


def test_the_inbox_is_drained_however_much_was_learned():
    life = lived(changed(workload__learns_per_day=12), days=2)
    assert ask(life, "SELECT status, count(*) FROM blocks GROUP BY status") == [("active", 34)]
    life.close()


def test_every_day_sees_the_self_frame_anew():
    life = lived(changed(production__attention_per_day=0, workload__learns_per_day=0), days=1)
    query = "SELECT sum(reinforcement_count) FROM blocks"
    ((before,),) = ask(life, query)
    life.live(1)
    ((after,),) = ask(life, query)
    assert after > before  # a frame from the cache would have reinforced nothing
    life.close()


def test_blocks_and_scores_are_as_old_as_the_simulation_says():
    life = lived(WORLD, days=6)
    ages = ask(
        life,
        "SELECT round(julianday('now') - julianday(created_at), 2) AS age, count(*) FROM blocks "
        "GROUP BY age ORDER BY age DESC",
    )
    assert ages == [(6.0, 13), (5.0, 3), (4.0, 3), (1.0, 3)]
    life.close()


@pytest.mark.parametrize(("minutes", "eligible"), [(-10, False), (0, True), (10, True)])
def test_the_cooldown_ends_on_the_simulated_wall_clock(minutes, eligible):
    _, arm = override(WORLD, REVIEW, {"review.revert_probability": "0", "review.cadence_days": "1"})
    life = Life(WORLD, arm, 1)
    life.be_born()
    day = 0
    while not life.owner.amendments:
        life.live(day)
        life.evening(day)
        day += 1
    move_back(life.database, 90.0 - 1.0 + minutes / 1440)
    life.evening(day)  # and one day
    amended = len({a.block for a in life.owner.amendments if a.day < day})
    assert life.owner.reviews[-1].reviewed == (10 if eligible else 10 - amended)
    life.close()


def test_the_least_age_is_reached_on_the_simulated_wall_clock():
    settings = {
        "review.cadence_days": "1",
        "review.config.min_age_days": "7",
        "review.config.min_reinforcement": "0",
        "review.config.min_recent_reinforced_blocks": "1",
    }
    _, arm = override(WORLD, REVIEW, settings)
    run = live(WORLD, arm, 1, days=8)
    judged = {review.day: review.proposals for review in run.reviews}
    assert judged[5] == 0 < judged[6]  # at the end of day 6, the seventh


@pytest.mark.parametrize(("every", "times"), [(0, 0), (2, 2), (5, 1)])
def test_rescores_come_in_their_rhythm(every, times):
    life = lived(changed(production__rescore_every_days=every, workload__outcome_rate=0), days=7)
    ((evidence,),) = ask(
        life, "SELECT max(success_count + failure_count) FROM blocks WHERE created_at <= ("
        "SELECT max(created_at) FROM blocks JOIN block_tags ON block_id = id)"
    )  # fmt: skip
    assert evidence == pytest.approx(1.0 + 0.5 * times)  # days 3 and 4 are quiet
    life.close()


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_outcomes_follow_alignment_unless_noise_flips_them(noise):
    world = changed(
        workload__outcome_rate=1.0, workload__outcome_noise=noise, identity__drift_per_day=0.0,
        workload__learn_spread_min=0.001, workload__learn_spread_width=0.0,
        production__wording=3.0, identity__regimes=[],
    )  # fmt: skip
    life = lived(world, days=3)
    signals = ask(life, "SELECT signal FROM block_outcomes")
    # All that is learned says what the self is, so it all but always serves.
    assert len(signals) == 15
    assert np.mean(signals) == pytest.approx(1.0 - noise, abs=0.15)
    life.close()


# Vitals.


def test_measuring_changes_nothing():
    measured, plain = Life(WORLD, REVIEW, 1), Life(WORLD, REVIEW, 1)
    for life in (measured, plain):
        life.be_born()
        for day in range(6):
            life.live(day)
            if life is measured:
                first = life.measure(day)
                assert life.measure(day) == pytest.approx(first, nan_ok=True, abs=0.0)
            life.evening(day)
    assert measured.digest() == plain.digest()
    measured.close()
    plain.close()


@pytest.mark.skipif(
    "reinforce" not in inspect.signature(MemorySystem.frame).parameters,
    reason="before 0.20.0 elfmem reinforces whatever it shows",
)
def test_a_preview_is_what_elfmem_shows_without_reinforcing():
    life = lived(WORLD, days=6)
    probes = probes_of(WORLD, life.world, 5)
    second = life._on(ThinEngine(life._connection, keep=False))
    second.hours = life.system.hours
    seen = life._runner.run(vitals.preview(second, probes))

    async def show():
        async with life.system.session() as system:
            queries = [encode_query(probe) for probe in probes]
            frames = [await system.frame("attention", q, reinforce=False) for q in queries]
            frames.append(await system.frame("self", reinforce=False))
            return [[block.id for block in frame.blocks] for frame in frames]

    assert life._runner.run(show()) == [*seen[0], seen[1]]
    life.close()


def test_measuring_every_day_changes_no_other_number(unreviewed):
    daily = live(WORLD, BASELINE, 1, daily=True)
    assert daily.digest == unreviewed.digest
    days = column(unreviewed, "day").astype(int)
    assert daily.snapshots[days - 1].tobytes() == unreviewed.snapshots.tobytes()


def test_vitals_are_in_their_ranges(reviewed):
    for name in ("quality_ratio", "recent_reach", "ego_moat", "const_align_to_self", "retention",
                 "self_frame_align", "top_k_diversity"):  # fmt: skip
        assert ((column(reviewed, name) >= 0.0) & (column(reviewed, name) <= 1.0)).all(), name
    assert (column(reviewed, "answer_blocks") <= 5.0).all()
    assert np.isnan(column(reviewed, "es_mean")).all()


UNIT = np.eye(6)
BLOCKS = vitals.ActiveBlocks(
    ids=tuple("abcdef"),
    texts=("",) * 6,
    alpha=np.array([1.0, 1.0, 3.0, 0.5, 0.5, 0.5]),
    beta=np.array([1.0, 3.0, 1.0, 0.5, 0.5, 0.5]),
    constitutional=np.array([True, True, False, False, False, False]),
)


def test_answers_are_measured_against_the_five_most_similar():
    probes = np.array([[0.6, 0.8, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    found = vitals.measure_answers(
        BLOCKS, UNIT, probes, [["a", "c"], []], dict.fromkeys("abdef", False) | {"c": True}
    )
    assert found == pytest.approx(
        {
            "quality": 0.3 / 2,
            "quality_ratio": 0.3 / (1.4 / 5 + 1.0 / 5),
            "recent_reach": 0.5 / 2,
            "ego_moat": 0.5 / 2,
            "top_k_diversity": 2 / 10,
            "answer_blocks": 1.0,
        }
    )


def test_of_the_constitution_only_what_is_left_is_measured():
    origin = {"a": UNIT[0], "b": UNIT[0], "c": UNIT[2], "gone": UNIT[3]}
    found = vitals.measure_constitution(BLOCKS, UNIT, UNIT[0], origin, ["a", "d"])
    assert found == pytest.approx(
        {
            "const_alive": 2,  # c has lost its tag
            "const_align_to_self": (1.0 + 0.5) / 2,
            "retention": (1.0 + 0.5) / 2,
            "self_frame_align": (1.0 + 0.5) / 2,
            "self_frame_blocks": 2,
            "const_evidence": 3.0,
        }
    )


def test_evidence_is_measured_as_in_the_model_tier():
    found = vitals.measure_evidence(BLOCKS)
    shares = np.array([4, 1, 1]) / 6
    assert found == pytest.approx(
        {
            "conf_entropy": -(shares * np.log(shares)).sum(),
            "mean_evidence": 13 / 6,
            "p95_evidence": 4.0,
            "n_blocks": 6,
        }
    )


def test_losses_to_consolidation_are_told_apart():
    database = new_database()
    add = (
        "INSERT INTO blocks (id, content, category, source, created_at, status, archive_reason, "
        "embedding, confidence, reinforcement_count, decay_lambda, last_reinforced_at, "
        "outcome_evidence) VALUES (?, '', '', '', '', ?, ?, ?, 0.5, 0, 0.01, 0.0, 0.0)"
    )
    database.executemany(
        add,
        [
            ("1", "active", None, b"x"),
            ("2", "active", None, b"x"),
            ("3", "archived", "superseded", None),
            ("4", "archived", "superseded", b"x"),
            ("5", "archived", "decayed", b"x"),
        ],
    )
    database.execute(
        "INSERT INTO contradictions (block_a_id, block_b_id, score, resolved, created_at) "
        "VALUES ('1', '2', 0.93, 0, '')"
    )
    assert vitals.measure_consolidation(database) == dict.fromkeys(
        ("rejected", "superseded", "suppressed", "decayed"), 0.2
    )


def test_a_reviews_history_is_what_elfmem_itself_would_judge_by():
    life = lived(WORLD, days=9)
    config = review_config(Review(config={"min_reinforcement": 0, "window_hours": 8, "top_n": 4}))
    found = vitals.measure_history(life.database, life.system.hours, config, life._births, 9)
    expected = drive(
        fetch_recent_reinforced_embeddings(
            ThinConnection(life.database),
            window_hours=8.0,
            min_reinforcement=0,
            top_n=1000,
            current_active_hours=life.system.hours,
        )
    )
    assert found["eligible_blocks"] == len(expected) > 4
    assert 0.0 <= found["centroid_age"] <= 9.0
    life.close()


def test_by_default_nothing_is_taken_for_a_near_duplicate(reviewed):
    for name in ("rejected", "superseded", "suppressed"):
        assert (column(reviewed, name) == 0.0).all()
    assert reviewed.notes == ()


def test_a_workload_of_near_duplicates_is_warned_about():
    alike = changed(
        production__wording=0.0, workload__learn_spread_min=0.01, workload__learn_spread_width=0.0
    )
    (note,) = live(alike, BASELINE, 1, days=5).notes
    assert note.startswith("Warning: small, arm baseline, seed 1: elfmem took ")
    assert "production.wording" in note


# The wall clock and the database.


def test_moving_back_keeps_both_of_elfmems_forms():
    database = new_database()
    database.execute("PRAGMA foreign_keys = OFF")
    database.execute(
        "INSERT INTO block_amendments (block_id, timestamp, pre_content, post_content, "
        "drift_score, acceptor) VALUES ('x', '2026-03-01 00:00:30', '', '', 0.5, 'user')"
    )
    move_back(database)
    assert database.execute("SELECT timestamp, reverted_at FROM block_amendments").fetchall() == [
        ("2026-02-28 00:00:30", None)
    ]


def test_a_new_database_is_a_copy_of_its_own():
    one, two = new_database(), new_database()
    one.execute("DELETE FROM system_config")
    assert digest_of(one) != digest_of(two)
    assert isinstance(two, sqlite3.Connection)


# Wrong input.


@pytest.mark.parametrize(
    ("world", "arm", "keywords", "message"),
    [
        (WORLD, "model_d", {}, "--arm: got 'model_d'; expected baseline, review or an"),
        (changed(identity__dimension=64), "baseline", {}, "production.dimension: got 64"),
        (
            changed(constitution__size=9, production__principles="true"),
            "baseline",
            {},
            "constitution.size: got 9; expected 10",
        ),
        (WORLD, "baseline", {"days": 22}, "--days: got 22; expected a number from 1 to 21"),
        (WORLD, "baseline", {"days": 0}, "--days: got 0"),
    ],
    ids=["arm", "dimension", "principles", "too many days", "no day"],
)
def test_what_the_tier_cannot_run_is_refused(world, arm, keywords, message):
    with pytest.raises(UserError, match=message):
        live(world, ARMS[arm], 0, **keywords)


def test_a_seed_that_is_none_is_refused():
    with pytest.raises(UserError, match="--seed: got -1"):
        live(WORLD, BASELINE, -1)


def test_few_dimensions_are_refused():
    with pytest.raises(UserError, match=r"production\.dimension: got 32; expected .* from 64"):
        changed(production__dimension=32)


# The command line.


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["elfmem-sim", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_replay_gives_the_trajectory(call):
    code, out, err = call(
        "replay", "small.toml", "--tier", "production", "--arm", "review", "--seed", "1",
        "--days", "5", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    record = json.loads(out)
    again = live(WORLD, ARMS["review"], 1, days=5)
    assert record["digest"] == again.digest
    (snapshot,) = record["snapshots"]
    assert snapshot["self_frame_align"] == column(again, "self_frame_align")[0]
    assert snapshot["es_mean"] is None


def test_replay_prints_tables(call):
    code, out, _ = call("replay", "small.toml", "--tier", "production", "--days", "2")
    assert code == 0
    assert "self_frame_align" in out


def test_a_study_keeps_its_tier_and_goes_on_from_its_folder(call, monkeypatch):
    arguments = (
        "run", "small.toml", "--tier", "production", "--seeds", "2", "--set", "horizon_days=6",
        "--set", "identity.regimes=[]", "--out", "out", "--workers", "1", "--json",
    )  # fmt: skip
    code, first, _ = call(*arguments)
    assert code == 0
    manifest = Results(Path("out")).manifest()
    assert manifest["tier"] == "production"
    assert "--tier production" in manifest["command"]
    table = Results(Path("out")).table("replicates.csv.gz")
    assert {"self_frame_align", "rejected", "decayed"} <= set(table.columns)
    assert len(table) == 4
    monkeypatch.setattr("elfmem_sim.production.live", None)  # nothing is left to run
    assert call(*arguments)[:2] == (0, first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay", "small.toml", "--tier", "real"], "--tier: got 'real'"),
        (["run", "small.toml", "--tier", "real"], "--tier: got 'real'"),
        (["replay", "small.toml", "--days", "5"], "--days: got 5"),
        (["replay", "small.toml", "--tier", "production", "--explain"], "--explain"),
        (
            ["run", "small.toml", "--tier", "production", "--arm", "model_c"],
            "--arm: got 'model_c'",
        ),
        (
            ["replay", "small.toml", "--tier", "production", "--set", "production.wordin=1"],
            "Did you mean 'wording'?",
        ),
    ],
)
def test_wrong_options_are_explained_in_one_line(call, arguments, message):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_an_elfmem_configuration_is_an_arm_of_this_tier(tmp_path):
    (tmp_path / "mine.yaml").write_text("review:\n  drift_threshold: 0.1\n", encoding="utf-8")
    check_production(WORLD, get_arm(str(tmp_path / "mine.yaml")))
