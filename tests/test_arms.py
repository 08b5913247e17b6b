"""The arms are what ADR 0003 and 0004 say they are."""

from pathlib import Path

import numpy as np
import pytest
from elfmem.config import ElfmemConfig, ReviewConfig
from pydantic import ValidationError

from elfmem_sim.arms import ARMS, get_arm
from elfmem_sim.errors import UserError
from elfmem_sim.fields import SNAPSHOT_FIELDS
from elfmem_sim.review import review_config
from elfmem_sim.scenario import load_scenario, override
from elfmem_sim.simulate import simulate

PERMANENT, STANDARD = 1e-5, 1e-2
SETTLED = {"alpha": 2.0, "beta": 0.5, "reinforcement": 5, "edges": 5, "decay": PERMANENT}
NEWCOMER = {"alpha": 1.0, "beta": 0.5, "reinforcement": 2, "edges": 2, "decay": STANDARD}
MODELS = ("model_c", "model_d")


def differing(first: str, second: str) -> set[str]:
    a, b = ARMS[first].model_dump(), ARMS[second].model_dump()
    return {field for field in a if a[field] != b[field]} - {"name", "description"}


@pytest.mark.parametrize("name", ["baseline", "architecture_m", "model_c", "model_d", "review"])
def test_arm_is_listed_under_its_name(name):
    assert ARMS[name].name == name
    assert get_arm(name) is ARMS[name]


def test_each_arm_says_what_it_is_in_words_of_its_own():
    assert len({arm.description for arm in ARMS.values()}) == len(ARMS)
    assert all(arm.description.endswith(".") for arm in ARMS.values())


def test_unknown_arm_is_refused_with_the_names_of_all():
    with pytest.raises(UserError) as refused:
        get_arm("modelc")
    assert refused.value.value == "modelc"
    assert all(name in refused.value.expected for name in ARMS)
    assert refused.value.where == "--arm"


@pytest.mark.parametrize("name", ["baseline", "architecture_m", "review"])
def test_arms_without_ego_start_permanent_and_well_seeded(name):
    assert ARMS[name].seed.model_dump(include=set(SETTLED)) == SETTLED
    assert ARMS[name].ego is None
    assert ARMS[name].seed.ego_strength == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_models_c_and_d_start_with_ego_strength_in_place_of_permanence(name):
    assert ARMS[name].seed.model_dump(include=set(NEWCOMER)) == NEWCOMER
    assert ARMS[name].seed.ego_strength == 20.0


@pytest.mark.parametrize("name", MODELS)
def test_models_c_and_d_have_the_published_ego_mechanism(name):
    assert ARMS[name].ego.model_dump(exclude={"distribute"}) == {
        "alpha": 0.05,
        "decay_per_day": 0.05,
        "gain": 1.0,
        "loss": 0.3,
        "queries_per_day": 2,
        "outcome_rate": 0.6,
    }


@pytest.mark.parametrize(("name", "blocks"), [("model_c", 1), ("model_d", 3)])
def test_self_query_is_shared_by_one_block_in_c_and_three_in_d(name, blocks):
    assert ARMS[name].ego.distribute == blocks


def test_architecture_m_differs_from_baseline_by_the_exclusion_alone():
    assert differing("baseline", "architecture_m") == {"constitution_weight"}
    assert ARMS["baseline"].constitution_weight == 1.0
    assert ARMS["architecture_m"].constitution_weight == 0.0


def test_review_differs_from_baseline_by_the_review_alone():
    assert differing("baseline", "review") == {"review"}


def test_models_c_and_d_differ_by_the_sharing_alone():
    assert differing("model_c", "model_d") == {"ego"}


def test_review_is_monthly_at_shipped_settings_and_accepts_all():
    review = ARMS["review"].review
    assert review.cadence_days == 30
    assert dict(review.config) == {}
    assert (review.accept_probability, review.accept_above_drift) == (1.0, 0.0)
    assert (review.proposer_move, review.proposer_noise) == (1.0, 0.0)
    assert (review.proposer_failure_rate, review.revert_probability) == (0.0, 0.0)


@pytest.mark.parametrize("name", list(ARMS))
def test_arm_cannot_be_changed_in_place(name):
    with pytest.raises(ValidationError):
        ARMS[name].alpha = 3.0


@pytest.mark.parametrize("name", ["architecture_m", *MODELS])
def test_attention_never_returns_an_excluded_constitution(name):
    trajectory = simulate(load_scenario("adr-0003/stable"), ARMS[name], 0, daily=True)
    assert {*trajectory.snapshots[:, 4]} == {0.0}


def test_constitution_fills_the_baselines_attention():
    trajectory = simulate(load_scenario("adr-0003/stable"), ARMS["baseline"], 0)
    assert trajectory.final("ego_moat") > 0.9


@pytest.mark.parametrize("name", ["baseline", "architecture_m", "review"])
def test_arms_without_self_queries_have_no_concentration(name):
    trajectory = simulate(load_scenario("adr-0003/stable"), ARMS[name], 0)
    assert trajectory.self_query_concentration == 0.0
    assert trajectory.final("es_max") == 0.0


def test_model_d_spreads_self_queries_wider_than_model_c():
    scenario = load_scenario("adr-0003/stable")
    c, d = (simulate(scenario, ARMS[name], 0).self_query_concentration for name in MODELS)
    assert c > 2 * d


@pytest.mark.parametrize("name", ["model_c", "model_d"])
@pytest.mark.parametrize(
    "settings",
    [{"ego.alpha": "0.1"}, {"ego.gain": "3"}, {"ego.loss": "1"}, {"ego.decay_per_day": "0.5"}],
    ids=lambda settings: next(iter(settings)),
)
def test_no_ego_parameter_reaches_the_quality_of_models_c_and_d(name, settings):
    # Their constitution takes no part in ATTENTION: what they differ in is who answers SELF
    # queries, and how many draws that uses up.
    scenario, other = override(load_scenario("adr-0003/slow_drift"), ARMS[name], settings)
    quality = SNAPSHOT_FIELDS.index("quality_ratio")
    usual, changed = (simulate(scenario, arm, 0).snapshots for arm in (ARMS[name], other))
    assert np.array_equal(usual[:, quality], changed[:, quality])
    assert not np.array_equal(usual, changed)


# --- arms from elfmem's own configuration ---


def written(folder, text, name="mine.yaml"):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_configuration_is_the_review_arm_with_its_settings(tmp_path):
    arm = get_arm(written(tmp_path, "review:\n  drift_threshold: 0.2\n  top_n: 80\n"))
    assert arm.review.config == {"drift_threshold": 0.2, "top_n": 80}
    assert arm.review.model_copy(update={"config": {}}) == ARMS["review"].review
    assert arm.name == "mine"


def test_a_configurations_settings_are_those_that_elfmem_reads(tmp_path):
    path = written(tmp_path, "review: {cooldown_hours: 24, min_block_evidence: 0.5}\n")
    read = ElfmemConfig.from_yaml(path).review
    assert review_config(get_arm(path).review) == read


@pytest.mark.parametrize(
    "text",
    ["", "llm:\n  model: x\n", "review: 3\n", "review:\n  top_n: many\n", "a: [", "- review\n"],
)
def test_a_configuration_without_numbers_for_the_review_is_refused(tmp_path, text):
    with pytest.raises(UserError, match="`review:` block of numbers"):
        get_arm(written(tmp_path, text))


def test_a_configuration_that_is_not_there_is_refused():
    with pytest.raises(UserError, match=r"nowhere\.yaml"):
        get_arm("nowhere.yaml")


@pytest.mark.parametrize("name", ["conservative", "balanced", "responsive"])
def test_a_committed_recommendation_is_ready_for_elfmem(name):
    path = str(Path(__file__).resolve().parents[1] / "results" / "tuning" / f"{name}.yaml")
    settings = ElfmemConfig.from_yaml(path).review
    assert settings == review_config(get_arm(path).review)
    assert settings != ReviewConfig()
