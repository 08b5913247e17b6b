"""Tests of `elfmem_sim.tuning.words`: sentences follow the numbers, whichever way they fall."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from elfmem.config import ElfmemConfig, ReviewConfig

from elfmem_sim.stats import mean_interval
from elfmem_sim.tune import review_fields
from elfmem_sim.tuning.recommend import Judgement
from elfmem_sim.tuning.space import defaults_of
from elfmem_sim.tuning.tables import REASONS
from elfmem_sim.tuning.words import (
    Findings,
    answer,
    gate_sentences,
    idle_fields,
    idle_sentence,
    importance_sentences,
    morris_sentence,
    page,
    steadiness,
    yaml_text,
)

FIELDS = review_fields({})
DEFAULTS = defaults_of(FIELDS)
EAGER = {**DEFAULTS, "drift_threshold": 0.2}


def judgement(gain=3.0, p=0.001, name="balanced", spoiled=(), same=False):
    return Judgement(name, same, mean_interval([gain - 1, gain, gain + 1]), p, spoiled)


def judgements(name):
    rows = [
        (name, "gain_mean", "pp", 8.0, 5.0, 3.0, 0.5, 2.0, 4.0, 3, 0.001),
        (name, "amendments", "a year", 9.0, 2.5, 6.5, 0.5, 6.0, 7.0, 3, np.nan),
        (name, "retention", "%", 70.0, 90.0, -20.0, 0.5, -21.0, -19.0, 3, np.nan),
    ]
    columns = ["recommendation", "objective", "unit", "value", "default", "mean", "mcse", "low",
               "high", "n", "p"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def robustness(*intervals, setting="balanced"):
    rows = [
        ("case", str(i), setting, 1.0, 0.0, 2.0, 0.0, 1.0, (low + high) / 2, low, high, 1, 3)
        for i, (low, high) in enumerate(intervals)
    ]
    columns = ["assumption", "level", "setting", "gain", "gain_low", "gain_high", "tax",
               "amendments", "difference", "low", "high", "rank", "n"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def sobol(totals, highs=None, objective="gain_mean", unmoved=10.0, same_as=""):
    rows = [
        (objective, name, 0.0, 0.0, 0.0, total, 0.0, high, unmoved, same_as, 16)
        for (name, total), high in zip(totals.items(), highs or totals.values(), strict=True)
    ]
    columns = ["objective", "field", "first", "first_low", "first_high", "total", "total_low",
               "total_high", "unmoved", "same_as", "n"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def gates(day=29, n=10, scenario="drift", **shares):
    rows = [(scenario, day, reason, shares.get(reason, 0.0), n) for reason in REASONS]
    return pd.DataFrame(rows, columns=["scenario", "day", "reason", "share", "n"])


def findings(judged=None, config=None, **changes):
    judged = judged or judgement()
    differences = pd.DataFrame(
        [(judged.name, "drift", "quality_ratio", 3.0, 0.1, 2.0, 4.0, 3)],
        columns=["recommendation", "condition", "estimand", "mean", "mcse", "low", "high", "n"],
    )
    found = Findings(
        fields=FIELDS,
        scenarios=["drift"],
        defaults={"gain_mean": 5.0},
        recommended={judged.name: config or EAGER},
        judged=[judged],
        judgements=judgements(judged.name),
        differences=differences,
        gates=gates(drift=90.0, proposed=10.0),
        morris=pd.DataFrame(),
        sobol=sobol(dict.fromkeys(DEFAULTS, 0.5)),
        constant=[],
        front=pd.DataFrame([EAGER]),
        robustness=robustness((1.0, 2.0), (1.0, 2.0)),
        trials=6,
        seeds=4,
        fresh=3,
    )
    return replace(found, **changes)


# The answer.


def test_an_earned_recommendation_is_the_answer():
    text = answer(findings())
    assert text.startswith("**Change `drift_threshold` from 0.35 to 0.2** (the balanced")
    assert "+3.0 pp" in text
    assert "n = 3" in text


def test_the_answer_names_the_price():
    text = answer(findings())
    assert "9.0 amendments a year to read instead of 2.5" in text
    assert "70.0 % similarity to the original one instead of 90.0 %" in text


@pytest.mark.parametrize(
    "judged",
    [
        judgement(p=0.2),
        judgement(gain=-3.0, p=1.0),
        judgement(spoiled=("tax",)),
        judgement(gain=0.0, p=1.0, same=True),
    ],
)
def test_what_is_not_earned_changes_nothing(judged):
    assert answer(findings(judged)).startswith("**Change nothing.**")


def test_a_gain_that_harm_spoils_is_not_kept_secret():
    text = answer(findings(judgement(spoiled=("harm_poor_proposer",))))
    assert "A larger gain is shown for the balanced recommendation, but harm poor" in text


def test_without_a_gain_none_is_claimed():
    assert "A larger gain is shown" not in answer(findings(judgement(p=0.2)))


@pytest.mark.parametrize(
    ("judged", "reason"),
    [
        (judgement(p=0.2), "as a larger gain is not shown"),
        (judgement(spoiled=("harm_adversarial",)), "as harm adversarial may grow by 0.5 pp"),
    ],
)
def test_the_page_says_why_a_change_is_not_earned(judged, reason):
    assert reason in page(findings(judged))


def test_the_page_says_when_a_recommendation_is_the_defaults():
    text = page(findings(judgement(gain=0.0, p=1.0, same=True), config=DEFAULTS))
    assert "The **balanced** recommendation is elfmem's defaults" in text
    assert "| balanced | drift |" not in text


def test_changed_settings_stand_out():
    text = page(findings())
    assert "| `drift_threshold` | 0.05 to 0.65 | 0.35 | **0.2** |" in text
    assert "| `top_n` | 12 to 200 | 50 | 50 |" in text


# Robustness.


def test_a_recommendation_that_holds_only_once_says_so():
    found = findings(robustness=robustness((1.0, 2.0), (-1.0, 2.0), (-1.0, 2.0)))
    text = steadiness(found, found.judged[0])
    assert "**holds only under one assumption** of 3 (case 0)" in text
    assert "the rest, 2, are undecided" in text


def test_a_recommendation_that_never_holds_says_so():
    found = findings(robustness=robustness((-2.0, -1.0), (0.0, 0.0)))
    text = steadiness(found, found.judged[0])
    assert "under none of 2" in text
    assert "less under 1 (case 0)" in text
    assert "exactly as much under 1 (case 1)" in text


def test_a_recommendation_that_holds_often_names_where():
    found = findings(robustness=robustness((1.0, 2.0), (1.0, 2.0), (-2.0, -1.0)))
    assert "2 of 3 sets of assumptions (case 0 and case 1)" in steadiness(found, found.judged[0])


# Gates.


def test_the_gate_that_holds_back_most_comes_first():
    (text,) = gate_sentences(gates(cooldown=20.0, drift=70.0, proposed=10.0))
    assert text == (
        "drift: 10.0 % of all blocks at all reviews were proposed; held back by the drift "
        "threshold 70.0 % and the cooldown 20.0 % (n = 10)."
    )


def test_days_weigh_by_their_blocks():
    both = pd.concat([gates(proposed=100.0, n=30), gates(day=59, drift=100.0, n=10)])
    assert "75.0 % of all blocks" in gate_sentences(both)[0]


def test_where_nothing_holds_back_nothing_is_said_to():
    assert "held back" not in gate_sentences(gates(proposed=100.0))[0]


# What matters.


def test_the_strongest_field_comes_first_and_weak_ones_are_left_out():
    found = findings(sobol=sobol({"top_n": 0.2, "drift_threshold": 0.9, "min_age_days": 0.01}))
    text = importance_sentences(found)[0]
    assert text.index("drift_threshold` 90 %") < text.index("top_n` 20 %")
    assert "min_age_days" not in text


def test_a_constant_objective_has_words_instead_of_indices():
    text = " ".join(importance_sentences(findings(constant=["tax"])))
    assert "**tax** has one value over the whole design" in text


def test_objectives_with_the_same_values_are_told_once():
    same = sobol({"top_n": 0.2}, objective="calls", same_as="amendments")
    assert "same values as amendments" in importance_sentences(findings(sobol=same))[0]


def morris(**effects):
    rows = [("gain_mean", name, "pp", e, 0.5, e, 0.1, 6) for name, e in effects.items()]
    columns = ["objective", "field", "unit", "mean_absolute", "mcse", "mean", "spread", "n"]
    return pd.DataFrame(rows, columns=columns)


def test_the_screening_names_the_strongest_fields_with_their_errors():
    text = morris_sentence(morris(top_n=1.0, drift_threshold=9.0, window_hours=0.0))
    assert "`drift_threshold` 9.0 ± 0.5 pp and `top_n` 1.0 ± 0.5 pp" in text
    assert "2 of 3 fields moved it at all" in text


def test_a_screening_without_effects_says_nothing():
    assert morris_sentence(morris(top_n=0.0)) == ""


def test_a_field_is_idle_if_it_is_shown_to_do_nothing_anywhere():
    two = pd.concat(
        [
            sobol({"window_hours": 0.0, "top_n": 0.0}),
            sobol({"window_hours": 0.0, "top_n": 0.3}, objective="tax"),
        ]
    )
    assert idle_fields(two) == ["window_hours"]


def test_a_field_is_not_idle_for_want_of_evidence():
    assert idle_fields(sobol({"top_n": 0.0}, highs=[0.4])) == []


@pytest.mark.parametrize(
    ("unmoved", "words"), [(100.0, "changed no objective at all"), (99.0, "next to nothing")]
)
def test_idle_fields_are_named(unmoved, words):
    found = findings(sobol=sobol({"window_hours": 0.0}, unmoved=unmoved))
    assert idle_sentence(found) == (
        f"Doing nothing in the simulated range: `window_hours` (180 to 2880: {words})."
    )


# Files for elfmem.


def loaded(tmp_path, config):
    path = tmp_path / "elfmem.yaml"
    path.write_text(yaml_text("balanced", FIELDS, config, "elfmem-sim tune"), encoding="utf-8")
    return ElfmemConfig.from_yaml(str(path)).review


@pytest.mark.parametrize(
    "config",
    [
        EAGER,
        {**DEFAULTS, "top_n": 12, "cooldown_hours": 540.0, "window_hours": 2880.0},
        {**DEFAULTS, "min_block_evidence": 0.1, "max_proposals": 10},
    ],
)
def test_elfmem_reads_the_settings(tmp_path, config):
    assert loaded(tmp_path, config) == ReviewConfig(**config)


def test_elfmem_reads_its_own_defaults(tmp_path):
    assert loaded(tmp_path, DEFAULTS) == ReviewConfig()


def test_the_file_marks_what_was_changed():
    text = yaml_text("balanced", FIELDS, EAGER, "elfmem-sim tune")
    assert "drift_threshold: 0.2  # default 0.35\n" in text
    assert text.count("# default") == 1
