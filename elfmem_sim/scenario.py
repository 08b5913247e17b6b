"""Scenarios and arms: what happens to an agent, and how the agent is built.

A scenario is a TOML file; every field of the classes below is a key, and no other key is accepted.
What an error says is expected, and what ``describe_keys`` lists, comes from these classes' own JSON
schema, so that a field is described in one place only.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from elfmem_sim.errors import UserError

M = TypeVar("M", bound=BaseModel)

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Day = Annotated[int, Field(ge=0)]
Location = tuple[int | str, ...]

MAX_DAYS = 3653
"""Ten years."""


class _ConflictError(ValueError):
    """Values that are each right but do not go together; ``key`` is the one to blame."""

    def __init__(self, key: Location, value: object, expected: str, remedy: str) -> None:
        self.key, self.value, self.expected, self.remedy = key, value, expected, remedy
        place = f"{_dotted(key)}: " if key else ""
        super().__init__(f"{place}got {value!r}; expected {expected}. {remedy}")


class _Nothing:
    """Stands for the value of a key that is not there."""

    def __repr__(self) -> str:
        return "nothing"


class _Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Regime(_Model):
    """A day on which the self jumps instead of drifting; exactly one kind of jump."""

    day: Day
    """Day of the jump, 0-based."""
    blend: tuple[float, float] | None = None
    """Weights of the old self and of a new direction, as published (ADR 0003: 0.5 and 0.866)."""
    direction_spread: Annotated[float, Field(gt=0.0)] = 1.5
    """Gaussian spread, per component, of a blend's new direction around the old self."""
    angle_degrees: Annotated[float, Field(gt=0.0, le=180.0)] | None = None
    """Turn by exactly this angle, towards a random orthogonal direction."""
    return_to_day: Day | None = None
    """Go back to where the self was at the end of this day."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = ("blend", "angle_degrees", "return_to_day")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            raise _ConflictError(
                (),
                given or _Nothing(),
                "exactly one of blend, angle_degrees and return_to_day",
                "Give one kind of jump.",
            )
        if self.return_to_day is not None and self.return_to_day >= self.day:
            raise _ConflictError(
                ("return_to_day",),
                self.return_to_day,
                f"a day before the jump's own, {self.day}",
                "Return to an earlier day or jump later.",
            )
        if self.blend == (0.0, 0.0):
            raise _ConflictError(
                ("blend",), [0.0, 0.0], "a weight other than 0", "Change one of the weights."
            )
        return self


class Identity(_Model):
    """Where the self points, and how it moves."""

    dimension: Annotated[int, Field(ge=2, le=1024)] = 8
    """Dimension of the topic space."""
    drift_per_day: Annotated[float, Field(ge=0.0)]
    """Gaussian step per component and day, before normalisation."""
    regimes: tuple[Regime, ...] = ()
    """Jumps, at most one a day."""


class Seed(_Model):
    """What each constitutional block starts with."""

    alpha: Annotated[float, Field(gt=0.0)] = 2.0
    """Successes each constitutional block starts with."""
    beta: Annotated[float, Field(gt=0.0)] = 0.5
    """Failures each constitutional block starts with."""
    reinforcement: Annotated[int, Field(ge=0)] = 5
    """Reinforcements each constitutional block starts with."""
    edges: Annotated[int, Field(ge=0)] = 5
    """Edges each constitutional block starts with."""
    decay: Annotated[float, Field(ge=0.0)] = 1e-5
    """Decay of constitutional blocks per active hour (elfmem's PERMANENT tier)."""
    ego_strength: Annotated[float, Field(ge=0.0)] = 0.0
    """Ego strength each constitutional block starts with."""


class Constitution(_Model):
    """The blocks that say who the agent is, laid down at birth around the self."""

    size: Annotated[int, Field(ge=0, le=1000)] = 10
    """Number of constitutional blocks."""
    spread: Annotated[float, Field(ge=0.0)] = 0.15
    """Gaussian spread around the self at birth, per component."""
    seed: Seed | None = None
    """What its blocks start with, in place of the arm's own seed."""


class Corpus(_Model):
    """Ordinary blocks that are there at birth."""

    size: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Number of blocks."""
    spread: Annotated[float, Field(ge=0.0)] = 0.4
    """Gaussian spread around the self at birth, per component."""
    uncertain_fraction: Probability = 0.0
    """Share of the blocks, the first ones, that start without evidence."""
    alpha: Annotated[float, Field(gt=0.0)] = 7.0
    """Successes each established block starts with."""
    beta: Annotated[float, Field(gt=0.0)] = 3.0
    """Failures each established block starts with."""
    reinforcement: Annotated[int, Field(ge=0)] = 10
    """Reinforcements each established block starts with."""
    edges: Annotated[int, Field(ge=0)] = 3
    """Edges each established block starts with."""


class Rescore(_Model):
    """A sample of blocks judged anew, in a rhythm (ADR 0002)."""

    every_days: Annotated[int, Field(ge=0)] = 0
    """Rescore on every day above 0 that this divides; 0 for never."""
    blocks: Annotated[int, Field(ge=1, le=1000)] = 20
    """Blocks judged each time."""
    noise: Annotated[float, Field(ge=0.0)] = 0.15
    """Gaussian spread of the judgement around the block's alignment with the self."""
    weight: Annotated[float, Field(ge=0.0)] = 0.5
    """Evidence that a judgement adds, in arms that add."""


class Noise(_Model):
    """An interval in which outcomes are flipped with a probability of its own."""

    first_day: Day
    """First day of the interval, 0-based."""
    last_day: Day
    """Last day of the interval, itself included."""
    outcome_noise: Probability
    """Probability that an outcome in the interval is flipped."""


class Workload(_Model):
    """What the agent does on a day."""

    hours_per_day: Annotated[float, Field(gt=0.0, le=24.0)] = 4.0
    """Active hours a day; decay and elfmem's review window run on them."""
    learns_per_day: Annotated[int, Field(ge=0, le=1000)] = 5
    """Blocks learned a day."""
    learn_spread_min: Annotated[float, Field(ge=0.0)] = 0.3
    """Least spread of a learned block around the self, per component."""
    learn_spread_width: Annotated[float, Field(ge=0.0)] = 0.4
    """The spread is uniform between the least and this much more."""
    queries_per_day: Annotated[int, Field(ge=0, le=1000)] = 20
    """ATTENTION queries a day, five blocks each."""
    query_spread: Annotated[float, Field(ge=0.0)] = 0.2
    """Spread of a query around the self, per component."""
    outcome_rate: Probability = 0.40
    """Probability that a query is followed by an outcome on its first block."""
    outcome_noise: Probability = 0.0
    """Probability that an outcome is flipped: a success counts as a failure and vice versa."""
    noise: tuple[Noise, ...] = ()
    """Intervals with another probability; a later one overrides an earlier one."""
    uses_per_learn: Annotated[int, Field(ge=0, le=1000)] = 0
    """Times a block is used, and so reinforced, on the day it is learned (0 as published)."""
    quiet: tuple[tuple[Day, Day], ...] = ()
    """Inclusive intervals of days without learning and queries."""
    rescore: Rescore = Rescore()
    """Blocks judged anew."""
    quiet_weekdays: tuple[Annotated[int, Field(ge=0, le=6)], ...] = ()
    """Weekdays without learning and queries, from day 0's own, 0, to 6; 5 and 6 are a weekend."""


class Measurement(_Model):
    """When and how vitals are taken."""

    every_days: Annotated[int, Field(ge=1)] = 28
    """Vitals on every day above 0 that this divides."""
    queries: Annotated[int, Field(ge=1, le=10_000)] = 25
    """Probe queries per measurement."""
    recent_days: Annotated[int, Field(ge=1)] = 30
    """A block younger than this counts as recent."""


class Production(_Model):
    """How a whole agent on elfmem's own API lives the scenario (the production tier only).

    Its self, its constitution and what it learns on which day are the model tier's at the same
    seed. A text points where the model's topic points, in the self's dimensions, and into a
    direction of its own in all others: its wording. Queries have no wording, so similarity orders
    texts as it does in the model.
    """

    dimension: Annotated[int, Field(ge=64, le=1024)] = 64
    """Dimension of the embeddings; above the identity's own."""
    wording: Annotated[float, Field(ge=0.0)] = 0.7
    """Length of a text's wording beside its topic: two texts on one topic have a mean cosine of
    1 / (1 + wording squared). By .7 elfmem takes next to none for a near-duplicate (.90)."""
    attention_per_day: Annotated[int, Field(ge=0, le=1000)] = 5
    """ATTENTION frames a day, each perhaps followed by an outcome (`workload.outcome_rate`). Fewer
    than the model's queries, because elfmem reinforces everything that a frame returns."""
    task_per_day: Annotated[int, Field(ge=0, le=1000)] = 0
    """TASK frames a day, spread among the ATTENTION frames."""
    self_per_day: Annotated[int, Field(ge=0, le=1000)] = 1
    """SELF frames a day: the first opens the day, others are spread among the ATTENTION frames."""
    rescore_every_days: Annotated[int, Field(ge=0)] = 7
    """Days between elfmem's rescores, of as many blocks as it takes by default; 0 for never. From
    0.20.0 on, a constitution that is never rescored is never proposed for amendment."""
    principles: bool = False
    """Whether the constitution is elfmem's own ten seed principles instead of topic blocks; the
    principles then point where the topic blocks would."""


class Scenario(_Model):
    """One world for agents to live in."""

    name: str = ""
    """Set by the file's place: ``adr-0003/slow_drift``."""
    description: Annotated[str, Field(min_length=1)]
    """One sentence for ``scenarios list``."""
    horizon_days: Annotated[int, Field(ge=2, le=MAX_DAYS)] = 365
    """Days to simulate, up to ten years; the last day is one less, as the first is day 0."""
    identity: Identity
    """Where the self points, and how it moves."""
    constitution: Constitution = Constitution()
    """The blocks that say who the agent is."""
    corpus: Corpus = Corpus()
    """Ordinary blocks that are there at birth."""
    workload: Workload = Workload()
    """What the agent does on a day."""
    measurement: Measurement = Measurement()
    """When and how vitals are taken."""
    production: Production = Production()
    """How a whole agent on elfmem's own API lives it."""

    @model_validator(mode="after")
    def _inside_horizon(self) -> Self:
        last = self.horizon_days - 1
        every = self.measurement.every_days
        if every > last:
            raise _ConflictError(
                ("measurement", "every_days"),
                every,
                f"at most {last}, the last day, so that one day is measured",
                "Measure more often or lengthen horizon_days.",
            )
        seen: set[int] = set()
        for i, regime in enumerate(self.identity.regimes):
            key: Location = ("identity", "regimes", i, "day")
            if regime.day > last:
                raise _ConflictError(
                    key,
                    regime.day,
                    f"a day up to {last}, the last one",
                    "Move the jump or lengthen horizon_days.",
                )
            if regime.day in seen:
                raise _ConflictError(
                    key, regime.day, "a day without another jump", "Move one of the two jumps."
                )
            seen.add(regime.day)
        intervals = [("quiet", i, *days) for i, days in enumerate(self.workload.quiet)]
        intervals += [
            ("noise", i, n.first_day, n.last_day) for i, n in enumerate(self.workload.noise)
        ]
        for name, i, start, end in intervals:
            key = ("workload", name, i)
            if start > end:
                raise _ConflictError(
                    key, [start, end], "a last day not before the first", "Swap the two days."
                )
            if end > last:
                raise _ConflictError(
                    key,
                    [start, end],
                    f"a last day up to {last}",
                    "Shorten the interval or lengthen horizon_days.",
                )
        return self


class Ego(_Model):
    """Ego strength of Models C and D (ADR 0003): success slows a block's decay."""

    alpha: Annotated[float, Field(ge=0.0)] = 0.05
    """Decay is the standard rate divided by ``1 + alpha * ego``."""
    decay_per_day: Annotated[float, Field(ge=0.0)] = 0.05
    """Ego strength lost a day."""
    gain: float = 1.0
    """Ego strength won by a success."""
    loss: float = 0.3
    """Ego strength lost by a failure."""
    queries_per_day: Annotated[int, Field(ge=0)] = 2
    """SELF queries a day."""
    distribute: Annotated[int, Field(ge=1)] = 1
    """Constitutional blocks that share a SELF query's outcome."""
    outcome_rate: Probability = 0.6
    """Probability of an outcome per block and SELF query."""


class Adapt(_Model):
    """An agent that turns its own knobs (ADR 0003's self-architect)."""

    every_days: Annotated[int, Field(ge=1)] = 28
    """Adapt on every day that this divides."""
    from_day: Annotated[int, Field(ge=0)] = 30
    """Not before this day."""
    shadow_queries: Annotated[int, Field(ge=0, le=100_000)] = 8
    """Queries of one shadow evaluation; with 0 its value is a coin, one uniform draw."""
    common_numbers: bool = False
    """Whether all candidates of a day are evaluated on the same draws."""
    rollout_days: Annotated[int, Field(ge=0, le=365)] = 0
    """Evaluate by living so many days ahead instead of by shadow queries; 0 for shadow queries."""


class Review(_Model):
    """Manual constitutional review (ADR 0004): when, by whom, and what comes of it."""

    cadence_days: Annotated[int, Field(ge=1)] = 30
    """A review at the end of every so many days."""
    config: Mapping[str, float] = Field(default_factory=dict)
    """Fields of elfmem's ``ReviewConfig`` that differ from the shipped defaults."""
    proposer_move: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """How far a proposed text moves from the old text (0) to the mean of its evidence (1)."""
    proposer_noise: Annotated[float, Field(ge=0.0)] = 0.0
    """Gaussian spread, per component, of a proposed text around where it should go."""
    proposer_failure_rate: Probability = 0.0
    """Probability that the proposer raises instead of answering."""
    accept_probability: Probability = 1.0
    """Probability that a proposal is accepted: 1 accepts all, 0 none."""
    accept_above_drift: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Only proposals with a drift score above this are considered."""
    revert_probability: Probability = 0.0
    """Probability that an accepted amendment is reverted later."""
    revert_after_days: Annotated[int, Field(ge=1)] = 30
    """Days between an acceptance and its reversion."""


class Arm(_Model):
    """How an agent is built: its constitution's seed, and the mechanism under test."""

    name: str
    """What ``--arm`` calls it."""
    description: str
    """One sentence on what is special about the arm."""
    constitution_weight: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """Factor on constitutional blocks' ATTENTION scores; 0 keeps them out (Architecture M)."""
    seed: Seed = Seed()
    """What each constitutional block starts with, unless the scenario says otherwise."""
    cold_start_floor: bool = True
    """Whether fresh blocks borrow centrality."""
    exploration: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the exploration bonus (ADR 0002)."""
    power_law: bool = False
    """Whether recency fades by a power law (ADR 0001) instead of exponentially."""
    additive_rescore: bool = False
    """Whether a rescore adds evidence (ADR 0002) instead of overwriting confidence."""
    ego: Ego | None = None
    """Ego strength, if the arm has it."""
    adapt: Adapt | None = None
    """Adaptation of its own parameters, if the arm does that."""
    review: Review | None = None
    """Constitutional review, if the arm holds it."""


def scenario_folder() -> Path:
    """Return the folder of the shipped scenarios: in the wheel, or beside the package."""
    installed = Path(str(files("elfmem_sim"))) / "scenarios"
    return installed if installed.is_dir() else Path(str(files("elfmem_sim"))).parent / "scenarios"


def scenario_names() -> list[str]:
    """Return the names of all shipped scenarios, sorted."""
    root = scenario_folder()
    return sorted(
        path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.toml")
    )


def load_scenario(name: str | Path) -> Scenario:
    """Read one scenario.

    Args:
        name: Name of a shipped scenario (``adr-0003/stable``) or path of a TOML file.

    Raises:
        UserError: If there is no such scenario or the file does not hold a valid one.
    """
    wanted = name.as_posix() if isinstance(name, Path) else name
    root = scenario_folder()
    shipped = scenario_names()
    path = root / f"{wanted}.toml" if wanted in shipped else Path(name)
    if path.suffix != ".toml" or not path.is_file():
        close = get_close_matches(wanted, shipped, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        but = ", not a folder" if path.is_dir() else ""
        raise UserError(
            wanted,
            f"a shipped scenario or the path of a .toml file{but}",
            f"{hint}See `elfmem-sim scenarios list`.",
            "scenario",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            error.object[error.start : error.end],
            "text in UTF-8",
            f"Save the file as UTF-8; byte {error.start} is not.",
            str(path),
        ) from None
    except OSError as error:
        raise UserError(
            wanted, "a file that can be read", f"The system says: {error.strerror}.", str(path)
        ) from None
    # The name is part of the random streams: by name or by path, a scenario must be the same.
    inside = path.resolve().is_relative_to(root.resolve())
    shown = path.resolve().relative_to(root.resolve()) if inside else Path(path.name)
    return parse_scenario(text, name=shown.with_suffix("").as_posix(), where=str(path))


def parse_scenario(text: str, *, name: str, where: str) -> Scenario:
    """Turn TOML text into a scenario.

    Raises:
        UserError: With file, key, value and remedy.
    """
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise UserError(
            text.split("\n")[line - 1].strip(),
            f"valid TOML ({error})",
            "Correct the line.",
            f"{where}: line {line}",
        ) from None
    return _named(data, name, where)


def _named(data: Mapping[str, Any], name: str, where: str) -> Scenario:
    if "name" in data:
        raise UserError(
            data["name"],
            "no such key, as a scenario is called after its file",
            "Remove it.",
            f"{where}: name",
        )
    return validated(Scenario, {**data, "name": name}, where)


def validated(model: type[M], data: Mapping[str, Any], where: str) -> M:
    """Validate ``data`` and turn the first complaint into a :class:`UserError`."""
    try:
        return model.model_validate(_rebuilt(data, tuple))
    except ValidationError as error:
        raise _complaint(model, error, where) from None


def _complaint(model: type[BaseModel], error: ValidationError, where: str) -> UserError:
    errors = error.errors(include_url=False)
    # A misspelt key is also a missing one: name the misspelling.
    first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
    kind, loc, value = first["type"], first["loc"], _rebuilt(first["input"], list)
    conflict = first.get("ctx", {}).get("error")
    if isinstance(conflict, _ConflictError):
        place = f"{where}: {_dotted((*loc, *conflict.key))}"
        return UserError(conflict.value, conflict.expected, conflict.remedy, place)
    if kind == "missing" and isinstance(loc[-1], int):
        # Half a pair; pydantic misses the other half, but the user sees a wrong value.
        kind, loc = "too_short", loc[:-1]
    place = f"{where}: {_dotted(loc)}"
    if kind == "extra_forbidden":
        return UserError(value, *_unknown(model, loc), place)
    expected = _in_words(_node(model, loc))
    if kind == "missing":
        section = _dotted(loc[:-1]) or "the top of the file"
        return UserError(_Nothing(), expected, f"Add {loc[-1]} to {section}.", place)
    if kind == "finite_number":
        expected = expected.replace("a number", "a finite number")
    return UserError(
        value,
        expected,
        "Change the value; `elfmem-sim scenarios show adr-0003/stable --keys` lists every key "
        "with its meaning.",
        place,
    )


def _unknown(model: type[BaseModel], loc: Location) -> tuple[str, str]:
    """Return what was expected instead of the unknown key at ``loc``, and what to do."""
    word = str(loc[-1])
    here = [key for key in _node(model, loc[:-1])["properties"] if key != "name"]
    close = get_close_matches(word, here, n=1, cutoff=0.5)
    if not close:
        elsewhere = {key.split(".")[-1]: key for key, _, _ in _describe(model)}
        close = [elsewhere[key] for key in get_close_matches(word, elsewhere, n=1, cutoff=0.8)]
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"one of the keys {', '.join(here)}", f"{hint}Correct the key or remove it."


def _dotted(loc: Location) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".")


def _rebuilt(value: Any, sequence: type[list[Any]] | type[tuple[Any, ...]]) -> Any:
    """Copy ``value`` with each list or tuple in it as a ``sequence``.

    TOML has lists where the frozen models hold tuples; errors show lists, as the user wrote them.
    """
    if isinstance(value, Mapping):
        return {key: _rebuilt(entry, sequence) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return sequence(_rebuilt(entry, sequence) for entry in value)
    return value


def override(scenario: Scenario, arm: Arm, settings: Mapping[str, str]) -> tuple[Scenario, Arm]:
    """Apply ``--set key=value`` settings.

    Keys are dotted paths into the scenario (``workload.uses_per_learn``) or, below ``review.`` and
    ``ego.``, into the arm. Settings of a section that the arm does not have are an error. Values
    are TOML; a list is replaced as a whole. Scenario and arm keep their names.

    Raises:
        UserError: For an unknown key or a value that the field refuses.
    """
    world: dict[str, Any] = scenario.model_dump(exclude={"name"})
    build: dict[str, Any] = arm.model_dump()
    for key, text in settings.items():
        head = key.split(".")[0]
        target = build if head in ("review", "ego") else world
        if head in ("review", "ego") and build[head] is None:
            raise UserError(
                text,
                f"an arm with {head}, and {arm.name} has none",
                "Choose another arm or drop the setting.",
                f"--set: {key}",
            )
        _assign(target, key, _parse_value(text))
    return _named(world, scenario.name, "--set"), validated(Arm, build, "--set")


def _assign(target: dict[str, Any], key: str, value: object) -> None:
    *path, last = key.split(".")
    for depth, part in enumerate(path, start=1):
        # A section that does not exist is created, for the validation to name and correct it.
        if target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            whole = ".".join(path[:depth])
            raise UserError(
                value,
                f"a key inside a section, and {whole} is a value",
                f"Set {whole} as a whole: `--set '{whole}=...'`.",
                f"--set: {key}",
            )
    target[last] = value


def _parse_value(text: str) -> object:
    """Read a TOML value; a bare word is text, and ``.5`` is a number as in every shell."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text
    return parsed["value"] if len(parsed) == 1 else text


def describe_keys() -> list[tuple[str, str, str]]:
    """Return dotted key, type and default in words, and meaning of every key of a scenario."""
    return list(_describe(Scenario))


def describe_arm_keys() -> list[tuple[str, str, str]]:
    """Return the same for the keys that ``--set`` accepts on an arm that has their section."""
    return [entry for entry in _describe(Arm) if entry[0].startswith(("ego.", "review."))]


def _describe(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    root = _schema(model)

    def walk(section: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
        for name, reference in section["properties"].items():
            if name == "name":
                continue
            field = _follow(reference, root)
            key = prefix + name
            yield (
                key,
                f"{_in_words(field)}; {_default(section, name, field)}",
                " ".join(field.get("description", "").replace("``", "`").split()),
            )
            inner, mark = (field["items"], "[]") if "items" in field else (field, "")
            inner = _follow(inner, root)
            if "properties" in inner:
                yield from walk(inner, f"{key}{mark}.")

    return walk(root, "")


def _default(section: dict[str, Any], name: str, field: dict[str, Any]) -> str:
    if name in section.get("required", ()):
        return "required"
    default = field.get("default", {})
    if default is None or "properties" in field:
        return "optional"
    return f"default {json.dumps(default)}"


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _follow(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Put what ``node`` refers to in its place; what the field says itself comes first."""
    choices = node.get("anyOf") or node.get("allOf")
    if choices:
        return {**_follow(choices[0], root), **node}
    if "$ref" in node:
        return {**root["$defs"][node["$ref"].rsplit("/", 1)[-1]], **node}
    return node


def _node(model: type[BaseModel], loc: Location) -> dict[str, Any]:
    """Return the JSON schema of the field at ``loc``."""
    root = node = _schema(model)
    for part in loc:
        if isinstance(part, int):
            node = node["prefixItems"][part] if "prefixItems" in node else node["items"]
        else:
            node = node.get("properties", {}).get(part) or node["additionalProperties"]
        node = _follow(node, root)
    return node


def _in_words(node: dict[str, Any]) -> str:
    """Say what a field accepts."""
    if node["type"] == "object":
        return "a section" if "properties" in node else "a section of numbers"
    if node["type"] == "array":
        if "prefixItems" in node:
            return f"a pair [a, b], each {_in_words(node['prefixItems'][0])}"
        if "$ref" in node["items"]:
            return "a list of sections, each under a heading in [[double brackets]]"
        return f"a list, each entry {_in_words(node['items'])}"
    nouns = {
        "number": "a number",
        "integer": "a whole number",
        "boolean": "true or false",
        "string": "text that is not empty",
    }
    return nouns[node["type"]] + _range(node)


def _range(node: dict[str, Any]) -> str:
    low, above, high = (node.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if above is not None:
        return f" above {above:g}" + ("" if high is None else f" and at most {high:g}")
    if low is not None:
        return f" of at least {low:g}" if high is None else f" from {low:g} to {high:g}"
    return ""
