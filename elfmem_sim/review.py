"""The review arm's bridge: a simulated agent in elfmem's own tables, under elfmem's own review.

One in-memory SQLite database per agent holds elfmem's schema, created by elfmem. Reviews are
``elfmem.operations.review.review_constitutional``; amendments go through its ``accept_amendment``
and ``revert_amendment``. This module writes the agent's state into the tables, calls elfmem, checks
that elfmem keeps ADR 0004's promises, and reads the constitution back. It filters nothing itself.

Two things make it fast, and a test proves that neither changes a result: statements go straight to
``sqlite3`` (:mod:`elfmem_sim.thin`), and the database carries planner statistics, so that SQLite
finds the newest blocks by index.

Time is simulated by moving the past back: rows are stamped so that they are as old, on the real
clock, as they are in the simulation. Of ordinary blocks a review reads no wall-clock stamp, so
theirs is written once.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from elfmem_sim.errors import InvariantError, UserError
from elfmem_sim.kernel.state import Agent
from elfmem_sim.scenario import Arm, Review, Scenario
from elfmem_sim.standins import EMBEDDING_MODEL, EchoProposer, TopicEmbedding, TopicProposer
from elfmem_sim.streams import generator
from elfmem_sim.thin import ThinConnection, ThinEngine, drive
from elfmem_sim.topics import Vector, decode_topic, encode_topics

if TYPE_CHECKING:
    from elfmem.config import ReviewConfig
    from elfmem.types import ConstitutionalReviewResult

SUPPORTED = ((0, 18), (0, 21))
"""Supported elfmem releases: from the first, before the second."""

CONSTITUTIONAL_TAG = "self/constitutional"
GATES = ("drift", "evidence", "age", "cap")
"""elfmem's gates behind the cooldown, in the order in which it applies them."""

_DIGEST_EVERY = 50  # one seed in so many has the whole database compared around every review
_EVENT_HOURS = 2.0**-34
_EVENTS_A_DAY = 2**14
_ROWS_PER_INSERT = 50


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """What one review did.

    Attributes:
        day: Day at whose end the review took place.
        insufficient_history: elfmem saw too few reinforced blocks to judge.
        reviewed: Constitutional blocks outside their cooldown.
        skipped: Blocks reviewed and not proposed.
        proposals: Amendments proposed.
        failed: Proposer calls that raised.
        accepted: Amendments accepted.
        reasons: Per gate, the blocks not proposed because of it (only when asked for);
            ``cooldown`` counts the blocks that elfmem left out before its gates.
        drift: Drift score of each constitutional block, in block order (only when asked for).
        evidence_blocks: Ordinary blocks in the centroid (only when asked for).
    """

    day: int
    insufficient_history: bool
    reviewed: int
    skipped: int
    proposals: int
    failed: int
    accepted: int
    reasons: Mapping[str, int] | None = None
    drift: tuple[float, ...] | None = None
    evidence_blocks: int | None = None


@dataclass(slots=True)
class Amendment:
    """One accepted amendment.

    Attributes:
        id: elfmem's id of the audit row.
        day: Day of acceptance.
        block: Row of the constitutional block.
        drift_score: elfmem's drift score of the proposal.
        align_before: (1 + cosine) / 2 between old text and current self.
        align_after: The same for the new text.
        reverted_day: Day of the reversion, or None.
    """

    id: int
    day: int
    block: int
    drift_score: float
    align_before: float
    align_after: float
    reverted_day: int | None = None


@cache
def require_elfmem() -> str:
    """Return the installed elfmem's version.

    Raises:
        UserError: If elfmem is missing or not a supported release.
    """
    low, high = (".".join(map(str, bound)) for bound in SUPPORTED)
    expected = f"elfmem >={low},<{high}"
    remedy = f"Run `pip install 'elfmem>={low},<{high}'`."
    try:
        installed = version("elfmem")
    except PackageNotFoundError:
        raise UserError("no elfmem", expected, remedy, "elfmem") from None
    release = tuple(int(part) for part in installed.split(".")[:2] if part.isdigit())
    if not SUPPORTED[0] <= release < SUPPORTED[1]:
        raise UserError(installed, expected, remedy, "elfmem")
    return installed


def review_config(review: Review) -> "ReviewConfig":
    """Return elfmem's ``ReviewConfig`` with the arm's overrides.

    Raises:
        UserError: If a field does not exist or elfmem refuses its value.
    """
    require_elfmem()
    from elfmem.config import ReviewConfig
    from pydantic import ValidationError

    known = [name for name in ReviewConfig.model_fields if name != "corpus"]
    for name in review.config:
        if name not in known:
            raise UserError(
                name, f"one of {', '.join(known)}", "Correct the name.", "review.config"
            )
    try:
        return ReviewConfig(**dict(review.config))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            first["input"],
            f"what elfmem's ReviewConfig accepts ({first['msg'].lower()})",
            "Choose a value inside elfmem's bounds.",
            f"review.config.{first['loc'][0]}",
        ) from None


@cache
def _template() -> sqlite3.Connection:
    """A database with elfmem's empty schema and the planner statistics of a lived-in one."""
    from elfmem.db.models import metadata
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    # elfmem logs each failed proposal; a study provokes thousands on purpose and counts them.
    logging.getLogger("elfmem").addHandler(logging.NullHandler())
    template = sqlite3.connect(":memory:", check_same_thread=False)
    engine = create_engine("sqlite://", creator=lambda: template, poolclass=StaticPool)
    metadata.create_all(engine)
    template.executemany(
        _insert_sql(1),
        [(3, _block_id(i), "", "", i / 16, b"\0") for i in range(1000)],
    )
    template.execute(
        f"INSERT INTO block_tags SELECT id, '{CONSTITUTIONAL_TAG}' FROM blocks LIMIT 10"
    )
    template.execute("ANALYZE")
    template.execute("DELETE FROM block_tags")
    template.execute("DELETE FROM blocks")
    template.commit()
    return template


_COLUMNS = 5  # parameters per row of _insert_sql, behind the one that all rows share


@lru_cache(maxsize=2 * _ROWS_PER_INSERT)
def _insert_sql(rows: int) -> str:
    """Insert ``rows`` newly learned blocks at once: half the time of as many single inserts."""
    values = []
    for row in range(rows):
        p = [f"?{2 + row * _COLUMNS + column}" for column in range(_COLUMNS)]
        block, text, created, used, embedding = p
        values.append(
            f"({block}, {text}, {text}, 'knowledge', 'simulation', {created}, 'active', 0.5, 0.0, "
            f"0.5, 0.5, ?1, 0.01, {used}, {embedding}, '{EMBEDDING_MODEL}')"
        )
    return (
        "INSERT INTO blocks (id, content, summary, category, source, created_at, status, "
        "confidence, outcome_evidence, success_count, failure_count, reinforcement_count, "
        "decay_lambda, last_reinforced_at, embedding, embedding_model) VALUES " + ", ".join(values)
    )


def _block_id(row: int) -> str:
    return f"{row:06d}"


@lru_cache(maxsize=1024)
def _block_ids(first: int, last: int) -> list[str]:
    """Ids of the rows ``first .. last - 1``; every agent of a scenario asks for the same ranges."""
    return [_block_id(row) for row in range(first, last)]


class Bridge:
    """One agent's elfmem database, and the reviews that are held on it.

    Args:
        agent: The simulated agent; its constitution's topics are overwritten by amendments.
        scenario: The scenario it lives in.
        arm: An arm with a ``review`` section.
        seed: The run's seed.
        explain: Whether reviews say why each block was not proposed.

    Raises:
        UserError: If elfmem is not supported or refuses the arm's configuration.
    """

    def __init__(
        self, agent: Agent, scenario: Scenario, arm: Arm, seed: int, *, explain: bool = False
    ) -> None:
        from elfmem.context.frames import FrameCache
        from elfmem.operations import review as operations

        if arm.review is None:
            raise ValueError(f"arm {arm.name} has no review")
        self._operations = operations
        self._review = arm.review
        self._config = review_config(arm.review)
        self._agent = agent
        self._size = scenario.constitution.size
        self._hours_per_day = scenario.workload.hours_per_day
        self._identity = (scenario.name, arm.name, seed)
        self._explain = explain
        self._digest = seed % _DIGEST_EVERY == 0
        self._proposer = TopicProposer(arm.review, self._identity)
        self._embedding = TopicEmbedding()
        self._frames = FrameCache()
        self.database = sqlite3.connect(":memory:")
        _template().backup(self.database)
        self.connection = ThinConnection(self.database)
        self.engine = ThinEngine(self.connection)
        self._rows = 0
        self._uses_per_learn = scenario.workload.uses_per_learn
        self._reinforcement = np.full_like(agent.reinforcement, self._uses_per_learn)
        self._texts: list[str] = []
        self._due: dict[int, list[Amendment]] = {}
        self.reviews: list[ReviewRecord] = []
        self.amendments: list[Amendment] = []

    # The agent's state, in elfmem's tables.

    def sync(self, step: int) -> None:
        """Bring the tables to the agent's state at ``step``, writing only what changed."""
        agent, size, old = self._agent, self._size, self._rows
        count = int(agent.blocks[0])
        now = datetime.now(UTC)
        if old == 0:
            self._texts = encode_topics(agent.topic[:size])
        self._insert(old, count, step, now)
        if old == 0:
            self.database.executemany(
                "INSERT INTO block_tags (block_id, tag) VALUES (?, ?)",
                [(_block_id(row), CONSTITUTIONAL_TAG) for row in range(size)],
            )
        touched = size + np.flatnonzero(
            agent.reinforcement[size:count] != self._reinforcement[size:count]
        )
        self._update(np.concatenate((np.arange(size), touched)), step, now)
        if self.amendments:
            self._age_amendments(step - 1, now)
        self.database.commit()
        self._rows = count
        self._reinforcement[:count] = agent.reinforcement[:count]

    def _insert(self, first: int, last: int, step: int, now: datetime) -> None:
        """Write blocks as they were when learned; ``_update`` adds what happened since."""
        agent = self._agent
        dimension = agent.topic.shape[1]
        embeddings = agent.topic[first:last].astype(np.float32).tobytes()
        width = 4 * dimension
        ages = (step - agent.birth_step[first:last]).tolist()
        stamps = _stamps(now, ages, _ISO)
        flat: list[Any] = [None] * (_COLUMNS * (last - first))
        flat[0::_COLUMNS] = _block_ids(first, last)
        flat[1::_COLUMNS] = encode_topics(agent.topic[first:last])
        flat[2::_COLUMNS] = map(stamps.__getitem__, ages)
        flat[3::_COLUMNS] = self._used_hours(np.arange(first, last))
        flat[4::_COLUMNS] = (embeddings[i : i + width] for i in range(0, len(embeddings), width))
        for at in range(0, len(flat), _COLUMNS * _ROWS_PER_INSERT):
            group = flat[at : at + _COLUMNS * _ROWS_PER_INSERT]
            self.database.execute(
                _insert_sql(len(group) // _COLUMNS), [self._uses_per_learn, *group]
            )

    def _update(self, rows: NDArray[np.int64], step: int, now: datetime) -> None:
        """Write the constitution's state and age, and the state of the blocks used since."""
        agent = self._agent
        ages = (step - agent.birth_step[rows]).tolist()
        stamps = _stamps(now, ages, _ISO)
        self.database.executemany(
            "UPDATE blocks SET success_count = ?1, failure_count = ?2, "
            "confidence = ?1 / (?1 + ?2), outcome_evidence = ?1 + ?2 - 1.0, "
            "reinforcement_count = ?3, last_reinforced_at = ?4, created_at = ?5 WHERE id = ?6",
            zip(
                agent.alpha[rows].tolist(),
                agent.beta[rows].tolist(),
                agent.reinforcement[rows].astype(int).tolist(),
                self._used_hours(rows),
                map(stamps.__getitem__, ages),
                map(_block_id, rows.tolist()),
                strict=True,
            ),
        )

    def _age_amendments(self, day: int, now: datetime) -> None:
        """Move every audit row's stamps as far back as the simulation says."""
        accepted = [(day - a.day, a.id) for a in self.amendments]
        reverted = [
            (day - a.reverted_day, a.id) for a in self.amendments if a.reverted_day is not None
        ]
        for column, rows in (("timestamp", accepted), ("reverted_at", reverted)):
            stamps = _stamps(now, (days for days, _ in rows), _SQLITE)
            self.database.executemany(
                f"UPDATE block_amendments SET {column} = ? WHERE id = ?",
                [(stamps[days], amendment) for days, amendment in rows],
            )

    def _used_hours(self, rows: NDArray[np.int64]) -> list[float]:
        """Active hours at which blocks were last reinforced, in elfmem's strict order.

        The published model stamps all of a day's events with the day's end. elfmem asks for the
        newest, so events keep their order inside the day: they lie in its last four milliseconds.
        Without ties the answer does not depend on SQLite's choice of index.
        """
        agent = self._agent
        step = agent.used_step[rows]
        inside = (_EVENTS_A_DAY - agent.used_event[rows]) * _EVENT_HOURS
        hours = np.where(step > 0, step * self._hours_per_day - inside, 0.0)
        return cast(list[float], hours.tolist())

    # Reviews.

    def review(self, day: int) -> ReviewRecord:
        """Hold the review at the end of ``day`` and carry out the owner's decisions.

        Returns:
            What it did; also appended to ``reviews``.

        Raises:
            InvariantError: If elfmem breaks one of ADR 0004's promises.
        """
        step = day + 1
        self.sync(step)
        self._check_untouched(day)
        self._proposer.day = day
        before = self.database.total_changes
        digest = self._image() if self._digest else b""
        result = self._ask(self._proposer, self._config, step)
        if self.database.total_changes != before:
            self._violated("a review changes nothing", day, "rows were written")
        if self._digest and self._image() != digest:
            self._violated("a review changes nothing", day, "the database's image differs")
        explained = self._explain_review(result, step) if self._explain else {}
        accepted = 0
        for proposal in result.proposals:
            block = int(proposal.block_id)
            self._check_cooldown(block, day)
            if accepts(self._review, self._identity, day, block, proposal.drift_score):
                self._accept(proposal, day)
                accepted += 1
        record = ReviewRecord(
            day=day,
            insufficient_history=result.insufficient_history,
            reviewed=result.reviewed_count,
            skipped=result.skipped_count,
            proposals=len(result.proposals),
            failed=result.failed_proposal_count,
            accepted=accepted,
            **explained,
        )
        self.reviews.append(record)
        return record

    def would_call(self, config: "ReviewConfig", step: int) -> bool:
        """Whether elfmem, with other settings, would call the proposer on the tables as they are.

        Changes nothing; :meth:`sync` has to come first.
        """
        return bool(self._ask(EchoProposer(), config, step).proposals)

    def _ask(self, llm: object, config: "ReviewConfig", step: int) -> "ConstitutionalReviewResult":
        return drive(
            self._operations.review_constitutional(
                cast(Any, self.connection),
                cast(Any, llm),
                config,
                current_active_hours=step * self._hours_per_day,
            )
        )

    def _accept(self, proposal: Any, day: int) -> None:
        block = int(proposal.block_id)
        before = self._agent.topic[block].copy()
        result = drive(
            self._operations.accept_amendment(
                cast(Any, self.engine),
                self._embedding,
                self._frames,
                block_id=proposal.block_id,
                proposed_content=proposal.proposed_content,
                rationale=proposal.rationale,
                drift_score=proposal.drift_score,
                acceptor="user",
            )
        )
        audit = self.database.execute(
            "SELECT pre_content, post_content, reverted_at FROM block_amendments WHERE id = ?",
            (result.amendment_id,),
        ).fetchone()
        if audit != (self._texts[block], proposal.proposed_content, None):
            self._violated("every accept is audited with both texts", day, f"audit row {audit}")
        self._read_back(block, proposal.proposed_content, day)
        amendment = Amendment(
            id=result.amendment_id,
            day=day,
            block=block,
            drift_score=proposal.drift_score,
            align_before=self._alignment(before, day),
            align_after=self._alignment(self._agent.topic[block], day),
        )
        self.amendments.append(amendment)
        if regrets(self._review, self._identity, day, block):
            due = day + self._review.revert_after_days
            self._due.setdefault(due, []).append(amendment)

    def next_reversion(self) -> int | None:
        """Return the day of the next reversion that is due, or None."""
        return min(self._due, default=None)

    def next_stop(self, day: int) -> int:
        """Day before which a loop that is about to live ``day`` has to stop for the evening."""
        cadence = self._review.cadence_days
        review, due = cadence * (day // cadence + 1), self.next_reversion()
        return review if due is None else min(review, due + 1)

    def evening(self, day: int) -> None:
        """Do what is due at the end of ``day``: reversions, then perhaps a review.

        Raises:
            InvariantError: If elfmem breaks one of ADR 0004's promises.
        """
        self.revert_due(day)
        if (day + 1) % self._review.cadence_days == 0:
            self.review(day)

    def revert_due(self, day: int) -> None:
        """Carry out the reversions that are due at the end of ``day``.

        Raises:
            InvariantError: If elfmem deletes or fails to restore.
        """
        for amendment in self._due.pop(day, []):
            audit = self.database.execute(
                "SELECT pre_content FROM block_amendments WHERE id = ?", (amendment.id,)
            ).fetchone()
            if audit is None:
                self._violated("a revert flags and deletes nothing", day, "no audit row is left")
            drive(
                self._operations.revert_amendment(
                    cast(Any, self.engine),
                    self._embedding,
                    self._frames,
                    amendment_id=amendment.id,
                )
            )
            flagged = self.database.execute(
                "SELECT reverted_at IS NOT NULL FROM block_amendments WHERE id = ?",
                (amendment.id,),
            ).fetchone()
            if flagged != (1,):
                self._violated("a revert flags and deletes nothing", day, f"audit row {flagged}")
            self._read_back(amendment.block, audit[0], day)
            amendment.reverted_day = day

    def _read_back(self, block: int, expected: str, day: int) -> None:
        """Take the block's text from elfmem's table into the simulated agent."""
        row = self.database.execute(
            "SELECT content FROM blocks WHERE id = ?", (_block_id(block),)
        ).fetchone()
        if row != (expected,):
            self._violated("accept and revert store the text given", day, f"block {block}")
        self._texts[block] = expected
        self._agent.topic[block] = decode_topic(expected)

    def _alignment(self, topic: Vector, day: int) -> float:
        # An agent's topic does not lie together in memory, and BLAS would sum it in another order.
        topic = np.ascontiguousarray(topic)
        return float((topic @ self._agent.identity[day + 1] + 1.0) / 2.0)

    # Why a block was not proposed.

    def _explain_review(self, result: "ConstitutionalReviewResult", step: int) -> dict[str, Any]:
        """Ask elfmem again with its gates opened one after the other, last gate first."""
        operations = self._operations
        window = {
            "window_hours": self._config.window_hours,
            "min_reinforcement": self._config.min_reinforcement,
            "top_n": self._config.top_n,
            "current_active_hours": step * self._hours_per_day,
        }
        conn = cast(Any, self.connection)
        evidence = drive(operations.fetch_recent_reinforced_embeddings(conn, **window))
        if result.insufficient_history:
            return {"reasons": {}, "drift": None, "evidence_blocks": len(evidence)}
        opened: list[dict[str, Any]] = [
            {"max_proposals": self._size, "min_age_days": 0.0, "min_block_evidence": 0.0},
            {"max_proposals": self._size, "min_age_days": 0.0},
            {"max_proposals": self._size},
            {},
        ]
        passed = [
            len(self._ask(EchoProposer(), self._config.model_copy(update=gates), step).proposals)
            for gates in opened
        ]
        reached = [result.reviewed_count, *passed]
        reasons = {gate: reached[i] - reached[i + 1] for i, gate in enumerate(GATES)}
        reasons["cooldown"] = self._size - result.reviewed_count
        centroid = operations.recent_self_centroid(evidence)
        blocks = drive(operations.fetch_constitutional_blocks(conn))
        drift = tuple(
            operations.compute_drift(np.frombuffer(block["embedding"], np.float32), centroid)
            for block in cast(list[dict[str, Any]], blocks)
        )
        return {"reasons": reasons, "drift": drift, "evidence_blocks": len(evidence)}

    # ADR 0004's promises.

    def _image(self) -> bytes:
        return hashlib.sha256(self.database.serialize()).digest()

    def _check_untouched(self, day: int) -> None:
        stored = self.database.execute(
            "SELECT content FROM blocks WHERE id < ? ORDER BY id", (_block_id(self._size),)
        ).fetchall()
        if [text for (text,) in stored] != self._texts:
            self._violated("nothing is applied without an accept", day, "the constitution changed")

    def _check_cooldown(self, block: int, day: int) -> None:
        for amendment in self.amendments:
            age_hours = (day - amendment.day) * 24.0
            if (
                amendment.block == block
                and amendment.reverted_day is None
                and age_hours < self._config.cooldown_hours
            ):
                self._violated(
                    "no block is proposed within its cooldown",
                    day,
                    f"block {block} was amended on day {amendment.day}",
                )

    def _violated(self, promise: str, day: int, detail: str) -> None:
        scenario, arm, seed = self._identity
        raise InvariantError(
            promise, scenario=str(scenario), arm=str(arm), seed=int(seed), day=day, detail=detail
        )


def accepts(
    review: Review, identity: Sequence[str | int], day: int, block: int, drift_score: float
) -> bool:
    """Return whether the owner accepts a proposal; the same in both tiers.

    Args:
        review: The arm's settings.
        identity: Scenario, arm and seed.
        day: Day of the review.
        block: Row of the constitutional block.
        drift_score: elfmem's drift score of the proposal.
    """
    if drift_score <= review.accept_above_drift:
        return False
    return _happens(review.accept_probability, "acceptance", *identity, day, block)


def regrets(review: Review, identity: Sequence[str | int], day: int, block: int) -> bool:
    """Return whether the owner will revert an amendment; see :func:`accepts`."""
    return _happens(review.revert_probability, "reversion", *identity, day, block)


def _happens(probability: float, purpose: str, *identity: str | int) -> bool:
    if probability in (0.0, 1.0):  # no stream need be made to know
        return probability == 1.0
    return bool(generator(purpose, *identity).random() < probability)


def _stamps(now: datetime, days_ago: Iterable[int], template: str) -> dict[int, str]:
    """Return, for each number of days, the stamp of the same time of day that long ago."""
    today = now.toordinal()
    clock = template.format(now)
    return {days: date.fromordinal(today - days).isoformat() + clock for days in set(days_ago)}


_ISO = "T{:%H:%M:%S.%f}+00:00"
"""elfmem's form of ``created_at``."""

_SQLITE = " {:%H:%M:%S}"
"""SQLite's own form: the cooldown compares text, so an ISO ``T`` would break it."""
