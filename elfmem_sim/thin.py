"""elfmem on a thin connection: its statements go straight to ``sqlite3``, without an event loop.

elfmem's operations take an ``AsyncConnection`` or an ``AsyncEngine`` and use a small part of them.
The classes here offer that part over one synchronous connection, at a fraction of the cost; tests
hold every result against SQLAlchemy's own asynchronous engine.
"""

import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import cache
from itertools import repeat
from typing import Any, TypeVar, cast

T = TypeVar("T")
Processor = Callable[[Any], Any]


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    coroutine.close()
    raise RuntimeError("elfmem waited for something that is not the database")


class _Rows:
    """The part of SQLAlchemy's result interface that elfmem uses, over a ``sqlite3`` cursor.

    Args:
        cursor: An executed cursor.
        processors: Conversions of the columns that need one, by position.
    """

    def __init__(
        self, cursor: sqlite3.Cursor, processors: tuple[tuple[int, Processor], ...] = ()
    ) -> None:
        self._cursor = cursor
        self._processors = processors

    def fetchall(self) -> list[Any]:
        rows = self._cursor.fetchall()
        return [self._processed(row) for row in rows] if self._processors else rows

    all = fetchall

    def __iter__(self) -> Iterator[Any]:
        return map(self._processed, self._cursor) if self._processors else self._cursor

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return row if row is None else self._processed(row)

    def first(self) -> Any:
        row = self.fetchone()
        self._cursor.close()
        return row

    def scalar(self) -> Any:
        row = self.first()
        return None if row is None else row[0]

    def mappings(self) -> "_Mappings":
        names = [column[0] for column in self._cursor.description]
        # Row by row: a whole table at once would leave the processor's cache.
        return _Mappings(map(dict, map(zip, repeat(names), self)))

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def _processed(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, processor in self._processors:
            values[place] = processor(values[place])
        return tuple(values)


class _Mappings:
    def __init__(self, rows: Iterator[dict[str, Any]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._rows

    def all(self) -> list[dict[str, Any]]:
        return list(self._rows)

    def first(self) -> dict[str, Any] | None:
        return next(self._rows, None)


class _Known:
    """Rows of one table that were read before: elfmem reads all blocks again and again.

    Temporary triggers, which are part of no database, note what is written to the table. A query
    for whole rows then asks for their numbers, and reads only the rows that are not known.
    """

    def __init__(self, database: sqlite3.Connection, table: str) -> None:
        self._database = database
        self._table = table
        self._rows: dict[int, dict[str, Any]] = {}
        self._read: set[int] = set()  # after a change in this transaction: wrong if rolled back
        self._changes = -1
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        indices = [row[1] for row in database.execute(f"PRAGMA index_list({table})")]
        indexed = {row[2] for i in indices for row in database.execute(f"PRAGMA index_info({i})")}
        # Beside the number a column that is in no index: SQLite would else be content with an
        # index, and its order.
        other = next(column for column in reversed(columns) if column not in indexed)
        self.numbers = f"SELECT {table}.rowid, {table}.{other}"
        database.execute(f"CREATE TEMP TABLE touched_{table} (id INTEGER PRIMARY KEY)")
        for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
            database.execute(
                f"CREATE TEMP TRIGGER touch_{table}_{event} AFTER {event} ON main.{table} BEGIN "
                f"INSERT OR IGNORE INTO touched_{table} VALUES ({row}.rowid); END"
            )

    def find(self, sql: str, parameters: Mapping[str, Any]) -> "_Mappings":
        """Return the rows that ``sql``, which asks for their numbers, finds."""
        found = [number for number, _ in self._database.execute(sql, parameters)]
        changed = self._database.in_transaction
        self._forget()
        unknown = [number for number in found if number not in self._rows]
        if unknown:
            cursor = self._database.execute(
                f"SELECT rowid, * FROM {self._table} "
                "WHERE rowid IN (SELECT value FROM json_each(?))",
                (f"[{','.join(map(str, unknown))}]",),
            )
            names = [column[0] for column in cursor.description[1:]]
            self._rows.update((row[0], dict(zip(names, row[1:]))) for row in cursor)  # noqa: B905
            if changed:
                self._read.update(unknown)
        return _Mappings(map(self._rows.__getitem__, found))

    def _forget(self) -> None:
        """Drop the rows written to since the last time."""
        if self._database.total_changes == self._changes:
            return
        for (number,) in self._database.execute(f"SELECT id FROM touched_{self._table}"):
            self._rows.pop(number, None)
        self._database.execute(f"DELETE FROM touched_{self._table}")
        self._changes = self._database.total_changes

    def finish(self, *, commit: bool) -> None:
        """Take note of the transaction's end."""
        if not commit:
            for number in self._read:
                self._rows.pop(number, None)
            self._changes = -1
        self._read.clear()


class _KnownRows:
    """A result of known rows; elfmem takes whole rows as mappings only."""

    def __init__(self, rows: "_Mappings") -> None:
        self._rows = rows

    def mappings(self) -> "_Mappings":
        return self._rows


class ThinConnection:
    """Stands where elfmem expects an ``AsyncConnection``: statements go straight to sqlite3.

    Core statements are compiled once for each form that they take. The few that a plan cannot
    represent go through SQLAlchemy's own synchronous engine on the same connection.

    Args:
        database: The connection. Nobody else writes to the database.
        remember: A table whose rows are kept at hand, for an agent that lives on it.
    """

    def __init__(self, database: sqlite3.Connection, *, remember: str = "") -> None:
        self.database = database
        self._core: Any = None
        self._known = _Known(database, remember) if remember else None
        self._remembered = remember

    async def execute(self, statement: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """Execute one of elfmem's statements."""
        from sqlalchemy import TextClause

        if isinstance(statement, TextClause):
            return _Rows(self._run(statement.text, parameters or {}))
        plan, binds = (None, ()) if parameters else _planned(statement)
        if plan is not None and self._known is not None and plan.table == self._remembered:
            return _KnownRows(self._known.find(*plan.filled(binds, self._known.numbers)))
        if plan is not None:
            return _Rows(self._run(*plan.filled(binds)), plan.processors)
        if self._core is None:
            self._core = _core_connection(self.database)
        return self._core.execute(statement, parameters)

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
        try:
            return self.database.execute(sql, parameters)
        except sqlite3.Error as error:
            # elfmem forgives some errors of the database, by SQLAlchemy's name for them.
            from sqlalchemy import exc

            kind = getattr(exc, type(error).__name__, exc.DBAPIError)
            raise kind(sql, cast(Any, parameters), error) from error

    def finish(self, *, commit: bool) -> None:
        """End the transaction."""
        if self._known is not None:
            self._known.finish(commit=commit)
        if self._core is not None:
            (self._core.commit if commit else self._core.rollback)()
        (self.database.commit if commit else self.database.rollback)()

    def close(self) -> None:
        """Close the database."""
        if self._core is not None:
            self._core.close()
        self.database.close()


class _Plan:
    """A Core statement's SQL, with the places of its values, for all statements of its form."""

    def __init__(self, statement: Any, binds: Any) -> None:
        from sqlalchemy.dialects import sqlite

        dialect = sqlite.dialect(paramstyle="named")
        compiled = statement.compile(dialect=dialect)
        place = {bind.key: i for i, bind in enumerate(binds)}
        self.constants: dict[str, Any] = {}
        self.values: list[tuple[str, int, Processor | None]] = []
        self.lists: list[tuple[str, str, int, Processor | None]] = []
        prefetched = {column.key: column.default.arg for column in compiled.insert_prefetch}
        for bind, name in compiled.bind_names.items():
            processor = bind.type.dialect_impl(dialect).bind_processor(dialect)
            if bind.expanding:
                self.lists.append((name, f"__[POSTCOMPILE_{name}]", place[bind.key], processor))
            elif bind.key in place:
                self.values.append((name, place[bind.key], processor))
            else:  # not the statement's but the compiler's: a default, the offset of a limit
                self.constants[name] = prefetched.get(bind.key, bind.effective_value)
        self.sql = compiled.string
        self.processors: tuple[tuple[int, Processor], ...] = ()
        if statement.is_select:
            found = (
                column.type.dialect_impl(dialect).result_processor(dialect, None)
                for column in statement.selected_columns
            )
            self.processors = tuple((i, p) for i, p in enumerate(found) if p is not None)
        self.table = self._whole_rows_of(statement)
        self._from = self.sql[self.sql.index("\nFROM ") :] if self.table else ""

    def _whole_rows_of(self, statement: Any) -> str:
        """Return the table of which the statement selects some rows as they are, if it does."""
        if not statement.is_select or self.processors or statement._distinct:
            return ""
        tables = statement.get_final_froms()
        if len(tables) != 1 or list(statement.selected_columns) != list(tables[0].c):
            return ""
        return str(tables[0].name)

    def filled(self, binds: Any, columns: str = "") -> tuple[str, dict[str, Any]]:
        """Return SQL and parameters for a statement with these values.

        Args:
            binds: The values.
            columns: ``SELECT`` and what to ask for, in place of the statement's whole rows.
        """
        sql = columns + self._from if columns else self.sql
        parameters = dict(self.constants)
        for name, place, processor in self.values:
            value = binds[place].effective_value
            parameters[name] = value if processor is None else processor(value)
        for name, mark, place, processor in self.lists:
            values = binds[place].effective_value
            names = [f"{name}_{i}" for i in range(len(values))]
            # As SQLAlchemy has it, an empty list is a query without rows.
            listed = ", ".join(f":{each}" for each in names) or "SELECT 1 WHERE 1 != 1"
            sql = sql.replace(mark, listed)
            parameters.update(
                zip(names, map(processor, values) if processor else values, strict=True)
            )
        return sql, parameters


_plans: dict[Any, _Plan | None] = {}


def _planned(statement: Any) -> tuple[_Plan | None, Any]:
    """Return the plan for a Core statement, or None if it needs all of SQLAlchemy, and its values.

    The key by which SQLAlchemy itself caches what it compiles has no public name.
    """
    key = statement._generate_cache_key()
    if key is None:
        return None, ()
    form, binds = key[0], key[1]
    if form not in _plans:
        _plans[form] = _Plan(statement, binds) if _plain(statement) else None
    return _plans[form], binds


def _plain(statement: Any) -> bool:
    """Whether SQL and parameters are all that SQLAlchemy would contribute."""
    if statement.is_insert:
        defaults = [column.default for column in statement.table.columns if column.default]
        # A key that the database makes up is asked for afterwards.
        made_up = statement.table.autoincrement_column is not None or statement._returning
        return not made_up and all(default.is_scalar for default in defaults)
    if statement.is_update:
        return all(column.onupdate is None for column in statement.table.columns)
    return bool(statement.is_select or statement.is_delete)


_handover: list[sqlite3.Connection] = []


@cache
def _core_engine() -> Any:
    """One engine for all agents, because SQLAlchemy caches compiled statements per engine."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    engine = create_engine("sqlite://", creator=_handover.pop, poolclass=NullPool)
    # The first connection of all is tried out and rolled back; let it be nobody's.
    _handover.append(sqlite3.connect(":memory:"))
    engine.connect().close()
    return engine


def _core_connection(database: sqlite3.Connection) -> Any:
    engine = _core_engine()
    _handover.append(database)
    return engine.connect()


class ThinEngine:
    """Stands where elfmem expects an ``AsyncEngine``: hands out the one connection.

    Args:
        connection: The connection.
        keep: Whether :meth:`begin` commits; if not, everything is rolled back, so that elfmem can
            be asked what it would answer without a trace.
    """

    def __init__(self, connection: ThinConnection, *, keep: bool = True) -> None:
        self._connection = connection
        self._keep = keep

    def connect(self) -> "_Transaction":
        """Return a context that rolls back what it did not commit."""
        return _Transaction(self._connection, commit=False)

    def begin(self) -> "_Transaction":
        """Return a context that commits unless it fails, or the engine keeps nothing."""
        return _Transaction(self._connection, commit=self._keep)

    async def dispose(self) -> None:
        """Do nothing: the database belongs to whoever opened it."""


class _Transaction:
    def __init__(self, connection: ThinConnection, *, commit: bool) -> None:
        self._connection = connection
        self._commit = commit

    async def __aenter__(self) -> ThinConnection:
        return self._connection

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.finish(commit=self._commit and kind is None)
