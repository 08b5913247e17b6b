"""Tests of `elfmem_sim.thin`: elfmem must not notice what it runs on.

The property test drives one random state through the thin connection (with the bridge's planner
statistics) and through elfmem's own asynchronous engine (without), and compares everything that
either answers, asks, stores or raises. The unit tests say what the parts promise.
"""

import asyncio
import sqlite3
from datetime import datetime

import pytest
from elfmem.exceptions import AmendmentAlreadyReverted, AmendmentNotFound, BlockNotFound
from elfmem_reference import (
    Ordinary,
    Recorder,
    Thin,
    answer,
    assert_same_tables,
    drifted,
    exact,
    make_bridge,
    states,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    Column,
    DateTime,
    Float,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    exc,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import StaticPool

from elfmem_sim.review import review_config
from elfmem_sim.standins import TopicProposer
from elfmem_sim.thin import ThinConnection, ThinEngine, drive
from elfmem_sim.topics import encode_topic

TABLE = Table("numbers", MetaData(), Column("id", Integer, primary_key=True), Column("n", Integer))
ADD = text("INSERT INTO numbers (n) VALUES (:n)")
ALL = text("SELECT n FROM numbers ORDER BY n")

# What owners do: accept a proposal or a text of their own, on any block; revert any amendment.
DECISIONS = st.lists(
    st.one_of(
        st.tuples(st.just("accept proposal"), st.integers(0, 7)),
        st.tuples(st.just("accept proposal"), st.integers(0, 7)),
        st.tuples(st.just("accept text"), st.integers(0, 15)),
        st.tuples(st.just("accept no topic"), st.integers(0, 15)),
        st.tuples(st.just("revert"), st.integers(1, 4)),
        st.tuples(st.just("revert"), st.integers(1, 4)),
    ),
    max_size=6,
)


def numbers():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER)")
    return database


def stored(database):
    return [n for (n,) in database.execute("SELECT n FROM numbers ORDER BY n")]


# --- the same answers as elfmem's own engine ---


def ask(side, state):
    """Return everything a review answers and everything its proposer was asked."""
    proposer = TopicProposer(state.review, ("constructed", "reviewed", 1))
    recorder = Recorder(proposer)
    answered = answer(side.review, recorder, review_config(state.review), state.hours)
    return answered, recorder.calls


def decide(side, decision, state, proposals):
    """Carry out one of the owner's decisions and return what came of it."""
    kind, number = decision
    if kind == "revert":
        return answer(side.revert, number)
    amendment = {
        "block_id": f"{number:06d}",
        "proposed_content": "no topic at all",
        "rationale": None,
        "drift_score": 0.1,
        "acceptor": "user",
    }
    if kind == "accept text":
        amendment["proposed_content"] = encode_topic(state.agent.topic[0])
    elif kind == "accept proposal" and proposals:
        proposal = dict(proposals[number % len(proposals)])
        amendment |= {
            "block_id": proposal["block_id"],
            "proposed_content": proposal["proposed_content"],
            "rationale": proposal["rationale"],
        }
    return answer(side.accept, **amendment)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(state=states(), decisions=DECISIONS)
def test_a_thin_connection_gives_what_elfmems_own_engine_gives(state, decisions):
    thin = Thin(state.bridge())
    with Ordinary() as ordinary:
        state.write_to(ordinary)
        assert_same_tables(thin, ordinary, state.agent.decay.shape[0])
        first = ask(thin, state)
        assert exact(first) == exact(ask(ordinary, state))
        for decision in decisions:
            outcome = decide(thin, decision, state, first[0]["proposals"])
            again = decide(ordinary, decision, state, first[0]["proposals"])
            assert exact(outcome) == exact(again)
        assert_same_tables(thin, ordinary, state.agent.decay.shape[0])
        for block in (None, "000000"):
            ours, theirs = (answer(side.amendments, block) for side in (thin, ordinary))
            assert exact(ours) == exact(theirs)
        assert exact(ask(thin, state)) == exact(ask(ordinary, state))


def amended():
    """Return a bridge whose block 0 was amended (1) and another's amendment (2) reverted."""
    bridge = make_bridge(drifted(0.9, 0.8))
    bridge.review(40)
    thin = Thin(bridge)
    thin.revert(2)
    return thin


def test_accepting_an_unknown_block_raises_elfmems_block_not_found():
    with pytest.raises(BlockNotFound):
        amended().accept(
            block_id="999999",
            proposed_content=encode_topic(drifted(0.0).topic[0]),
            rationale=None,
            drift_score=0.5,
            acceptor="user",
        )


def test_reverting_an_unknown_amendment_raises_elfmems_amendment_not_found():
    with pytest.raises(AmendmentNotFound):
        amended().revert(3)


def test_reverting_twice_raises_elfmems_amendment_already_reverted():
    with pytest.raises(AmendmentAlreadyReverted):
        amended().revert(2)


# --- drive ---


def test_drive_returns_what_the_coroutine_returns():
    async def inner():
        return 7

    async def outer():
        return await inner() + 1

    assert drive(outer()) == 8


def test_drive_passes_exceptions_on():
    async def fails():
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        drive(fails())


def test_drive_refuses_a_coroutine_that_waits():
    with pytest.raises(RuntimeError, match="waited for something that is not the database"):
        drive(asyncio.sleep(0))


def test_drive_lets_a_waiting_coroutine_clean_up():
    closed = []

    async def waits():
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    coroutine = waits()
    with pytest.raises(RuntimeError):
        drive(coroutine)
    assert closed == [True]


# --- ThinConnection ---


def test_textual_parameters_reach_the_statement_by_name():
    database = numbers()
    drive(ThinConnection(database).execute(ADD, {"n": 3}))
    assert stored(database) == [3]


def test_rows_come_as_tuples_or_as_mappings():
    database = numbers()
    connection = ThinConnection(database)
    for n in (1, 2):
        drive(connection.execute(ADD, {"n": n}))
    assert drive(connection.execute(ALL)).fetchall() == [(1,), (2,)]
    assert drive(connection.execute(ALL)).first() == (1,)
    assert [dict(row) for row in drive(connection.execute(ALL)).mappings()] == [{"n": 1}, {"n": 2}]
    assert dict(drive(connection.execute(ALL)).mappings().first()) == {"n": 1}


def test_an_empty_result_has_no_first_row():
    connection = ThinConnection(numbers())
    assert drive(connection.execute(ALL)).first() is None
    assert drive(connection.execute(ALL)).mappings().first() is None


def test_mappings_do_not_change_what_the_database_returns_to_others():
    database = numbers()
    connection = ThinConnection(database)
    drive(connection.execute(ADD, {"n": 1}))
    drive(connection.execute(ALL)).mappings()
    assert database.execute("SELECT n FROM numbers").fetchone() == (1,)


def test_core_statements_share_the_transaction_of_textual_ones():
    database = numbers()
    connection = ThinConnection(database)
    drive(connection.execute(ADD, {"n": 1}))
    drive(connection.execute(insert(TABLE).values(n=2)))
    assert drive(connection.execute(select(TABLE.c.n).order_by(TABLE.c.n))).all() == [(1,), (2,)]
    connection.finish(commit=False)
    assert stored(database) == []


def test_core_statements_of_two_connections_reach_their_own_databases():
    one, two = numbers(), numbers()
    connections = ThinConnection(one), ThinConnection(two)
    for n in (1, 3):
        for i, connection in enumerate(connections):
            drive(connection.execute(insert(TABLE).values(n=n + i)))
    assert (stored(one), stored(two)) == ([1, 3], [2, 4])


NOTES = Table(
    "notes",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("body", Text, nullable=False, default="empty"),
    Column("weight", Float, nullable=False, default=0.5),
    Column("written", DateTime),
    Column("made_up", Text, default=lambda: "by a function"),
)
DAY = datetime(2026, 3, 1, 12, 30)
FEW = NOTES.c.id, NOTES.c.body, NOTES.c.weight, NOTES.c.written, NOTES.c.made_up
STATEMENTS = [
    insert(NOTES).values(id="a", written=DAY),
    insert(NOTES).values(id="b", weight=2.0, made_up="here"),
    insert(NOTES).values(id="c", body="full"),
    sqlite.insert(NOTES).values(id="a", body="again").on_conflict_do_nothing(),
    sqlite.insert(NOTES)
    .values(id="b", body="new")
    .on_conflict_do_update(index_elements=["id"], set_={"body": "updated"}),
    update(NOTES).where(NOTES.c.id == "a").values(weight=NOTES.c.weight + 1, body="more"),
    update(NOTES).where(NOTES.c.written == DAY).values(body="found"),
    select(*FEW).order_by(NOTES.c.id),
    select(*FEW).where(NOTES.c.id.in_(["a", "c"])).order_by(NOTES.c.id),
    select(*FEW).where(NOTES.c.id.in_(["b"])),
    select(*FEW).where(NOTES.c.id.in_([])),
    select(NOTES.c.written).where(NOTES.c.written.in_([DAY])),
    select(func.count()).select_from(NOTES),
    select(func.max(NOTES.c.weight).label("most"), func.min(NOTES.c.written)),
    delete(NOTES).where(NOTES.c.id.in_(["a", "z"])),
    select(*FEW).order_by(NOTES.c.weight.desc()).limit(1),
    select(*FEW).order_by(NOTES.c.weight.desc()).limit(2),
]


def notes():
    database = sqlite3.connect(":memory:")
    engine = create_engine("sqlite://", creator=lambda: database, poolclass=StaticPool)
    NOTES.metadata.create_all(engine)
    return database, engine


def test_core_statements_do_what_sqlalchemy_does():
    thin, _ = notes()
    connection = ThinConnection(thin)
    database, engine = notes()
    with engine.connect() as ordinary:
        for number, statement in enumerate(STATEMENTS):
            found, expected = drive(connection.execute(statement)), ordinary.execute(statement)
            if statement.is_select:
                rows = [dict(row) for row in expected.mappings()]
                assert [dict(row) for row in found.mappings()] == rows, number
            else:
                assert found.rowcount == expected.rowcount, number
        ordinary.commit()
    assert thin.execute("SELECT * FROM notes").fetchall() == (
        database.execute("SELECT * FROM notes").fetchall()
    )


@pytest.mark.parametrize("take", ["all", "fetchall", "fetchone", "first", "scalar"])
@pytest.mark.parametrize("rows", [0, 2])
def test_rows_are_taken_as_from_sqlalchemy(take, rows):
    statement = select(NOTES.c.written, NOTES.c.id).order_by(NOTES.c.id)
    thin, _ = notes()
    connection = ThinConnection(thin)
    _, engine = notes()
    with engine.connect() as ordinary:
        for name in "ab"[:rows]:
            for execute in (lambda s: drive(connection.execute(s)), ordinary.execute):
                execute(insert(NOTES).values(id=name, written=DAY))
        found = getattr(drive(connection.execute(statement)), take)()
        assert found == getattr(ordinary.execute(statement), take)()


def test_a_plan_serves_all_statements_of_its_form():
    thin, _ = notes()
    connection = ThinConnection(thin)
    for name in "abc":
        drive(connection.execute(insert(NOTES).values(id=name)))
    for names in (["a"], ["a", "b", "c"], [], ["c", "x"]):
        statement = select(NOTES.c.id).where(NOTES.c.id.in_(names)).order_by(NOTES.c.id)
        found = [row[0] for row in drive(connection.execute(statement))]
        assert found == [name for name in names if name in "abc"]


@pytest.mark.parametrize(
    "statement", [insert(NOTES).values(id="a"), text("INSERT INTO notes (id) VALUES ('a')")]
)
def test_errors_have_sqlalchemys_names(statement):
    thin, _ = notes()
    connection = ThinConnection(thin)
    drive(connection.execute(insert(NOTES).values(id="a")))
    with pytest.raises(exc.IntegrityError):
        drive(connection.execute(statement))
    with pytest.raises(exc.OperationalError):
        drive(connection.execute(text("SELECT * FROM nowhere")))


# --- rows kept at hand ---

PLAIN = Table(
    "plain",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("body", Text),
    Column("weight", Float),
)
WHOLE = [
    select(PLAIN),
    select(PLAIN).where(PLAIN.c.weight > 2.0).order_by(PLAIN.c.weight.desc(), PLAIN.c.id),
    select(PLAIN).where(PLAIN.c.id == "b"),
    select(PLAIN).where(PLAIN.c.id.in_(["a", "d"])).limit(1),
    select(PLAIN.c.id, PLAIN.c.weight),
    select(PLAIN).distinct(),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, len(WHOLE) - 1)),
        st.tuples(st.just("read"), st.integers(0, len(WHOLE) - 1)),
        st.tuples(st.just("insert"), st.sampled_from("abcdef")),
        st.tuples(st.just("update"), st.sampled_from("abcdef")),
        st.tuples(st.just("update by text"), st.sampled_from("abcdef")),
        st.tuples(st.just("update elsewhere"), st.sampled_from("abcdef")),
        st.tuples(st.just("delete"), st.sampled_from("abcdef")),
        st.tuples(st.just("commit"), st.just("")),
        st.tuples(st.just("roll back"), st.just("")),
    ),
    max_size=40,
)


def take(connection, step, number):
    """Take one step and return what it shows."""
    kind, what = step
    new = number / 2
    if kind == "read":
        return [dict(row) for row in drive(connection.execute(WHOLE[what])).mappings()]
    if kind in ("commit", "roll back"):
        return connection.finish(commit=kind == "commit")
    if kind == "update elsewhere":  # not by elfmem, but on the same connection
        query = "UPDATE plain SET weight = ? WHERE id <= ?"
        return connection.database.execute(query, (new, what)).rowcount
    statement, parameters = {
        "insert": (sqlite.insert(PLAIN).values(id=what, weight=new).on_conflict_do_nothing(), None),
        "update": (update(PLAIN).where(PLAIN.c.id == what).values(weight=new), None),
        "update by text": (text("UPDATE plain SET body = :n WHERE id = :i"), {"n": new, "i": what}),
        "delete": (delete(PLAIN).where(PLAIN.c.id == what), None),
    }[kind]
    return drive(connection.execute(statement, parameters)).rowcount


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(steps=STEPS)
def test_rows_kept_at_hand_are_those_in_the_database(steps):
    sides = []
    for remember in ("plain", ""):
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE plain (id TEXT PRIMARY KEY, body TEXT, weight FLOAT)")
        sides.append(ThinConnection(database, remember=remember))
    for number, step in enumerate([*steps, ("read", 0), ("read", 1)]):
        shown = [take(side, step, number) for side in sides]
        assert shown[0] == shown[1], (number, step)


def test_rows_kept_at_hand_leave_the_database_as_it_is():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE plain (id TEXT PRIMARY KEY, body TEXT, weight FLOAT)")
    ThinConnection(database, remember="plain")
    assert database.execute("SELECT name FROM sqlite_master WHERE type != 'index'").fetchall() == [
        ("plain",)
    ]


# --- ThinEngine ---


async def work(context, *statements, fail=False):
    async with context as connection:
        for statement in statements:
            await connection.execute(statement, {"n": 1} if statement is ADD else None)
        if fail:
            raise KeyError("on purpose")


BOTH = (ADD, insert(TABLE).values(n=2))
each_kind = pytest.mark.parametrize(
    "statements", [BOTH, BOTH[:1], BOTH[1:]], ids=["both", "textual", "core"]
)


@pytest.fixture
def engine():
    return ThinEngine(ThinConnection(numbers()))


def database_of(engine):
    return engine._connection.database


@each_kind
def test_begin_commits(engine, statements):
    drive(work(engine.begin(), *statements))
    assert not database_of(engine).in_transaction
    assert len(stored(database_of(engine))) == len(statements)


@each_kind
def test_begin_rolls_back_and_passes_the_exception_on_when_its_body_fails(engine, statements):
    with pytest.raises(KeyError, match="on purpose"):
        drive(work(engine.begin(), *statements, fail=True))
    assert not database_of(engine).in_transaction
    assert stored(database_of(engine)) == []


@each_kind
def test_connect_rolls_back_what_was_not_committed(engine, statements):
    drive(work(engine.connect(), *statements))
    assert not database_of(engine).in_transaction
    assert stored(database_of(engine)) == []


@each_kind
def test_an_engine_that_keeps_nothing_answers_and_leaves_no_trace(statements):
    database = numbers()
    connection = ThinConnection(database)
    engine = ThinEngine(connection, keep=False)

    async def look():
        async with engine.begin() as open_connection:
            for statement in statements:
                parameters = {"n": 1} if statement is ADD else None
                await open_connection.execute(statement, parameters)
            return stored(database)

    assert len(drive(look())) == len(statements)
    assert stored(database) == []
    assert not database.in_transaction


def test_an_engine_works_on_after_a_rollback(engine):
    with pytest.raises(KeyError):
        drive(work(engine.begin(), *BOTH, fail=True))
    drive(work(engine.begin(), *BOTH))
    assert stored(database_of(engine)) == [1, 2]
