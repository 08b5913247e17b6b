"""The command line: parse, call, print, exit code. Everything heavy is imported when needed."""

import json
import math
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from elfmem_sim.errors import InvariantError, UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reproduce and audit the evidence behind elfmem's decision records.",
)
scenarios_app = typer.Typer(no_args_is_help=True, help="List, show and check scenarios.")
app.add_typer(scenarios_app, name="scenarios")

EXIT_CONTRADICTED, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED = 1, 2, 3, 130

Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        help="Seeds per cell, from 0 upwards (default: 100 for run, the claim file's for verify).",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", help="Add seeds until half-widths are below this, e.g. 0.5pp."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Results folder (default: runs/NAME-DIGEST).", show_default=False),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Empty the results folder first if it holds others.")
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Processes (default: one per core).", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Tier = Annotated[
    str,
    typer.Option(
        "--tier", help="model, or production: whole agents on elfmem's API, a minute per year."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="KEY=VALUE: change a scenario's key (workload.uses_per_learn=5) or a review's "
        "(review.cadence_days=90, review.config.drift_threshold=0.3). May be repeated.",
    ),
]


def main() -> None:
    """Run the command line; the entry point of ``elfmem-sim``."""
    try:
        app(prog_name="elfmem-sim")
    except UserError as error:
        _fail(str(error), EXIT_USAGE)
    except InvariantError as error:
        _fail(str(error), EXIT_CONTRADICTED)
    except SystemExit as leaving:
        if leaving.code == EXIT_INTERRUPTED:  # Typer's own end of a KeyboardInterrupt, silent
            _fail("Interrupted. Run the same command again to go on.", EXIT_INTERRUPTED)
        raise


def _fail(message: str, code: int) -> None:
    print(f"elfmem-sim: {message}", file=sys.stderr)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from elfmem_sim import __version__

        print(__version__)
        raise typer.Exit


@app.command("verify")
def verify_command(
    record: Annotated[
        str, typer.Argument(help="Decision record: adr-0001 to adr-0004, or all to audit them all.")
    ],
    tier: Tier = "model",
    seeds: Seeds = None,
    precision: Precision = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if a claim is contradicted, 3 if inconclusive.")
    ] = False,
    out: Out = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a decision record's protocol and judge its claims; or audit all records.

    The audit runs on until every effect's half-width is 0.3 pp (0.5 pp where that takes more than
    20,000 seeds), unless --seeds or --precision says otherwise. On the production tier: try what
    adr-0004 promises of elfmem itself, by every surface.
    """
    _check_tier(tier, days=None, explain=False)
    sizes: dict[str, Any] = {
        "seeds": seeds,
        "precision": _precision(precision),
        "out": out,
        "overwrite": overwrite,
        "workers": _workers(workers),
        "quiet": quiet,
    }
    if tier == "production":
        for option, value in (("--seeds", seeds), ("--precision", precision)):
            if value is not None:
                raise UserError(
                    value,
                    f"no {option} on the production tier, which tries each promise once",
                    f"Drop {option} or --tier production.",
                    option,
                )
        words = _verify_product(record, out, overwrite=overwrite, quiet=quiet, as_json=as_json)
    elif record == "all":
        words = _audit(sizes, as_json)
    else:
        words = _verify(record, sizes, as_json)
    if strict:
        raise typer.Exit(_strict_code(words))


def _verify(record: str, sizes: dict[str, Any], as_json: bool) -> list[str]:
    from elfmem_sim import report
    from elfmem_sim.verification import verify

    outcome = verify(record, **sizes)
    if as_json:
        _print_json(
            {
                "adr": outcome.record.adr,
                "assumption": outcome.record.protocol.assumption,
                "claims": [verdict.plain() for verdict in outcome.verdicts],
                "notes": outcome.notes,
                "folder": str(outcome.folder),
            }
        )
    elif not sizes["quiet"]:
        if outcome.replay is not None:
            report.print_table("Published figures, replayed", *report.replay_rows(outcome.replay))
        if outcome.sensitivity is not None:
            report.print_table(
                "What the claim needs to be true", *report.sensitivity_rows(outcome.sensitivity)
            )
        report.print_table(
            f"ADR {outcome.record.adr}: {outcome.record.statement}",
            *report.verdict_table(outcome.verdicts),
        )
        for line in report.assumption_lines(outcome.verdicts):
            print(line)
        for note in outcome.notes:
            print(note)
        print(f"Results: {outcome.folder}")
    return [verdict.verdict for verdict in outcome.verdicts]


def _audit(sizes: dict[str, Any], as_json: bool) -> list[str]:
    from elfmem_sim import report
    from elfmem_sim.audit import audit

    outcome = audit(**sizes)
    if as_json:
        _print_json(
            {
                "audit": outcome.table.to_dict("records"),
                "climbers": outcome.climbers.to_dict("records"),
                "notes": outcome.notes,
                "folder": str(outcome.folder),
            }
        )
    elif not sizes["quiet"]:
        report.print_table("The published evidence, audited", *report.audit_rows(outcome.table))
        for note in outcome.notes:
            print(note)
        print(f"Results: {outcome.folder}")
    return [verdict.verdict for group in outcome.verdicts.values() for verdict in group]


def _verify_product(
    record: str, out: Path | None, *, overwrite: bool, quiet: bool, as_json: bool
) -> list[str]:
    from elfmem_sim import report
    from elfmem_sim.consequences.trial import table, verify_consequences

    outcome = verify_consequences(record, out=out, overwrite=overwrite, quiet=quiet)
    if as_json:
        _print_json(
            {
                "checks": [found.plain() for found in outcome.found],
                "notes": outcome.notes,
                "folder": str(outcome.folder),
            }
        )
    elif not quiet:
        report.print_table("ADR 0004's consequences on the product", *table(outcome.found))
        print(f"Results: {outcome.folder}")
    return [found.verdict for found in outcome.found]


def _strict_code(words: Collection[str]) -> int:
    from elfmem_sim.verdict import CONTRADICTING

    if "BROKEN" in words or CONTRADICTING & set(words):
        return EXIT_CONTRADICTED
    return EXIT_INCONCLUSIVE if "INCONCLUSIVE" in words else 0


@app.command("run")
def run_command(
    scenarios: Annotated[list[str], typer.Argument(help="Shipped scenarios or .toml files.")],
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            help="Arm, or an elfmem .yaml with a review block; may be repeated, the first is the "
            "control (default: baseline, review).",
        ),
    ] = None,
    tier: Tier = "model",
    seeds: Seeds = None,
    precision: Precision = None,
    settings: Settings = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            help="KEY=VALUE,VALUE,...: compare the arms again with each value of a key, one key "
            "at a time (horizon_days=1825,3650). May be repeated.",
        ),
    ] = None,
    out: Out = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run scenarios and compare arms, paired by seed."""
    from elfmem_sim import report
    from elfmem_sim.experiment import run

    outcome = run(
        scenarios,
        arms=arm or ["baseline", "review"],
        tier=tier,
        seeds=seeds,
        precision=_precision(precision),
        settings=_settings(settings),
        sweep=_sweep(sweep),
        out=out,
        overwrite=overwrite,
        workers=_workers(workers),
        quiet=quiet,
    )
    if as_json:
        _print_json(
            {
                "summary": outcome.summary.to_dict("records"),
                "differences": outcome.differences.to_dict("records"),
                "notes": outcome.notes,
                "folder": str(outcome.folder),
            }
        )
    elif not quiet:
        report.print_table(
            "Arms (shares in %)",
            *report.estimate_rows(
                outcome.summary, report.keys_of(outcome.summary, "scenario", "arm", "estimand")
            ),
        )
        if len(outcome.differences):
            report.print_table(
                "Paired differences (shares in pp)",
                *report.estimate_rows(
                    outcome.differences,
                    report.keys_of(outcome.differences, "scenario", "arm", "control", "estimand"),
                ),
            )
        for note in outcome.notes:
            print(note)
        print(f"Results: {outcome.folder}")


@app.command("tune")
def tune_command(
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenarios",
            help="Shipped scenario or .toml file to search in; may be repeated (default: stable, "
            "regime_change and adversarial of adr-0004).",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option("--budget", help="quick (minutes) or full (about an hour on two cores)."),
    ] = "quick",
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            help="What to search for, e.g. gain_mean, tax; may be repeated (default: everything "
            "that the scenarios can show).",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", help="Sweep this field alone, with all estimands."),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="FIELD=LOW:HIGH: vary a field here (drift_threshold=0.1:0.5). May be repeated.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            help="Fresh seeds to judge recommendations on, or seeds of --explain (default: the "
            "budget's).",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", help="Half-width wanted of a gain; sets or checks --seeds."),
    ] = None,
    out: Out = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find out which review settings matter, and whether to change elfmem's defaults."""
    from elfmem_sim import report
    from elfmem_sim.tune import tune
    from elfmem_sim.tuning.plan import DEFAULT_SCENARIOS
    from elfmem_sim.tuning.words import explain_rows

    outcome = tune(
        scenarios or DEFAULT_SCENARIOS,
        budget=budget,
        objectives=objective or (),
        explain=explain,
        ranges=_ranges(ranges),
        seeds=seeds,
        precision=_precision(precision),
        out=out,
        overwrite=overwrite,
        workers=_workers(workers),
        quiet=quiet,
    )
    if as_json:
        shown = {k: t.to_dict("records") for k, t in outcome.tables.items() if k != "trials"}
        extra = {"recommendations": outcome.recommendations, "notes": outcome.notes}
        _print_json({**shown, **extra, "folder": str(outcome.folder)})
    elif not quiet:
        if outcome.page:
            print(outcome.page)
        else:
            report.print_table(f"{explain}", *explain_rows(outcome.tables["sweep"]))
        for note in outcome.notes:
            print(note)
        print(f"Results: {outcome.folder}")


@app.command("replay")
def replay_command(
    scenario: Annotated[str, typer.Argument(help="Shipped scenario or .toml file.")],
    arm: Annotated[str, typer.Option("--arm", help="Arm, or an elfmem .yaml.")] = "baseline",
    seed: Annotated[int, typer.Option("--seed", help="Seed.")] = 0,
    tier: Tier = "model",
    days: Annotated[
        int | None,
        typer.Option("--days", help="Live only so many days.", show_default=False),
    ] = None,
    daily: Annotated[bool, typer.Option("--daily", help="Measure every day.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why each block was not proposed.")
    ] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show one run's whole trajectory, bit-equal to its row in any study."""
    from elfmem_sim import report
    from elfmem_sim.arms import get_arm
    from elfmem_sim.scenario import load_scenario, override
    from elfmem_sim.simulate import as_record, simulate

    _check_tier(tier, days=days, explain=explain)
    world, build = override(load_scenario(scenario), get_arm(arm), _settings(settings))
    if tier == "production":
        from elfmem_sim.production import live

        run = live(world, build, seed, daily=daily, days=days)
    else:
        run = simulate(world, build, seed, daily=daily, explain=explain)
    record = as_record(run, build)
    if as_json:
        _print_json(record)
        return
    fields = [
        "day",
        "quality_ratio",
        "recent_reach",
        "ego_moat",
        "const_align_to_self",
        "retention",
        *(["self_frame_align"] if tier == "production" else []),
    ]
    rows = [[_cell(snapshot[name]) for name in fields] for snapshot in record["snapshots"]]
    report.print_table(f"{world.name}, arm {build.name}, seed {seed}", fields, rows)
    for key in ("reviews", "amendments"):
        if record.get(key):
            header = list(record[key][0])
            report.print_table(
                key, header, [[_cell(item.get(name)) for name in header] for item in record[key]]
            )
    for note in record.get("notes", []):
        print(note)


def _check_tier(tier: str, *, days: int | None, explain: bool) -> None:
    from elfmem_sim.fields import TIERS

    if tier not in TIERS:
        raise UserError(tier, f"one of {', '.join(TIERS)}", "Correct the tier.", "--tier")
    if tier == "model" and days is not None:
        raise UserError(
            days,
            "no --days on the model tier, which lives a scenario as it is",
            "Write --set horizon_days=..., or --tier production.",
            "--days",
        )
    if tier == "production" and explain:
        raise UserError(
            "--explain",
            "the model tier, where elfmem can be asked again with its gates opened",
            "Drop --explain or --tier production.",
            "--explain",
        )


@scenarios_app.command("list")
def scenarios_list(as_json: Json = False) -> None:
    """List the shipped scenarios."""
    from elfmem_sim import report
    from elfmem_sim.scenario import load_scenario, scenario_names

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        _print_json([{"name": s.name, "description": s.description} for s in found])
    else:
        rows = [[s.name, str(s.horizon_days), s.description] for s in found]
        report.print_table("Scenarios", ["name", "days", "description"], rows)


@scenarios_app.command("show")
def scenarios_show(
    scenario: Annotated[str, typer.Argument(help="Shipped scenario or .toml file.")],
    keys: Annotated[
        bool, typer.Option("--keys", help="List every key with its meaning instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a scenario with every default filled in."""
    from elfmem_sim import report
    from elfmem_sim.scenario import describe_arm_keys, describe_keys, load_scenario

    world = load_scenario(scenario)
    if keys:
        header = ["key", "type", "meaning"]
        rows = [list(row) for row in (*describe_keys(), *describe_arm_keys())]
        if as_json:
            _print_json([dict(zip(header, row, strict=True)) for row in rows])
        else:
            report.print_table("Keys of a scenario, and of --set", header, rows)
    elif as_json:
        _print_json(world.model_dump(mode="json"))
    else:
        rows = list(_flatten("", world.model_dump(mode="json")))
        report.print_table(world.name, ["key", "value"], rows)


@scenarios_app.command("check")
def scenarios_check(
    scenarios: Annotated[list[str], typer.Argument(help="Shipped scenarios or .toml files.")],
) -> None:
    """Check scenario files; exit 2 at the first that is not valid."""
    from elfmem_sim.scenario import load_scenario

    for name in scenarios:
        world = load_scenario(name)
        print(f"{name}: valid, {world.horizon_days} days")


def _flatten(prefix: str, value: Any) -> list[list[str]]:
    if isinstance(value, dict):
        return [row for k, v in value.items() for row in _flatten(f"{prefix}.{k}".strip("."), v)]
    return [[prefix, json.dumps(value)]]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items() if count)
    if isinstance(value, list | tuple):
        return " ".join(f"{entry:.2f}" for entry in value)
    return "" if value is None else str(value)


def _print_json(document: Any) -> None:
    print(json.dumps(_finite(document), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """Put None where JSON has no number: one seed has no spread and an unbounded interval."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _workers(workers: int | None) -> int:
    if workers is None:
        return os.cpu_count() or 1
    if workers < 1:
        raise UserError(workers, "at least 1 process", "Give a larger --workers.", "--workers")
    return workers


def _precision(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.removesuffix("pp").strip())
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise UserError(
            text, "a half-width above 0 in percentage points", "Write 0.5pp.", "--precision"
        )
    return value


def _ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    ranges = {}
    for text in texts or []:
        field, _, ends = text.partition("=")
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            raise UserError(
                text, "FIELD=LOW:HIGH", "Write drift_threshold=0.1:0.5.", "--range"
            ) from None
        ranges[field.strip()] = (low, high)
    return ranges


def _settings(pairs: list[str] | None) -> dict[str, str]:
    return dict(_keyed(pairs, "--set"))


def _sweep(pairs: list[str] | None) -> dict[str, list[str]]:
    sweep: dict[str, list[str]] = {}
    for key, values in _keyed(pairs, "--sweep"):
        sweep.setdefault(key, []).extend(value.strip() for value in values.split(","))
    return sweep


def _keyed(pairs: list[str] | None, option: str) -> Iterator[tuple[str, str]]:
    for pair in pairs or []:
        key, equals, value = map(str.strip, pair.partition("="))
        if not equals or not key:
            raise UserError(pair, "KEY=VALUE", "Write workload.uses_per_learn=5.", option)
        yield key, value
