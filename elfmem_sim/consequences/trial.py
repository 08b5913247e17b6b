"""Trying every consequence, and what is left of it: a table and a results folder."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from elfmem_sim.consequences import migration, promises, surfaces
from elfmem_sim.consequences.bench import CHECKS, Bench, Consequence
from elfmem_sim.errors import UserError
from elfmem_sim.progress import ProgressReport
from elfmem_sim.report import Rows, markdown_table
from elfmem_sim.review import require_elfmem
from elfmem_sim.store import Results, identity_of

RECORD = "adr-0004"
MODULES = (promises, migration, surfaces)
"""Where the checks are; importing them registers what they try."""


@dataclass(frozen=True)
class Consequences:
    """The outcome of :func:`verify_consequences`.

    Attributes:
        found: One record per check.
        folder: Where everything is kept.
        notes: What the user should know about how it came about.
    """

    found: list[Consequence]
    folder: Path
    notes: tuple[str, ...]


def verify_consequences(
    name: str, *, out: Path | None = None, overwrite: bool = False, quiet: bool = False
) -> Consequences:
    """Try the consequences that a decision record promises on the installed elfmem.

    Args:
        name: ``adr-0004``; no other record promises anything of the product.
        out: Results folder; by default one under ``runs/`` named after the command's digest.
        overwrite: Whether a folder with other results may be emptied.
        quiet: Report no progress.

    Raises:
        UserError: For wrong input, or if elfmem is missing or not supported.
    """
    if name != RECORD:
        raise UserError(
            name,
            f"{RECORD}, the record with consequences for the product",
            "Name it, or drop --tier.",
            "verify",
        )
    elfmem = require_elfmem()
    identity = identity_of((name, "consequences", elfmem, _code()))
    results = Results(
        out or Path("runs") / f"{name}-product-{identity[:8]}", identity, overwrite=overwrite
    )
    if not results.finished:
        _write(results, name, elfmem, quiet=quiet)
    found = [Consequence(**record) for record in json.loads(results.read("checks.json"))]
    return Consequences(found, results.folder, tuple(results.notes))


def _code() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _write(results: Results, name: str, elfmem: str, *, quiet: bool) -> None:
    found = []
    with (
        TemporaryDirectory(prefix="elfmem-sim-") as folder,
        ProgressReport("Checks", quiet=quiet) as progress,
    ):
        bench = Bench(Path(folder))
        for number, entry in enumerate(CHECKS.values()):
            progress.update(number, len(CHECKS))
            found.append(bench.judge(entry))
        progress.update(len(CHECKS), len(CHECKS))
    results.finish(
        {
            "checks.csv": pd.DataFrame([record.plain() for record in found]),
            "checks.json": json.dumps([record.plain() for record in found], indent=1) + "\n",
            "report.md": markdown(elfmem, found),
        },
        {"kind": "consequences", "command": f"elfmem-sim verify {name} --tier production"},
    )


def table(found: Sequence[Consequence]) -> tuple[list[str], Rows]:
    """Return header and rows of the table of checks."""
    header = ["check", "surface", "verdict", "n", "promise", "evidence"]
    rows = [
        [
            record.name,
            record.surface,
            record.verdict,
            str(record.occasions),
            record.statement,
            record.evidence + (f" (findings/{record.finding})" if record.finding else ""),
        ]
        for record in found
    ]
    return header, rows


def markdown(elfmem: str, found: Sequence[Consequence]) -> str:
    """Return the report."""
    counts: dict[str, Any] = {}
    for record in found:
        counts[record.verdict] = counts.get(record.verdict, 0) + 1
    parts = [
        f"# ADR 0004's consequences on elfmem {elfmem}\n",
        ", ".join(f"{count} {word}" for word, count in counts.items()) + ".\n",
        markdown_table(*table(found)),
        "n counts the comparisons made. Command line and MCP tools ran in processes of their own, "
        "against a local OpenAI-compatible stub.\n",
    ]
    return "\n".join(parts)
