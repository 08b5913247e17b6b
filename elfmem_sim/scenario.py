"""Scenarios and arms: what happens to an agent, and how the agent is built.

A scenario is a TOML file; every field of the classes below is a key, and no other key is accepted.
"""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from elfmem_sim.errors import UserError

M = TypeVar("M", bound=BaseModel)

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Day = Annotated[int, Field(ge=0)]

MAX_DAYS = 3653
"""Ten years."""


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
        kinds = (self.blend, self.angle_degrees, self.return_to_day)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("give exactly one of blend, angle_degrees and return_to_day")
        if self.return_to_day is not None and self.return_to_day >= self.day:
            raise ValueError(f"return_to_day must come before day {self.day}")
        return self


class Identity(_Model):
    """Where the self points, and how it moves."""

    dimension: Annotated[int, Field(ge=2, le=1024)] = 8
    """Dimension of the topic space."""
    drift_per_day: Annotated[float, Field(ge=0.0)]
    """Gaussian step per component and day, before normalisation."""
    regimes: tuple[Regime, ...] = ()
    """Jumps, at most one a day."""


class Constitution(_Model):
    """The blocks that say who the agent is, laid down at birth around the self."""

    size: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of constitutional blocks."""
    spread: Annotated[float, Field(ge=0.0)] = 0.15
    """Gaussian spread around the self at birth, per component."""


class Noise(_Model):
    """An interval in which outcomes are flipped with a probability of its own."""

    first_day: Day
    last_day: Day
    """Inclusive."""
    outcome_noise: Probability


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
    """Probability that an outcome is flipped."""
    noise: tuple[Noise, ...] = ()
    """Intervals with another probability; a later one overrides an earlier one."""
    uses_per_learn: Annotated[int, Field(ge=0, le=1000)] = 0
    """Times a block is used, and so reinforced, on the day it is learned (0 as published)."""
    quiet: tuple[tuple[Day, Day], ...] = ()
    """Inclusive intervals of days without learning and queries."""
    quiet_weekdays: tuple[Annotated[int, Field(ge=0, le=6)], ...] = ()
    """Days of the week without learning and queries; day 0 is weekday 0."""


class Measurement(_Model):
    """When and how vitals are taken."""

    every_days: Annotated[int, Field(ge=1)] = 28
    """Vitals on every day above 0 that this divides."""
    queries: Annotated[int, Field(ge=1, le=10_000)] = 25
    """Probe queries per measurement."""
    recent_days: Annotated[int, Field(ge=1)] = 30
    """A block younger than this counts as recent."""


class Scenario(_Model):
    """One world for agents to live in."""

    name: str = ""
    """Set by the file's place: ``adr-0003/slow_drift``."""
    description: Annotated[str, Field(min_length=1)]
    """One sentence for ``scenarios list``."""
    horizon_days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 365
    """Days to simulate, up to ten years."""
    identity: Identity
    constitution: Constitution = Constitution()
    workload: Workload = Workload()
    measurement: Measurement = Measurement()

    @model_validator(mode="after")
    def _inside_horizon(self) -> Self:
        last = self.horizon_days - 1
        if self.measurement.every_days > last:
            raise ValueError(
                f"measurement.every_days {self.measurement.every_days} leaves no day to measure "
                f"before day {last}"
            )
        days = [regime.day for regime in self.identity.regimes]
        for day in days:
            if day > last:
                raise ValueError(f"identity.regimes day {day} is past the last day, {last}")
        if len(set(days)) != len(days):
            raise ValueError("identity.regimes has two jumps on one day")
        intervals = [("quiet", interval) for interval in self.workload.quiet]
        intervals += [("noise", (n.first_day, n.last_day)) for n in self.workload.noise]
        for key, (start, end) in intervals:
            if start > end:
                raise ValueError(f"workload.{key} interval {start}..{end} ends before it starts")
            if end > last:
                raise ValueError(
                    f"workload.{key} interval {start}..{end} reaches past the last day, {last}"
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
    description: str
    constitution_in_attention: bool = True
    """Whether ATTENTION may return constitutional blocks (False is Architecture M)."""
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
    ego: Ego | None = None
    review: Review | None = None


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
    path = scenario_folder() / f"{name}.toml"
    if not path.is_file():
        path = Path(name)
        if path.suffix != ".toml" or not path.is_file():
            raise UserError(
                str(name),
                "a shipped scenario or the path of a .toml file",
                "See `elfmem-sim scenarios list`.",
                "scenario",
            )
        shown = path.stem
    else:
        shown = str(name)
    return parse_scenario(path.read_text(encoding="utf-8"), name=shown, where=str(path))


def parse_scenario(text: str, *, name: str, where: str) -> Scenario:
    """Turn TOML text into a scenario.

    Raises:
        UserError: With file, key, value and remedy.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(str(error), "valid TOML", "Mend the file's syntax.", where) from None
    return validated(Scenario, {**data, "name": name}, where)


def validated(model: type[M], data: Mapping[str, Any], where: str) -> M:
    """Validate ``data`` and turn the first complaint into a :class:`UserError`."""
    try:
        return model.model_validate(_tuples(data))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        place = f"{where}: {key}" if key else where
        if first["type"] == "extra_forbidden":
            known = ", ".join(_known_keys(model, first["loc"][:-1]))
            raise UserError(
                str(first["loc"][-1]),
                f"one of {known}",
                "Remove the key or correct its spelling.",
                place,
            ) from None
        if first["type"] == "missing":
            raise UserError(
                "nothing", f"a value for {key}", f"Add {key} to the file.", place
            ) from None
        if first["type"] == "value_error":
            reason = str(first["ctx"]["error"])
            raise UserError(
                key or model.__name__.lower(),
                f"a consistent {model.__name__.lower()}: {reason}",
                "Change one of the values named.",
                where,
            ) from None
        message = first["msg"].removeprefix("Input should be ")
        raise UserError(
            first["input"],
            message,
            f"See `elfmem-sim scenarios show {model.__name__}`."
            if model is not Scenario
            else "Change the value; `elfmem-sim scenarios show "
            "adr-0003/stable --full` prints every key with its meaning.",
            place,
        ) from None


def _tuples(value: Any) -> Any:
    """TOML has lists where the frozen models hold tuples."""
    if isinstance(value, Mapping):
        return {key: _tuples(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return tuple(_tuples(entry) for entry in value)
    return value


def _known_keys(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    for part in path:
        if isinstance(part, int):
            continue
        annotation: Any = model.model_fields[part].annotation
        model = next(_models_in(annotation))
    return sorted(name for name in model.model_fields if name != "name")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def override(scenario: Scenario, arm: Arm, settings: Mapping[str, str]) -> tuple[Scenario, Arm]:
    """Apply ``--set key=value`` settings.

    Keys are dotted paths into the scenario (``workload.uses_per_learn``) or, below ``review.`` and
    ``ego.``, into the arm. Settings of a section that the arm does not have are an error.

    Raises:
        UserError: For an unknown key or a value that the field refuses.
    """
    world: dict[str, Any] = scenario.model_dump()
    build: dict[str, Any] = arm.model_dump()
    for key, text in settings.items():
        head = key.split(".")[0]
        target = build if head in ("review", "ego") else world
        if head in ("review", "ego") and build.get(head) is None:
            raise UserError(
                key, f"an arm with a {head} section", f"Arm {arm.name} has none.", "--set"
            )
        _assign(target, key, _parse_value(text))
    return (
        validated(Scenario, world, "--set"),
        validated(Arm, build, "--set"),
    )


def _assign(target: dict[str, Any], key: str, value: object) -> None:
    *path, last = key.split(".")
    for part in path:
        inner = target.get(part)
        if not isinstance(inner, dict):
            raise UserError(
                key, "the dotted name of a setting", "See `elfmem-sim scenarios show`.", "--set"
            )
        target = inner
    target[last] = value


def _parse_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
