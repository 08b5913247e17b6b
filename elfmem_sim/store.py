"""Results folders: the sole reader and writer of what a study leaves behind.

A folder holds ``manifest.json`` (written last: a folder without it is unfinished), the tables and
figures that the manifest lists with their checksums, and, while a study runs,
``partial.jsonl``, to which every batch of replicates is appended durably. Nothing in a folder
depends on the time or the place at which it was made.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from elfmem_sim.errors import UserError
from elfmem_sim.fields import COUNTS, SNAPSHOT_FIELDS, TIERS
from elfmem_sim.study import TALLIES, Cell, Replicate, from_plain, to_plain

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

R = TypeVar("R")

FORMAT = 1
"""Version of the folder's layout; a newer one is refused, not misread."""

MANIFEST = "manifest.json"
PARTIAL = "partial.jsonl"
_NEW = ".new"
_ANALYSIS = (
    "stats", "compare", "verdict", "store", "protocol", "verification", "worlds", "objective",
    "audit", "experiment", "report", "figures",
)  # fmt: skip
_PACKAGES = ("elfmem", "numpy", "scipy", "pandas", "numba", "matplotlib")
_NAMES = (
    "adr", "claim", "scenario", "horizon_days", "arm", "control", "variant", "estimand", "quantity",
    "unit", "objective", "chooser", "knob", "condition",
)  # fmt: skip


class Results:
    """One results folder.

    Args:
        folder: Where it is or will be.
        identity: Digest of the command that fills it; empty to read whatever is there.
        overwrite: Whether a folder with other results may be emptied. One that holds anything
            else is never touched.

    Raises:
        UserError: If the folder holds anything else, is damaged, or cannot be read and written.
    """

    def __init__(self, folder: Path, identity: str = "", *, overwrite: bool = False) -> None:
        self.folder = folder
        self.identity = identity
        self.notes: list[str] = []
        if identity:
            self._claim(overwrite=overwrite)

    def _claim(self, *, overwrite: bool) -> None:
        with self._access():
            present = self._present()
            if overwrite:
                self._empty(present)
                present = set()
            elif present == {PARTIAL} and not self._header().endswith(b"\n"):
                present = set()  # killed before anything was kept
                (self.folder / PARTIAL).unlink()
            if present and self._owner(present) != self.identity:
                raise UserError(
                    str(self.folder),
                    "an empty folder or results of this very command",
                    "Choose another --out, or empty it with --overwrite.",
                    "--out",
                )
            if MANIFEST not in present:
                self.folder.mkdir(parents=True, exist_ok=True)
                with (self.folder / PARTIAL).open("a", encoding="utf-8") as log:
                    if log.tell() == 0:
                        log.write(json.dumps({"format": FORMAT, "identity": self.identity}) + "\n")
            elif PARTIAL in present:
                (self.folder / PARTIAL).unlink()

    def _present(self) -> set[str]:
        """Return the names of what is in the folder, if there is one."""
        if self.folder.is_dir():
            return {path.name for path in self.folder.iterdir()}
        if self.folder.exists():
            raise UserError(str(self.folder), "a folder", "Choose another --out.", "--out")
        return set()

    def _empty(self, present: set[str]) -> None:
        """Remove results, whosever they are, from a folder that holds nothing else."""
        own = {MANIFEST, MANIFEST + _NEW, PARTIAL} if self._owner(present) else set()
        if MANIFEST in present & own:
            own.update(self.manifest()["files"])
        foreign = sorted(present - own)
        if foreign:
            raise UserError(
                str(self.folder / foreign[0]),
                "a folder with nothing but results, as --overwrite empties it",
                "Move it away or choose another --out.",
                "--out",
            )
        for name in present:
            (self.folder / name).unlink()

    def _owner(self, present: set[str]) -> str:
        """Return the identity of the results in the folder, or nothing if it holds none."""
        if MANIFEST in present:
            return str(self.manifest().get("identity", ""))
        try:
            header = json.loads(self._header()) if PARTIAL in present else {}
            found, identity = int(header["format"]), str(header["identity"])
        except (ValueError, KeyError, TypeError):
            return ""
        _check_format(found, self.folder / PARTIAL)
        return identity

    def _header(self) -> bytes:
        with (self.folder / PARTIAL).open("rb") as log:
            return log.readline()

    @contextmanager
    def _access(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                str(self.folder),
                "a folder that can be read and written",
                f"The system says: {error.strerror}.",
                "--out",
            ) from None

    @property
    def finished(self) -> bool:
        """Whether the study is complete."""
        return (self.folder / MANIFEST).is_file()

    def append(self, replicates: Sequence[Replicate]) -> None:
        """Add finished replicates durably; they survive whatever happens to the process next."""
        self.append_records([to_plain(replicate) for replicate in replicates])

    def append_records(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add JSON-ready records durably, in place of replicates."""
        with self._access(), (self.folder / PARTIAL).open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(record) + "\n" for record in records)
            log.flush()
            os.fsync(log.fileno())

    def replicates_so_far(self) -> list[Replicate]:
        """Return what an interrupted run left; a torn last line is cut off, with a note.

        Raises:
            UserError: If any other line is not a replicate.
        """
        return self.records_so_far(from_plain, "a replicate")

    def records_so_far(
        self, parse: Callable[[dict[str, Any]], R], expected: str = "a record"
    ) -> list[R]:
        """Return what an interrupted run left of records in general.

        Args:
            parse: Turns one into what it stands for; raises ValueError or KeyError if it cannot.
            expected: What a line holds, for the error.

        Raises:
            UserError: If a line other than a torn last one cannot be parsed.
        """
        path = self.folder / PARTIAL
        if not path.is_file():
            return []
        with self._access():
            data = path.read_bytes()
            *lines, torn = data.split(b"\n")
            if torn:
                self.notes.append("The last record was cut off in the middle; it is run again.")
                os.truncate(path, len(data) - len(torn))
        records = []
        for number, line in enumerate(lines[1:], start=2):
            try:
                records.append(parse(json.loads(line)))
            except (ValueError, KeyError, TypeError, OverflowError):
                raise UserError(
                    f"{line[:20].decode(errors='replace')}...",
                    expected,
                    "The file was changed or damaged. Start afresh with --overwrite.",
                    f"{path}: line {number}",
                ) from None
        return records

    def finish(
        self, files: Mapping[str, "pd.DataFrame | bytes | str"], manifest: Mapping[str, Any]
    ) -> None:
        """Write the tables and figures, then the manifest that vouches for them.

        Args:
            files: Content by file name; data frames become CSV, gzipped where the name says so.
            manifest: What the folder holds and how it came about.
        """
        packed = {name: _bytes(name, content) for name, content in files.items()}
        whole = {
            "format": FORMAT,
            "identity": self.identity,
            **manifest,
            "versions": versions(),
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in packed.items()},
        }
        with self._access():
            for name, data in packed.items():
                (self.folder / name).write_bytes(data)
            temporary = self.folder / (MANIFEST + _NEW)
            temporary.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
            temporary.replace(self.folder / MANIFEST)
            (self.folder / PARTIAL).unlink(missing_ok=True)

    def manifest(self) -> dict[str, Any]:
        """Return the manifest.

        Raises:
            UserError: If there is none, or it is damaged or from a newer version.
        """
        path = self.folder / MANIFEST
        if not path.is_file():
            raise UserError(
                str(self.folder),
                "a finished results folder",
                "Finish or rerun the study.",
                "results",
            )
        with self._access():
            data = path.read_bytes()
        try:
            manifest = json.loads(data)
            found = int(manifest["format"])
            dict(manifest["files"])
        except (ValueError, KeyError, TypeError):
            raise UserError(
                str(path),
                "a whole manifest of a results folder",
                "Choose another folder, or remove this one and run the study again.",
                "results",
            ) from None
        _check_format(found, path)
        return dict(manifest)

    def read(self, name: str) -> bytes:
        """Return one of the folder's files, unpacked.

        Raises:
            UserError: If it is missing or not what the manifest vouches for.
        """
        manifest = self.manifest()
        path = self.folder / name
        with self._access():
            data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != manifest["files"].get(name):
            raise UserError(
                str(path),
                "the file that the manifest describes",
                f"It is missing, cut or changed. Rebuild it: {manifest.get('command', '')} "
                f"--out {shlex.quote(str(self.folder))} --overwrite",
                "results",
            )
        return gzip.decompress(data) if name.endswith(".gz") else data

    def table(self, name: str) -> "pd.DataFrame":
        """Return one of the folder's tables; see :meth:`read` for what is raised."""
        import pandas as pd

        table = pd.read_csv(io.BytesIO(self.read(name)), dtype=str, keep_default_na=False)
        for key in table.columns:
            if key not in _NAMES:  # a scenario may be called 007 or nan
                table[key] = _numbers(table[key])
        return table


def _check_format(found: int, path: Path) -> None:
    if found > FORMAT:
        raise UserError(
            f"format {found}", f"format {FORMAT} or older", "Upgrade elfmem-sim.", str(path)
        )


def _numbers(column: "pd.Series") -> "NDArray[Any] | pd.Series":
    """Return numbers as Python reads them, to the last bit; a column of words stays one."""
    for kind in ("int64", "float64"):
        try:
            return column.to_numpy(object).astype(kind)
        except ValueError:
            continue
    return column


def _bytes(name: str, content: "pd.DataFrame | bytes | str") -> bytes:
    if isinstance(content, bytes):
        return content
    text = content if isinstance(content, str) else content.to_csv(index=False, na_rep="nan")
    data = text.encode()
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    from elfmem_sim import __version__

    return {
        "elfmem-sim": __version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # an arm without a review does without elfmem
        return "not installed"


def identity_of(parts: Iterable[object]) -> str:
    """Return a short digest of everything that determines a study's results.

    Args:
        parts: What the caller knows of it; the sources of the analysis and of the report are
            added, so that a folder made by others is not taken for finished.
    """
    here = Path(__file__).parent
    sources = [(here / f"{name}.py").read_bytes() for name in _ANALYSIS]
    text = "\x1f".join(map(str, parts)).encode()
    return hashlib.sha256(b"\x1f".join((text, *sources))).hexdigest()[:16]


def tidy(cells: Sequence[Cell], found: Mapping[str, Mapping[int, Replicate]]) -> "pd.DataFrame":
    """Return one row per cell and seed: identity, final vitals, means over the run, tallies.

    Args:
        cells: The cells, in the order in which they should appear.
        found: Replicates by cell digest and seed.
    """
    import numpy as np
    import pandas as pd

    parts = []
    for cell in cells:
        replicates = [found[cell.digest][seed] for seed in cell.seeds]
        final = np.array([r.snapshots[-1] for r in replicates])
        mean = np.array([r.snapshots.mean(axis=0) for r in replicates])
        tallies = np.array([r.tallies for r in replicates])
        years = cell.scenario.horizon_days / 365
        counts = {name: tallies[:, i] for i, name in enumerate(TALLIES)}
        parts.append(
            pd.DataFrame(
                {
                    "scenario": cell.scenario.name,
                    "arm": cell.arm.name,
                    "variant": cell.variant,
                    "seed": list(cell.seeds),
                    **{name: final[:, i] for i, name in enumerate(TIERS[cell.tier])},
                    "quality_ratio_over_time": mean[:, SNAPSHOT_FIELDS.index("quality_ratio")],
                    **counts,
                    "amendments_per_year": counts["accepted"] / years,
                    "proposer_calls_per_year": (counts["proposals"] + counts["failed"]) / years,
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    return table.astype(dict.fromkeys(COUNTS, int))


def over_time(
    cells: Sequence[Cell], found: Mapping[str, Mapping[int, Replicate]]
) -> "pd.DataFrame":
    """Return, per cell, measured day and vital, the mean and the spread over seeds.

    Columns: scenario, arm, variant, day, estimand, mean, mcse, q05, q25, q75, q95, n.
    """
    import numpy as np
    import pandas as pd

    rows = []
    for cell in cells:
        stack = np.array([found[cell.digest][seed].snapshots for seed in cell.seeds])
        for estimand in ("quality_ratio", "ego_moat", "const_align_to_self", "retention"):
            values = stack[:, :, SNAPSHOT_FIELDS.index(estimand)]
            n = values.shape[0]
            spread = (
                values.std(axis=0, ddof=1) / np.sqrt(n)
                if n > 1
                else np.full_like(values[0], np.nan)
            )
            quantiles = np.quantile(values, (0.05, 0.25, 0.75, 0.95), axis=0)
            rows.append(
                pd.DataFrame(
                    {
                        "scenario": cell.scenario.name,
                        "arm": cell.arm.name,
                        "variant": cell.variant,
                        "day": stack[0, :, 0].astype(int),
                        "estimand": estimand,
                        "mean": values.mean(axis=0),
                        "mcse": spread,
                        "q05": quantiles[0],
                        "q25": quantiles[1],
                        "q75": quantiles[2],
                        "q95": quantiles[3],
                        "n": n,
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)
