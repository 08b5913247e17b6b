"""What ADR 0004 promises of the schema's change: version 4 to 5, for callers who never review."""

import asyncio
import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from elfmem_sim.consequences.bench import (
    MEMORIES,
    Analyst,
    Bench,
    Tables,
    Trial,
    changed,
    consequence,
    drain,
    memories,
    principles,
    rows_of,
    tables,
)
from elfmem_sim.consequences.stub import DIMENSION
from elfmem_sim.production.system import move_back, new_database, set_active_hours
from elfmem_sim.review import CONSTITUTIONAL_TAG
from elfmem_sim.streams import generator
from elfmem_sim.thin import ThinConnection, ThinEngine
from elfmem_sim.topics import encode_query, encode_topic

LATER = (
    ("blocks", "superseded_by"),
    ("blocks", "pinned"),
    ("blocks", "cue"),
    ("blocks", "volatility_class"),
    ("edges", "declared_by"),
    ("contradictions", "kind"),
    ("contradictions", "cue_similarity"),
)
"""Columns that came after version 4, elfmem 0.17.0's; version 5 brought the audit table."""

_TIMES, _EVERY, _HOURS = 26, 14, 56.0  # a year of fortnights, at 4 active hours a day


def as_version_4(file: Path) -> None:
    """Take out of a database what version 5 and its successors put in."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE IF EXISTS block_amendments")
        for table, column in LATER:
            if column in columns_of(database, table):
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        database.execute("UPDATE system_config SET value = '4' WHERE key = 'schema_version'")
        database.commit()


def columns_of(database: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def _content(file: Path, unread: frozenset[str] = frozenset()) -> Tables:
    """Return every row, but for what came after version 4 and what elfmem notes of migrations.

    Args:
        file: The database.
        unread: Columns, or keys of ``system_config``, that are left out besides.
    """
    with closing(sqlite3.connect(file)) as database:
        found = {}
        for name in tables(file).keys() - {"block_amendments"}:
            # By name, because a column that was added again stands at the end.
            shown = [
                column
                for column in sorted(columns_of(database, name))
                if (name, column) not in LATER and not unread & {column, f"{name}.{column}"}
            ]
            where = f"WHERE key NOT IN {_NOTED + tuple(unread)}" if name == "system_config" else ""
            rows = database.execute(f"SELECT {', '.join(shown)} FROM {name} {where}").fetchall()
            found[name] = sorted(map(repr, rows))
        return found


_NOTED = ("schema_version", "last_backup_path", "last_backup_at")
_UNEQUAL = frozenset(
    {"created_at", "last_scored_at", "started_at", "ended_at", "last_consolidated_at",
     "last_session_id", "sessions.id", "block_outcomes.id"}
)  # fmt: skip
"""What two equal lives do not share: stamps of the wall clock, and random names."""


@consequence(
    "migration.idempotent",
    "New schema: block_amendments audit table, migration v4 to v5, idempotent.",
    "api",
)
def idempotent(bench: Bench, trial: Trial) -> str:
    """Migrate a version 4 database, again, and again from the start."""
    file = bench.state()
    open_by_config(bench, file)  # notes which embedding model the blocks have, for one
    native = _schema(file)
    as_version_4(file)
    content = _content(file)
    open_by_config(bench, file)
    trial.expect(_version(file) >= 5, f"schema version {_version(file)}")
    trial.expect(_schema(file) == native, "the audit table is not laid out as in a new database")
    trial.expect(rows_of(file, "SELECT * FROM block_amendments") == [], "amendments from nowhere")
    lost = changed(content, _content(file))
    trial.expect(not lost, f"rows of {', '.join(lost)} differ")
    with closing(sqlite3.connect(file)) as database:
        block = database.execute("SELECT id FROM blocks").fetchone()[0]
        database.execute(
            "INSERT INTO block_amendments (block_id, pre_content, post_content, drift_score, "
            "acceptor) VALUES (?, 'a', 'b', 0.5, 'user')",
            (block,),
        )
        database.commit()
    for version in (None, 4):
        if version is not None:
            with closing(sqlite3.connect(file)) as database:
                database.execute(
                    "UPDATE system_config SET value = ? WHERE key = 'schema_version'", (version,)
                )
                database.commit()
        before, final = tables(file), _version(file)
        open_by_config(bench, file)
        after = tables(file)
        if version is None:
            trial.expect(not changed(before, after), "opening a current database changed rows")
        else:
            trial.expect(_version(file) >= 5, f"schema version {final} stays")
            moved = set(changed(before, after)) - {"system_config"}
            trial.expect(not moved, f"migrating again changed {', '.join(sorted(moved))}")
    return "schema and every row after migrating once, opening again, and migrating again"


def open_by_config(bench: Bench, file: Path) -> None:
    """Open and close a database as an agent starts, by ``from_config``."""
    from elfmem.config import ElfmemConfig

    async def start() -> None:
        system = await bench.system.from_config(str(file), ElfmemConfig())
        await system.close()

    asyncio.run(start())


def _schema(file: Path) -> list[Any]:
    return rows_of(file, "SELECT type, name, sql FROM sqlite_master "
                   "WHERE tbl_name = 'block_amendments' ORDER BY name")  # fmt: skip


def _version(file: Path) -> int:
    rows = rows_of(file, "SELECT value FROM system_config WHERE key = 'schema_version'")
    return int(rows[0][0]) if rows else 1


@consequence(
    "migration.unchanged",
    "No behaviour change for callers that never use the new API.",
    "api",
)
def unchanged(bench: Bench, trial: Trial) -> str:
    """Live the same year with the audit table, without it, and after migrating."""
    folder = bench.state().parent
    native = folder / "native.db"
    new_database(str(native)).close()
    open_by_config(bench, native)
    without, migrated = folder / "without.db", folder / "migrated.db"
    shutil.copy(native, without)
    shutil.copy(native, migrated)
    with closing(sqlite3.connect(without)) as database:
        database.execute("DROP TABLE block_amendments")
        database.commit()
    as_version_4(migrated)
    open_by_config(bench, migrated)
    lives = [live(bench, file) for file in (native, without, migrated)]
    for name, life in zip(("without the table", "after migrating"), lives[1:], strict=True):
        frames = sum(a != b for a, b in zip(life[0], lives[0][0], strict=True))
        trial.expect(frames == 0, f"{frames} of {len(life[0])} frames differ {name}")
        trial.expect(life[1] == lives[0][1], f"{changed(life[1], lives[0][1])} differ {name}")
    return (
        f"{len(lives[0][0])} frames and the final tables of one year, with the table, without it, "
        "and after migrating from version 4"
    )


def live(bench: Bench, file: Path) -> tuple[list[str], Tables]:
    """Live a year of fortnights: learn, dream, ask, hear outcomes, curate; never review.

    Returns:
        A digest of each frame, and the tables at the end, but for the audit table.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        with closing(sqlite3.connect(file)) as stored:
            stored.backup(database)
        connection = ThinConnection(database)
        system = _clocked(bench.system, ThinEngine(connection))
        frames = asyncio.run(_year(system, database))
        with closing(sqlite3.connect(file)) as stored:
            database.backup(stored)
    return frames, _content(file, _UNEQUAL)


def _clocked(base: type[Any], engine: Any) -> Any:
    """Return a system whose active clock is told the time, so that two lives can be equal."""
    from elfmem.config import ElfmemConfig

    from elfmem_sim.consequences.stub import embedding

    class Clocked(base):  # type: ignore[misc]
        hours = 0.0

        def _current_active_hours(self) -> float:
            return self.hours

    return Clocked(
        engine=engine,
        llm_service=Analyst(),
        embedding_service=embedding(),
        config=ElfmemConfig(),
    )


async def _year(system: Any, database: sqlite3.Connection) -> list[str]:
    shown = []
    rng = generator("consequences", "year")
    has_table = "block_amendments" in {
        name for (name,) in database.execute("SELECT name FROM sqlite_master")
    }
    for time in range(_TIMES):
        async with system.session():
            if time == 0:
                for text in principles():
                    await system.learn(text, tags=[CONSTITUTIONAL_TAG])
                for text in memories()[: MEMORIES // 2]:
                    await system.learn(text)
            for topic in rng.normal(0.0, 1.0, (2, DIMENSION)):
                await system.learn(encode_topic(topic))
            await drain(system)
            for name in ("self", "attention", "task"):
                topic = rng.normal(0.0, 1.0, DIMENSION)
                frame = await system.frame(name, None if name == "self" else encode_query(topic))
                ids = [block.id for block in frame.blocks]
                shown.append(hashlib.sha256(repr((ids, frame.text)).encode()).hexdigest())
                if name == "attention" and ids:
                    await system.outcome(ids[:1], float(rng.random()), source="check")
            if time % 4 == 3:
                await system.dream(rescore=True)
            await system.curate()
            system.hours += _HOURS
        set_active_hours(database, system.hours)
        _age(database, has_table)
    return shown


def _age(database: sqlite3.Connection, has_table: bool) -> None:
    """Move the past back by a fortnight; without the audit table, lend one for the moment."""
    if not has_table:
        database.execute("CREATE TEMP TABLE block_amendments (timestamp, reverted_at)")
    move_back(database, _EVERY)
    if not has_table:
        database.execute("DROP TABLE temp.block_amendments")
        database.commit()
