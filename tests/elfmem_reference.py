"""elfmem as its own users run it, and simulated agents laid out by hand: for comparison.

`Ordinary` is elfmem on its own asynchronous SQLAlchemy engine, with elfmem's schema, no planner
statistics, and every row backdated. It shares no code with the bridge: rows are computed one by
one, stamps with `timedelta`. `Thin` offers the same calls on a bridge's database.
"""

import asyncio
import struct
from datetime import UTC, datetime, timedelta

import numpy as np
from elfmem.context.frames import FrameCache
from elfmem.db.engine import create_engine, create_test_engine
from elfmem.db.models import block_tags, blocks, metadata
from elfmem.exceptions import ElfmemError
from elfmem.operations import review as operations
from hypothesis import strategies as st
from sqlalchemy import text as sql
from sqlalchemy.dialects.sqlite import insert

from elfmem_sim.kernel.state import allocate
from elfmem_sim.review import Amendment, Bridge
from elfmem_sim.scenario import Arm, Constitution, Identity, Review, Scenario, Workload
from elfmem_sim.standins import TopicEmbedding
from elfmem_sim.thin import drive

STATE = (
    "confidence",
    "outcome_evidence",
    "success_count",
    "failure_count",
    "reinforcement_count",
    "last_reinforced_at",
    "created_at",
)
"""Columns in which the simulation moves a block that exists; elfmem's review moves the others."""

STAMPS = ("created_at", "timestamp", "reverted_at")


# --- agents ---


def tilted(drift, dimension=4):
    """Return the unit vector whose drift from the first axis is `drift`: (1 - cosine) / 2."""
    vector = np.zeros(dimension)
    vector[0] = 1.0 - 2.0 * drift
    vector[1] = np.sqrt(max(0.0, 1.0 - vector[0] ** 2))
    return vector


def make_agent(constitution, ordinary, *, days=400, used=1):
    """Return an agent with these topics, old enough, proven enough and used enough for review.

    The constitution is born at step 0 with 2 successes and .5 failures. Ordinary blocks are used
    at step `used`, one event each, and reinforced three times.
    """
    constitution, ordinary = np.asarray(constitution, float), np.asarray(ordinary, float)
    size, count = len(constitution), len(constitution) + len(ordinary)
    agent = allocate(count, size, constitution.shape[1], days, 16)
    agent.blocks[0] = count
    agent.topic[:size] = constitution
    agent.topic[size:count] = ordinary.reshape(-1, constitution.shape[1])
    agent.alpha[:size], agent.beta[:size] = 2.0, 0.5
    agent.alpha[size:count], agent.beta[size:count] = 0.5, 0.5
    agent.reinforcement[:size] = 5
    agent.reinforcement[size:count] = 3
    agent.used_step[size:count] = used
    agent.birth_step[size:count] = 1
    agent.used_event[size:count] = np.arange(count - size)
    agent.identity[:, 0] = 1.0
    return agent


def make_world(agent, *, hours_per_day=4.0, uses_per_learn=0, name="constructed"):
    """Return the scenario that fits `agent`."""
    return Scenario(
        name=name,
        description="An agent laid out by hand.",
        horizon_days=max(30, agent.identity.shape[0] - 1),
        identity=Identity(dimension=agent.topic.shape[1], drift_per_day=0.0),
        constitution=Constitution(size=agent.decay.shape[0]),
        workload=Workload(hours_per_day=hours_per_day, uses_per_learn=uses_per_learn),
    )


def make_bridge(agent, review=None, *, seed=1, explain=False, kind=Bridge, **world):
    """Return the bridge of `agent` under a reviewing arm."""
    arm = Arm(name="reviewed", description="For tests.", review=review or Review())
    return kind(agent, make_world(agent, **world), arm, seed, explain=explain)


def drifted(*drifts, evidence=20, dimension=4, **agent):
    """Return an agent whose constitution has these drifts from what it does every day."""
    return make_agent(
        [tilted(drift, dimension) for drift in drifts],
        np.tile(tilted(0.0, dimension), (evidence, 1)),
        **agent,
    )


# --- random states ---


class State:
    """An agent at the end of a day, with amendments behind it and a review ahead."""

    def __init__(self, agent, step, review, amendments, world):
        self.agent = agent
        self.step = step
        self.review = review
        self.amendments = amendments
        self.world = world

    def __repr__(self):
        columns = ("alpha", "beta", "reinforcement", "used_step", "used_event", "birth_step")
        arrays = {name: getattr(self.agent, name).tolist() for name in columns}
        shown = f"size={len(self.agent.decay)}, {arrays}, topic={self.agent.topic.tolist()}"
        return f"State({self.step=}, {self.review=}, {self.amendments=}, {self.world=}, {shown})"

    def bridge(self, **options):
        """Return a bridge whose tables hold this state."""
        bridge = make_bridge(self.agent, self.review, **self.world, **options)
        for amendment in self.amendments:
            bridge.database.execute(AUDIT.text, self._audit_row(amendment))
        bridge.amendments.extend(self.amendments)
        bridge.sync(self.step)
        return bridge

    def write_to(self, ordinary):
        """Write this state to an ordinary elfmem."""
        ordinary.store(self.agent, self.step, self.world["hours_per_day"])
        for amendment in self.amendments:
            ordinary.audit(**self._audit_row(amendment))
        ordinary.backdate(self.amendments, self.step - 1)

    @property
    def hours(self):
        return self.step * self.world["hours_per_day"]

    def _audit_row(self, amendment):
        return {
            "id": amendment.id,
            "block_id": f"{amendment.block:06d}",
            "text": topic_text(self.agent.topic[amendment.block][::-1]),
            "reverted": amendment.reverted_day is not None,
        }


@st.composite
def states(draw):
    """Draw states whose blocks lie around every one of elfmem's gates.

    Ages and cooldowns are whole or half days apart, so that no answer depends on the milliseconds
    between two reviews.
    """
    dimension = draw(st.sampled_from([2, 3, 8, 64]))
    size, count = draw(st.integers(1, 8)), draw(st.integers(0, 40))
    step = draw(st.integers(1, 400))
    hours_per_day = draw(st.sampled_from([4.0, 1.5, 7.3]))
    uses_per_learn = draw(st.integers(0, 3))
    any_window = st.floats(0.25, 2000.0)
    whole_days = st.integers(1, 100).map(lambda days: days * hours_per_day)
    config = {
        "drift_threshold": draw(st.sampled_from([0.0, 0.2, 0.35, 0.5, 1.0]) | st.floats(0.0, 0.6)),
        "min_recent_reinforced_blocks": draw(st.integers(1, max(1, count // 2))),
        "window_hours": draw(whole_days | any_window),
        "min_reinforcement": draw(st.integers(0, 3)),
        "top_n": draw(st.integers(1, 50)),
        "cooldown_hours": draw(st.integers(0, 60).map(lambda half_days: 12.0 * half_days)),
        "max_proposals": draw(st.integers(1, size + 1)),
        "min_block_evidence": draw(st.integers(0, 8).map(lambda halves: halves / 2)),
        "min_age_days": draw(st.integers(0, 80).map(lambda halves: halves / 2)),
    }
    review = Review(
        config=config,
        proposer_move=draw(st.sampled_from([1.0, 0.7])),
        proposer_noise=draw(st.sampled_from([0.0, 0.1])),
        proposer_failure_rate=draw(st.sampled_from([0.0, 0.0, 0.3])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    center = rng.normal(size=dimension)
    topic = center * draw(st.sampled_from([0.0, 1.0, 3.0])) + rng.normal(size=(count, dimension))
    constitution = rng.normal(size=(size, dimension)) - center * draw(st.sampled_from([0.0, 1.0]))
    if draw(st.booleans()):
        constitution[-1] = constitution[0]  # equal drifts keep the order of ids
    agent = make_agent(normalised(constitution), normalised(topic), days=step)

    fixed = slice(0, size)
    ages = config["min_age_days"] // 1 + rng.integers(-1, 3, size)
    agent.birth_step[fixed] = np.clip(step - ages, 0, step)
    gate = config["min_block_evidence"]
    totals = rng.choice(
        [gate, np.nextafter(gate, 9.0), np.nextafter(gate, -9.0), gate + 1.0, gate - 0.5], size
    )
    agent.alpha[fixed] = np.maximum(totals, 0.5) * rng.choice([0.25, 0.7, 1 / 3], size)
    agent.beta[fixed] = np.maximum(totals, 0.5) - agent.alpha[fixed]

    rest = slice(size, size + count)
    agent.reinforcement[rest] = uses_per_learn + rng.integers(0, 4, count)
    used = agent.reinforcement[rest] > uses_per_learn
    agent.alpha[rest] += used * rng.integers(0, 3, count)
    edge = int(config["window_hours"] / hours_per_day)
    ages = np.where(rng.random(count) < 0.3, edge + rng.integers(-1, 2, count), rng.integers(0, 5))
    agent.used_step[rest] = np.clip(step - ages, 0, step)
    agent.used_step[rest] = np.maximum(agent.used_step[rest], 1)
    agent.used_event[rest] = rng.permutation(count)

    edge = int(config["cooldown_hours"] / 24.0)
    amendments = []
    for block in draw(st.lists(st.integers(0, size - 1), max_size=4)):
        day = step - 1 - max(0, edge + int(rng.integers(-1, 2)))
        reverted = day + 1 if rng.random() < 0.3 else None
        amendments.append(Amendment(len(amendments) + 1, day, block, 0.5, 0.5, 0.5, reverted))
    world = {"hours_per_day": hours_per_day, "uses_per_learn": uses_per_learn}
    return State(agent, step, review, amendments, world)


def normalised(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# --- what elfmem is asked, and what it answers ---


class Recorder:
    """Passes elfmem's requests on to a proposer and keeps them."""

    def __init__(self, llm):
        self.llm = llm
        self.calls = []

    async def propose_amendment(self, **request):
        self.calls.append(request)
        return await self.llm.propose_amendment(**request)


class Replaced:
    """elfmem's review module with some of its functions replaced."""

    def __init__(self, **functions):
        self.__dict__.update(functions)

    def __getattr__(self, name):
        return getattr(operations, name)


def exact(value):
    """Return `value` in a form in which equal means equal to the last bit, zeros' signs too."""
    return repr(value)


def answer(call, *arguments, **keywords):
    """Return what a call gives, without stamps, or what it raises."""
    try:
        result = call(*arguments, **keywords)
    except (ElfmemError, ValueError) as error:
        return type(error), error.args
    if isinstance(result, list):
        return [unstamped(entry.__dict__) for entry in result]
    return unstamped(result.to_dict())


def unstamped(row):
    """Return a row of which a stamp says only whether it is there."""
    return {k: v is not None if k in STAMPS else v for k, v in row.items()}


class Thin:
    """elfmem's operations on the thin connection of a bridge."""

    def __init__(self, bridge):
        self.bridge = bridge

    def review(self, llm, config, hours):
        return drive(
            operations.review_constitutional(
                self.bridge.connection, llm, config, current_active_hours=hours
            )
        )

    def accept(self, **amendment):
        return drive(
            operations.accept_amendment(
                self.bridge.engine, TopicEmbedding(), FrameCache(), **amendment
            )
        )

    def revert(self, amendment):
        return drive(
            operations.revert_amendment(
                self.bridge.engine, TopicEmbedding(), FrameCache(), amendment_id=amendment
            )
        )

    def amendments(self, block=None):
        return drive(operations.list_amendments(self.bridge.engine, block_id=block))

    def table(self, name):
        cursor = self.bridge.database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


class Ordinary:
    """elfmem on its own asynchronous engine: in memory, or in the file `path`."""

    def __init__(self, path=None):
        self._runner = asyncio.Runner()
        self.engine = self._run(self._open(path))
        self._size = None

    async def _open(self, path):
        if path is None:
            return await create_test_engine()
        engine = await create_engine(str(path))
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
        return engine

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run(self.engine.dispose())
        self._runner.close()

    def _run(self, coroutine):
        return self._runner.run(coroutine)

    def _execute(self, *statements):
        async def go():
            async with self.engine.begin() as connection:
                for statement, values in statements:
                    await connection.execute(statement, values)

        self._run(go())

    # The simulated state.

    def store(self, agent, step, hours_per_day):
        """Bring every block to its state at `step`; of blocks that exist only the state."""
        size = agent.decay.shape[0]
        now = datetime.now(UTC)
        values = [block_row(agent, i, step, hours_per_day, now) for i in range(agent.blocks[0])]
        upsert = insert(blocks)
        upsert = upsert.on_conflict_do_update(
            index_elements=["id"], set_={name: upsert.excluded[name] for name in STATE}
        )
        tags = insert(block_tags).on_conflict_do_nothing()
        tagged = [{"block_id": f"{i:06d}", "tag": "self/constitutional"} for i in range(size)]
        self._execute((upsert, values), (tags, tagged))

    def backdate(self, amendments, day):
        """Make the amendments' audit rows as old as they are on `day`."""
        now = datetime.now(UTC)
        moved = []
        for amendment in amendments:
            moments = {"timestamp": amendment.day, "reverted_at": amendment.reverted_day}
            for column, then in moments.items():
                if then is not None:
                    stamp = (now - timedelta(days=day - then)).strftime("%Y-%m-%d %H:%M:%S")
                    statement = sql(f"UPDATE block_amendments SET {column} = :s WHERE id = :i")
                    moved.append((statement, {"s": stamp, "i": amendment.id}))
        self._execute(*moved)

    def audit(self, **row):
        """Write an audit row as an accept of long ago left it."""
        self._execute((AUDIT, row))

    # elfmem's operations.

    def review(self, llm, config, hours):
        async def go():
            async with self.engine.connect() as connection:
                return await operations.review_constitutional(
                    connection, llm, config, current_active_hours=hours
                )

        return self._run(go())

    def accept(self, **amendment):
        return self._run(
            operations.accept_amendment(self.engine, TopicEmbedding(), FrameCache(), **amendment)
        )

    def revert(self, amendment):
        return self._run(
            operations.revert_amendment(
                self.engine, TopicEmbedding(), FrameCache(), amendment_id=amendment
            )
        )

    def amendments(self, block=None):
        return self._run(operations.list_amendments(self.engine, block_id=block))

    def tables(self):
        async def go():
            found = {}
            async with self.engine.connect() as connection:
                for name in metadata.tables:
                    rows = await connection.execute(sql(f"SELECT * FROM {name} ORDER BY 1, 2"))
                    found[name] = [dict(row) for row in rows.mappings()]
            return found

        return self._run(go())


AUDIT = sql(
    "INSERT INTO block_amendments (id, block_id, timestamp, pre_content, post_content, "
    "drift_score, acceptor, reverted_at) VALUES (:id, :block_id, '2000-01-01 00:00:00', :text, "
    ":text, 0.5, 'user', CASE WHEN :reverted THEN '2000-01-01 00:00:00' END)"
)


def topic_text(topic):
    return "topic " + "".join(struct.pack(">d", x).hex() for x in topic)


def block_row(agent, row, step, hours_per_day, now):
    """Return elfmem's row of one block at the end of day `step - 1`."""
    text = topic_text(agent.topic[row])
    alpha, beta = float(agent.alpha[row]), float(agent.beta[row])
    # The day's end, less the last four milliseconds' share of the events that came after.
    used, event = int(agent.used_step[row]), int(agent.used_event[row])
    hours = used * hours_per_day - (2**14 - event) / 2**34 if used else 0.0
    return {
        "id": f"{row:06d}",
        "content": text,
        "summary": text,
        "category": "knowledge",
        "source": "simulation",
        "created_at": (now - timedelta(days=int(step - agent.birth_step[row]))).isoformat(),
        "status": "active",
        "share": None,
        "confidence": alpha / (alpha + beta),
        "outcome_evidence": alpha + beta - 1.0,
        "success_count": alpha,
        "failure_count": beta,
        "reinforcement_count": int(agent.reinforcement[row]),
        "decay_lambda": 0.01,
        "last_reinforced_at": hours,
        "embedding": struct.pack(f"<{agent.topic.shape[1]}f", *agent.topic[row]),
        "embedding_model": "topic",
    }


def assert_same_tables(thin, ordinary, size):
    """Compare all that elfmem stores: stamps to half a day, everything else to the last bit.

    `created_at` is compared for the constitution alone: a review reads no other.
    """
    for name, theirs in ordinary.tables().items():
        ours = thin.table(name)
        mine, other = ([unstamped(row) for row in rows] for rows in (ours, theirs))
        assert exact(mine) == exact(other), f"table {name} differs"
        for mine, other in zip(ours, theirs, strict=True):
            if name == "blocks" and int(mine["id"]) >= size:
                continue
            for stamp in STAMPS:
                if mine.get(stamp) is not None:
                    assert abs(moment(mine[stamp]) - moment(other[stamp])) < timedelta(hours=12)


def moment(stamp):
    parsed = datetime.fromisoformat(stamp)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
