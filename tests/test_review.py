"""Tests of `elfmem_sim.review`: the bridge, elfmem's gates through it, and ADR 0004's promises.

Agents are laid out by hand (`drifted`: a constitution with stated drifts from twenty ordinary
blocks that all point along the first axis) or drawn at random (`states`). A review on day `d` is
held at step `d + 1`, so a block born at step 0 is then `d + 1` days old.
"""

import math
import pickle
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from elfmem.config import ReviewConfig
from elfmem.operations import review as operations
from elfmem_reference import (
    Ordinary,
    Recorder,
    Replaced,
    Thin,
    assert_same_tables,
    drifted,
    exact,
    make_agent,
    make_bridge,
    make_world,
    normalised,
    states,
    tilted,
    topic_text,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import elfmem_sim.review as module
from elfmem_sim.arms import BASELINE, REVIEW
from elfmem_sim.errors import InvariantError, UserError
from elfmem_sim.review import GATES, Bridge, require_elfmem, review_config
from elfmem_sim.scenario import Review, load_scenario
from elfmem_sim.simulate import simulate
from elfmem_sim.topics import decode_topic

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True, database=None)

DRIFTS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.38, 0.37, 0.36)

BUSY = Review(
    cadence_days=10,
    config={"drift_threshold": 0.2, "cooldown_hours": 480.0, "max_proposals": 3},
    proposer_move=0.6,
    proposer_noise=0.1,
    proposer_failure_rate=0.2,
    accept_probability=0.6,
    revert_probability=0.5,
    revert_after_days=15,
)
"""Everything that can happen happens within a year; reversions also come out of order."""

BUSY_ARM = REVIEW.model_copy(update={"review": BUSY})


def reviewing(**changes):
    """Return an arm that differs from the review arm in these fields of its review."""
    return REVIEW.model_copy(update={"review": Review(**changes)})


def configured(**config):
    return Review(config=config, accept_probability=0.0)


def proposed(bridge, day):
    """Hold a review and return the blocks proposed, in elfmem's order."""
    heard = []

    async def listen(*arguments, **keywords):
        result = await operations.review_constitutional(*arguments, **keywords)
        heard.append([int(proposal.block_id) for proposal in result.proposals])
        return result

    bridge._operations = Replaced(review_constitutional=listen)
    bridge.review(day)
    return heard[0]


def accepted(bridge):
    return {amendment.block for amendment in bridge.amendments}


def dump(bridge):
    """Return all that the database holds: every table, every index, every row."""
    return "\n".join(bridge.database.iterdump())


def topics(bridge):
    return bridge._agent.topic[: bridge._size].tobytes()


# --- the bridge's tables are those of an ordinary elfmem ---


class Mirrored(Bridge):
    """A bridge whose every step is repeated on elfmem's own engine, and compared."""

    path = None
    last = None

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.ordinary = Ordinary(self.path)
        kinds = ("review", "proposals", "failed", "accept", "revert", "used again")
        self.compared = dict.fromkeys(kinds, 0)
        self._operations = Replaced(
            review_constitutional=self._review_both,
            accept_amendment=self._accept_both,
            revert_amendment=self._revert_both,
        )
        type(self).last = self

    def sync(self, step):
        known = slice(self._size, self._rows)
        self.compared["used again"] += int(
            np.count_nonzero(self._agent.reinforcement[known] != self._reinforcement[known])
        )
        super().sync(step)
        self.ordinary.store(self._agent, step, self._hours_per_day)
        self.ordinary.backdate(self.amendments, step - 1)
        self._compare_tables()

    def _compare_tables(self):
        assert_same_tables(Thin(self), self.ordinary, self._size)

    async def _review_both(self, connection, llm, config, *, current_active_hours):
        ours, theirs = Recorder(llm), Recorder(llm)
        result = await operations.review_constitutional(
            connection, ours, config, current_active_hours=current_active_hours
        )
        other = self.ordinary.review(theirs, config, current_active_hours)
        assert exact(result.to_dict()) == exact(other.to_dict())
        assert exact(ours.calls) == exact(theirs.calls)
        self.compared["review"] += 1
        self.compared["proposals"] += len(result.proposals)
        self.compared["failed"] += result.failed_proposal_count
        return result

    async def _accept_both(self, *services, **amendment):
        result = await operations.accept_amendment(*services, **amendment)
        self._same(result, self.ordinary.accept(**amendment), "accept")
        return result

    async def _revert_both(self, *services, amendment_id):
        result = await operations.revert_amendment(*services, amendment_id=amendment_id)
        self._same(result, self.ordinary.revert(amendment_id), "revert")
        return result

    def _same(self, ours, theirs, kind):
        stampless = [{**result.to_dict(), "timestamp": None} for result in (ours, theirs)]
        assert stampless[0] == stampless[1]
        self._compare_tables()
        self.compared[kind] += 1


@pytest.mark.parametrize(
    ("scenario", "arm", "explain", "least"),
    [
        ("regime_change", REVIEW, False, {"review": 12, "proposals": 5, "accept": 5}),
        ("slow_drift", REVIEW, False, {"review": 12, "proposals": 5, "accept": 5}),
        (
            "slow_drift",
            BUSY_ARM.model_copy(update={"constitution_weight": 0.0}),
            True,
            {
                "review": 100,
                "proposals": 20,
                "failed": 3,
                "accept": 10,
                "revert": 5,
                "used again": 20,
            },
        ),
    ],
    ids=["regime_change", "slow_drift", "busy owner"],
)
def test_a_year_of_reviews_is_the_same_on_elfmems_own_engine_fully_backdated(
    scenario, arm, explain, least, tmp_path, monkeypatch
):
    world = load_scenario(f"adr-0004/{scenario}")
    kind = type("OnFile", (Mirrored,), {"path": tmp_path / "elfmem.db"})
    plain = simulate(world, arm, 2, explain=explain)
    monkeypatch.setattr("elfmem_sim.simulate.Bridge", kind)
    mirrored = simulate(world, arm, 2, explain=explain)
    with kind.last.ordinary:
        assert mirrored.snapshots.tobytes() == plain.snapshots.tobytes()
        assert mirrored.reviews == plain.reviews
        assert mirrored.amendments == plain.amendments
    assert {what: n for what, n in kind.last.compared.items() if n < least.get(what, 0)} == {}


@PROPERTY
@given(
    steps=st.tuples(st.integers(1, 3653), st.integers(1, 3653)),
    events=st.tuples(st.integers(0, 2000), st.integers(0, 2000)),
    hours_per_day=st.floats(0.5, 24.0),
)
def test_the_active_hours_of_use_order_all_events_strictly(steps, events, hours_per_day):
    agent = drifted(0.5, evidence=2)
    agent.used_step[1:3], agent.used_event[1:3] = steps, events
    bridge = make_bridge(agent, hours_per_day=hours_per_day)
    bridge.sync(3653)
    hours = [row["last_reinforced_at"] for row in Thin(bridge).table("blocks")[1:]]
    moments = list(zip(steps, events, strict=True))
    assert (hours[0] < hours[1]) == (moments[0] < moments[1])
    assert (hours[0] == hours[1]) == (moments[0] == moments[1])


def test_active_hours_of_use_lie_in_the_days_last_moments():
    agent = drifted(0.5, evidence=2)
    agent.used_step[1:3], agent.used_event[1:3] = 7, (0, 2000)
    bridge = make_bridge(agent)
    bridge.sync(7)
    for row in Thin(bridge).table("blocks")[1:]:
        assert 28.0 - 4e-3 / 3600 < row["last_reinforced_at"] < 28.0


def test_the_newest_blocks_are_found_by_index():
    bridge = make_bridge(drifted(0.9))
    plans = []

    async def explain(connection, *arguments, **keywords):
        connection.database.set_trace_callback(plans.append)
        result = await operations.review_constitutional(connection, *arguments, **keywords)
        connection.database.set_trace_callback(None)
        return result

    bridge._operations = Replaced(review_constitutional=explain)
    bridge.review(40)
    newest = [statement for statement in plans if "ORDER BY last_reinforced_at" in statement]
    assert len(newest) == 2
    for statement in newest:
        plan = str(bridge.database.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall())
        assert "idx_blocks_last_reinforced" in plan
        assert "TEMP B-TREE" not in plan


def test_agents_do_not_share_a_database():
    one, two = make_bridge(drifted(0.9)), make_bridge(drifted(0.9))
    one.review(40)
    assert Thin(two).table("blocks") == []
    two.sync(41)
    assert Thin(two).table("block_amendments") == []


def test_a_bridge_needs_an_arm_that_reviews():
    agent = drifted(0.9)
    with pytest.raises(ValueError, match="arm baseline has no review"):
        Bridge(agent, make_world(agent), BASELINE, 1)


# --- elfmem's gates, at their boundaries ---


@pytest.mark.parametrize(
    ("hours", "excluded", "eligible"),
    [
        (None, 189, 190),
        (2160.0, 189, 190),
        (24.0, 100, 101),
        (36.0, 101, 102),
        (48.0, 101, 102),
        (2400.0, 199, 200),
    ],
)
def test_cooldown_ends_when_exactly_its_hours_have_passed(hours, excluded, eligible):
    config = {} if hours is None else {"cooldown_hours": hours}
    bridge = make_bridge(drifted(0.9, used=100), Review(config=config, proposer_move=0.0))
    assert proposed(bridge, 100) == [0]
    assert proposed(bridge, excluded) == []
    assert proposed(bridge, eligible) == [0]


def test_cooldown_of_nothing_ends_at_once():
    bridge = make_bridge(drifted(0.9), Review(config={"cooldown_hours": 0.0}, proposer_move=0.0))
    assert [proposed(bridge, 100), proposed(bridge, 100)] == [[0], [0]]


def test_cooldown_holds_for_the_amended_block_alone():
    bridge = make_bridge(drifted(0.8, 0.9), Review(config={"max_proposals": 1}, proposer_move=0.0))
    assert [proposed(bridge, day) for day in (100, 101, 102)] == [[1], [0], []]


def test_a_reversion_lifts_the_cooldown():
    review = Review(proposer_move=0.0, revert_probability=1.0, revert_after_days=3)
    bridge = make_bridge(drifted(0.9), review)
    assert [proposed(bridge, 100), proposed(bridge, 102)] == [[0], []]
    bridge.revert_due(103)
    assert proposed(bridge, 103) == [0]


def test_a_reversion_whose_audit_row_was_deleted_is_a_violation():
    review = Review(proposer_move=0.0, revert_probability=1.0, revert_after_days=3)
    bridge = make_bridge(drifted(0.9), review)
    assert proposed(bridge, 100) == [0]
    bridge.database.execute("DELETE FROM block_amendments")
    with pytest.raises(InvariantError, match="no audit row is left"):
        bridge.revert_due(103)


@pytest.mark.parametrize(("age", "found"), [(29, []), (30, [0]), (31, [0])])
def test_a_block_of_exactly_the_least_age_is_old_enough(age, found):
    agent = drifted(0.9)
    agent.birth_step[0] = 20
    assert proposed(make_bridge(agent, configured()), 20 + age - 1) == found


@pytest.mark.parametrize(
    ("total", "found"),
    [(2.0, [0]), (math.nextafter(2.0, 0.0), []), (math.nextafter(2.0, 3.0), [0])],
)
def test_exactly_the_least_evidence_is_enough(total, found):
    agent = drifted(0.9)
    agent.alpha[0], agent.beta[0] = total - 0.5, 0.5
    assert proposed(make_bridge(agent, configured()), 40) == found


@pytest.mark.parametrize(
    ("threshold", "found"),
    [(0.5, []), (math.nextafter(0.5, 0.0), [0]), (math.nextafter(0.5, 1.0), [])],
)
def test_drift_of_exactly_the_threshold_is_no_drift(threshold, found):
    # At a right angle the drift is one half without rounding.
    bridge = make_bridge(drifted(0.5), configured(drift_threshold=threshold))
    assert proposed(bridge, 40) == found


@pytest.mark.parametrize(("blocks", "insufficient"), [(19, True), (20, False), (21, False)])
def test_exactly_the_least_number_of_blocks_is_enough_history(blocks, insufficient):
    bridge = make_bridge(drifted(0.9, evidence=blocks), configured())
    record = bridge.review(40)
    assert record.insufficient_history is insufficient
    assert record.reviewed == (0 if insufficient else 1)


@pytest.mark.parametrize("least", [0, 2, 5])
@pytest.mark.parametrize(("more", "insufficient"), [(0, True), (1, False)])
def test_a_block_of_exactly_the_least_reinforcement_is_no_evidence(least, more, insufficient):
    agent = drifted(0.9)
    agent.reinforcement[1:] = least + more
    record = make_bridge(agent, configured(min_reinforcement=least)).review(40)
    assert record.insufficient_history is insufficient


@pytest.mark.parametrize(("day", "insufficient"), [(39, True), (38, False)])
def test_a_block_last_used_exactly_the_windows_hours_ago_is_no_evidence(day, insufficient):
    agent = drifted(0.9)
    agent.used_step[1:] = 10
    bridge = make_bridge(agent, configured(window_hours=30 * 4.0))
    assert bridge.review(day).insufficient_history is insufficient


@pytest.mark.parametrize(
    ("hours", "insufficient"), [(160.0, True), (math.nextafter(160.0, 161.0), False)]
)
def test_the_window_excludes_its_own_edge(hours, insufficient):
    agent = drifted(0.9)
    agent.used_step[1:] = 0  # a block never used since birth: active hour 0, on the dot
    bridge = make_bridge(agent, configured(window_hours=hours))
    assert bridge.review(39).insufficient_history is insufficient


def test_the_window_runs_on_active_hours():
    agent = drifted(0.9)
    agent.used_step[1:] = 10
    bridge = make_bridge(agent, configured(window_hours=30 * 4.0), hours_per_day=2.0)
    assert not bridge.review(68).insufficient_history
    assert bridge.review(69).insufficient_history


def test_the_most_drifted_blocks_come_first_up_to_the_cap():
    bridge = make_bridge(drifted(0.6, 0.9, 0.7, 0.8), configured(max_proposals=3))
    assert proposed(bridge, 40) == [1, 3, 2]


def test_equal_drifts_come_in_the_order_of_blocks():
    bridge = make_bridge(drifted(0.6, 0.8, 0.6, 0.8), configured())
    assert proposed(bridge, 40) == [1, 3, 0, 2]


def test_top_n_keeps_the_newest_blocks():
    agent = make_agent(
        [tilted(0.5)], np.concatenate((np.tile(-tilted(0.0), (30, 1)), [tilted(0.0)] * 20))
    )
    record = make_bridge(agent, configured(top_n=20), explain=True).review(40)
    assert (record.evidence_blocks, record.drift) == (20, (0.5,))
    agent.topic[0] = tilted(0.0)
    assert make_bridge(agent, configured(top_n=20), explain=True).review(40).drift == (0.0,)


# --- ADR 0004's promises, kept ---


def test_a_review_changes_no_table():
    bridge = make_bridge(drifted(*DRIFTS), explain=True)
    images = []

    async def watched(*arguments, **keywords):
        images.append(dump(bridge))
        result = await operations.review_constitutional(*arguments, **keywords)
        images.append(dump(bridge))
        return result

    bridge._operations = Replaced(review_constitutional=watched)
    assert bridge.review(40).proposals == 5
    assert len(images) == 10  # the review, and the four that explain it
    assert set(images) == {images[0]}


def test_nothing_is_applied_without_an_accept():
    agent = drifted(*DRIFTS)
    bridge = make_bridge(agent, Review(accept_probability=0.0))
    before, texts = topics(bridge), [topic_text(topic) for topic in agent.topic[:10]]
    assert [bridge.review(day).proposals for day in (40, 70, 100)] == [5, 5, 5]
    assert topics(bridge) == before
    assert [row["content"] for row in Thin(bridge).table("blocks")[:10]] == texts
    assert Thin(bridge).table("block_amendments") == []
    assert bridge.amendments == []


def test_an_accept_is_audited_with_both_texts():
    agent = drifted(0.9)
    old, new = topic_text(agent.topic[0]), topic_text(tilted(0.0))
    bridge = make_bridge(agent)
    bridge.review(40)
    (row,) = Thin(bridge).table("block_amendments")
    expected = {
        "id": 1,
        "block_id": "000000",
        "pre_content": old,
        "post_content": new,
        "pre_summary": old,
        "post_summary": None,
        "drift_score": bridge.amendments[0].drift_score,
        "rationale": "drift 0.900",
        "acceptor": "user",
        "reverted_at": None,
    }
    assert {name: row[name] for name in expected} == expected


def test_an_accept_reaches_the_simulated_agent_bit_for_bit():
    agent = drifted(0.9)
    make_bridge(agent, Review(proposer_noise=0.3)).review(40)
    bridge = make_bridge(drifted(0.9), Review(proposer_noise=0.3))
    bridge.review(40)
    row = Thin(bridge).table("blocks")[0]
    assert row["content"] == topic_text(agent.topic[0])
    assert row["embedding"] == agent.topic[0].astype(np.float32).tobytes()
    assert agent.topic[0].tobytes() != tilted(0.9).tobytes()


def test_an_accept_leaves_evidence_reinforcement_and_last_use_alone():
    bridge = make_bridge(drifted(0.9))
    bridge.sync(41)
    kept = ("success_count", "failure_count", "reinforcement_count", "last_reinforced_at")
    before = Thin(bridge).table("blocks")[0]
    bridge.review(40)
    after = Thin(bridge).table("blocks")[0]
    assert before["content"] != after["content"]
    assert [before[name] for name in kept] == [after[name] for name in kept]


def test_the_log_says_what_was_amended_when_and_to_what_effect():
    agent = drifted(0.9, 0.1)
    agent.identity[41] = tilted(0.2)
    bridge = make_bridge(agent, Review(proposer_move=1.0))
    bridge.review(40)
    (amendment,) = bridge.amendments
    assert (amendment.id, amendment.day, amendment.block) == (1, 40, 0)
    assert amendment.reverted_day is None
    assert amendment.drift_score == pytest.approx(0.9)
    assert amendment.align_before == pytest.approx((tilted(0.9) @ tilted(0.2) + 1.0) / 2.0)
    assert amendment.align_after == pytest.approx((tilted(0.0) @ tilted(0.2) + 1.0) / 2.0)


def reverted():
    """Return a bridge before and after its two amendments were reverted, with its first texts."""
    review = Review(proposer_noise=0.2, revert_probability=1.0, revert_after_days=5)
    bridge = make_bridge(drifted(0.9, 0.8), review)
    bridge.sync(41)
    before = Thin(bridge).table("blocks")[:2], topics(bridge)
    bridge.review(40)
    assert topics(bridge) != before[1]
    bridge.revert_due(45)
    return bridge, *before


def test_a_revert_restores_text_embedding_and_topic_bit_for_bit():
    bridge, rows, first = reverted()
    restored = [(r["content"], r["embedding"]) for r in Thin(bridge).table("blocks")[:2]]
    assert restored == [(row["content"], row["embedding"]) for row in rows]
    assert topics(bridge) == first


def test_a_revert_flags_and_deletes_nothing():
    bridge, rows, _ = reverted()
    audit = Thin(bridge).table("block_amendments")
    assert [row["pre_content"] for row in audit] == [row["content"] for row in rows]
    assert [row["reverted_at"] is not None for row in audit] == [True, True]
    assert [amendment.reverted_day for amendment in bridge.amendments] == [45, 45]


@PROPERTY
@given(
    cooldown_days=st.integers(0, 40),
    gaps=st.lists(st.integers(1, 20), min_size=1, max_size=8),
    accept=st.sampled_from([0.5, 1.0]),
)
def test_no_block_is_proposed_within_its_cooldown(cooldown_days, gaps, accept):
    config = {"cooldown_hours": 24.0 * cooldown_days, "min_age_days": 0.0}
    review = Review(config=config, proposer_move=0.0, accept_probability=accept)
    bridge = make_bridge(drifted(0.9, 0.8, 0.7), review)
    for day in np.cumsum(gaps).tolist():
        last = {a.block: a.day for a in bridge.amendments}
        free = [b for b in range(3) if b not in last or day - last[b] >= cooldown_days]
        assert proposed(bridge, day) == free


# --- ADR 0004's promises, broken ---


def broken(bridge, promise, day, call, *arguments):
    """Assert that `call` raises, naming the promise and where to find the breach."""
    with pytest.raises(InvariantError, match=f"ADR 0004 promises that {promise}") as caught:
        call(*arguments)
    assert caught.value.promise == promise
    assert f"seed {bridge._identity[2]}, day {day}:" in str(caught.value)
    back = pickle.loads(pickle.dumps(caught.value))
    assert (type(back), back.promise, str(back)) == (InvariantError, promise, str(caught.value))


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE blocks SET content = 'topic 00' WHERE id = '000001'",
        "UPDATE blocks SET content = (SELECT content FROM blocks WHERE id = '000000') "
        "WHERE id = '000001'",
        "DELETE FROM blocks WHERE id = '000001'",
    ],
)
def test_a_constitution_changed_between_reviews_is_noticed(tampering):
    bridge = make_bridge(drifted(0.9, 0.8), configured(), seed=13)
    bridge.review(40)
    bridge.database.execute(tampering)
    broken(bridge, "nothing is applied without an accept", 70, bridge.review, 70)


class WritingProposer:
    """A proposer that does not keep to proposing."""

    def __init__(self, bridge, statement):
        self.bridge, self.statement = bridge, statement

    async def propose_amendment(self, *, block_content, **_):
        self.bridge.database.execute(self.statement)
        return {"proposed_content": block_content, "rationale": ""}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE blocks SET content = content WHERE id = '000000'",
        "INSERT INTO block_tags VALUES ('000003', 'self/constitutional')",
        "DELETE FROM blocks WHERE id = '000003'",
    ],
)
def test_a_row_written_during_a_review_is_noticed(statement):
    bridge = make_bridge(drifted(0.9, 0.8), seed=13)
    bridge._proposer = WritingProposer(bridge, statement)
    broken(bridge, "a review changes nothing", 40, bridge.review, 40)
    assert bridge.amendments == []


def test_an_amendment_applied_by_the_review_itself_is_noticed():
    async def applies(connection, llm, config, **clock):
        result = await operations.review_constitutional(connection, llm, config, **clock)
        for proposal in result.proposals:
            connection.database.execute(
                "UPDATE blocks SET content = ? WHERE id = ?",
                (proposal.proposed_content, proposal.block_id),
            )
        return result

    bridge = make_bridge(drifted(0.9), seed=13)
    bridge._operations = Replaced(review_constitutional=applies)
    broken(bridge, "a review changes nothing", 40, bridge.review, 40)


def test_a_change_that_writes_no_row_is_noticed_on_every_fiftieth_seed():
    statement = "CREATE TABLE smuggled (x)"
    bridge = make_bridge(drifted(0.9), seed=100)
    bridge._proposer = WritingProposer(bridge, statement)
    broken(bridge, "a review changes nothing", 40, bridge.review, 40)


def test_a_proposal_within_the_cooldown_is_noticed():
    async def impatient(connection, llm, config, **clock):
        config = config.model_copy(update={"cooldown_hours": 0.0})
        return await operations.review_constitutional(connection, llm, config, **clock)

    bridge = make_bridge(drifted(0.9, used=100), Review(proposer_move=0.0), seed=13)
    bridge.review(100)
    bridge._operations = Replaced(review_constitutional=impatient)
    broken(bridge, "no block is proposed within its cooldown", 189, bridge.review, 189)
    bridge.review(190)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM block_amendments",
        "UPDATE block_amendments SET pre_content = post_content",
        "UPDATE block_amendments SET post_content = pre_content",
        "UPDATE block_amendments SET reverted_at = CURRENT_TIMESTAMP",
    ],
)
def test_an_accept_without_its_audit_row_is_noticed(damage):
    bridge = make_bridge(drifted(0.9), seed=13)

    async def careless(engine, *services, **amendment):
        result = await operations.accept_amendment(engine, *services, **amendment)
        bridge.database.execute(damage)
        return result

    bridge._operations = Replaced(accept_amendment=careless)
    broken(bridge, "every accept is audited with both texts", 40, bridge.review, 40)


SPOIL = [
    f"UPDATE blocks SET content = '{topic_text(tilted(0.3))}' WHERE id = '000000'",
    "DELETE FROM blocks WHERE id = '000000'",
]


@pytest.mark.parametrize("damage", SPOIL, ids=["other text", "no block"])
def test_an_accept_that_stores_anything_else_is_noticed(damage):
    bridge = make_bridge(drifted(0.9), seed=13)

    async def careless(*services, **amendment):
        result = await operations.accept_amendment(*services, **amendment)
        bridge.database.execute(damage)
        return result

    bridge._operations = Replaced(accept_amendment=careless)
    broken(bridge, "accept and revert store the text given", 40, bridge.review, 40)


def due_for_reversion(damage):
    """Return a bridge with a reversion due on day 45 that does `damage` besides."""
    review = Review(revert_probability=1.0, revert_after_days=5)
    bridge = make_bridge(drifted(0.9), review, seed=13)
    bridge.review(40)

    async def careless(*services, **amendment):
        result = await operations.revert_amendment(*services, **amendment)
        bridge.database.execute(damage)
        return result

    bridge._operations = Replaced(revert_amendment=careless)
    return bridge


@pytest.mark.parametrize(
    "damage", ["DELETE FROM block_amendments", "UPDATE block_amendments SET reverted_at = NULL"]
)
def test_a_revert_that_does_not_flag_is_noticed(damage):
    bridge = due_for_reversion(damage)
    broken(bridge, "a revert flags and deletes nothing", 45, bridge.revert_due, 45)


@pytest.mark.parametrize("damage", SPOIL, ids=["other text", "no block"])
def test_a_revert_that_does_not_restore_is_noticed(damage):
    bridge = due_for_reversion(damage)
    broken(bridge, "accept and revert store the text given", 45, bridge.revert_due, 45)


@pytest.mark.parametrize("seed", [1, 50])
def test_the_promises_hold_through_a_busy_year(seed):
    world = load_scenario("adr-0004/regime_change")
    trajectory = simulate(world, BUSY_ARM, seed)
    assert sum(record.accepted for record in trajectory.reviews) == len(trajectory.amendments) > 9


# --- why a block was not proposed ---


@PROPERTY
@given(state=states())
def test_reasons_account_for_every_block(state):
    size = len(state.agent.decay)
    record = state.bridge(explain=True).review(state.step - 1)
    assert record.reviewed == record.skipped + record.proposals + record.failed
    if record.insufficient_history:
        assert (record.reasons, record.drift) == ({}, None)
    else:
        assert set(record.reasons) == {*GATES, "cooldown"}
        assert min(record.reasons.values()) >= 0
        assert sum(record.reasons[gate] for gate in GATES) == record.skipped
        assert record.reasons["cooldown"] == size - record.reviewed


@PROPERTY
@given(state=states())
def test_drift_is_elfmems_own(state):
    agent, size = state.agent, len(state.agent.decay)
    config = review_config(state.review)
    per_day = state.world["hours_per_day"]
    rows = [
        row
        for row in range(size, agent.blocks[0])
        if agent.reinforcement[row] > config.min_reinforcement
        # A use lies a few milliseconds before its day's end, further than any rounding.
        and agent.used_step[row] * per_day - 1e-7 > state.step * per_day - config.window_hours
    ]
    rows.sort(key=lambda row: (agent.used_step[row], agent.used_event[row]), reverse=True)
    rows = rows[: config.top_n]
    single = agent.topic.astype(np.float32)
    record = state.bridge(explain=True).review(state.step - 1)
    assert record.evidence_blocks == len(rows)
    if not record.insufficient_history:
        centroid = operations.recent_self_centroid([single[row] for row in rows])
        expected = [operations.compute_drift(topic, centroid) for topic in single[:size]]
        assert exact(record.drift) == exact(tuple(expected))


@PROPERTY
@given(state=states())
def test_explaining_changes_nothing_else(state):
    first = state.agent.topic.copy()
    results = []
    for explain in (False, True):
        state.agent.topic[:] = first
        bridge = state.bridge(explain=explain)
        record = bridge.review(state.step - 1)
        bare = {f.name: getattr(record, f.name) for f in fields(record)[:7]}
        new = bridge.amendments[len(state.amendments) :]
        results.append((bare, new, topics(bridge)))
    assert results[0] == results[1]


def test_explaining_a_year_changes_no_other_number():
    world = load_scenario("adr-0004/regime_change")
    plain, explained = (simulate(world, BUSY_ARM, 3, explain=explain) for explain in (False, True))
    assert plain.snapshots.tobytes() == explained.snapshots.tobytes()
    assert plain.amendments == explained.amendments
    bare = [replace(r, reasons=None, drift=None, evidence_blocks=None) for r in explained.reviews]
    assert bare == list(plain.reviews)
    assert all(record.reasons is not None for record in explained.reviews)


def bound_by(gate):
    """Return a bridge with five drifted blocks of which `gate` alone holds some back."""
    agent = drifted(0.9, 0.8, 0.7, 0.6, 0.5)
    config = {}
    if gate == "drift":
        agent.topic[3:5] = tilted(0.1), tilted(0.2)
    elif gate == "evidence":
        agent.alpha[2:5], agent.beta[2:5] = 1.0, 0.5
    elif gate == "age":
        agent.birth_step[4] = 20
    elif gate == "cap":
        config["max_proposals"] = 2
    bridge = make_bridge(agent, configured(**config), explain=True)
    if gate == "cooldown":
        bridge._review = Review(accept_above_drift=0.75)
        bridge.review(39)
    return bridge


@pytest.mark.parametrize(
    ("gate", "held_back"),
    [("drift", 2), ("evidence", 3), ("age", 1), ("cap", 3), ("cooldown", 2), (None, 0)],
)
def test_the_gate_that_holds_a_block_back_is_named(gate, held_back):
    record = bound_by(gate).review(40)
    expected = dict.fromkeys((*GATES, "cooldown"), 0)
    if gate is not None:
        expected[gate] = held_back
    assert record.reasons == expected
    assert record.proposals == 5 - held_back


def test_a_block_that_several_gates_hold_back_counts_for_the_first():
    agent = drifted(0.1, 0.9, 0.9, 0.9, 0.9)
    agent.alpha[:2], agent.beta[:2] = 0.5, 0.5  # block 0: no drift; 1: no evidence
    agent.birth_step[:3] = 30  # 2: too young
    record = make_bridge(agent, configured(max_proposals=1), explain=True).review(40)
    assert record.reasons == {"drift": 1, "evidence": 1, "age": 1, "cap": 1, "cooldown": 0}


def test_drift_is_that_of_every_block_in_block_order_whatever_its_cooldown():
    drifts = (0.6, 0.9, 0.1)
    bridge = make_bridge(drifted(*drifts), Review(proposer_move=0.0), explain=True)
    for day in (40, 41):
        assert bridge.review(day).drift == pytest.approx(drifts)
    assert bridge.reviews[1].reviewed == 1


def test_without_explain_nothing_is_explained():
    record = make_bridge(drifted(0.9)).review(40)
    assert (record.reasons, record.drift, record.evidence_blocks) == (None, None, None)


# --- the owner's decisions ---


class Regretful(Bridge):
    """An owner who accepts everything and reverts it at once."""

    def review(self, day):
        record = super().review(day)
        self._due[day] = [a for a in self.amendments if a.reverted_day is None]
        self.revert_due(day)
        return record


@pytest.mark.parametrize("scenario", ["regime_change", "slow_drift"])
def test_accepting_and_reverting_at_once_gives_the_baseline_bit_for_bit(scenario, monkeypatch):
    monkeypatch.setattr("elfmem_sim.simulate.Bridge", Regretful)
    world = load_scenario(f"adr-0004/{scenario}")
    regretted = simulate(world, reviewing(proposer_noise=0.5, cadence_days=10), 2)
    baseline = simulate(world, BASELINE, 2)
    assert len(regretted.amendments) > 20
    assert regretted.snapshots.tobytes() == baseline.snapshots.tobytes()
    assert regretted.n_blocks == baseline.n_blocks


def test_accepting_nothing_gives_the_baseline_bit_for_bit():
    world = load_scenario("adr-0004/regime_change")
    idle, baseline = (simulate(world, a, 2) for a in (reviewing(accept_probability=0.0), BASELINE))
    assert sum(record.proposals for record in idle.reviews) > 5
    assert idle.snapshots.tobytes() == baseline.snapshots.tobytes()


@pytest.mark.parametrize(("probability", "expected"), [(0.0, set()), (1.0, set(range(10)))])
def test_certain_decisions(probability, expected):
    review = Review(config={"max_proposals": 10}, accept_probability=probability)
    bridge = make_bridge(drifted(*DRIFTS), review)
    assert bridge.review(40).accepted == len(expected)
    assert accepted(bridge) == expected


def decisions(*, seed=1, drifts=DRIFTS, day=40, **review):
    """Return the blocks accepted of ten proposals."""
    config = {"max_proposals": 10, **review.pop("config", {})}
    review = Review(**{"accept_probability": 0.5, **review}, config=config)
    bridge = make_bridge(drifted(*drifts), review, seed=seed)
    assert bridge.review(day).accepted == len(bridge.amendments)
    return accepted(bridge)


def test_decisions_are_reproducible():
    assert decisions() == decisions()


def test_decisions_do_not_depend_on_the_order_of_proposals():
    assert decisions(drifts=DRIFTS[::-1]) == decisions()


def test_decisions_do_not_depend_on_what_else_is_proposed():
    assert decisions(config={"max_proposals": 6}) == decisions() & set(range(6))


@pytest.mark.parametrize("other", [{"seed": 2}, {"day": 41}])
def test_decisions_depend_on_seed_and_day(other):
    assert decisions(**other) != decisions()


def test_a_more_willing_owner_accepts_all_that_a_less_willing_one_does():
    rising = [decisions(accept_probability=p) for p in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert all(less <= more for less, more in pairwise(rising))
    assert len({len(blocks) for blocks in rising}) > 2


def test_decisions_fall_at_the_stated_rate():
    hits = sum(len(decisions(seed=seed, accept_probability=0.3)) for seed in range(1, 31))
    # Thirty owners decide ten times each: 90 of 300 expected, within four standard errors.
    assert abs(hits - 90) < 4 * math.sqrt(300 * 0.3 * 0.7)


@pytest.mark.parametrize(
    ("above", "expected"), [(0.5, {0}), (math.nextafter(0.5, 0.0), {0, 1}), (0.95, set())]
)
def test_only_proposals_above_the_owners_drift_are_accepted(above, expected):
    bridge = make_bridge(drifted(0.9, 0.5, 0.2), Review(accept_above_drift=above))
    assert bridge.review(40).proposals == 2
    assert accepted(bridge) == expected


def test_the_owners_drift_does_not_shift_the_other_decisions():
    assert decisions(accept_above_drift=0.55) == decisions() & {0, 1, 2, 3}


def test_reversions_come_when_they_are_due():
    world = load_scenario("adr-0004/slow_drift")
    arm = reviewing(revert_probability=1.0, revert_after_days=17, cadence_days=10)
    trajectory = simulate(world, arm, 2)
    days = [(a.day, a.reverted_day) for a in trajectory.amendments]
    assert len(days) > 5
    assert days == [(day, day + 17 if day + 17 < 365 else None) for day, _ in days]


def test_the_next_reversion_is_the_earliest_one():
    review = Review(config={"max_proposals": 1}, revert_probability=1.0, revert_after_days=5)
    bridge = make_bridge(drifted(0.9, 0.8), review)
    assert bridge.next_reversion() is None
    bridge.review(40)
    bridge.review(42)
    assert bridge.next_reversion() == 45
    bridge.revert_due(45)
    assert bridge.next_reversion() == 47


def reversions(probability, *, seed=1, most=10):
    review = Review(config={"max_proposals": most}, revert_probability=probability)
    bridge = make_bridge(drifted(*DRIFTS), review, seed=seed)
    bridge.review(40)
    bridge.revert_due(70)
    return {a.block for a in bridge.amendments if a.reverted_day is not None}


def test_reversions_are_drawn_per_block_and_day():
    assert reversions(0.0) == set()
    assert reversions(1.0) == set(range(10))
    assert reversions(0.5) == reversions(0.5)
    assert reversions(0.5, most=6) == reversions(0.5) & set(range(6))
    assert reversions(0.3) < reversions(0.5) < reversions(0.8)
    assert reversions(0.5) != reversions(0.5, seed=2)


def test_acceptance_and_reversion_draw_apart():
    assert decisions() != reversions(0.5)


def test_reverting_out_of_order_restores_what_that_amendment_replaced():
    config = {"cooldown_hours": 0.0, "drift_threshold": 0.1}
    review = Review(config=config, proposer_move=0.2, revert_probability=1.0, revert_after_days=9)
    agent = drifted(0.9)
    bridge = make_bridge(agent, review)
    seen = [agent.topic[0].tobytes()]
    for day in (40, 45):
        bridge.review(day)
        seen.append(agent.topic[0].tobytes())
    bridge.revert_due(49)
    assert agent.topic[0].tobytes() == seen[0]
    bridge.revert_due(54)
    assert agent.topic[0].tobytes() == seen[1]
    assert len(set(seen)) == 3


# --- the proposer, through elfmem ---


def test_a_failing_proposer_is_counted_and_aborts_nothing():
    review = Review(config={"max_proposals": 10}, proposer_failure_rate=0.5)
    bridge = make_bridge(drifted(*DRIFTS), review, explain=True)
    record = bridge.review(40)
    assert record.failed + record.proposals == 10
    assert 0 < record.failed < 10
    assert record.skipped == 0
    assert record.reasons == dict.fromkeys((*GATES, "cooldown"), 0)
    assert record.accepted == record.proposals == len(accepted(bridge))


def test_a_proposer_that_always_fails_proposes_nothing():
    record = make_bridge(drifted(0.9, 0.8), Review(proposer_failure_rate=1.0)).review(40)
    assert (record.failed, record.proposals, record.accepted) == (2, 0, 0)


def test_a_failed_block_takes_up_a_place_under_the_cap():
    review = Review(config={"max_proposals": 2}, proposer_failure_rate=1.0)
    record = make_bridge(drifted(0.9, 0.8, 0.7), review).review(40)
    assert (record.failed, record.skipped) == (2, 1)


def test_failures_fall_on_the_same_blocks_whatever_else_is_proposed():
    def survivors(most):
        review = Review(config={"max_proposals": most}, proposer_failure_rate=0.5)
        return proposed(make_bridge(drifted(*DRIFTS), review), 40)

    assert survivors(6) == [block for block in survivors(10) if block < 6]


def test_the_proposer_sees_only_what_elfmem_passes():
    agent = drifted(0.9, 0.2, evidence=30)
    agent.topic[2:32] = normalised(np.random.default_rng(5).normal([1.0, 0, 0, 0], 0.3, (30, 4)))
    bridge = make_bridge(agent)
    recorder = bridge._proposer = Recorder(bridge._proposer)
    old = agent.topic[0].copy()
    bridge.review(40)
    newest = np.argsort(-agent.used_event[2:32])[:5] + 2
    (call,) = recorder.calls
    assert call.pop("drift_score") == bridge.amendments[0].drift_score
    assert call == {
        "block_content": topic_text(old),
        "block_summary": topic_text(old),
        "evidence_summaries": [topic_text(agent.topic[row]) for row in newest],
    }
    mean = agent.topic[newest].mean(axis=0)
    assert agent.topic[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-12)


def test_evidence_of_64_dimensions_survives_elfmems_cut_at_200_characters():
    rng = np.random.default_rng(5)
    agent = make_agent(-np.eye(64)[:1], normalised(rng.normal(np.eye(64)[0], 0.1, (20, 64))))
    bridge = make_bridge(agent)
    recorder = bridge._proposer = Recorder(bridge._proposer)
    assert bridge.review(40).accepted == 1
    texts = recorder.calls[0]["evidence_summaries"]
    assert min(map(len, texts)) > 200
    evidence = agent.topic[16:21][::-1]
    assert np.array([decode_topic(text) for text in texts]).tobytes() == evidence.tobytes()


def test_an_amended_block_is_reviewed_by_its_new_text():
    bridge = make_bridge(
        drifted(0.9), Review(config={"cooldown_hours": 0.0}, proposer_move=0.5), explain=True
    )
    bridge.review(40)
    new = bridge._agent.topic[0].copy()
    record = bridge.review(41)
    assert record.drift == pytest.approx(((1.0 - new[0]) / 2.0,))
    assert bridge._texts == [row["content"] for row in Thin(bridge).table("blocks")[:1]]


@pytest.mark.parametrize(
    "changes", [{"config": {"max_proposals": 10}}, {"accept_probability": 0.7}]
)
def test_two_configurations_share_the_proposers_draws(changes):
    texts = []
    for review in (Review(proposer_noise=0.3), Review(proposer_noise=0.3, **changes)):
        agent = drifted(*DRIFTS)
        bridge = make_bridge(agent, review)
        bridge.review(40)
        texts.append({a.block: agent.topic[a.block].tobytes() for a in bridge.amendments})
    shared = texts[0].keys() & texts[1].keys()
    assert len(shared) > 1
    assert {block: texts[0][block] for block in shared} == {b: texts[1][b] for b in shared}


def test_the_proposer_draws_anew_on_another_day():
    written = []
    for day in (40, 40, 41):
        bridge = make_bridge(drifted(0.9), Review(proposer_noise=0.3))
        bridge.review(day)
        written.append(topics(bridge))
    assert written[0] == written[1] != written[2]


# --- what the user may ask for ---


def test_without_overrides_elfmems_defaults_hold():
    assert review_config(Review()) == ReviewConfig()


def test_overrides_reach_elfmems_configuration():
    config = review_config(Review(config={"top_n": 7, "cooldown_hours": 12.5}))
    assert config == ReviewConfig(top_n=7, cooldown_hours=12.5)


@pytest.mark.parametrize("name", ["top_m", "corpus", "proposer_move"])
def test_an_unknown_field_is_named_with_the_known_ones(name):
    with pytest.raises(UserError) as caught:
        review_config(Review(config={name: 1.0}))
    error = caught.value
    assert (error.value, error.where) == (name, "review.config")
    assert "drift_threshold" in error.expected
    assert "corpus" not in error.expected
    assert error.remedy == "Correct the name."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("drift_threshold", 1.5),
        ("drift_threshold", -0.1),
        ("min_recent_reinforced_blocks", 0.0),
        ("window_hours", 0.0),
        ("min_reinforcement", -1.0),
        ("top_n", 2.5),
        ("cooldown_hours", -1.0),
        ("max_proposals", 0.0),
        ("min_block_evidence", -0.5),
        ("min_age_days", -1.0),
    ],
)
def test_a_value_that_elfmem_refuses_is_named_with_its_field_and_a_remedy(name, value):
    with pytest.raises(UserError) as caught:
        review_config(Review(config={name: value}))
    error = caught.value
    assert (error.value, error.where) == (value, f"review.config.{name}")
    assert "elfmem's ReviewConfig accepts" in error.expected
    assert error.remedy == "Choose a value inside elfmem's bounds."
    assert str(value) in str(error)


def test_a_run_with_a_refused_configuration_does_not_start():
    with pytest.raises(UserError, match=r"review\.config\.top_n"):
        make_bridge(drifted(0.9), Review(config={"top_n": 0.0}))


@pytest.fixture
def installed(monkeypatch):
    """Let a test say which elfmem is installed."""

    def pretend(release):
        def version(name):
            assert name == "elfmem"
            if release is None:
                raise module.PackageNotFoundError(name)
            return release

        monkeypatch.setattr(module, "version", version)
        require_elfmem.cache_clear()

    yield pretend
    require_elfmem.cache_clear()


@pytest.mark.parametrize("release", ["0.18.0", "0.18.1", "0.19.2", "0.20.0", "0.20.7", "0.20.1rc1"])
def test_supported_releases_pass(installed, release):
    installed(release)
    assert require_elfmem() == release


@pytest.mark.parametrize("release", ["0.17.9", "0.21.0", "0.21", "1.0.0", "0.9", "1.19.0"])
def test_an_unsupported_release_is_named_with_the_supported_ones_and_a_remedy(installed, release):
    installed(release)
    with pytest.raises(UserError) as caught:
        require_elfmem()
    error = caught.value
    assert (error.value, error.where) == (release, "elfmem")
    assert error.expected == "elfmem >=0.18,<0.21"
    assert error.remedy == "Run `pip install 'elfmem>=0.18,<0.21'`."


def test_a_missing_elfmem_comes_with_a_remedy(installed):
    installed(None)
    with pytest.raises(UserError, match=r"got 'no elfmem'.*Run `pip install"):
        require_elfmem()


def test_the_environments_own_elfmem_is_supported():
    require_elfmem.cache_clear()
    assert require_elfmem().startswith("0.")
