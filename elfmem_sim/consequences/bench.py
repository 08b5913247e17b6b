"""What the checks have in common: elfmem behind a seam, a state to try it on, and the verdict."""

import asyncio
import copy
import inspect
import logging
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

import elfmem_sim
from elfmem_sim.consequences.stub import DIMENSION, embedding
from elfmem_sim.production.system import move_back, set_active_hours
from elfmem_sim.review import CONSTITUTIONAL_TAG, require_elfmem
from elfmem_sim.scenario import Review
from elfmem_sim.standins import TopicAnalyst
from elfmem_sim.streams import generator
from elfmem_sim.topics import Vector, encode_topics

Surface = Literal["api", "cli", "mcp"]
Word = Literal["HELD", "BROKEN", "INCONCLUSIVE"]

PRINCIPLES, MEMORIES = 10, 24
HOURS, AGE_DAYS = 400.0, 120.0
"""Active hours and days since the state's blocks were learned: old enough to be amended, and all
that was used well inside the review's window."""

Tables = dict[str, list[str]]


@dataclass(frozen=True)
class Consequence:
    """What one check found.

    Attributes:
        name: The check's.
        statement: What is promised, in the decision record's terms.
        surface: Where it was tried: ``api``, ``cli`` or ``mcp``.
        elfmem: The release it was tried on.
        verdict: ``HELD``; ``BROKEN``; ``INCONCLUSIVE`` if it could not be tried.
        occasions: Comparisons made.
        evidence: One plain sentence: what was compared, and what was seen.
        finding: Where a known cause is described, if there is one: a file of ``results/findings``.
    """

    name: str
    statement: str
    surface: Surface
    elfmem: str
    verdict: Word
    occasions: int
    evidence: str
    finding: str = ""

    def plain(self) -> dict[str, Any]:
        """Return the record as JSON-ready data."""
        return asdict(self)


@dataclass
class Trial:
    """One check under way.

    Attributes:
        occasions: Comparisons made so far.
        faults: What was seen where it should not have been.
        undecided: Why the check cannot say, if it cannot.
    """

    occasions: int = 0
    faults: list[str] = field(default_factory=list)
    undecided: str = ""

    def expect(self, held: bool, otherwise: str) -> bool:
        """Count an occasion, and a fault unless it ``held``."""
        self.occasions += 1
        if not held:
            self.faults.append(otherwise)
        return held


Check = Callable[["Bench", Trial], "str | Coroutine[Any, Any, str]"]
"""Tries one consequence, and returns what was compared."""


@dataclass(frozen=True)
class Entry:
    """A check with its place in the report."""

    name: str
    statement: str
    surface: Surface
    check: Check
    finding: str = ""


CHECKS: dict[str, Entry] = {}


def consequence(
    name: str, statement: str, surface: Surface, finding: str = ""
) -> Callable[[Check], Check]:
    """Register a check under ``name``."""

    def register(check: Check) -> Check:
        CHECKS[name] = Entry(name, statement, surface, check, finding)
        return check

    return register


@dataclass(frozen=True)
class Product:
    """elfmem, as the checks reach it; a test puts a wrong one in its place.

    Attributes:
        system: The class behind the Python API, or None for elfmem's ``MemorySystem``.
        command: The command line.
        server: The MCP server, ``module:attribute``.
        path: Where else Python finds modules, in the processes that the checks start.
    """

    system: "type[Any] | None" = None
    command: tuple[str, ...] = (
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'elfmem'; from elfmem.cli import main; main()",
    )
    server: str = "elfmem.mcp:mcp"
    path: str = ""

    def environment(self, home: Path) -> Mapping[str, str]:
        """Return an environment that leads nowhere but to ``home``."""
        packages = [self.path, str(Path(elfmem_sim.__file__).parent.parent)]
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join(filter(None, packages)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENAI_API_KEY": "none",
            "FASTMCP_CHECK_FOR_UPDATES": "off",
            "FASTMCP_SHOW_SERVER_BANNER": "false",
            "TERM": "dumb",
        }


class Bench:
    """A place to try elfmem in: temporary files, and one lived-in state.

    Args:
        folder: An empty folder for whatever the checks need.
        product: elfmem, or a double.

    Attributes:
        reference: What the Python API's review of the state returned, once it was asked.
    """

    def __init__(self, folder: Path, product: Product | None = None) -> None:
        from elfmem.api import MemorySystem

        # elfmem logs each failed proposal; the checks provoke and count them.
        logging.getLogger("elfmem").addHandler(logging.NullHandler())
        self.folder = folder
        self.product = product or Product()
        self.elfmem = require_elfmem()
        self.system = self.product.system or MemorySystem
        self.reference: Any = None
        self._numbers = count(1)
        self._state = folder / "state.db"
        asyncio.run(self._live())

    def on(self, product: Product) -> "Bench":
        """Return a bench with the same state and another product."""
        other = copy.copy(self)
        other.product = product
        other.system = product.system or self.system
        return other

    def judge(self, entry: Entry) -> Consequence:
        """Try one consequence."""
        trial = Trial()
        compared = entry.check(self, trial)
        if not isinstance(compared, str):
            compared = asyncio.run(compared)
        verdict: Word = "HELD"
        evidence = compared
        if trial.faults:
            verdict = "BROKEN"
            seen = f"{len(trial.faults)} of {trial.occasions} failed: {trial.faults[0]}"
            evidence = f"{compared}; {seen}"
        elif trial.undecided:
            verdict, evidence = "INCONCLUSIVE", trial.undecided
        finding = entry.finding if verdict == "BROKEN" else ""
        return Consequence(
            entry.name,
            entry.statement,
            entry.surface,
            self.elfmem,
            verdict,
            trial.occasions,
            evidence,
            finding,
        )

    def state(self) -> Path:
        """Return a fresh copy of the state's database file, in a folder of its own."""
        folder = self.folder / f"{next(self._numbers):03d}"
        folder.mkdir()
        target = folder / "agent.db"
        with closing(sqlite3.connect(self._state)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
        return target

    @asynccontextmanager
    async def session(
        self, file: Path, llm: Any = None, review: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Any]:
        """Yield a ``MemorySystem`` in a session, on elfmem's own engine.

        Args:
            file: The database file, laid out by elfmem if it is new.
            llm: The LLM's stand-in.
            review: Changes to elfmem's ``ReviewConfig``.
        """
        from elfmem.config import ElfmemConfig
        from elfmem.db.engine import create_engine
        from elfmem.db.models import metadata
        from elfmem.db.queries import seed_builtin_data

        engine = await create_engine(str(file))
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
            await seed_builtin_data(connection)
        system = self.system(
            engine=engine,
            llm_service=cast(Any, llm or Analyst()),
            embedding_service=embedding(),
            config=ElfmemConfig.model_validate({"review": dict(review or {})}),
        )
        try:
            async with system.session():
                yield system
        finally:
            await system.close()

    async def _live(self) -> None:
        """Build the state through the public API: principles and memories, used and old."""
        async with self.session(self._state) as system:
            for text in principles():
                await system.learn(text, tags=[CONSTITUTIONAL_TAG])
            for text in memories():
                await system.learn(text)
            await drain(system)
            found = blocks(self._state)
            both = {}
            if "allow_constitutional" in inspect.signature(system.outcome).parameters:
                both["allow_constitutional"] = True  # refused by default from 0.20.0 on
            for _ in range(3):
                await system.outcome(list(found), 1.0, source="check", **both)
        with closing(sqlite3.connect(self._state)) as database:
            database.execute("UPDATE blocks SET last_reinforced_at = ? - rowid / 64.0", (HOURS,))
            move_back(database, AGE_DAYS)
            set_active_hours(database, HOURS)


class Analyst(TopicAnalyst):
    """The LLM's stand-in: moves a principle half of the way to the evidence.

    Args:
        fails_on: Texts whose amendment it fails to propose.

    Attributes:
        asked: Texts that it was asked to amend.
    """

    def __init__(self, fails_on: tuple[str, ...] = ()) -> None:
        super().__init__(Review(proposer_move=0.5), ("consequences",))
        self.self_topic = centre()
        self.fails_on = fails_on
        self.asked: list[str] = []

    async def propose_amendment(self, *, block_content: str, **rest: Any) -> dict[str, str]:
        """Return ``proposed_content`` and ``rationale``.

        Raises:
            ProviderError: On the texts that were named.
        """
        self.asked.append(block_content)
        if block_content in self.fails_on:
            raise ProviderError("the provider does not answer")
        return await super().propose_amendment(block_content=block_content, **rest)


class ProviderError(Exception):
    """What a failing provider raises."""


def centre() -> Vector:
    """Return the direction that the memories surround."""
    return cast(Vector, np.eye(DIMENSION)[0])


def principles() -> list[str]:
    """Return the constitution: from nearly in line with the memories to nearly opposed."""
    axes = np.eye(DIMENSION)
    angles = np.linspace(0.1, 0.95, PRINCIPLES) * np.pi
    sides = [1 + i % (DIMENSION - 1) for i in range(PRINCIPLES)]
    return encode_topics(np.cos(angles)[:, None] * axes[0] + np.sin(angles)[:, None] * axes[sides])


def memories() -> list[str]:
    """Return the ordinary blocks' texts."""
    topics = centre() + 0.3 * generator("consequences").normal(0.0, 1.0, (MEMORIES, DIMENSION))
    return encode_topics(topics / np.linalg.norm(topics, axis=1, keepdims=True))


async def drain(system: Any) -> None:
    """Dream until the inbox is empty: from 0.19.2 on, a dream takes five blocks at most."""
    options = {}
    if "skip_contradictions" in inspect.signature(system.dream).parameters:
        options["skip_contradictions"] = True  # before 0.20.0; the stand-in would find none
    while await system.dream(**options) is not None:
        pass


def rows_of(file: Path, query: str, *values: Any) -> list[Any]:
    """Return what a connection of our own reads from a database file."""
    with closing(sqlite3.connect(file)) as database:
        return database.execute(query, values).fetchall()


def change(file: Path, statement: str, *values: Any) -> None:
    """Change a database file by a connection of our own."""
    with closing(sqlite3.connect(file)) as database:
        database.execute(statement, values)
        database.commit()


def blocks(file: Path, tag: str = "") -> dict[str, str]:
    """Return the texts of the active blocks by id, oldest first, perhaps only those with a tag."""
    where = "AND id IN (SELECT block_id FROM block_tags WHERE tag = ?)" if tag else ""
    return dict(
        rows_of(
            file,
            f"SELECT id, content FROM blocks WHERE status = 'active' {where} ORDER BY rowid",
            *([tag] if tag else []),
        )
    )


def constitution(file: Path) -> dict[str, str]:
    """Return the constitutional blocks' texts by id."""
    return blocks(file, CONSTITUTIONAL_TAG)


def audit(file: Path) -> list[dict[str, Any]]:
    """Return the audit table, oldest row first."""
    with closing(sqlite3.connect(file)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM block_amendments ORDER BY id").fetchall()
    return [dict(row) for row in rows]


def tables(file: Path) -> Tables:
    """Return every row of every table, to the last byte."""
    with closing(sqlite3.connect(file)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        return {
            name: sorted(map(repr, database.execute(f"SELECT * FROM {name}"))) for (name,) in names
        }


def changed(before: Tables, after: Tables) -> list[str]:
    """Return the names of the tables that differ."""
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
