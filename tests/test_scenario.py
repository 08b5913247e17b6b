"""Scenario files: what is read, what is refused, and whether the refusal helps."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import elfmem_sim.scenario as module
from elfmem_sim.arms import ARMS
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import (
    MAX_DAYS,
    Adapt,
    Arm,
    Constitution,
    Corpus,
    Ego,
    Identity,
    Measurement,
    Noise,
    Production,
    Regime,
    Rescore,
    Review,
    Scenario,
    Seed,
    Workload,
    describe_arm_keys,
    describe_keys,
    load_scenario,
    override,
    parse_scenario,
    scenario_folder,
    scenario_names,
    validated,
)
from elfmem_sim.simulate import simulate

LIFE = ["poisoned_week", "seasonal_identity", "two_careers", "weekly_rhythm"]
SCORING = ["baseline", "weekly_rescore", "long_horizon", "uncertain_mix"]
ADR = ["adversarial", "quiet_burst", "regime_change", "slow_drift", "stable"]
EVERY_KEY = "`elfmem-sim scenarios show adr-0003/stable --keys` lists every key"

GOOD = """\
description = "A world."
horizon_days = 100
[identity]
drift_per_day = 0.01
"""


def parse(text: str) -> Scenario:
    return parse_scenario(text, name="mine/x", where="mine/x.toml")


def to_toml(data: dict[str, Any]) -> str:
    """Write a scenario's dump as TOML, nested sections inline."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in data.items() if key != "name")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{key} = {_value(entry)}" for key, entry in value.items() if entry is not None)
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


# The shipped scenarios.


def test_shipped_names_are_the_files_places() -> None:
    assert scenario_names() == sorted(
        [f"adr-000{adr}/{name}" for adr in (3, 4) for name in ADR]
        + [f"life/{n}" for n in LIFE]
        + [f"adr-0001/{n}" for n in SCORING]
        + [f"adr-0003-self-architect/{n}" for n in ("stable", "drift", "regime_change")]
    )


@pytest.mark.parametrize("name", scenario_names())
def test_shipped_scenario(name: str) -> None:
    scenario = load_scenario(name)
    text = (scenario_folder() / f"{name}.toml").read_text(encoding="utf-8")
    assert scenario.name == name
    assert scenario.description.endswith(".")
    assert ". " not in scenario.description
    assert max(map(len, text.splitlines())) <= 100
    assert scenario.workload.uses_per_learn == (3 if name.startswith(("adr-0004", "life")) else 0)
    again = parse_scenario(to_toml(scenario.model_dump()), name=name, where="dump")
    assert again == scenario
    assert validated(Scenario, scenario.model_dump(), "dump") == scenario
    assert validated(Scenario, json.loads(scenario.model_dump_json()), "dump") == scenario


@pytest.mark.parametrize("name", ADR)
def test_adr_0004_differs_from_adr_0003_in_use_only(name: str) -> None:
    published = load_scenario(f"adr-0003/{name}").model_dump(exclude={"name", "description"})
    used = load_scenario(f"adr-0004/{name}").model_dump(exclude={"name", "description"})
    assert published["workload"].pop("uses_per_learn") == 0
    assert used["workload"].pop("uses_per_learn") == 3
    assert used == published


def test_published_values() -> None:
    drift = {"stable": 0.005, "quiet_burst": 0.015}
    for name in ADR:
        scenario = load_scenario(f"adr-0003/{name}")
        assert scenario.horizon_days == 365
        assert scenario.identity.dimension == 8
        assert scenario.identity.drift_per_day == drift.get(name, 0.020)
        assert scenario.workload.quiet == (((90, 150),) if name == "quiet_burst" else ())
        assert scenario.workload.outcome_noise == (0.15 if name == "adversarial" else 0.0)
        jumps = (Regime(day=120, blend=(0.5, 0.866)),) if name == "regime_change" else ()
        assert scenario.identity.regimes == jumps


@pytest.mark.parametrize("arm", ["baseline", "review"])
@pytest.mark.parametrize("name", LIFE)
def test_life_scenario_runs(name: str, arm: str) -> None:
    scenario = load_scenario(f"life/{name}")
    run = simulate(scenario, ARMS[arm], 0)
    assert np.isfinite(run.snapshots).all()
    assert len(run.reviews) == (scenario.horizon_days // 30 if arm == "review" else 0)
    if arm == "review":
        assert not all(review.insufficient_history for review in run.reviews)


def test_life_scenarios_do_what_they_say() -> None:
    careers = load_scenario("life/two_careers")
    assert careers.horizon_days == 1825
    path = simulate(careers, ARMS["baseline"], 0).identity
    assert path[912] @ path[913] == pytest.approx(0.0, abs=1e-12)

    seasons = load_scenario("life/seasonal_identity")
    path = simulate(seasons, ARMS["baseline"], 0).identity
    for away, back in ((150, 240), (515, 605)):
        assert path[away] @ path[away + 1] == pytest.approx(0.5)
        assert path[back + 1] == pytest.approx(path[away])

    (week,) = load_scenario("life/poisoned_week").workload.noise
    assert week.last_day - week.first_day + 1 == 7
    assert load_scenario("life/weekly_rhythm").workload.quiet_weekdays == (5, 6)


# Refused files. Per line: change to GOOD, then the place, the value and parts of the rest.

NOISE = "[[workload.noise]]\nfirst_day = 5\nlast_day = 9\noutcome_noise = 0.5\n"
REGIME = "[[identity.regimes]]\nday = 50\n"
WRONG_KEYS = [
    ("horizon_dys = 9", "horizon_dys", 9, ["Did you mean 'horizon_days'?"]),
    ("[idenity]\nx = 1", "idenity", {"x": 1}, ["Did you mean 'identity'?"]),
    ("drift_per_day = 0.1", "drift_per_day", 0.1, ["Did you mean 'identity.drift_per_day'?"]),
    ("[[regimes]]\nday = 1", "regimes", [{"day": 1}], ["Did you mean 'identity.regimes'?"]),
    ("zzz = 1", "zzz", 1, ["one of the keys description, horizon_days, identity"]),
    ("[identity]\ndrift = 0.1", "identity.drift", 0.1, ["Did you mean 'drift_per_day'?"]),
    ("[identity]\ndrift_pr_day = 1", "identity.drift_pr_day", 1, ["mean 'drift_per_day'?"]),
    ("[workload]\nquite = []", "workload.quite", [], ["Did you mean 'quiet'?"]),
    (
        REGIME + "angle_degree = 9.0",
        "identity.regimes[0].angle_degree",
        9.0,
        ["Did you mean 'angle_degrees'?", "one of the keys day, blend"],
    ),
    (
        NOISE + NOISE + "lastday = 9",
        "workload.noise[1].lastday",
        9,
        ["Did you mean 'last_day'?", "first_day, last_day, outcome_noise"],
    ),
]
WRONG_VALUES = [
    ("horizon_days = 8.0", "horizon_days", 8.0, "a whole number from 2 to 3653"),
    ("horizon_days = '9'", "horizon_days", "9", "a whole number from 2 to 3653"),
    ("horizon_days = true", "horizon_days", True, "a whole number from 2 to 3653"),
    ("horizon_days = 3654", "horizon_days", 3654, "a whole number from 2 to 3653"),
    ("horizon_days = 1", "horizon_days", 1, "a whole number from 2 to 3653"),
    ("description = 5", "description", 5, "text that is not empty"),
    ("description = ''", "description", "", "text that is not empty"),
    ("identity = 5", "identity", 5, "a section"),
    ("[identity]\ndrift_per_day = -0.1", "identity.drift_per_day", -0.1, "of at least 0"),
    ("[identity]\ndrift_per_day = '.1'", "identity.drift_per_day", ".1", "a number of"),
    ("[identity]\ndrift_per_day = true", "identity.drift_per_day", True, "a number of"),
    ("[identity]\ndrift_per_day = inf", "identity.drift_per_day", float("inf"), "finite number"),
    ("[identity]\ndrift_per_day = nan", "identity.drift_per_day", float("nan"), "finite number"),
    ("[identity]\ndimension = 1", "identity.dimension", 1, "from 2 to 1024"),
    (
        "[identity.regimes]\nday = 3",
        "identity.regimes",
        {"day": 3},
        "a list of sections, each under a heading in [[double brackets]]",
    ),
    (REGIME + "blend = [0.5]", "identity.regimes[0].blend", [0.5], "a pair [a, b], each a number"),
    (REGIME + "blend = [1, 2, 3]", "identity.regimes[0].blend", [1, 2, 3], "a pair [a, b]"),
    (REGIME + "blend = [1, 'a']", "identity.regimes[0].blend[1]", "a", "a number"),
    (
        REGIME + "angle_degrees = 181.0",
        "identity.regimes[0].angle_degrees",
        181.0,
        "a number above 0 and at most 180",
    ),
    ("[workload]\noutcome_rate = 1.5", "workload.outcome_rate", 1.5, "a number from 0 to 1"),
    ("[workload]\nquiet = [[5]]", "workload.quiet[0]", [5], "a pair [a, b], each a whole number"),
    ("[workload]\nquiet = [5, 9]", "workload.quiet[0]", 5, "a pair [a, b], each a whole number"),
    ("[workload]\nquiet = [[5, -9]]", "workload.quiet[0][1]", -9, "whole number of at least 0"),
    ("[workload]\nquiet = 5", "workload.quiet", 5, "a list, each entry a pair [a, b]"),
    ("[workload]\nquiet_weekdays = [7]", "workload.quiet_weekdays[0]", 7, "from 0 to 6"),
    (NOISE.replace("0.5", "1.2"), "workload.noise[0].outcome_noise", 1.2, "from 0 to 1"),
]
CONFLICTS = [
    ("[workload]\nquiet = [[9, 5]]", "workload.quiet[0]", [9, 5], "Swap the two days."),
    (
        "[workload]\nquiet = [[1, 2], [90, 100]]",
        "workload.quiet[1]",
        [90, 100],
        "a last day up to 99. Shorten the interval or lengthen horizon_days.",
    ),
    (NOISE.replace("9", "4"), "workload.noise[0]", [5, 4], "Swap the two days."),
    (NOISE.replace("9", "900"), "workload.noise[0]", [5, 900], "lengthen horizon_days."),
    (
        "[[identity.regimes]]\nday = 100\nangle_degrees = 9.0",
        "identity.regimes[0].day",
        100,
        "a day up to 99, the last one. Move the jump or lengthen horizon_days.",
    ),
    (
        2 * (REGIME + "angle_degrees = 9.0\n"),
        "identity.regimes[1].day",
        50,
        "a day without another jump. Move one of the two jumps.",
    ),
    (
        REGIME + "angle_degrees = 9.0\nblend = [0.5, 0.5]",
        "identity.regimes[0]",
        ["blend", "angle_degrees"],
        "exactly one of blend, angle_degrees and return_to_day. Give one kind of jump.",
    ),
    (
        REGIME + "return_to_day = 50",
        "identity.regimes[0].return_to_day",
        50,
        "a day before the jump's own, 50. Return to an earlier day or jump later.",
    ),
    (
        REGIME + "blend = [0, 0.0]",
        "identity.regimes[0].blend",
        [0.0, 0.0],
        "Change one of the weights.",
    ),
    (
        "[measurement]\nevery_days = 100",
        "measurement.every_days",
        100,
        "at most 99, the last day, so that one day is measured. Measure more often or lengthen",
    ),
]


def changed(change: str) -> str:
    """Put ``change`` into GOOD, in place of the keys that it gives anew."""
    old, new = tomllib.loads(GOOD), tomllib.loads(change)
    if isinstance(new.get("identity"), dict):
        new["identity"] = {**old["identity"], **new["identity"]}
    return to_toml({**old, **new})


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_good_is_good() -> None:
    assert parse(GOOD).horizon_days == 100


@pytest.mark.parametrize(("change", "key", "value", "parts"), WRONG_KEYS)
def test_unknown_key(change: str, key: str, value: object, parts: list[str]) -> None:
    message = refusal(changed(change))
    assert message.startswith(f"mine/x.toml: {key}: got {value!r}; expected one of the keys ")
    assert message.endswith("Correct the key or remove it.")
    for part in parts:
        assert part in message


def test_far_fetched_key_gets_no_suggestion() -> None:
    assert "Did you mean" not in refusal("zzz = 1\n" + GOOD)


def test_misspelt_required_key_is_called_misspelt_not_missing() -> None:
    message = refusal(GOOD.replace("drift_per_day", "drift_per_dya"))
    assert "identity.drift_per_dya: got 0.01" in message
    assert "Did you mean 'drift_per_day'?" in message


@pytest.mark.parametrize(("change", "key", "value", "expected"), WRONG_VALUES)
def test_wrong_value(change: str, key: str, value: object, expected: str) -> None:
    message = refusal(changed(change))
    assert message.startswith(f"mine/x.toml: {key}: got {value!r}; expected ")
    assert expected in message
    assert "Change the value; " in message
    assert EVERY_KEY in message


def test_wrong_value_in_full() -> None:
    assert refusal(GOOD.replace("0.01", "-0.1")) == (
        "mine/x.toml: identity.drift_per_day: got -0.1; expected a number of at least 0. Change "
        "the value; `elfmem-sim scenarios show adr-0003/stable --keys` lists every key with its "
        "meaning."
    )


@pytest.mark.parametrize(("change", "key", "value", "rest"), CONFLICTS)
def test_values_that_do_not_go_together(change: str, key: str, value: object, rest: str) -> None:
    message = refusal(GOOD + change)
    assert message.startswith(f"mine/x.toml: {key}: got {value!r}; expected ")
    assert rest in message


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        (GOOD.replace('description = "A world."', ""), "description", "the top of the file"),
        ('description = "A world."', "identity", "the top of the file"),
        (GOOD.replace("drift_per_day = 0.01", ""), "identity.drift_per_day", "identity"),
        (GOOD + "[[identity.regimes]]\nblend = [1, 1]", "identity.regimes[0].day", "regimes[0]"),
        (GOOD + NOISE.replace("last_day = 9", ""), "workload.noise[0].last_day", "noise[0]"),
    ],
)
def test_missing_key(text: str, key: str, remedy: str) -> None:
    message = refusal(text)
    assert message.startswith(f"mine/x.toml: {key}: got nothing; expected ")
    assert f"Add {key.rpartition('.')[2]} to " in message
    assert message.endswith(f"{remedy}.")


def test_regime_without_a_jump() -> None:
    message = refusal(GOOD + REGIME)
    assert "mine/x.toml: identity.regimes[0]: got nothing; expected exactly one of" in message


def test_model_built_in_python_explains_itself_too() -> None:
    with pytest.raises(ValueError, match="expected exactly one of blend"):
        Regime(day=3)
    with pytest.raises(ValueError, match=r"measurement\.every_days: got 400; expected at most 364"):
        Scenario(
            description="x",
            identity=Identity(drift_per_day=0.0),
            measurement=Measurement(every_days=400),
        )


def test_whole_number_for_a_number_is_fine() -> None:
    scenario = parse(GOOD.replace("0.01", "0"))
    assert isinstance(scenario.identity.drift_per_day, float)


def test_ten_years_are_allowed() -> None:
    assert parse(GOOD.replace("100", str(MAX_DAYS))).horizon_days == 3653


@pytest.mark.parametrize("name", ["mine/x", "other"])
def test_name_in_the_file(name: str) -> None:
    message = refusal(f"name = '{name}'\n{GOOD}")
    assert f"mine/x.toml: name: got {name!r}" in message
    assert "Remove it." in message


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        (GOOD + "drift 5", 5, "drift 5"),
        (GOOD + "dimension = 8\ndimension = 9\n[workload]", 6, "dimension = 9"),
        (GOOD + "x = [1,", 5, "x = [1,"),
        ("x = " + 5000 * "9", 1, "x = 999"),
    ],
)
def test_invalid_toml(text: str, line: int, shown: str) -> None:
    message = refusal(text)
    assert message.startswith(f"mine/x.toml: line {line}: got '{shown}")
    assert "expected valid TOML (" in message
    assert message.endswith("Correct the line.")


# Finding the file.


def test_loads_a_file_by_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8")
    assert load_scenario(file).name == "mine"
    assert load_scenario(str(file)) == load_scenario(file)


def test_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8-sig")
    assert load_scenario(file).description == "A world."


def test_shipped_scenario_has_one_name_however_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name = load_scenario("adr-0003/stable")
    file = scenario_folder() / "adr-0003" / "stable.toml"
    assert load_scenario(file) == by_name
    assert load_scenario(Path("adr-0003/stable")) == by_name
    monkeypatch.chdir(file.parent)
    assert load_scenario("stable.toml") == by_name
    copy = shutil.copy(file, tmp_path)
    assert load_scenario(copy).name == "stable"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("adr-0003/stabel", "Did you mean 'adr-0003/stable'?"),
        ("stable", "/stable'?"),
        ("no/such.toml", "a shipped scenario or the path of a .toml file."),
        ("adr-0003", "expected"),
        ("", "expected"),
        (__file__, "the path of a .toml file."),
        ("../pyproject", "expected"),
    ],
)
def test_no_such_scenario(name: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        load_scenario(name)
    assert str(caught.value).startswith(f"scenario: got {name!r}; expected ")
    assert part in str(caught.value)
    assert "See `elfmem-sim scenarios list`." in str(caught.value)


def test_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x.toml"
    folder.mkdir()
    with pytest.raises(UserError, match="not a folder") as caught:
        load_scenario(folder)
    assert str(folder) in str(caught.value)


def test_file_in_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes("description = 'Café'".encode("latin-1"))
    with pytest.raises(UserError) as caught:
        load_scenario(file)
    assert str(caught.value) == (
        rf"{file}: got b'\xe9'; expected text in UTF-8. Save the file as UTF-8; byte 18 is not."
    )


def test_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD, encoding="utf-8")

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(UserError, match="The system says: Permission denied") as caught:
        load_scenario(file)
    assert str(file) in str(caught.value)


def test_error_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace("0.01", "-1"), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_scenario(file)
    assert str(caught.value).startswith(f"{file}: identity.drift_per_day: got -1; ")


@pytest.mark.parametrize("place", ["site/elfmem_sim/scenarios", "site/scenarios"])
def test_scenario_folder_in_a_wheel_and_beside_the_package(tmp_path: Path, place: str) -> None:
    package = tmp_path / "site" / "elfmem_sim"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    source = Path(str(module.__file__)).parent
    for file in ("scenario.py", "errors.py"):
        shutil.copy(source / file, package)
    shutil.copytree(scenario_folder(), tmp_path / place)
    program = (
        "from elfmem_sim.scenario import load_scenario, scenario_folder\n"
        "print(scenario_folder())\n"
        "print(load_scenario('adr-0003/stable').name)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == [str(tmp_path / place), "adr-0003/stable"]


# Properties.

SECTIONS: dict[str, type[BaseModel]] = {
    "": Scenario,
    "identity": Identity,
    "constitution": Constitution,
    "workload": Workload,
    "measurement": Measurement,
    "identity.regimes": Regime,
    "workload.noise": Noise,
}
ALL_SECTIONS: dict[str, type[BaseModel]] = SECTIONS | {
    "constitution.seed": Seed,
    "corpus": Corpus,
    "production": Production,
    "workload.rescore": Rescore,
}
# The machine may be busy with other tests: how long an example takes is no finding.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
text_values = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20)
probabilities = st.floats(0.0, 1.0)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    horizon = draw(st.integers(2, MAX_DAYS))
    days = st.integers(0, horizon - 1)
    intervals = st.tuples(days, days).map(lambda pair: (min(pair), max(pair)))

    def regime(day: int) -> st.SearchStrategy[Regime]:
        kinds = [
            st.builds(
                Regime,
                day=st.just(day),
                blend=st.tuples(st.floats(0.1, 1.0), st.floats(-1.0, 1.0)),
                direction_spread=st.floats(0.01, 10.0),
            ),
            st.builds(Regime, day=st.just(day), angle_degrees=st.floats(0.1, 180.0)),
        ]
        if day > 0:
            kinds.append(st.builds(Regime, day=st.just(day), return_to_day=st.integers(0, day - 1)))
        return st.one_of(kinds)

    jump_days = draw(st.lists(days, max_size=4, unique=True))
    noise = [
        Noise(first_day=first, last_day=last, outcome_noise=draw(probabilities))
        for first, last in draw(st.lists(intervals, max_size=3))
    ]
    return Scenario(
        name="mine/x",
        description=draw(text_values),
        horizon_days=horizon,
        identity=Identity(
            dimension=draw(st.integers(2, 1024)),
            drift_per_day=draw(st.floats(0.0, 10.0)),
            regimes=tuple(draw(regime(day)) for day in jump_days),
        ),
        workload=Workload(
            hours_per_day=draw(st.floats(0.1, 24.0)),
            outcome_rate=draw(probabilities),
            noise=tuple(noise),
            quiet=tuple(draw(st.lists(intervals, max_size=3))),
            quiet_weekdays=tuple(draw(st.lists(st.integers(0, 6), max_size=3))),
        ),
        measurement=Measurement(every_days=draw(st.integers(1, horizon - 1))),
    )


@unhurried
@given(scenarios())
def test_round_trip_through_toml(scenario: Scenario) -> None:
    assert parse(to_toml(scenario.model_dump())) == scenario


@unhurried
@given(
    section=st.sampled_from(sorted(SECTIONS)),
    key=st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True),
    value=st.one_of(st.integers(), st.booleans(), text_values),
)
def test_unknown_keys_are_refused(section: str, key: str, value: object) -> None:
    if key in SECTIONS[section].model_fields:
        return
    data: dict[str, Any] = {
        "description": "x",
        "identity": {
            "drift_per_day": 0.0,
            "regimes": ({"day": 3, "angle_degrees": 1.0},),
        },
        "constitution": {},
        "workload": {"noise": ({"first_day": 1, "last_day": 2, "outcome_noise": 0.5},)},
        "measurement": {},
    }
    target = data
    for part in filter(None, section.split(".")):
        inner = target[part]
        target = inner[0] if isinstance(inner, tuple) else inner
    target[key] = value
    place = {"identity.regimes": "identity.regimes[0].", "workload.noise": "workload.noise[0]."}
    prefix = place.get(section, f"{section}." if section else "")
    message = refusal(to_toml(data))
    assert message.startswith(f"mine/x.toml: {prefix}{key}: got {value!r}; ")
    assert "Correct the key or remove it." in message


@unhurried
@given(st.floats(max_value=0.0, exclude_max=True) | st.floats(min_value=1.0, exclude_min=True))
def test_probabilities_outside_0_and_1_are_refused(value: float) -> None:
    message = refusal(GOOD + f"[workload]\noutcome_rate = {value!r}")
    assert f"workload.outcome_rate: got {value!r}; expected a " in message


@unhurried
@given(st.text(max_size=60))
def test_arbitrary_text_is_refused_politely(text: str) -> None:
    refusal(text)


# --set.


def settle(arm: str = "baseline", /, **given_keys: str) -> tuple[Scenario, Arm]:
    keys = {key.replace("__", "."): value for key, value in given_keys.items()}
    return override(load_scenario("adr-0003/stable"), ARMS[arm], keys)


def set_refusal(arm: str, key: str, text: str) -> str:
    with pytest.raises(UserError) as caught:
        override(load_scenario("adr-0003/stable"), ARMS[arm], {key: text})
    return str(caught.value)


@pytest.mark.parametrize("arm", list(ARMS))
def test_no_settings_change_nothing(arm: str) -> None:
    for name in scenario_names():
        scenario = load_scenario(name)
        assert override(scenario, ARMS[arm], {}) == (scenario, ARMS[arm])


def test_settings_of_the_scenario() -> None:
    scenario, arm = settle(
        workload__uses_per_learn="3",
        horizon_days="100",
        identity__drift_per_day=".5",
        description="Two words",
        workload__quiet="[[1, 2], [8, 9]]",
        identity__regimes="[{ day = 9, angle_degrees = 30.0 }, { day = 8, blend = [1, 0.5] }]",
        measurement="{ every_days = 7 }",
    )
    assert scenario.name == "adr-0003/stable"
    assert scenario.workload.uses_per_learn == 3
    assert scenario.workload.quiet == ((1, 2), (8, 9))
    assert scenario.horizon_days == 100
    assert scenario.identity.drift_per_day == 0.5
    assert scenario.identity.dimension == 8
    assert scenario.identity.regimes[0] == Regime(day=9, angle_degrees=30.0)
    assert scenario.identity.regimes[1] == Regime(day=8, blend=(1.0, 0.5))
    assert scenario.description == "Two words"
    assert scenario.measurement == Measurement(every_days=7)
    assert arm == ARMS["baseline"]


def test_settings_of_the_arm() -> None:
    before = ARMS["review"].model_dump_json()
    scenario, arm = settle(
        "review",
        review__config__drift_threshold="0.2",
        review__config__top_n="30",
        review__cadence_days="90",
    )
    assert scenario == load_scenario("adr-0003/stable")
    assert arm.review == Review(cadence_days=90, config={"drift_threshold": 0.2, "top_n": 30})
    assert arm.name == "review"
    assert ARMS["review"].model_dump_json() == before
    _, arm = settle("model_c", ego__distribute="2")
    assert arm.ego == Ego(distribute=2)


@pytest.mark.parametrize(
    ("arm", "key", "text", "parts"),
    [
        ("baseline", "workload.uses_per_lern", "3", ["got 3", "Did you mean 'uses_per_learn'?"]),
        ("baseline", "worklod.quiet", "[]", ["worklod: got", "Did you mean 'workload'?"]),
        ("baseline", "uses_per_learn", "3", ["Did you mean 'workload.uses_per_learn'?"]),
        ("baseline", "workload.uses_per_learn", "many", ["got 'many'", EVERY_KEY]),
        ("baseline", "workload.uses_per_learn", "3.0", ["got 3.0", "a whole number from 0"]),
        ("baseline", "workload.uses_per_learn", "", ["got ''", "a whole number from 0"]),
        ("baseline", "horizon_days", "9\nx = 1", [r"got '9\nx = 1'", "a whole number from 2"]),
        ("baseline", "identity.drift_per_day", "-1", ["got -1", "a number of at least 0"]),
        ("baseline", "identity.drift_per_day", "inf", ["got inf", "a finite number"]),
        ("baseline", "horizon_days", "20", ["measurement.every_days: got 28", "at most 19"]),
        ("baseline", "identity.regimes.day", "3", ["got 3", "`--set 'identity.regimes=...'`"]),
        ("baseline", "horizon_days.x.y", "3", ["got 3", "Set horizon_days as a whole"]),
        ("baseline", "identity.regimes", "[{day = 3}]", ["regimes[0]: got nothing", "Give one"]),
        ("baseline", "identity", "{}", ["identity.drift_per_day: got nothing", "Add drift"]),
        ("baseline", "name", "other", ["name: got 'other'", "Remove it."]),
        ("baseline", "", "1", ["got 1", "Correct the key"]),
        ("baseline", "alpha", "1", ["alpha: got 1", "Correct the key or remove it."]),
        ("baseline", "review.cadence_days", "7", ["got '7'", "baseline has none", "another arm"]),
        ("baseline", "review", "{}", ["got '{}'", "an arm with review"]),
        ("model_c", "review.config.top_n", "7", ["got '7'", "model_c has none"]),
        ("review", "ego.alpha", "7", ["got '7'", "an arm with ego", "review has none"]),
        ("review", "review.cadence", "7", ["got 7", "Did you mean 'cadence_days'?"]),
        ("review", "review.cadence_days", "0", ["got 0", "a whole number of at least 1"]),
        ("review", "review.accept_probability", "2", ["got 2", "a number from 0 to 1"]),
        ("review", "review.config.top_n", "x", ["review.config.top_n: got 'x'", "a number"]),
        ("review", "review.config.a.b", "1", ["review.config.a: got {'b': 1}", "a number"]),
        ("review", "review.config", "3", ["review.config: got 3", "a section of numbers"]),
    ],
)
def test_refused_setting(arm: str, key: str, text: str, parts: list[str]) -> None:
    message = set_refusal(arm, key, text)
    assert message.startswith("--set: ")
    for part in parts:
        assert part in message


def test_overridden_scenario_keeps_its_streams() -> None:
    """A setting that changes nothing changes no number either, not even the review's choices."""
    scenario = load_scenario("adr-0004/regime_change")
    arm = ARMS["review"].model_copy(update={"review": Review(accept_probability=0.5)})
    again = override(scenario, ARMS["review"], {"review.accept_probability": "0.5"})
    first, second = simulate(scenario, arm, 3), simulate(*again, 3)
    assert first.amendments == second.amendments
    np.testing.assert_array_equal(first.snapshots, second.snapshots)


# Keys in words.


@pytest.mark.parametrize("model", [*ALL_SECTIONS.values(), Review, Ego, Adapt, Arm])
def test_every_field_is_described(model: type[BaseModel]) -> None:
    assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_described_keys_are_all_keys() -> None:
    keys = [key for key, _, _ in describe_keys()]
    expected = {
        f"{section}.{name}".removeprefix(".")
        for section, model in ALL_SECTIONS.items()
        for name in model.model_fields
    }
    assert {key.replace("[]", "") for key in keys} == expected - {"name"}
    assert len(keys) == len(set(keys))
    assert all(words and meaning for _, words, meaning in describe_keys())


def test_described_arm_keys_are_all_keys() -> None:
    assert [key for key, _, _ in describe_arm_keys()] == [
        *(f"ego.{name}" for name in Ego.model_fields),
        *(f"review.{name}" for name in Review.model_fields),
    ]
    assert all(words and meaning for _, words, meaning in describe_arm_keys())


def test_descriptions() -> None:
    words = {key: (kind, meaning) for key, kind, meaning in describe_keys()}
    assert words["identity.drift_per_day"] == (
        "a number of at least 0; required",
        "Gaussian step per component and day, before normalisation.",
    )
    assert words["identity"][0] == "a section; required"
    assert words["workload"][0] == "a section; optional"
    assert words["workload.outcome_rate"][0] == "a number from 0 to 1; default 0.4"
    assert words["identity.regimes[].angle_degrees"][0] == (
        "a number above 0 and at most 180; optional"
    )
    assert words["workload.quiet"][0] == (
        "a list, each entry a pair [a, b], each a whole number of at least 0; default []"
    )
    review = {key: kind for key, kind, _ in describe_arm_keys()}
    assert review["review.config"] == "a section of numbers; default {}"


def test_described_keys_can_be_set() -> None:
    """Each default, given as a setting, is accepted and changes nothing."""
    scenario, arm = load_scenario("adr-0003/stable"), ARMS["review"]
    defaults = {
        key: kind.split("default ")[1]
        for key, kind, _ in [*describe_keys(), *describe_arm_keys()]
        if "default " in kind
        and "[]." not in key
        and not key.startswith(("constitution.seed.", "ego."))
    }
    assert len(defaults) > 20
    assert override(scenario, arm, defaults) == (scenario, arm)
