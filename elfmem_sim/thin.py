"""elfmem on a thin connection: its statements go straight to ``sqlite3``, without an event loop.

elfmem's operations take an ``AsyncConnection`` or an ``AsyncEngine`` and use a small part of them.
The classes here offer that part over one synchronous connection, at a fraction of the cost; a test
holds every result against SQLAlchemy's own asynchronous engine.
"""

import sqlite3
from collections.abc import Coroutine, Mapping
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    coroutine.close()
    raise RuntimeError("elfmem waited for something that is not the database")


class _Rows:
    """The part of SQLAlchemy's result interface that elfmem uses, over a ``sqlite3`` cursor."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    def first(self) -> Any:
        row = self._cursor.fetchone()
        self._cursor.close()
        return row

    def mappings(self) -> "_Mappings":
        self._cursor.row_factory = sqlite3.Row
        return _Mappings(self._cursor.fetchall())


class _Mappings(list[Any]):
    def first(self) -> Any:
        return self[0] if self else None


class ThinConnection:
    """Stands where elfmem expects an ``AsyncConnection``: textual SQL goes straight to sqlite3.

    Core statements go through SQLAlchemy's own synchronous engine on the same connection; they
    occur only in accept and revert.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._core: Any = None

    async def execute(self, statement: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """Execute one of elfmem's statements."""
        from sqlalchemy import TextClause

        if isinstance(statement, TextClause):
            return _Rows(self.database.execute(statement.text, parameters or {}))
        if self._core is None:
            self._core = _core_connection(self.database)
        return self._core.execute(statement, parameters)

    def finish(self, *, commit: bool) -> None:
        """End the transaction."""
        if self._core is not None:
            (self._core.commit if commit else self._core.rollback)()
        (self.database.commit if commit else self.database.rollback)()


_handover: list[sqlite3.Connection] = []


@cache
def _core_engine() -> Any:
    """One engine for all agents, because SQLAlchemy caches compiled statements per engine."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    return create_engine("sqlite://", creator=_handover.pop, poolclass=NullPool)


def _core_connection(database: sqlite3.Connection) -> Any:
    _handover.append(database)
    return _core_engine().connect()


class ThinEngine:
    """Stands where elfmem expects an ``AsyncEngine``: hands out the one connection."""

    def __init__(self, connection: ThinConnection) -> None:
        self._connection = connection

    def connect(self) -> "_Transaction":
        """Return a context that rolls back what it did not commit."""
        return _Transaction(self._connection, commit=False)

    def begin(self) -> "_Transaction":
        """Return a context that commits unless it fails."""
        return _Transaction(self._connection, commit=True)


class _Transaction:
    def __init__(self, connection: ThinConnection, *, commit: bool) -> None:
        self._connection = connection
        self._commit = commit

    async def __aenter__(self) -> ThinConnection:
        return self._connection

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.finish(commit=self._commit and kind is None)
