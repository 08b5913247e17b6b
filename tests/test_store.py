"""Tests of `elfmem_sim.store`: what a results folder keeps, whatever happens to it."""

import gzip
import hashlib
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from elfmem_sim import cli, experiment, simulate, store
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.fields import SNAPSHOT_FIELDS
from elfmem_sim.scenario import parse_scenario
from elfmem_sim.store import FORMAT, MANIFEST, PARTIAL, Results, identity_of, over_time, tidy
from elfmem_sim.study import TALLIES, Cell, Replicate, run_study

SMALL = """
description = "Two months of fast drift."
horizon_days = 60

[identity]
drift_per_day = 0.05

[workload]
uses_per_learn = 3
"""
# A year keeps a study of sixty seeds busy for long enough to be stopped in the middle.
YEAR = SMALL.replace("60", "365").replace("0.05", "0.02")

ME, OTHER = "0123456789abcdef", "fedcba9876543210"


def replicate(seed: int = 0, digest: str = "cell", **values: list) -> Replicate:
    """A fake one: every vital 0 but for ``values``, which give one number per measured day."""
    days = len(next(iter(values.values()), [0]))
    snapshots = np.zeros((days, len(SNAPSHOT_FIELDS)))
    tallies = np.zeros(len(TALLIES), np.int64)
    for name, value in values.items():
        if name in TALLIES:
            tallies[TALLIES.index(name)] = value[0]
        else:
            snapshots[:, SNAPSHOT_FIELDS.index(name)] = value
    return Replicate(digest, seed, snapshots, tallies)


def finished(folder: Path, identity: str = ME) -> Results:
    """A small finished folder."""
    results = Results(folder, identity)
    results.append([replicate()])
    table = pd.DataFrame({"arm": ["a", "b"], "value": [0.1, math.nan]})
    results.finish(
        {"table.csv": table, "packed.csv.gz": table, "report.md": "# Words\n", "a.png": b"\x89P"},
        {"command": "elfmem-sim run small.toml", "notes": []},
    )
    return results


def unfinished(folder: Path, *seeds: int, identity: str = ME) -> Path:
    """A folder as an interrupted study leaves it; returns its log."""
    Results(folder, identity).append([replicate(seed) for seed in seeds])
    return folder / PARTIAL


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_refused(folder: Path, words: str, **options) -> UserError:
    """Claiming the folder is an error, and leaves it as it was."""
    before = contents(folder)
    with pytest.raises(UserError, match=words) as caught:
        Results(folder, ME, **options)
    assert contents(folder) == before
    return caught.value


# A finished folder.


def test_a_finished_folder_holds_the_files_the_manifest_and_nothing_else(tmp_path):
    finished(tmp_path / "out")
    assert set(contents(tmp_path / "out")) == {
        "table.csv",
        "packed.csv.gz",
        "report.md",
        "a.png",
        MANIFEST,
    }


def test_the_manifest_vouches_for_every_file_with_its_checksum(tmp_path):
    files = finished(tmp_path / "out").manifest()["files"]
    held = contents(tmp_path / "out")
    del held[MANIFEST]
    assert files == {name: hashlib.sha256(data).hexdigest() for name, data in held.items()}


def test_the_manifest_says_what_the_numbers_depend_on(tmp_path):
    manifest = finished(tmp_path / "out").manifest()
    assert manifest["format"] == FORMAT
    assert manifest["identity"] == ME
    assert manifest["command"] == "elfmem-sim run small.toml"
    assert set(manifest["versions"]) == {
        "elfmem-sim", "python", "elfmem", "numpy", "scipy", "pandas", "numba", "matplotlib",
    }  # fmt: skip


def test_the_manifest_is_written_last(tmp_path, monkeypatch):
    seen, original = [], Path.replace
    monkeypatch.setattr(
        Path,
        "replace",
        lambda path, target: seen.append(set(contents(path.parent))) or original(path, target),
    )
    finished(tmp_path / "out")
    assert seen == [
        {"table.csv", "packed.csv.gz", "report.md", "a.png", PARTIAL, f"{MANIFEST}.new"}
    ]


def test_a_folder_whose_writing_failed_is_unfinished_and_keeps_its_replicates(tmp_path):
    results = Results(tmp_path / "out", ME)
    results.append([replicate(3)])
    (tmp_path / "out" / "second.csv").mkdir()
    with pytest.raises(UserError, match="can be read and written"):
        results.finish({"first.csv": "1\n", "second.csv": "2\n"}, {})
    assert not results.finished
    assert [kept.seed for kept in results.replicates_so_far()] == [3]


def test_files_come_back_as_they_were_written(tmp_path):
    results = finished(tmp_path / "out")
    assert results.read("report.md") == b"# Words\n"
    assert results.read("a.png") == b"\x89P"
    assert (
        results.read("packed.csv.gz") == results.read("table.csv") == b"arm,value\na,0.1\nb,nan\n"
    )


def test_a_packed_file_bears_no_time(tmp_path):
    finished(tmp_path / "out")
    packed = (tmp_path / "out" / "packed.csv.gz").read_bytes()
    assert packed[4:8] == bytes(4)  # where RFC 1952 puts it
    assert gzip.decompress(packed).startswith(b"arm")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_table_comes_back_to_the_last_bit(tmp_path, name):
    values = np.array([0.1 + 0.2, 1e-300, -0.0, math.nan, math.inf, -math.inf, 2 / 3])
    table = pd.DataFrame({"value": values, "seed": range(7), "variant": ""})
    results = Results(tmp_path / "out", ME)
    results.finish({name: table}, {})
    back = results.table(name)
    assert back["value"].to_numpy().tobytes() == values.tobytes()
    assert list(back["seed"]) == list(range(7))
    assert list(back["variant"]) == [""] * 7


@pytest.mark.parametrize("name", ["007", "nan", "1.50", "true", "None"])
def test_names_come_back_as_text(tmp_path, name):
    results = Results(tmp_path / "out", ME)
    results.finish({"t.csv": pd.DataFrame({"scenario": [name], "arm": [name], "n": [3]})}, {})
    assert results.table("t.csv").to_dict("records") == [{"scenario": name, "arm": name, "n": 3}]


@pytest.mark.parametrize(
    "column",
    ["adr", "claim", "scenario", "arm", "control", "variant", "estimand", "horizon_days"],
)
def test_a_column_of_names_keeps_its_leading_zeros_and_blanks(tmp_path, column):
    results = Results(tmp_path / "out", ME)
    results.finish({"t.csv": pd.DataFrame({column: ["0001", ""], "n": [3, 4]})}, {})
    assert results.table("t.csv").to_dict("list") == {column: ["0001", ""], "n": [3, 4]}


# Damage.


def test_a_file_cut_in_half_is_an_error_that_says_which_and_how_to_rebuild_it(tmp_path):
    out = tmp_path / "my results"
    results = finished(out)
    path = out / "packed.csv.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError) as caught:
        results.table("packed.csv.gz")
    assert repr(str(path)) in str(caught.value)
    assert str(caught.value).endswith(
        f"Rebuild it: elfmem-sim run small.toml --out '{out}' --overwrite"
    )


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    results = finished(tmp_path / "out")
    (tmp_path / "out" / "report.md").unlink()
    with pytest.raises(UserError, match=r"report\.md"):
        results.read("report.md")


def test_a_file_that_the_manifest_does_not_vouch_for_is_not_read(tmp_path):
    results = finished(tmp_path / "out")
    (tmp_path / "out" / "extra.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=r"extra\.csv"):
        results.read("extra.csv")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe", b"null"])
def test_a_damaged_manifest_is_an_error(tmp_path, damage):
    results = finished(tmp_path / "out")
    (tmp_path / "out" / MANIFEST).write_bytes(damage)
    with pytest.raises(UserError, match="whole manifest"):
        results.manifest()


def test_a_manifest_cut_in_half_is_an_error_for_the_next_run_too(tmp_path):
    finished(tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert_refused(tmp_path, "whole manifest")


def test_a_manifest_from_a_newer_version_is_an_error(tmp_path):
    results = finished(tmp_path / "out")
    path = tmp_path / "out" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    with pytest.raises(UserError, match="Upgrade elfmem-sim"):
        results.read("report.md")


def test_a_log_from_a_newer_version_is_an_error(tmp_path):
    header = {"format": FORMAT + 1, "identity": ME}
    (tmp_path / PARTIAL).write_text(json.dumps(header) + "\n")
    assert_refused(tmp_path, "Upgrade elfmem-sim")


def test_a_folder_without_results_has_no_manifest(tmp_path):
    with pytest.raises(UserError, match="a finished results folder"):
        Results(tmp_path / "nothing").manifest()


def test_reading_creates_nothing(tmp_path):
    Results(tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Whose folder it is.


def test_a_new_folder_is_created_with_its_parents(tmp_path):
    results = Results(tmp_path / "a" / "b", ME)
    assert not results.finished
    assert contents(tmp_path / "a" / "b") == {
        PARTIAL: b'{"format": 1, "identity": "%s"}\n' % ME.encode()
    }


def test_a_finished_folder_is_accepted_by_its_own_command_and_left_alone(tmp_path):
    finished(tmp_path)
    before = contents(tmp_path)
    assert Results(tmp_path, ME).finished
    assert contents(tmp_path) == before


def test_a_folder_finished_but_for_the_log_loses_the_log(tmp_path):
    finished(tmp_path)
    whole = contents(tmp_path)
    (tmp_path / PARTIAL).write_text("{}\n")
    assert Results(tmp_path, ME).finished
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("make", [finished, unfinished])
def test_a_folder_with_other_results_is_refused(tmp_path, make):
    make(tmp_path, identity=OTHER)
    assert "--overwrite" in str(assert_refused(tmp_path, "results of this very command"))


@pytest.mark.parametrize("make", [finished, unfinished])
@pytest.mark.parametrize("owner", [ME, OTHER])
def test_overwrite_empties_a_folder_of_results_whosever_they_are(tmp_path, make, owner):
    make(tmp_path, identity=owner)
    results = Results(tmp_path, ME, overwrite=True)
    assert not results.finished
    assert set(contents(tmp_path)) == {PARTIAL}
    assert results.replicates_so_far() == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_foreign_files_is_refused(tmp_path, overwrite):
    (tmp_path / "thesis.md").write_text("Years of work.")
    assert_refused(tmp_path, str(tmp_path), overwrite=overwrite)


def test_a_foreign_file_among_results_keeps_the_folder_from_being_emptied(tmp_path):
    finished(tmp_path)
    (tmp_path / "thesis.md").write_text("Years of work.")
    error = assert_refused(tmp_path, "nothing but results", overwrite=True)
    assert "thesis.md" in str(error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (MANIFEST, '{"manifest_version": 3, "name": "a browser extension"}'),
        (MANIFEST, '{"format": 1, "files": {}}'),
        (PARTIAL, '{"some": "log"}\n'),
        (PARTIAL, "1\n2\n"),
    ],
)
def test_a_folder_with_a_file_that_only_bears_our_name_is_never_emptied(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert_refused(tmp_path, str(tmp_path), overwrite=True)


def test_a_foreign_folder_among_results_keeps_the_folder_from_being_emptied(tmp_path):
    finished(tmp_path / "out")
    (tmp_path / "out" / "drafts").mkdir()
    with pytest.raises(UserError, match="drafts"):
        Results(tmp_path / "out", ME, overwrite=True)
    assert (tmp_path / "out" / MANIFEST).is_file()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path, overwrite):
    (tmp_path / "out").write_text("A file.")
    with pytest.raises(UserError, match="expected a folder"):
        Results(tmp_path / "out", ME, overwrite=overwrite)
    assert (tmp_path / "out").read_text() == "A file."


# A folder that cannot be used.


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can be read and written"):
        Results(tmp_path / "file" / "out", ME)


def test_a_folder_that_vanishes_during_a_study_is_an_error(tmp_path):
    unfinished(tmp_path / "out").unlink()
    results = Results(tmp_path / "out", ME)
    (tmp_path / "out" / PARTIAL).unlink()
    (tmp_path / "out").rmdir()
    with pytest.raises(UserError, match="can be read and written"):
        results.append([replicate()])


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="this user may read and write all"
)
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_folder_without_permission_is_an_error(tmp_path, mode):
    folder = tmp_path / "out"
    folder.mkdir(mode=mode)
    try:
        with pytest.raises(UserError, match="can be read and written"):
            Results(folder, ME)
    finally:
        folder.chmod(0o700)


# The log of a study under way.


def test_replicates_come_back_in_order(tmp_path):
    unfinished(tmp_path, 2, 0)
    Results(tmp_path, ME).append([replicate(1)])
    results = Results(tmp_path, ME)
    assert [kept.seed for kept in results.replicates_so_far()] == [2, 0, 1]
    assert results.notes == []


def test_a_torn_last_line_is_cut_off_with_a_note_and_the_rest_is_kept(tmp_path):
    log = unfinished(tmp_path, 0, 1, 2)
    whole = log.read_bytes()
    log.write_bytes(whole[:-40])
    results = Results(tmp_path, ME)
    assert [kept.seed for kept in results.replicates_so_far()] == [0, 1]
    assert results.notes == ["The last record was cut off in the middle; it is run again."]
    results.append([replicate(2)])
    assert log.read_bytes() == whole


@pytest.mark.parametrize("kept", [0, 1, 20])
def test_a_log_torn_in_its_very_first_line_is_started_anew(tmp_path, kept):
    log = unfinished(tmp_path)
    whole = log.read_bytes()
    log.write_bytes(whole[:kept])
    results = Results(tmp_path, ME)
    assert results.replicates_so_far() == []
    assert log.read_bytes() == whole


def cell_without(key: str) -> str:
    plain = store.to_plain(replicate())
    del plain[key]
    return json.dumps(plain)


@pytest.mark.parametrize(
    "garbage",
    [
        "what is this",
        "",
        "17",
        "[1, 2]",
        '{"seed": 3}',
        cell_without("tallies"),
        json.dumps(store.to_plain(replicate()) | {"tallies": [2**70] * len(TALLIES)}),
        json.dumps(store.to_plain(replicate()) | {"seed": None}),
        "\udcff",
    ],
)
def test_garbage_in_the_middle_of_the_log_is_an_error_that_says_where(tmp_path, garbage):
    log = unfinished(tmp_path, 0, 1)
    lines = log.read_bytes().split(b"\n")
    lines.insert(2, garbage.encode(errors="surrogateescape"))
    log.write_bytes(b"\n".join(lines))
    with pytest.raises(UserError) as caught:
        Results(tmp_path, ME).replicates_so_far()
    assert f"{log}: line 3" in str(caught.value)
    assert "--overwrite" in str(caught.value)


def test_a_folder_without_a_log_has_no_replicates(tmp_path):
    assert Results(tmp_path).replicates_so_far() == []


# The tables.


WORLD = parse_scenario(SMALL, name="small", where="small.toml")
CELL = Cell(WORLD, ARMS["baseline"], (0, 1, 2))
THREE = {
    seed: replicate(seed, CELL.digest, day=[28, 56], quality_ratio=ratios)
    for seed, ratios in enumerate([[0.5, 0.2], [0.6, 0.4], [0.7, 0.9]])
}


def test_tidy_has_a_row_per_cell_and_seed_in_the_cells_order():
    review = Cell(WORLD, ARMS["review"], (7, 3), "eager")
    found = {
        CELL.digest: THREE,
        review.digest: {seed: replicate(seed, day=[28, 56]) for seed in (3, 7, 9)},
    }
    table = tidy([review, CELL], found)
    assert table[["scenario", "arm", "variant", "seed"]].to_numpy().tolist() == [
        ["small", "review", "eager", 7],
        ["small", "review", "eager", 3],
        ["small", "baseline", "", 0],
        ["small", "baseline", "", 1],
        ["small", "baseline", "", 2],
    ]


def test_tidy_holds_the_last_snapshot_the_mean_over_the_run_and_rates_per_year():
    run = replicate(
        day=[28, 56],
        quality_ratio=[0.5, 0.75],
        ego_moat=[0.1, 0.9],
        const_alive=[10, 9],
        n_blocks=[310],
        proposals=[3],
        failed=[1],
        accepted=[2],
    )
    cell = Cell(WORLD, ARMS["review"], (0,))
    (row,) = tidy([cell], {cell.digest: {0: run}}).to_dict("records")
    assert (row["day"], row["const_alive"]) == (56, 9)
    assert (row["quality_ratio"], row["ego_moat"]) == (0.75, 0.9)
    assert row["quality_ratio_over_time"] == 0.625
    assert (row["n_blocks"], row["proposals"], row["failed"], row["accepted"]) == (310, 3, 1, 2)
    assert row["amendments_per_year"] == pytest.approx(2 * 365 / 60)
    assert row["proposer_calls_per_year"] == pytest.approx(4 * 365 / 60)
    assert {*SNAPSHOT_FIELDS, *TALLIES} <= set(row)


def test_over_time_holds_mean_error_and_quantiles_over_seeds():
    table = over_time([CELL], {CELL.digest: THREE})
    assert list(table.columns) == [
        "scenario", "arm", "variant", "day", "estimand", "mean", "mcse", "q05", "q25", "q75",
        "q95", "n",
    ]  # fmt: skip
    rows = table[table["estimand"] == "quality_ratio"].set_index("day")
    assert list(rows.index) == [28, 56]
    last = rows.loc[56]
    # Of 0.2, 0.4 and 0.9; quantiles by linear interpolation.
    assert last["mean"] == pytest.approx(0.5)
    assert last["mcse"] == pytest.approx(math.sqrt((0.09 + 0.01 + 0.16) / 2 / 3))
    quantiles = last[["q05", "q25", "q75", "q95"]].astype(float).tolist()
    assert quantiles == pytest.approx([0.22, 0.3, 0.65, 0.85])
    assert last["n"] == 3


def test_over_time_has_a_series_per_cell_and_vital():
    other = Cell(WORLD, ARMS["review"], (1,), "eager")
    found = {CELL.digest: THREE, other.digest: {1: replicate(1, day=[28, 56], retention=[1, 0.5])}}
    table = over_time([CELL, other], found)
    assert len(table) == 2 * 4 * 2
    rows = table[(table["variant"] == "eager") & (table["estimand"] == "retention")]
    assert rows["mean"].tolist() == [1.0, 0.5]


def test_one_seed_has_a_mean_and_no_error():
    cell = Cell(WORLD, ARMS["baseline"], (2,))
    table = over_time([cell], {cell.digest: THREE})
    rows = table[table["estimand"] == "quality_ratio"]
    assert rows["mean"].tolist() == rows["q05"].tolist() == [0.7, 0.9]
    assert rows["mcse"].isna().all()
    assert rows["n"].tolist() == [1, 1]


def test_identities_differ_where_parts_differ_and_not_by_how_they_are_joined():
    assert identity_of(("a", 1)) == identity_of(["a", "1"])
    assert len({identity_of(parts) for parts in (("a", "b"), ("ab",), ("b", "a"), ("a",))}) == 4


# Whole studies.


def write_world(folder: Path, text: str) -> None:
    (folder / "world.toml").write_text(text, encoding="utf-8")


def small_run(out: str, **options) -> experiment.Experiment:
    return experiment.run(["world.toml"], seeds=4, out=Path(out), quiet=True, **options)


def test_two_full_runs_leave_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path, SMALL)
    small_run("a")
    small_run("b")
    first = contents(tmp_path / "a")
    assert set(first) == {
        "replicates.csv.gz", "summary.csv", "differences.csv", "over_time.csv", "quality.png",
        "report.md", MANIFEST,
    }  # fmt: skip
    assert contents(tmp_path / "b") == first


def test_a_torn_log_leaves_a_note_but_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path, SMALL)
    small_run("whole")
    identity = Results(tmp_path / "whole").manifest()["identity"]
    torn = Results(tmp_path / "torn", identity)
    world = parse_scenario(SMALL, name="world", where="world.toml")
    run_study([Cell(world, ARMS["baseline"], (0, 1, 2))], keep=torn.append)
    log = tmp_path / "torn" / PARTIAL
    log.write_bytes(log.read_bytes()[:-40])
    again = small_run("torn")
    assert len(again.notes) == 1
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")


def test_a_finished_study_is_read_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path, SMALL)
    first = small_run("out")
    monkeypatch.setattr(simulate, "simulate", None)
    second = small_run("out")
    for name in ("replicates", "summary", "differences"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


def test_the_command_that_an_error_names_rebuilds_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my world.toml").write_text(SMALL, encoding="utf-8")
    options = {"seeds": 2, "out": Path("my results"), "settings": {"workload.quiet": "[[1, 2]]"}}
    experiment.run(["my world.toml"], ["baseline", "review"], quiet=True, **options)
    whole = contents(tmp_path / "my results")
    path = tmp_path / "my results" / "summary.csv"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError) as caught:
        experiment.run(["my world.toml"], ["baseline", "review"], quiet=True, **options)
    command = shlex.split(str(caught.value).partition("Rebuild it: ")[2])
    monkeypatch.setattr(sys, "argv", [*command, "--workers", "1", "-q"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert contents(tmp_path / "my results") == whole


# Studies that are stopped in the middle.


ARGUMENTS = ["run", "world.toml", "--seeds", "300", "--out", "out", "--workers", "1"]
# A test run in the background passes on that SIGINT is to be ignored.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from elfmem_sim.cli import main; main()"
)
COMMAND = [sys.executable, "-c", START, *ARGUMENTS]


def lines_in(log: Path) -> int:
    return log.read_bytes().count(b"\n") - 1 if log.is_file() else 0


def stop_in_the_middle(folder: Path, how: signal.Signals) -> tuple[int, str]:
    """Start the study, stop it as soon as something is kept; return exit code and messages."""
    process = subprocess.Popen(COMMAND, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and lines_in(folder / "out" / PARTIAL) < 1:
            time.sleep(0.01)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert not (folder / "out" / MANIFEST).exists()
    return process.returncode, errors


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_study_goes_on_and_leaves_the_bytes_of_an_uninterrupted_one(tmp_path, monkeypatch):
    write_world(tmp_path, YEAR)
    stop_in_the_middle(tmp_path, signal.SIGKILL)
    kept = lines_in(tmp_path / "out" / PARTIAL)
    assert 0 < kept < 600
    again = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    monkeypatch.chdir(tmp_path)
    experiment.run(["world.toml"], seeds=300, out=Path("whole"), quiet=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_an_interrupted_study_says_how_to_go_on_and_keeps_what_is_finished(
    tmp_path, monkeypatch, capsys
):
    write_world(tmp_path, YEAR)
    code, errors = stop_in_the_middle(tmp_path, signal.SIGINT)
    assert code == 130
    assert errors.splitlines() == [
        "runs: 0 of 600 runs",
        "elfmem-sim: Interrupted. Run the same command again to go on.",
    ]
    kept = lines_in(tmp_path / "out" / PARTIAL)
    assert kept > 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["elfmem-sim", *ARGUMENTS])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert capsys.readouterr().err.startswith(f"runs: {kept} of 600 runs\n")
    assert Results(tmp_path / "out").finished


# Records of another kind than replicates.


def test_records_come_back_as_they_were(tmp_path):
    results = Results(tmp_path / "out", ME)
    results.append_records([{"a": 0.1}, {"a": [1, 2]}])
    assert results.records_so_far(lambda record: record["a"]) == [0.1, [1, 2]]


def test_a_record_that_cannot_be_parsed_names_its_line(tmp_path):
    results = Results(tmp_path / "out", ME)
    results.append_records([{"a": 1}, {"b": 1}])
    with pytest.raises(UserError, match="expected a record") as refused:
        results.records_so_far(lambda record: record["a"])
    assert refused.value.where.endswith("line 3")
