"""A production agent and its days.

A day is one session. The agent reads its SELF frame, learns (first half of the active hours),
dreams until the inbox is empty, then queries; it closes with a rescore if one is due. Vitals are
taken, midnight passes, and the owner comes: reversions, then perhaps a review. Days without
learning and queries have no session, and so, unlike in the model, no active hours.
"""

import hashlib
import inspect
from asyncio import Runner
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elfmem_sim.arms.baseline import BASELINE
from elfmem_sim.errors import UserError
from elfmem_sim.fields import PRODUCTION_FIELDS
from elfmem_sim.production import vitals
from elfmem_sim.production.owner import Owner
from elfmem_sim.production.system import (
    digest_of,
    move_back,
    new_database,
    new_system,
    principles,
    set_active_hours,
)
from elfmem_sim.production.vitals import alignment
from elfmem_sim.production.world import probes_of, world_of
from elfmem_sim.review import (
    CONSTITUTIONAL_TAG,
    require_elfmem,
    review_config,
)
from elfmem_sim.scenario import Arm, Review, Scenario
from elfmem_sim.simulate import Trajectory
from elfmem_sim.standins import TopicAnalyst, WordedEmbedding
from elfmem_sim.streams import generator
from elfmem_sim.thin import ThinConnection, ThinEngine
from elfmem_sim.topics import Vector, encode_query, encode_topics

if TYPE_CHECKING:
    from elfmem.types import FrameResult

MOST_LOST = 0.02
"""Share of blocks lost to consolidation above which not retrieval is simulated but that."""


def check_production(scenario: Scenario, arm: Arm) -> None:
    """Check that the production tier can run this.

    Raises:
        UserError: If it cannot, or elfmem is missing or not supported.
    """
    require_elfmem()
    settings = scenario.production
    plain = arm.model_copy(
        update={"name": BASELINE.name, "description": BASELINE.description, "review": None}
    )
    if plain != BASELINE:
        raise UserError(
            arm.name,
            "baseline, review or an elfmem configuration, as elfmem has no other mechanism",
            "Choose one of them, or run the model tier.",
            "--arm",
        )
    if settings.dimension <= scenario.identity.dimension:
        raise UserError(
            settings.dimension,
            f"more than the {scenario.identity.dimension} dimensions of the self, for the wording",
            "Raise it, or lower identity.dimension.",
            "production.dimension",
        )
    if settings.principles and scenario.constitution.size != len(principles()):
        raise UserError(
            scenario.constitution.size,
            f"{len(principles())}, the number of elfmem's seed principles",
            "Change it, or set production.principles=false.",
            "constitution.size",
        )
    if arm.review is not None:
        review_config(arm.review)


def loss_note(share: float, where: str) -> list[str]:
    """Return a warning if consolidation took more than ``MOST_LOST`` for near-duplicates.

    Args:
        share: Blocks rejected, superseded or suppressed, of all that were learned.
        where: The cell or the run.
    """
    if share <= MOST_LOST:
        return []
    return [
        f"Warning: {where}: elfmem took {share:.1%} of what was learned for near-duplicates (more "
        f"than {MOST_LOST:.0%}). Raise production.wording or production.dimension."
    ]


class Life:
    """One agent and its days.

    Args:
        scenario: The world.
        arm: ``baseline`` or ``review``, perhaps with other settings.
        seed: The run's seed.
        daily: Measure every day.
        file: Path of a new database file for elfmem's ordinary engine, to hold the thin one
            against; without one the agent lives in memory, on the thin engine.

    Raises:
        UserError: If the tier cannot run the scenario or the arm.
    """

    def __init__(
        self, scenario: Scenario, arm: Arm, seed: int, *, daily: bool = False, file: str = ""
    ) -> None:
        check_production(scenario, arm)
        self.world = world_of(scenario, seed, daily=daily)
        self._scenario, self._settings = scenario, scenario.production
        self._arm, self._seed = arm, seed
        self._births: dict[str, int] = {}  # step at which each block was learned
        self._constitution: list[str] = []  # names of its blocks, in the order of birth
        self._last_rescore = 0
        self._shown = hashlib.sha256()
        known: dict[str, Vector] = {}
        if self._settings.principles:
            texts = (text.strip().lower() for text in principles())
            known = dict(zip(texts, self.world.constitution, strict=True))
        self._embedding = WordedEmbedding(self._settings.dimension, self._settings.wording, known)
        review, identity = arm.review or Review(), (scenario.name, arm.name, seed)
        self._llm = TopicAnalyst(review, identity, self._embedding.read)
        self.owner = Owner(review, identity, self.world, self._llm, self._embedding.read)
        # elfmem limits the LLM's time by asyncio; nothing else ever waits.
        self._runner = Runner()
        self.database = new_database(file)
        self._connection = ThinConnection(self.database, remember="" if file else "blocks")
        engine: Any = ThinEngine(self._connection)
        if file:
            from elfmem.db.engine import create_engine

            engine = self._runner.run(create_engine(file))
        self.system = self._on(engine)

    def _on(self, engine: Any) -> Any:
        return new_system(engine, self._llm, self._embedding, self._arm)

    # Days.

    def be_born(self) -> None:
        """Lay down constitution and corpus through the public API, before day 0.

        Evidence that the scenario gives to established blocks has no way into elfmem.
        """
        self._llm.self_topic = self.world.identity[0]
        self._runner.run(self._birth())
        set_active_hours(self.database, self.system.hours)

    async def _birth(self) -> None:
        async with self.system.session():
            if self._settings.principles:
                await self.system.setup(seed=True)
            else:
                for text in encode_topics(self.world.constitution):
                    await self.system.learn(text, tags=[CONSTITUTIONAL_TAG])
            rows = self.database.execute("SELECT id FROM blocks ORDER BY rowid").fetchall()
            self._constitution = [block for (block,) in rows]
            self._births = dict.fromkeys(self._constitution, 0)
            for text in encode_topics(self.world.corpus):
                await self._learn(text, 0)
            await self._drain()

    def live(self, day: int) -> None:
        """Live the active hours of ``day``, up to what the owner does at its end."""
        self._llm.self_topic = self.world.identity[day + 1]
        if not self.world.calendar.quiet[day]:
            self._runner.run(self._live(day))
            set_active_hours(self.database, self.system.hours)

    async def _live(self, day: int) -> None:
        settings, hours = self._settings, self._scenario.workload.hours_per_day
        morning = self.system.hours
        async with self.system.session():
            if settings.self_per_day > 0:
                await self._frame("self")
            texts = encode_topics(self.world.learned[day])
            for number, text in enumerate(texts):
                self.system.hours = morning + 0.5 * hours * (number + 1) / (len(texts) + 1)
                await self._learn(text, day + 1)
            self.system.hours = morning + 0.5 * hours
            await self._drain()
            frames = _interleaved(
                {
                    "attention": settings.attention_per_day,
                    "task": settings.task_per_day,
                    "self": settings.self_per_day - 1,
                }
            )
            for place, (name, number) in enumerate(frames):
                share = 0.5 + 0.5 * (place + 1) / (len(frames) + 1)
                self.system.hours = morning + hours * share
                await self._query(name, number, day)
            self.system.hours = morning + hours
            if 0 < settings.rescore_every_days <= day - self._last_rescore:
                await self.system.dream(rescore=True)
                self._last_rescore = day

    async def _learn(self, text: str, step: int) -> None:
        result = await self.system.learn(text)
        self._births[result.block_id] = step

    async def _drain(self) -> None:
        """Dream until the inbox is empty: from 0.19.2 on, a dream takes five blocks at most."""
        options = {}
        if "skip_contradictions" in inspect.signature(self.system.dream).parameters:
            # Before 0.20.0; the stand-in would find none in thousands of pairs.
            options["skip_contradictions"] = True
        while await self.system.dream(**options) is not None:
            pass

    async def _query(self, name: str, number: int, day: int) -> None:
        """Ask for a frame; an ATTENTION frame may be followed by an outcome on its first block."""
        if name == "self":
            await self._frame(name)
            return
        work, self_topic = self._scenario.workload, self.world.identity[day + 1]
        rng = generator("frame", self._scenario.name, self._seed, day, name, number)
        topic = self_topic + rng.normal(0.0, 1.0, self_topic.shape[0]) * work.query_spread
        happens, serves, flips = rng.random(3)
        answer = await self._frame(name, encode_query(topic / np.linalg.norm(topic)))
        if name != "attention" or happens >= work.outcome_rate or not answer.blocks:
            return
        first = answer.blocks[0]
        served = serves < alignment(self._embedding.read(first.content), self_topic)
        flipped = flips < self.world.calendar.noise[day]
        signal = 1.0 if served != flipped else 0.0
        await self.system.outcome([first.id], signal, source="simulation")

    async def _frame(self, name: str, query: str | None = None) -> "FrameResult":
        answer = cast("FrameResult", await self.system.frame(name, query))
        blocks = [(block.id, block.score) for block in answer.blocks]
        self._shown.update(repr((name, query, blocks, answer.text)).encode())
        return answer

    def evening(self, day: int) -> None:
        """Let midnight pass; then the owner does what is due at the end of ``day``.

        Raises:
            InvariantError: If elfmem does not list what was amended.
        """
        move_back(self.database)
        if self._arm.review is not None and self.owner.comes(day):
            self._runner.run(self._evening(day))
            set_active_hours(self.database, self.system.hours)

    async def _evening(self, day: int) -> None:
        async with self.system.session():
            await self.owner.decide(self.system, self._constitution, day)

    # What can be seen from outside.

    def measure(self, day: int) -> list[float]:
        """Return the vitals at the end of ``day``, in the order of ``PRODUCTION_FIELDS``.

        As in the model tier, with what is elfmem's own in its place: the answers are elfmem's
        ATTENTION frames to the model's own probe queries. Cosines are taken between topics, in the
        self's dimensions. What elfmem does not have is nan. The agent does not change: a second
        ``MemorySystem`` answers, on an engine that rolls every transaction back.

        ``const_alive`` counts the blocks of the constitution that are active and have the tag.
        ``self_frame_align`` is the mean alignment, (1 + cosine) / 2, of the SELF frame's blocks
        with the current self; ``self_frame_blocks`` and ``answer_blocks`` are blocks in a frame.
        ``rejected``, ``superseded``, ``suppressed`` (kept out of frames by a near-duplicate) and
        ``decayed`` are shares of all blocks ever learned. ``const_evidence`` is the constitution's
        mean evidence, alpha + beta; ``eligible_blocks`` have been used often and recently enough
        for a review, and ``centroid_age`` is the mean age, in days, of those it would judge by.
        """
        world, read = self.world, self._embedding.read
        blocks = vitals.active_blocks(self.database)
        topics = np.array([read(text) for text in blocks.texts])
        probes = probes_of(self._scenario, world, day)
        second = self._on(ThinEngine(self._connection, keep=False))
        second.hours = self.system.hours
        answers, frame = self._runner.run(vitals.preview(second, probes))
        oldest = day + 1 - self._scenario.measurement.recent_days
        young = {block: step > oldest for block, step in self._births.items()}
        origin = dict(zip(self._constitution, world.constitution, strict=True))
        return vitals.as_row(
            {
                "day": day,
                **vitals.measure_answers(blocks, topics, probes, answers, young),
                **vitals.measure_constitution(
                    blocks, topics, world.identity[day + 1], origin, frame
                ),
                **vitals.measure_evidence(blocks),
                **vitals.measure_consolidation(self.database),
                **vitals.measure_history(
                    self.database,
                    self.system.hours,
                    review_config(self._arm.review or Review()),
                    self._births,
                    day + 1,
                ),
            }
        )

    def digest(self) -> str:
        """Return a digest of all tables and of every frame that the agent was shown."""
        return hashlib.sha256(self._shown.digest() + digest_of(self.database)).hexdigest()

    def close(self) -> None:
        """Give everything back."""
        self._runner.run(self.system.close())
        self._runner.close()
        self._connection.close()


def _interleaved(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Return the day's frames, each kind spread evenly, with their number among their kind."""
    places = [
        ((number + 1) / (count + 1), name, number)
        for name, count in counts.items()
        for number in range(count)
    ]
    return [(name, number) for _, name, number in sorted(places)]


def live(
    scenario: Scenario, arm: Arm, seed: int, *, daily: bool = False, days: int | None = None
) -> Trajectory:
    """Run one production agent.

    Args:
        scenario: The world.
        arm: ``baseline`` or ``review``, perhaps with other settings.
        seed: Non-negative integer; the world is the model tier's at this seed.
        daily: Measure every day instead of the scenario's measuring days. Changes no other number.
        days: Live only so many days; the last one is then measured, too.

    Returns:
        The trajectory, with the columns of ``PRODUCTION_FIELDS`` and a digest.

    Raises:
        UserError: If the tier cannot run this.
        InvariantError: If elfmem breaks one of ADR 0004's promises.
    """
    horizon = scenario.horizon_days
    if days is not None and not 1 <= days <= horizon:
        raise UserError(days, f"a number from 1 to {horizon}, the horizon", "Change it.", "--days")
    life = Life(scenario, arm, seed, daily=daily)
    try:
        life.be_born()
        rows = []
        for day in range(days or horizon):
            life.live(day)
            if life.world.calendar.measured[day] or day + 1 == days:
                rows.append(life.measure(day))
            life.evening(day)
        return Trajectory(
            scenario=scenario.name,
            arm=arm.name,
            seed=seed,
            snapshots=np.array(rows),
            n_blocks=int(rows[-1][PRODUCTION_FIELDS.index("n_blocks")]),
            self_query_concentration=0.0,
            identity=life.world.identity,
            reviews=tuple(life.owner.reviews),
            amendments=tuple(life.owner.amendments),
            fields=PRODUCTION_FIELDS,
            digest=life.digest(),
            notes=tuple(_notes(rows[-1], scenario, arm, seed)),
        )
    finally:
        life.close()


def _notes(row: list[float], scenario: Scenario, arm: Arm, seed: int) -> list[str]:
    names = ("rejected", "superseded", "suppressed")
    share = sum(row[PRODUCTION_FIELDS.index(name)] for name in names)
    return loss_note(share, f"{scenario.name}, arm {arm.name}, seed {seed}")
