"""Tests of `elfmem_sim.cli`: what is printed where, and the exit codes."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elfmem_sim import __version__, cli, review, scenario, simulate, store, study, tune
from elfmem_sim.arms import ARMS
from elfmem_sim.fields import ESTIMANDS, SNAPSHOT_FIELDS
from elfmem_sim.scenario import scenario_names
from elfmem_sim.tuning import plan

SMALL = """
description = "Two months of fast drift."
horizon_days = 60

[identity]
drift_per_day = 0.05

[workload]
uses_per_learn = 3
"""
EAGER = ["--set", "review.config.drift_threshold=0.05"]
RUN = ["run", "small.toml", "--seeds", "2", "--workers", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory with one small scenario in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


@pytest.fixture
def call(monkeypatch, capfd):
    """Call the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["elfmem-sim", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capfd.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def in_a_process(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Call the command line in a process of its own, with some code before and after."""
    program = f"import sys; sys.argv[0] = 'elfmem-sim'\n{code}"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


MAIN = "from elfmem_sim.cli import main; main()"


def strictly(text: str):
    """Read JSON as the standard has it, without NaN and infinities."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


# Help.


COMMANDS = {
    "": ["--version", "verify", "run", "tune", "replay", "scenarios"],
    "verify": [
        "--seeds", "--precision", "--strict", "--out", "--overwrite", "--workers", "--quiet", "-q",
        "--json", "adr-0001", "adr-0004", "all",
    ],
    "run": [
        "--arm", "--tier", "--seeds", "--precision", "--set", "--sweep", "--out", "--overwrite",
        "--workers", "--quiet", "-q", "--json", "workload.uses_per_learn=5",
        "review.config.drift_threshold",
    ],
    "tune": [
        "--scenarios", "--budget", "--objective", "--explain", "--range", "--seeds", "--precision",
        "--out", "--overwrite", "--workers", "--quiet", "-q", "--json", "quick", "full",
        "drift_threshold=0.1:0.5",
    ],
    "replay": ["--arm", "--seed", "--tier", "--days", "--daily", "--explain", "--set", "--json"],
    "scenarios": ["list", "show", "check"],
    "scenarios list": ["--json"],
    "scenarios show": ["--keys", "--json"],
    "scenarios check": [".toml"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_that_names_its_options(call, command):
    code, out, err = call(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert [word for word in COMMANDS[command] if word not in out] == []


def test_help_is_answered_without_importing_anything_heavy():
    code = """
from elfmem_sim.cli import main
try:
    main()
finally:
    heavy = {"numba", "numpy", "pandas", "scipy", "matplotlib", "elfmem", "sqlalchemy", "joblib"}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = in_a_process(code, "run", "--help")
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_the_version(call):
    assert call("--version") == (0, f"{__version__}\n", "")


# Wrong input: exit code 2, one line on standard error, nothing on standard output.


WRONG = {
    "unknown scenario": (["run", "nowhere"], "scenario: got 'nowhere'"),
    "misspelt scenario": (["replay", "adr-0003/stabel"], "Did you mean 'adr-0003/stable'?"),
    "unknown arm": ([*RUN, "--arm", "model_x"], "--arm: got 'model_x'"),
    "unknown arm of a replay": (["replay", "small.toml", "--arm", "x"], "--arm: got 'x'"),
    "unknown record": (["verify", "adr-0099"], "got 'adr-0099'"),
    "almost all records": (["verify", "al"], "got 'al'"),
    "one seed for the audit": (["verify", "all", "--seeds", "1"], "--seeds: got 1"),
    "no precision for the audit": (["verify", "all", "--precision", "0"], "--precision: got '0'"),
    "an audit into a folder with other files": (["verify", "all", "--out", "."], "--out: got '.'"),
    "no seeds": (["run", "small.toml", "--seeds", "0"], "--seeds: got 0"),
    "one seed to verify": (["verify", "adr-0003", "--seeds", "1"], "--seeds: got 1"),
    "fewer than no seeds": (["run", "small.toml", "--seeds", "-1"], "--seeds: got -1"),
    "a negative seed": (["replay", "small.toml", "--seed", "-1"], "--seed: got -1"),
    "a huge seed": (["replay", "small.toml", "--seed", str(2**64)], f"--seed: got {2**64}"),
    "no precision": ([*RUN, "--precision", "0pp"], "--precision: got '0pp'"),
    "precision in words": ([*RUN, "--precision", "high"], "--precision: got 'high'"),
    "infinite precision": ([*RUN, "--precision", "inf"], "--precision: got 'inf'"),
    "precision of nothing": ([*RUN, "--precision", "nan"], "--precision: got 'nan'"),
    "a setting without =": ([*RUN, "--set", "horizon_days"], "--set: got 'horizon_days'"),
    "a setting without a key": ([*RUN, "--set", " =3"], "--set: got ' =3'"),
    "an unknown key": ([*RUN, "--set", "workload.learns=3"], "--set: workload.learns: got 3"),
    "a refused value": ([*RUN, "--set", "horizon_days=0"], "--set: horizon_days: got 0"),
    "seeds for the product": (
        ["verify", "adr-0004", "--tier", "production", "--seeds", "5"],
        "--seeds: got 5",
    ),
    "a precision for the product": (
        ["verify", "adr-0004", "--tier", "production", "--precision", "1pp"],
        "--precision: got '1pp'",
    ),
    "a sweep without =": ([*RUN, "--sweep", "horizon_days"], "--sweep: got 'horizon_days'"),
    "a sweep of an unknown key": ([*RUN, "--sweep", "workload.learns=3,4"], "workload.learns"),
    "a sweep with a refused value": (
        [*RUN, "--sweep", "horizon_days=30,0"],
        "horizon_days: got 0",
    ),
    "a sweep of a review's key without a review": (
        [*RUN, "--arm", "baseline", "--sweep", "review.cadence_days=9,10"],
        "review.cadence_days: got '9'",
    ),
    "a review's key without a review": (
        [*RUN, "--arm", "baseline", "--set", "review.cadence_days=9"],
        "--set: review.cadence_days: got '9'",
    ),
    "a value that elfmem refuses": (
        [*RUN, "--set", "review.config.drift_threshold=7"],
        "review.config.drift_threshold: got 7.0",
    ),
    "a field that elfmem has not": (
        [*RUN, "--set", "review.config.typo=7"],
        "review.config: got 'typo'",
    ),
    "a replay that elfmem refuses": (
        ["replay", "small.toml", "--arm", "review", "--set", "review.config.typo=7"],
        "review.config: got 'typo'",
    ),
    "a field to explain that elfmem has not": (
        ["tune", "--explain", "typo"],
        "--explain: got 'typo'; expected one of drift_threshold",
    ),
    "a range without ends": (["tune", "--range", "top_n=5"], "--range: got 'top_n=5'"),
    "a range in words": (["tune", "--range", "top_n=a:b"], "--range: got 'top_n=a:b'"),
    "a range of a field that elfmem has not": (
        ["tune", "--range", "typo=1:2"],
        "--range: got 'typo'",
    ),
    "a range that elfmem refuses": (
        ["tune", "--range", "drift_threshold=0.1:1.5"],
        "review.config.drift_threshold: got 1.5",
    ),
    "an unknown objective": (["tune", "--objective", "speed"], "--objective: got 'speed'"),
    "an unknown budget": (["tune", "--budget", "huge"], "--budget: got 'huge'"),
    "one seed to judge on": (["tune", "--seeds", "1"], "--seeds: got 1"),
    "no precision to tune for": (["tune", "--precision", "0"], "--precision: got '0'"),
    "nothing that drifts": (
        ["tune", "--scenarios", "adr-0004/stable"],
        "--scenarios: got 'adr-0004/stable'",
    ),
    "no workers": ([*RUN[:-1], "0"], "--workers: got 0"),
    "a file instead of a folder": ([*RUN, "--out", "small.toml"], "--out: got 'small.toml'"),
    "a folder inside a file": ([*RUN, "--out", "small.toml/out"], "--out: got 'small.toml/out'"),
    "a folder with other files": ([*RUN, "--out", "."], "--out: got '.'"),
    "a bad scenario file": (["scenarios", "check", "bad.toml"], "bad.toml: line 1: got 'horizon'"),
    "an unknown scenario to show": (["scenarios", "show", "x"], "scenario: got 'x'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_clear_line_and_exit_code_2(call, folder, case):
    (folder / "bad.toml").write_text("horizon")
    arguments, words = WRONG[case]
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("elfmem-sim: ")
    assert words in err


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "small.toml", "--nonsense"], ["nonsense"], ["verify", "x", "--seeds", "y"]],
)
def test_a_wrong_call_is_exit_code_2_with_a_word_on_the_usage(call, arguments):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: elfmem-sim" in err
    assert "Traceback" not in err


def test_a_folder_with_other_results_is_refused(call):
    call(*RUN, "--arm", "baseline", "--out", "out", "-q")
    code, out, err = call(*RUN, "--arm", "model_c", "--out", "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "empty it with --overwrite" in err
    assert call(*RUN, "--arm", "model_c", "--out", "out", "--overwrite", "-q") == (0, "", "")


def test_an_elfmem_outside_the_supported_range_is_refused(folder):
    info = folder / "old" / "elfmem-0.17.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elfmem\nVersion: 0.17.0\n")
    done = in_a_process(MAIN, *RUN, PYTHONPATH=str(folder / "old"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "got '0.17.0'; expected elfmem >=0.18,<0.21" in done.stderr
    assert "pip install" in done.stderr


@pytest.fixture
def without_elfmem(monkeypatch):
    def version(name: str) -> str:
        if name == "elfmem":
            raise importlib.metadata.PackageNotFoundError(name)
        return importlib.metadata.version(name)

    for module in (review, study, store):
        monkeypatch.setattr(module, "version", version)
    review.require_elfmem.cache_clear()


@pytest.mark.parametrize("command", [RUN, ["verify", "adr-0004"], ["tune"]])
def test_a_missing_elfmem_is_an_error_where_it_is_needed(without_elfmem, call, command):
    code, out, err = call(*command)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "elfmem: got 'no elfmem'" in err


def test_a_missing_elfmem_is_no_error_where_it_is_not_needed(without_elfmem, call):
    assert call(*RUN, "--arm", "baseline", "-q") == (0, "", "")


def test_a_broken_promise_is_exit_code_1_and_says_how_to_replay_it(call, monkeypatch):
    def break_it(world, arm, seed, **_):
        raise cli.InvariantError(
            "a review changes nothing",
            scenario=world.name,
            arm=arm.name,
            seed=seed,
            day=29,
            detail="rows were written",
        )

    monkeypatch.setattr(simulate, "simulate", break_it)
    code, out, err = call("replay", "small.toml", "--arm", "review", "--seed", "4")
    assert (code, out) == (1, "")
    assert "Replay it: elfmem-sim replay small --arm review --seed 4" in err


def test_an_interruption_is_exit_code_130_and_says_how_to_go_on(call, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_cell", interrupt)
    code, out, err = call(*RUN)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == ("elfmem-sim: Interrupted. Run the same command again to go on.")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGPIPE")
def test_a_reader_that_leaves_early_sees_no_traceback():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "replay", "small.toml", "--daily", "--json"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)


# Scenarios.


def test_scenarios_list_names_all_with_a_description(call):
    code, out, err = call("scenarios", "list")
    assert (code, err) == (0, "")
    assert [name for name in scenario_names() if name not in out] == []


def test_scenarios_list_as_json(call):
    code, out, err = call("scenarios", "list", "--json")
    assert (code, err) == (0, "")
    listed = strictly(out)
    assert [entry["name"] for entry in listed] == scenario_names()
    assert all(entry["description"] for entry in listed)


def test_scenarios_show_fills_in_the_defaults(call):
    code, out, err = call("scenarios", "show", "small.toml")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["horizon_days", "60"] in rows  # the file's own
    assert ["workload.queries_per_day", "20"] in rows


def test_scenarios_show_as_json_is_a_whole_scenario(call):
    code, out, err = call("scenarios", "show", "small.toml", "--json")
    assert (code, err) == (0, "")
    shown = strictly(out)
    name = shown.pop("name")
    assert scenario._named(shown, name, "shown") == scenario.load_scenario("small.toml")


def test_scenarios_show_keys_lists_every_key_of_scenario_and_review(call):
    code, out, err = call("scenarios", "show", "small.toml", "--keys")
    assert (code, err) == (0, "")
    keys = [*scenario.describe_keys(), *scenario.describe_arm_keys()]
    assert {"workload.uses_per_learn", "review.config"} <= {key for key, _, _ in keys}
    assert [key for key, _, _ in keys if key not in out] == []


def test_scenarios_show_keys_as_json(call):
    code, out, err = call("scenarios", "show", "small.toml", "--keys", "--json")
    assert (code, err) == (0, "")
    keys = [*scenario.describe_keys(), *scenario.describe_arm_keys()]
    assert [tuple(row.values()) for row in strictly(out)] == keys
    assert list(strictly(out)[0]) == ["key", "type", "meaning"]


def test_scenarios_check_says_that_each_is_valid(call):
    code, out, err = call("scenarios", "check", "small.toml", "adr-0003/stable")
    assert (code, err) == (0, "")
    assert out.splitlines() == ["small.toml: valid, 60 days", "adr-0003/stable: valid, 365 days"]


# A replay.


def test_a_replay_as_json_has_the_documented_fields(call):
    code, out, err = call("replay", "small.toml", "--seed", "3", "--json")
    assert (code, err) == (0, "")
    record = strictly(out)
    assert list(record)[:6] == [
        "scenario", "arm", "seed", "snapshots", "n_blocks", "self_query_concentration",
    ]  # fmt: skip
    assert not {"reviews", "amendments"} & set(record)
    assert (record["scenario"], record["arm"], record["seed"]) == ("small", "baseline", 3)
    assert [snapshot["day"] for snapshot in record["snapshots"]] == [28, 56]
    assert all(set(SNAPSHOT_FIELDS) <= set(snapshot) for snapshot in record["snapshots"])


def test_a_replay_as_json_has_the_numbers_to_the_last_bit(call):
    record = strictly(call("replay", "small.toml", "--seed", "3", "--json")[1])
    run = simulate.simulate(scenario.load_scenario("small.toml"), ARMS["baseline"], 3)
    shown = [[snapshot[name] for name in SNAPSHOT_FIELDS] for snapshot in record["snapshots"]]
    assert shown == run.snapshots.tolist()


def test_a_replay_of_the_review_has_reviews_and_amendments(call):
    code, out, err = call("replay", "small.toml", "--arm", "review", *EAGER, "--json")
    assert (code, err) == (0, "")
    record = strictly(out)
    assert [review["day"] for review in record["reviews"]] == [29, 59]
    assert list(record["reviews"][0]) == [
        "day", "insufficient_history", "reviewed", "skipped", "proposals", "failed", "accepted",
    ]  # fmt: skip
    assert len(record["amendments"]) == sum(r["accepted"] for r in record["reviews"]) > 0
    assert list(record["amendments"][0]) == [
        "id", "day", "block", "drift_score", "align_before", "align_after", "reverted_day",
    ]  # fmt: skip


def test_a_replay_may_be_measured_every_day(call):
    record = strictly(call("replay", "small.toml", "--daily", "--json")[1])
    assert [snapshot["day"] for snapshot in record["snapshots"]] == list(range(1, 60))


def test_a_replay_may_be_explained(call):
    arguments = ["replay", "small.toml", "--arm", "review", *EAGER, "--explain", "--json"]
    for entry in strictly(call(*arguments)[1])["reviews"]:
        assert {"reasons", "drift", "evidence_blocks"} <= set(entry)
        assert len(entry["drift"]) == 10


def test_a_replay_takes_settings(call):
    record = strictly(call("replay", "small.toml", "--set", "horizon_days=30", "--json")[1])
    assert [snapshot["day"] for snapshot in record["snapshots"]] == [28]


def test_a_replay_is_shown_as_tables(call):
    code, out, err = call("replay", "small.toml", "--arm", "review", *EAGER, "--explain")
    assert (code, err) == (0, "")
    assert "small, arm review, seed 0" in out
    for word in ("quality_ratio", "reviews", "amendments", "insufficient_history", "align_after"):
        assert word in out


# A run.


def test_a_run_as_json_is_one_document_and_progress_is_plain_lines_elsewhere(call):
    code, out, err = call(*RUN, "--json", "--out", "out")
    assert code == 0
    document = strictly(out)
    assert list(document) == ["summary", "differences", "notes", "folder"]
    assert document["folder"] == "out"
    assert list(document["summary"][0]) == [
        "scenario", "arm", "variant", "estimand", "mean", "mcse", "low", "high", "n",
    ]  # fmt: skip
    assert {row["control"] for row in document["differences"]} == {"baseline"}
    assert err.splitlines() == ["runs: 0 of 4 runs", "runs: 4 of 4 runs, about 0 s left"]


def test_a_run_with_one_seed_is_json_too(call):
    document = strictly(call(*RUN, "--seeds", "1", "--json", "-q")[1])
    row = document["summary"][0]
    assert (row["n"], row["mcse"], row["low"], row["high"]) == (1, None, None, None)


def test_a_run_is_shown_as_tables_with_its_folder(call):
    code, out, _ = call(*RUN, "--out", "out")
    assert code == 0
    for words in ("Arms (shares in %)", "Paired differences (shares in pp)", "Results: out"):
        assert words in out


def test_a_quiet_run_says_nothing(call):
    assert call(*RUN, "--out", "out", "-q") == (0, "", "")
    assert (Path("out") / store.MANIFEST).is_file()


def test_a_second_run_reads_the_results_of_the_first(call, monkeypatch):
    first = call(*RUN, "--json")
    monkeypatch.setattr(simulate, "simulate", None)
    code, out, err = call(*RUN, "--json")
    assert (code, err) == (0, "")
    assert out == first[1]


def test_more_workers_change_nothing(call):
    first = strictly(call(*RUN, "--json", "--out", "one", "-q")[1])
    second = strictly(call(*RUN[:-1], "2", "--json", "--out", "two", "-q")[1])
    assert first | {"folder": ""} == second | {"folder": ""}


def test_without_a_number_of_workers_there_is_one_per_core(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert (cli._workers(None), cli._workers(3)) == (7, 3)


@pytest.mark.parametrize("text", ["0.5pp", "0.5", "0.5 pp", " .5pp"])
def test_a_precision_may_be_written_with_its_unit(text):
    assert cli._precision(text) == 0.5


def test_settings_are_split_at_the_first_equals_sign():
    assert cli._settings(["a.b = 3", "c==", "a.b=4"]) == {"a.b": "4", "c": "="}


SWEEP = [
    "--sweep", "horizon_days=30", "--sweep", "review.cadence_days=15",
    "--sweep", "horizon_days= 90",
]  # fmt: skip


def test_a_sweep_is_variants_in_json(call):
    document = strictly(call(*RUN, *SWEEP, "--json", "-q")[1])
    variants = ["", "horizon_days=30", "horizon_days=90", "review.cadence_days=15"]
    assert list(dict.fromkeys(row["variant"] for row in document["summary"])) == variants
    assert list(dict.fromkeys(row["variant"] for row in document["differences"])) == variants


def test_a_sweep_is_a_column_of_the_tables(call):
    _, out, _ = call(*RUN, *SWEEP, "--out", "out")
    headers = [line.split() for line in out.splitlines() if "mean" in line.split()]
    assert [header[:4] for header in headers] == [
        ["scenario", "arm", "variant", "estimand"],
        ["scenario", "arm", "control", "variant"],
    ]
    assert "horizon_days=30" in out


def test_without_a_sweep_the_tables_have_no_variants(call):
    assert "variant" not in call(*RUN, "--out", "out")[1]


# A verification.


def test_a_verification_from_the_first_run_to_the_strict_exit_code(call, monkeypatch):
    arguments = ["verify", "adr-0004", "--seeds", "3", "--out", "out", "--workers", "1"]
    code, out, err = call(*arguments, "--json")
    assert code == 0
    assert all(line.count(" runs") for line in err.splitlines())
    document = strictly(out)
    assert list(document) == ["adr", "assumption", "claims", "notes", "folder"]
    for claim in document["claims"]:
        assert {"id", "verdict", "estimate", "low", "high", "n"} <= set(claim)
    verdicts = {claim["id"]: claim["verdict"] for claim in document["claims"]}
    assert verdicts["tax.stable"] == "REPRODUCED"
    assert verdicts["defaults.open"] == "CONTRADICTED"
    assert verdicts["promise.read_only"] == "HELD"

    monkeypatch.setattr(simulate, "simulate", None)
    assert call(*arguments, "--json") == (0, out, "")
    code, table, _ = call(*arguments, "--strict")
    assert code == 1
    assert [name for name in verdicts if name not in table] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["REPRODUCED", "HELD", "CONSISTENT"], 0),
        (["REPRODUCED", "INCONCLUSIVE", "HELD"], 3),
        (["CONTRADICTED", "INCONCLUSIVE"], 1),
        (["ABOVE"], 1),
        (["HELD", "BELOW"], 1),
        ([], 0),
    ],
)
def test_strict_exit_codes(words, code):
    assert cli._strict_code(words) == code


# Tuning.


TUNE = ["tune", "--scenarios", "small.toml", "--workers", "1"]
EXPLAIN = [*TUNE, "--explain", "max_proposals", "--range", "max_proposals=1:3"]


@pytest.fixture
def tiny(monkeypatch):
    """A budget of a second, judged in the searched scenario alone."""
    budget = plan.Budget(
        seeds=2, trajectories=2, base=8, grid=2, trials=4, population=2, judging=2, robustness=2,
        gates=1,
    )  # fmt: skip
    monkeypatch.setitem(plan.BUDGETS, "quick", budget)
    monkeypatch.setattr(tune, "RECORD", ())


def test_tuning_prints_the_page(tiny, call, folder):
    code, out, _ = call(*TUNE, "--out", "out")
    assert code == 0
    assert out == (folder / "out" / "report.md").read_text() + "\nResults: out\n"


def test_tuning_as_json_is_one_document(tiny, call):
    code, out, _ = call(*TUNE, "--json", "--out", "out")
    shown = strictly(out)
    assert code == 0
    assert {"judgement", "robustness", "recommendations", "folder"} <= set(shown)


def test_a_quiet_tuning_says_nothing(tiny, call):
    assert call(*TUNE, "-q", "--out", "out") == (0, "", "")


def test_the_command_in_the_manifest_makes_the_same_results(tiny, call, folder):
    options = ["--objective", "gain_mean", "--range", "drift_threshold=0.02:0.1", "--seeds", "3"]
    assert call(*TUNE, *options, "-q", "--out", "out") == (0, "", "")
    first = (folder / "out" / "manifest.json").read_text()
    command = json.loads(first)["command"].split()
    assert call(*command[1:], "-q", "--out", "again") == (0, "", "")
    assert (folder / "again" / "manifest.json").read_text() == first


def test_explaining_a_field_prints_a_table(call):
    code, out, _ = call(*EXPLAIN, "--out", "out")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert {row[0] for row in rows if len(row) > 2 and row[1] == "small"} == {"1", "2", "3"}


def test_explaining_a_field_as_json(call):
    code, out, _ = call(*EXPLAIN, "--json", "--out", "out")
    assert code == 0
    assert {row["estimand"] for row in strictly(out)["sweep"]} == set(ESTIMANDS)
