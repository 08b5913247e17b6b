"""elfmem for the production tier: its database, its ``MemorySystem``, and both of its clocks.

Active hours come from a subclass of ``MemorySystem`` that is told the time. The wall clock advances
by moving the past back: every stamp is made older. The seconds that a simulation really takes come
on top; with limits that are whole days, they never carry an age over one that it had not reached.
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from elfmem_sim.review import review_config
from elfmem_sim.scenario import Arm
from elfmem_sim.standins import TopicAnalyst, WordedEmbedding
from elfmem_sim.thin import ThinConnection, drive

if TYPE_CHECKING:
    from elfmem.api import MemorySystem


@cache
def principles() -> tuple[str, ...]:
    """Return the texts of elfmem's own seed, in the order in which ``setup`` lays them down."""
    from elfmem.seed import CONSTITUTIONAL_SEED

    return tuple(str(block["content"]) for block in CONSTITUTIONAL_SEED)


@cache
def _template() -> bytes:
    """The image of a database as elfmem lays it out for a new instance."""
    from elfmem.db.migrate import ensure_schema_current
    from elfmem.db.models import metadata
    from elfmem.db.queries import seed_builtin_data
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    logging.getLogger("elfmem").addHandler(logging.NullHandler())
    database = sqlite3.connect(":memory:", check_same_thread=False)
    engine = create_engine("sqlite://", creator=lambda: database, poolclass=StaticPool)
    metadata.create_all(engine)
    connection = cast(Any, ThinConnection(database))
    drive(seed_builtin_data(connection))
    drive(ensure_schema_current(connection))
    connection.finish(commit=True)
    return database.serialize()


def new_database(file: str = "") -> sqlite3.Connection:
    """Return a newborn instance's database, in memory unless ``file`` names a new file."""
    template = sqlite3.connect(":memory:")
    template.deserialize(_template())
    database = sqlite3.connect(file or ":memory:")
    template.backup(database)
    template.close()
    database.execute("PRAGMA foreign_keys = ON")
    return database


@cache
def _clocked() -> "type[MemorySystem]":
    """``MemorySystem`` with a clock that is told the time."""
    from elfmem.api import MemorySystem

    class Clocked(MemorySystem):
        hours = 0.0

        def _current_active_hours(self) -> float:
            # Outside a session elfmem's own clock stands at 0, and every stamp would be wrong.
            if self._session_id is None:
                raise RuntimeError("elfmem was used outside a session")
            return self.hours

    return Clocked


def new_system(engine: Any, llm: TopicAnalyst, embedding: WordedEmbedding, arm: Arm) -> Any:
    """Return a ``MemorySystem`` by its documented constructor, with elfmem's defaults.

    Its attribute ``hours`` is the active clock.

    Args:
        engine: elfmem's own engine or a :class:`elfmem_sim.thin.ThinEngine`.
        llm: The LLM's stand-in.
        embedding: The embedding model's stand-in.
        arm: Its review section, if it has one, changes elfmem's ``ReviewConfig``.
    """
    from elfmem.config import ElfmemConfig

    changes = {} if arm.review is None else {"review": review_config(arm.review)}
    return _clocked()(
        engine=engine,
        llm_service=cast(Any, llm),
        embedding_service=embedding,
        config=ElfmemConfig(**cast(Any, changes)),
    )


def set_active_hours(database: sqlite3.Connection, hours: float) -> None:
    """Set the stored clock, to which elfmem added the seconds that the session really took."""
    database.execute(
        "UPDATE system_config SET value = ? WHERE key = 'total_active_hours'", (str(hours),)
    )
    database.commit()


def move_back(database: sqlite3.Connection, days: float = 1.0) -> None:
    """Make everything older on the wall clock, each stamp in elfmem's own form.

    The cooldown compares text in SQLite's form: an ISO ``T`` in an amendment would break it.
    """
    for table, columns, form in (
        ("blocks", ("created_at", "last_scored_at"), "%Y-%m-%dT%H:%M:%f+00:00"),
        ("block_amendments", ("timestamp", "reverted_at"), "%Y-%m-%d %H:%M:%S"),
    ):
        changes = (f"{c} = strftime('{form}', {c}, '-{days:f} days')" for c in columns)
        database.execute(f"UPDATE {table} SET {', '.join(changes)}")
    database.commit()


def digest_of(database: sqlite3.Connection) -> bytes:
    """Return a digest of all that two runs can share.

    Left out are random names of sessions and of outcome rows, and wall-clock stamps, of which only
    the absence counts.
    """
    digest = hashlib.sha256()
    for table, columns in _comparable(database):
        rows = database.execute(f"SELECT {columns} FROM {table}").fetchall()
        digest.update(repr((table, sorted(map(repr, rows)))).encode())
    return digest.digest()


_STAMPS = frozenset(
    {"created_at", "last_scored_at", "timestamp", "reverted_at", "started_at", "ended_at"}
)
_RANDOM = frozenset({("block_outcomes", "id"), ("sessions", "id"), ("blocks", "last_session_id")})
_WALL_CLOCK_KEYS = "('last_consolidated_at', 'last_backup_at')"


def _comparable(database: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Yield each table, with a condition if it needs one, and the columns to compare."""
    names = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "ORDER BY name"
    ).fetchall()
    for (table,) in names:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        shown = [
            f"{name} IS NULL" if name in _STAMPS else name
            for name in columns
            if (table, name) not in _RANDOM
        ]
        where = f" WHERE key NOT IN {_WALL_CLOCK_KEYS}" if table == "system_config" else ""
        yield table + where, ", ".join(shown)
