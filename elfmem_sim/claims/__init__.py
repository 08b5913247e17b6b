"""Claim files: hypothesis, protocol and decision rule of each claim, fixed before the run.

A claim file's hash is stored with every verdict that rests on it.
"""

import hashlib
import tomllib
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from elfmem_sim.errors import UserError

Rule = Literal[
    "range", "equivalence", "improvement", "cost", "level", "ratio", "spread", "judges", "promise",
    "replay",
]  # fmt: skip
SINGLE_ARM: frozenset[Rule] = frozenset({"level", "spread"})
"""Rules about the treatment alone."""
WITHOUT_CELLS: frozenset[Rule] = frozenset({"judges", "promise", "replay"})
"""Rules about runs that other parts of the protocol make."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(_Model):
    """One row of a sensitivity table."""

    uses_per_learn: int
    cadence_days: int
    proposer: str

    @property
    def label(self) -> str:
        """The variant's name in the table of replicates."""
        return (
            f"uses_per_learn={self.uses_per_learn} cadence_days={self.cadence_days} "
            f"proposer={self.proposer}"
        )

    @property
    def control_label(self) -> str:
        """The name of the control that it is compared with."""
        return f"uses_per_learn={self.uses_per_learn}"


class Claim(_Model):
    """One claim and the rule that judges it."""

    id: str
    statement: str
    rule: Rule
    scenarios: tuple[str, ...] = ()
    estimand: str = ""
    treatment: str = ""
    control: str = ""
    """Arms other than the protocol's."""
    published: float | None = None
    """The published effect, where it is a single figure."""
    digits: int = 1
    """Decimals printed."""
    family: str = ""
    """Claims of one family share Holm's correction."""
    low: float = 0.0
    high: float = 0.0
    margin: Annotated[float, Field(gt=0.0)] = 0.5
    threshold: float = 0.0
    counts: str = ""
    """For promises: the tally of occasions on which it was checked."""
    variant: Variant | None = None


class Protocol(_Model):
    """How the claims' study is run; treatment, control and estimand are a claim's defaults."""

    seeds: Annotated[int, Field(ge=2)]
    assumption: str
    treatment: str
    control: str
    estimand: str = "quality_ratio"


class Sensitivity(_Model):
    """The assumptions that a claim leaves open, and the rule that judges each combination."""

    drifting: tuple[str, ...]
    stable: str
    seeds: Annotated[int, Field(ge=2)]
    uses_per_learn: tuple[int, ...]
    cadence_days: tuple[int, ...]
    proposers: dict[str, dict[str, str]]
    low: float
    high: float
    margin: float

    @property
    def variants(self) -> list[Variant]:
        """All combinations, proposer fastest."""
        return [
            Variant(uses_per_learn=uses, cadence_days=cadence, proposer=proposer)
            for uses in self.uses_per_learn
            for cadence in self.cadence_days
            for proposer in self.proposers
        ]


class Reversions(_Model):
    """Runs that exercise reversion."""

    scenarios: tuple[str, ...]
    seeds: Annotated[int, Field(ge=2)]
    settings: dict[str, str]


class Published(_Model):
    """A table of published figures."""

    estimand: str
    digits: int = 1
    """Decimals printed."""
    arms: tuple[str, ...]
    values: dict[str, tuple[float, ...]]
    """One figure per arm, by scenario; shares in percent."""

    def cells(self) -> list[tuple[str, str]]:
        """Return scenario and arm of each figure."""
        return [(scenario, arm) for scenario in self.values for arm in self.arms]


class ClaimFile(_Model):
    """One decision record's claims."""

    format: Literal[1]
    adr: str
    title: str
    statement: str
    protocol: Protocol
    claim: tuple[Claim, ...]
    replay: str = ""
    """Claim file whose first published table is replayed alongside."""
    reversions: Reversions | None = None
    sensitivity: Sensitivity | None = None
    published: tuple[Published, ...] = ()

    def arms_of(self, claim: Claim) -> tuple[str, ...]:
        """Return the arms that a claim compares: control and treatment, or the treatment alone."""
        treatment = claim.treatment or self.protocol.treatment
        if claim.rule in SINGLE_ARM:
            return (treatment,)
        return (claim.control or self.protocol.control, treatment)

    def cells(self) -> list[tuple[str, str]]:
        """Return the scenario and arm of every run that a published figure or a claim needs."""
        pairs = [pair for table in self.published for pair in table.cells()]
        for claim in self.claim:
            if claim.rule not in WITHOUT_CELLS:
                pairs += [(name, arm) for name in claim.scenarios for arm in self.arms_of(claim)]
        return list(dict.fromkeys(pairs))


def claim_file_names() -> list[str]:
    """Return the names of all claim files, sorted."""
    folder = files("elfmem_sim.claims")
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith("toml"))


def load_claims(name: str) -> tuple[ClaimFile, str]:
    """Return a claim file and its SHA-256.

    Raises:
        UserError: If there is no claim file of that name.
    """
    if name not in claim_file_names():
        raise UserError(
            name, f"one of {', '.join(claim_file_names())}", "Correct the record's name.", "verify"
        )
    data = (files("elfmem_sim.claims") / f"{name}.toml").read_bytes()
    return ClaimFile.model_validate(tomllib.loads(data.decode())), hashlib.sha256(data).hexdigest()
