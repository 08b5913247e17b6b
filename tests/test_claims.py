"""Tests of `elfmem_sim.claims`: the shipped claim files, and what loading them refuses."""

import hashlib
import tomllib
from importlib.resources import files

import pytest
from pydantic import ValidationError

from elfmem_sim import claims as module
from elfmem_sim.arms import ARMS
from elfmem_sim.claims import Claim, ClaimFile, Variant, claim_file_names, load_claims
from elfmem_sim.errors import UserError
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.study import TALLIES

NAMES = ("adr-0001", "adr-0002", "adr-0003", "adr-0004")
# Fields that are columns of the table of replicates, and so can be compared.
ESTIMANDS = {"quality_ratio", "const_align_to_self"}

# ADR 0003's table as the project's reference gives it (models.md, "The published longitudinal
# simulations, specified", section "ADR 0003, five scenarios x four arms"): quality_ratio at day
# 364, mean of seeds 0 and 1, in percent.
ADR_0003 = {
    "stable": {"baseline": 85.3, "architecture_m": 78.4, "model_c": 76.8, "model_d": 76.6},
    "slow_drift": {"baseline": 62.5, "architecture_m": 72.4, "model_c": 75.2, "model_d": 76.8},
    "regime_change": {"baseline": 44.5, "architecture_m": 77.6, "model_c": 78.7, "model_d": 70.5},
    "quiet_burst": {"baseline": 76.6, "architecture_m": 77.0, "model_c": 78.6, "model_d": 74.4},
    "adversarial": {"baseline": 65.7, "architecture_m": 77.3, "model_c": 81.9, "model_d": 76.4},
}


def record(name):
    return load_claims(name)[0]


def all_claims():
    return [
        pytest.param(record(name), claim, id=claim.id) for name in NAMES
        for claim in record(name).claim
    ]  # fmt: skip


def test_the_shipped_files_are_listed():
    assert claim_file_names() == list(NAMES)


# --- every file ---


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_of_the_record_it_is_named_after(name):
    assert f"adr-{record(name).adr}" == name


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique(name):
    ids = [claim.id for claim in record(name).claim]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", NAMES)
def test_every_arm_exists(name):
    own = record(name)
    arms = {own.protocol.treatment, own.protocol.control} - {""}
    if own.published is not None:
        arms.update(own.published.arms)
    assert arms <= set(ARMS)


@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_exists(name):
    own = record(name)
    named = {*own.protocol.scenarios, *(s for claim in own.claim for s in claim.scenarios)}
    if own.published is not None:
        named.update(own.published.values)
    if own.reversions is not None:
        named.update(own.reversions.scenarios)
    if own.sensitivity is not None:
        named.update((*own.sensitivity.drifting, own.sensitivity.stable))
    assert {load_scenario(scenario).name for scenario in named} == named


@pytest.mark.parametrize("name", NAMES)
def test_a_published_table_is_complete(name):
    published = record(name).published
    if published is not None:
        assert {len(row) for row in published.values.values()} == {len(published.arms)}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_replayed_has_a_published_table(name):
    own = record(name)
    has_claim = any(claim.rule == "replay" for claim in own.claim)
    source = record(own.replay) if own.replay else own
    assert source.published is not None or not has_claim


@pytest.mark.parametrize(("own", "claim"), all_claims())
def test_every_rule_has_the_fields_it_needs(own, claim):
    needed = {
        "range": claim.scenarios and claim.low < claim.high,
        "equivalence": claim.scenarios and claim.margin > 0,
        "improvement": claim.scenarios and (claim.estimand or own.protocol.estimand) in ESTIMANDS,
        "cost": claim.scenarios and (claim.estimand or own.protocol.estimand) in ESTIMANDS,
        "ratio": len(claim.scenarios) == 1 and claim.low < claim.high,
        "judges": claim.scenarios and claim.variant and 0 < claim.threshold <= 100,
        "promise": claim.counts in TALLIES,
        "replay": claim.tolerance > 0,
    }
    assert needed[claim.rule]


@pytest.mark.parametrize(("own", "claim"), all_claims())
def test_every_claim_is_about_scenarios_of_its_protocol(own, claim):
    run = set(own.protocol.scenarios) | set(own.published.values if own.published else ())
    assert set(claim.scenarios) <= run


@pytest.mark.parametrize(("own", "claim"), all_claims())
def test_every_claim_is_about_arms_that_its_protocol_runs(own, claim):
    protocol = own.protocol
    run = set(own.published.arms if own.published else ())
    run |= set(protocol.arms or (protocol.control, protocol.treatment))
    assert {claim.treatment, claim.control} - {""} <= run


@pytest.mark.parametrize(("own", "claim"), all_claims())
def test_a_single_published_figure_lies_in_the_range_that_judges_it(own, claim):
    if claim.published is not None:
        assert claim.low < claim.published < claim.high


@pytest.mark.parametrize("name", NAMES)
def test_a_family_has_more_than_one_member(name):
    families = [claim.family for claim in record(name).claim if claim.family]
    assert all(families.count(family) > 1 for family in families)


# --- ADR 0004 ---


def test_the_settings_of_the_reversions_are_keys_of_the_arm():
    own = record("adr-0004")
    scenario = load_scenario(own.reversions.scenarios[0])
    _, arm = override(scenario, ARMS[own.protocol.treatment], own.reversions.settings)
    assert (arm.review.revert_probability, arm.review.revert_after_days) == (0.5, 45)


def test_the_settings_of_the_proposers_are_keys_of_the_arm():
    own = record("adr-0004")
    scenario = load_scenario(own.sensitivity.stable)
    arms = {
        name: override(scenario, ARMS["review"], settings)[1].review
        for name, settings in own.sensitivity.proposers.items()
    }
    found = {name: (arm.proposer_move, arm.proposer_noise) for name, arm in arms.items()}
    assert found == {"full move": (1.0, 0.0), "half move": (0.5, 0.0), "noisy": (1.0, 0.3)}


def test_the_first_proposer_is_the_headlines():
    assert next(iter(record("adr-0004").sensitivity.proposers.values())) == {}


def test_the_variant_of_the_defaults_claim_is_one_of_the_sensitivity_table():
    own = record("adr-0004")
    (claim,) = (claim for claim in own.claim if claim.rule == "judges")
    assert claim.variant in own.sensitivity.variants


def test_the_sensitivity_table_has_all_36_combinations():
    plan = record("adr-0004").sensitivity
    expected = {
        (uses, cadence, proposer)
        for uses in (0, 1, 2, 3, 5, 10)
        for cadence in (30, 90)
        for proposer in ("full move", "half move", "noisy")
    }
    found = [(v.uses_per_learn, v.cadence_days, v.proposer) for v in plan.variants]
    assert (len(found), set(found)) == (36, expected)


def test_the_sensitivity_table_is_judged_by_the_headlines_rule():
    own = record("adr-0004")
    (gain,) = (claim for claim in own.claim if claim.id == "gain.drifting")
    (tax,) = (claim for claim in own.claim if claim.id == "tax.stable")
    plan = own.sensitivity
    assert (plan.low, plan.high, plan.drifting) == (gain.low, gain.high, gain.scenarios)
    assert (plan.margin, (plan.stable,)) == (tax.margin, tax.scenarios)


def test_the_headline_scenarios_use_learned_blocks_as_assumed():
    own = record("adr-0004")
    uses = {load_scenario(s).workload.uses_per_learn for s in own.protocol.scenarios}
    assert (uses, "used 3 times that day" in own.protocol.assumption) == ({3}, True)


# --- the published figures ---


def test_the_published_table_is_that_of_adr_0003():
    published = record("adr-0003").published
    found = {
        scenario.removeprefix("adr-0003/"): dict(zip(published.arms, row, strict=True))
        for scenario, row in published.values.items()
    }
    assert found == ADR_0003


def test_a_replay_may_be_off_by_no_more_than_rounding():
    (claim,) = record("adr-0003").claim
    assert 0.05 <= claim.tolerance < 0.051


# --- labels ---


def test_a_variants_label_tells_it_from_every_other():
    variants = record("adr-0004").sensitivity.variants
    assert len({variant.label for variant in variants}) == len(variants)


def test_variants_of_one_use_share_their_control():
    one = Variant(uses_per_learn=2, cadence_days=30, proposer="noisy")
    other = Variant(uses_per_learn=2, cadence_days=90, proposer="full move")
    assert one.control_label == other.control_label


def test_a_controls_label_is_no_variants_label():
    variants = record("adr-0004").sensitivity.variants
    assert {v.control_label for v in variants}.isdisjoint(v.label for v in variants)


# --- loading ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of claim files of our own, a copy of the shipped ones."""
    for name in NAMES:
        data = (files("elfmem_sim.claims") / f"{name}.toml").read_bytes()
        (tmp_path / f"{name}.toml").write_bytes(data)
    monkeypatch.setattr(module, "files", lambda _package: tmp_path)
    return tmp_path


def test_the_hash_is_the_files_own(folder):
    expected = hashlib.sha256((folder / "adr-0004.toml").read_bytes()).hexdigest()
    assert load_claims("adr-0004")[1] == expected


@pytest.mark.parametrize("change", ["# A word.\n", "\n"], ids=["comment", "empty line"])
def test_the_hash_changes_when_the_file_changes(folder, change):
    before = load_claims("adr-0004")[1]
    with (folder / "adr-0004.toml").open("a") as file:
        file.write(change)
    assert load_claims("adr-0004")[1] != before


def test_the_hash_does_not_depend_on_other_files(folder):
    before = load_claims("adr-0004")[1]
    (folder / "adr-0003.toml").write_text("")
    assert load_claims("adr-0004")[1] == before


def test_a_new_file_is_found(folder):
    (folder / "adr-0009.toml").write_bytes((folder / "adr-0003.toml").read_bytes())
    assert claim_file_names() == [*NAMES, "adr-0009"]


def test_other_files_are_not_claims(folder):
    (folder / "notes.txt").write_text("")
    assert claim_file_names() == list(NAMES)


@pytest.mark.parametrize("name", ["adr-0005", "", "0004", "../claims/adr-0004", "adr-0004.toml"])
def test_an_unknown_record_is_refused(name):
    with pytest.raises(UserError, match="expected one of adr-0001, adr-0002, adr-0003, adr-0004"):
        load_claims(name)


def plain():
    return tomllib.loads((files("elfmem_sim.claims") / "adr-0004.toml").read_text("utf-8"))


@pytest.mark.parametrize("place", ["", "protocol", "reversions", "sensitivity"])
def test_an_extra_key_is_refused(place):
    data = plain()
    (data[place] if place else data)["extra"] = 1
    with pytest.raises(ValidationError, match="extra"):
        ClaimFile.model_validate(data)


def test_an_extra_key_of_a_claim_is_refused():
    data = plain()
    data["claim"][0]["treshold"] = 40.0
    with pytest.raises(ValidationError, match="treshold"):
        ClaimFile.model_validate(data)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValidationError, match="rule"):
        Claim(id="c", statement="s", rule="hunch")


@pytest.mark.parametrize("margin", [0.0, -0.5])
def test_a_margin_that_is_not_positive_is_refused(margin):
    with pytest.raises(ValidationError, match="margin"):
        Claim(id="c", statement="s", rule="equivalence", margin=margin)


def test_a_protocol_of_one_seed_is_refused():
    data = plain()
    data["protocol"]["seeds"] = 1
    with pytest.raises(ValidationError, match="seeds"):
        ClaimFile.model_validate(data)


def test_a_newer_format_is_refused():
    with pytest.raises(ValidationError, match="format"):
        ClaimFile.model_validate({**plain(), "format": 2})


def test_a_claim_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        record("adr-0004").claim[0].low = 0.0
