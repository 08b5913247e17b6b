"""Tests of `elfmem_sim.report`: what a reader sees on the terminal and in Markdown."""

import io
import math
import re

import pandas as pd
import pytest

from elfmem_sim.claims import load_claims
from elfmem_sim.report import (
    OTHER_ESTIMANDS,
    REVIEW_THREATS,
    THREATS,
    audit_markdown,
    audit_rows,
    choice_rows,
    conclusion,
    difference_rows,
    estimate_rows,
    interval,
    keys_of,
    markdown,
    markdown_table,
    print_table,
    replay_rows,
    response_rows,
    run_markdown,
    sensitivity_rows,
    sight_lines,
    verdict_table,
    world_lines,
    world_rows,
)
from elfmem_sim.verdict import WORDS, Verdict


def verdict(**more):
    fields = {
        "id": "gain.drifting",
        "statement": "It gains.",
        "rule": "range",
        "verdict": "REPRODUCED",
        "estimate": 11.526,
        "low": 10.811,
        "high": 12.244,
        "n": 400,
        "unit": "pp",
        "p": 0.01234,
        "bootstrap": (10.8, 12.2),
        "assumption": "assumed",
        "detail": "claimed +9 to +14 pp",
    }
    return Verdict(**{**fields, **more})


REPLAY = pd.DataFrame(
    [("adr-0003/stable", "baseline", "x", 85.3, 1, 85.34, 84.5, 80.58, 88.43, 3, 1.6, 83.3)],
    columns=[
        "scenario", "arm", "estimand", "published", "digits", "replayed", "mean", "low", "high",
        "n", "sd", "percentile",
    ],
)  # fmt: skip

SENSITIVITY = pd.DataFrame(
    [(3, 30, "noisy", 97.6, 3.77, 6.51, 5.28, 7.73, "BELOW", 0.024, 0.0, 0.1, "REPRODUCED", 100)],
    columns=[
        "uses_per_learn", "cadence_days", "proposer", "judged", "amendments", "gain", "gain_low",
        "gain_high", "gain_verdict", "tax", "tax_low", "tax_high", "tax_verdict", "n",
    ],
)  # fmt: skip


AUDIT = pd.DataFrame(
    [
        ("It costs.", "0001", "adr-0001/baseline", "365", -5.44, -5.37, -4.6251, -4.9, -4.3, 800,
         0.1234, "REPRODUCED"),
        ("It holds.", "0004", "all", "", math.nan, math.nan, 0.0, 0.0, math.inf, 12, math.nan,
         "HELD"),
    ],
    columns=[
        "claim", "adr", "scenario", "horizon_days", "published", "replayed", "estimate", "low",
        "high", "n", "two_seed_probability", "verdict",
    ],
)  # fmt: skip


def differences(scenarios=("adr-0004/stable", "adr-0004/slow_drift"), n=400, variant=""):
    low, high = (1.0, 2.0) if n > 1 else (-math.inf, math.inf)
    rows = [
        (scenario, "review", "baseline", variant, estimand, 1.5, 0.25, low, high, n)
        for scenario in scenarios
        for estimand in (*OTHER_ESTIMANDS, "es_concentration")
    ]
    columns = [
        "scenario", "arm", "control", "variant", "estimand", "mean", "mcse", "low", "high", "n",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def as_dict(table):
    header, rows = table
    (row,) = rows
    return dict(zip(header, row, strict=True))


# --- interval ---


def test_an_interval_has_the_digits_asked_for():
    assert interval(-1.26, 3.0, 2) == "-1.26 to 3.00"


@pytest.mark.parametrize("ends", [(-math.inf, math.inf), (0.0, math.inf), (math.nan, math.nan)])
def test_an_interval_without_an_end_is_unbounded(ends):
    assert interval(*ends) == "unbounded"


# --- verdicts ---


def test_a_verdict_is_shown_with_effect_interval_n_and_p():
    assert as_dict(verdict_table([verdict()])) == {
        "claim": "gain.drifting",
        "verdict": "REPRODUCED",
        "effect": "11.53 pp",
        "interval": "10.81 to 12.24",
        "n": "400",
        "p": "0.0123",
        "detail": "claimed +9 to +14 pp",
    }


@pytest.mark.parametrize(
    ("p", "shown"),
    [(None, ""), (0.0, "<0.0001"), (9e-5, "<0.0001"), (1e-4, "0.0001"), (1.0, "1.0000")],
)
def test_p_values(p, shown):
    assert as_dict(verdict_table([verdict(p=p)]))["p"] == shown


def test_violations_are_whole_numbers():
    row = as_dict(verdict_table([verdict(unit="violations", estimate=0.0, low=0.0, high=0.0)]))
    assert (row["effect"], row["interval"]) == ("0 violations", "0 to 0")


def test_a_verdict_without_bounds_says_unbounded():
    row = as_dict(verdict_table([verdict(low=-math.inf, high=math.inf)]))
    assert row["interval"] == "unbounded"


def test_verdicts_keep_their_order():
    _, rows = verdict_table([verdict(id="z"), verdict(id="a")])
    assert [row[0] for row in rows] == ["z", "a"]


# --- the other tables ---


def test_a_replayed_figure_is_shown_beside_the_published_one():
    assert as_dict(replay_rows(REPLAY)) == {
        "scenario": "adr-0003/stable",
        "arm": "baseline",
        "estimand": "x",
        "published": "85.3",
        "seeds 0, 1": "85.3",
        "population": "84.5",
        "95 % interval": "80.6 to 88.4",
        "n": "3",
        "percentile": "83",
    }


def test_a_replayed_figure_is_shown_to_the_digits_that_were_printed():
    row = as_dict(replay_rows(REPLAY.assign(digits=2, published=85.3)))
    shown = {key: row[key] for key in ("published", "seeds 0, 1", "population", "95 % interval")}
    assert shown == {
        "published": "85.30",
        "seeds 0, 1": "85.34",
        "population": "84.50",
        "95 % interval": "80.58 to 88.43",
    }


def test_a_combination_is_shown_with_gain_tax_and_n():
    assert as_dict(sensitivity_rows(SENSITIVITY)) == {
        "uses": "3",
        "cadence": "30 d",
        "proposer": "noisy",
        "reviews that judge": "98 %",
        "amendments": "3.8",
        "gain": "6.5 pp",
        "95 % interval": "5.3 to 7.7",
        "verdict": "BELOW",
        "tax": "0.02 pp",
        "tax verdict": "REPRODUCED",
        "n": "100",
    }


def test_an_estimate_is_shown_with_its_error():
    frame = differences().head(1)
    assert as_dict(estimate_rows(frame, ["scenario", "arm"])) == {
        "scenario": "adr-0004/stable",
        "arm": "review",
        "mean": "1.50",
        "MC error": "0.25",
        "95 % interval": "1.00 to 2.00",
        "n": "400",
    }


def test_an_estimate_of_one_seed_is_unbounded():
    frame = differences(n=1).head(1)
    assert as_dict(estimate_rows(frame, ["arm"]))["95 % interval"] == "unbounded"


def test_differences_are_listed_by_scenario_and_estimand():
    _, rows = difference_rows(differences())
    found = [(row[0], row[2].removesuffix(" (pp)")) for row in rows]
    scenarios = ("adr-0004/stable", "adr-0004/slow_drift")
    assert found == [(scenario, estimand) for scenario in scenarios for estimand in OTHER_ESTIMANDS]


def test_differences_of_shares_and_of_counts_are_told_apart():
    _, rows = difference_rows(differences(["s"]))
    counts = [row[2] for row in rows if not row[2].endswith(" (pp)")]
    assert counts == ["amendments_per_year", "proposer_calls_per_year"]


def test_variants_are_a_column_where_there_are_any():
    plain, half = differences(["s"]), differences(["s"], variant="half")
    assert keys_of(plain, "scenario", "arm", "estimand") == ["scenario", "arm", "estimand"]
    assert keys_of(pd.concat([plain, half]), "scenario", "arm", "estimand") == [
        *("scenario", "arm", "variant", "estimand")
    ]


def test_a_table_without_rows_has_no_variants():
    assert keys_of(differences([]), "scenario", "estimand") == ["scenario", "estimand"]


def test_differences_of_variants_are_told_apart():
    frame = pd.concat([differences(["s"]), differences(["s"], variant="half")])
    header, rows = difference_rows(frame)
    assert header[:5] == ["scenario", "arm", "variant", "estimand", "difference"]
    quality = [row[:4] for row in rows if row[3] == "quality_ratio (pp)"]
    variants = ("", "half")
    assert quality == [["s", "review", variant, "quality_ratio (pp)"] for variant in variants]


@pytest.mark.parametrize(
    "table",
    [
        verdict_table([verdict()]),
        replay_rows(REPLAY),
        sensitivity_rows(SENSITIVITY),
        estimate_rows(differences(), ["scenario"]),
        difference_rows(differences()),
        audit_rows(AUDIT),
    ],
    ids=["verdicts", "replay", "sensitivity", "estimates", "differences", "audit"],
)
def test_every_number_has_its_n(table):
    header, rows = table
    assert all(int(row[header.index("n")]) > 0 for row in rows)


# --- Markdown ---


def cells(line):
    return re.split(r"(?<!\\)\|", line)[1:-1]


def tables(text):
    """The tables of a Markdown text, each a list of rows, each a list of cells."""
    found = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(cells(line))
        elif found[-1]:
            found.append([])
    return [rows for rows in found if rows]


def test_a_markdown_table_has_header_rule_and_rows():
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_bar_in_a_cell_does_not_end_it():
    (rows,) = tables(markdown_table(["a", "b"], [["1|2", "3"]]))
    assert [len(row) for row in rows] == [2, 2, 2]


def report(name="adr-0004", verdicts=None, replay=REPLAY, sensitivity=SENSITIVITY, notes=(),
           differences=None):  # fmt: skip
    verdicts = [verdict()] if verdicts is None else verdicts
    return markdown(load_claims(name)[0], verdicts, replay, sensitivity, notes, differences)


@pytest.fixture(scope="module")
def full():
    return report(verdicts=[verdict(), verdict(detail="a | b", p=None)], differences=differences())


def test_every_table_of_a_report_is_well_formed(full):
    widths = [{len(row) for row in rows} for rows in tables(full)]
    assert widths == [{7}, {11}, {9}, {7}]


def test_every_table_of_a_report_has_a_rule_under_its_header(full):
    assert all(set(rows[1]) == {" --- "} for rows in tables(full))


def test_every_table_of_a_report_has_a_column_n(full):
    assert all(" n " in rows[0] for rows in tables(full))


def test_a_table_is_set_apart_by_empty_lines(full):
    lines = full.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("|")]
    before = {lines[i - 1] for i in starts if not lines[i - 1].startswith("|")}
    after = {lines[i + 1] for i in starts if not lines[i + 1].startswith("|")}
    assert before | after == {""}


def test_the_verdicts_come_first(full):
    assert tables(full)[0][0][:2] == [" claim ", " verdict "]


def test_the_verdicts_come_before_any_section(full):
    assert full.index("| claim | verdict |") < full.index("\n## ")


def test_a_report_names_the_record_and_its_claim(full):
    own = load_claims("adr-0004")[0]
    assert full.startswith(f"# ADR 0004: {own.title}\n\nClaimed: {own.statement}\n")


def test_an_assumption_that_all_claims_share_is_said_once():
    two = [verdict(id="a"), verdict(id="b")]
    lines = report(verdicts=two, differences=differences()).splitlines()
    said = [line for line in lines if line.startswith("Assumed")]
    assert said == ["Assumed for all claims: assumed."]


def test_a_report_names_each_assumption_and_the_claims_that_rest_on_it():
    two = [verdict(id="a"), verdict(id="b"), verdict(id="c", assumption="used rarely")]
    lines = report(verdicts=two, differences=differences()).splitlines()
    assert "Assumed for a, b: assumed." in lines
    assert "Assumed for c: used rarely." in lines


def test_a_report_has_its_notes():
    assert "\nPrecision 1 pp reached.\n" in report(notes=["Precision 1 pp reached."])


def test_an_interval_without_bounds_is_unbounded_in_the_report():
    text = report(verdicts=[verdict(low=-math.inf, high=math.inf)], differences=differences(n=1))
    assert ("| unbounded |" in text, "inf" in text) == (True, False)


SECTIONS = {
    "sensitivity": "## What the claim needs to be true",
    "replay": "## Published figures, replayed",
    "differences": "## The same comparison in other estimands",
}


@pytest.mark.parametrize("part", SECTIONS)
def test_a_report_has_no_section_for_what_was_not_run(part):
    given = {"differences": differences(), part: None}
    found = {name for name, title in SECTIONS.items() if title in report(**given)}
    assert found == set(SECTIONS) - {part}


def test_the_other_estimands_are_compared_with_the_control(full):
    section = full.split(SECTIONS["differences"])[1]
    assert "Each arm minus baseline, paired within seed" in section


def test_the_other_estimands_are_in_the_report(full):
    section = full.split(SECTIONS["differences"])[1]
    (rows,) = tables(section)
    assert len(rows) == 2 + 2 * len(OTHER_ESTIMANDS)


def bullets(text):
    section = text.split("## Threats to validity\n")[1]
    return [line for line in section.splitlines() if line]


def test_the_threats_to_validity_come_last(full):
    assert bullets(full) == [f"- {threat}" for threat in THREATS + REVIEW_THREATS]


def test_a_record_without_review_has_no_threats_of_one():
    assert bullets(report("adr-0003")) == [f"- {threat}" for threat in THREATS]


@pytest.mark.parametrize("threat", THREATS + REVIEW_THREATS)
def test_a_threat_is_one_plain_sentence(threat):
    assert re.fullmatch(r"[A-Z][^|\n*_`]*(\w+_\w+[^|\n*`]*)?[^\s]\.", threat)


@pytest.mark.parametrize(
    "subject",
    [
        "not elfmem's retrieval pipeline",
        "is a blend",
        "uses_per_learn",
        "last measured day",
        "stand-in proposer and embedding are ideal",
        "elfmem 0.20",
    ],
)
def test_the_threats_name_what_a_reader_must_know(full, subject):
    assert sum(subject in line for line in bullets(full)) == 1


# --- conclusions ---

MEASURED = "measured 11.53 pp (10.81 to 12.24; n = 400)"
CONCLUSIONS = {
    "REPRODUCED": f"**Stands.** It gains. It is {MEASURED}.",
    "CONSISTENT": f"**Stands within its error.** It gains. It is {MEASURED}.",
    "ABOVE": f"**Changes in size.** It gains. It is {MEASURED}.",
    "BELOW": f"**Changes in size.** It gains. It is {MEASURED}.",
    "CONTRADICTED": f"**Does not stand.** It gains. It is {MEASURED}.",
    "INCONCLUSIVE": f"**Not shown.** It gains. It is {MEASURED}.",
    "HELD": "**Stands.** It gains. No violation on 400 occasions.",
}


def test_there_is_a_conclusion_for_every_word():
    assert set(CONCLUSIONS) == set(WORDS)


@pytest.mark.parametrize("word", CONCLUSIONS)
def test_a_conclusion_says_what_becomes_of_a_claim(word):
    assert conclusion(verdict(verdict=word)) == CONCLUSIONS[word]


@pytest.mark.parametrize("word", ["ABOVE", "BELOW"])
@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.75), (0.0, 1.25), (-1.0, 0.0)])
def test_an_effect_that_may_be_zero_is_said_to_be_gone(word, low, high):
    gone = verdict(verdict=word, estimate=0.125, low=low, high=high, published=-5.4)
    assert conclusion(gone) == (
        "**Changes.** It gains. No effect is left: "
        f"measured 0.12 pp ({low:.2f} to {high:.2f}; n = 400)."
    )


@pytest.mark.parametrize(
    ("published", "estimate"), [(-5.4, 2.0), (5.4, -2.0), (None, -2.0)], ids=str
)
def test_an_effect_of_the_other_sign_is_said_to_be_so(published, estimate):
    other = verdict(
        verdict="ABOVE", estimate=estimate, low=estimate - 1, high=estimate + 1,
        published=published,
    )  # fmt: skip
    assert conclusion(other).startswith("**Changes.** It gains. The effect has the other sign: ")


@pytest.mark.parametrize(
    ("published", "estimate"), [(-5.4, -2.0), (5.4, 2.0), (None, 2.0)], ids=str
)
def test_an_effect_of_the_same_sign_changes_in_size_only(published, estimate):
    same = verdict(
        verdict="BELOW", estimate=estimate, low=estimate - 1, high=estimate + 1,
        published=published,
    )  # fmt: skip
    assert conclusion(same).startswith("**Changes in size.** It gains. It is measured ")


def test_a_number_without_a_unit_is_measured_without_one():
    bare = conclusion(verdict(unit="", n=20_000))
    assert bare.endswith("It is measured 11.526 (10.811 to 12.244; n = 20,000).")


@pytest.mark.parametrize("published", [-0.1, 0.0, 0.1])
def test_an_effect_where_none_was_published_is_said_to_be_there(published):
    found = verdict(verdict="BELOW", estimate=-3.5, low=-3.6, high=-3.4, published=published)
    assert conclusion(found).startswith("**Changes.** It gains. There is an effect: measured -3.50")


@pytest.mark.parametrize(("published", "gone"), [(4.6, True), (0.1, False), (None, False)])
def test_a_published_effect_that_a_tight_interval_around_zero_excludes_is_gone(published, gone):
    found = verdict(verdict="INCONCLUSIVE", estimate=0.0, low=-0.3, high=0.3, published=published)
    assert ("No effect is left" in conclusion(found)) == gone


def test_a_share_is_told_by_its_detail():
    found = verdict(verdict="CONTRADICTED", unit="%", detail="0 of 36 reviews could judge")
    assert conclusion(found) == "**Does not stand.** It gains. 0 of 36 reviews could judge."


# --- the audit ---


def test_a_claim_of_the_audit_is_a_row_with_blanks_for_what_it_lacks():
    header, rows = audit_rows(AUDIT)
    assert header == list(AUDIT.columns)
    assert rows == [
        ["It costs.", "0001", "adr-0001/baseline", "365", "-5.4", "-5.4", "-4.63", "-4.90",
         "-4.30", "800", "0.123", "REPRODUCED"],
        ["It holds.", "0004", "all", "", "", "", "0.00", "0.00", "", "12", "", "HELD"],
    ]  # fmt: skip


WORLDS = pd.DataFrame(
    [
        ("s", "angle_day_120", "degrees", 52.34, 4.0, 44.0, 52.0, 60.0, 51.0, 53.0, 1000),
        ("s", "angle_net", "degrees", 30.0, 4.0, 24.0, 30.0, 36.0, 29.0, 31.0, 1000),
        ("s", "share_any_above", "%", 12.5, math.nan, math.nan, math.nan, math.nan, 10.0, 15.0,
         1000),
        ("s", "drift_most_peak", "drift score", 0.1234, 0.01, 0.1, 0.12, 0.14, 0.12, 0.13, 1000),
        ("s", "left_out", "degrees", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1000),
    ],
    columns=["scenario", "quantity", "unit", "mean", "sd", "q05", "median", "q95", "low", "high",
             "n"],
)  # fmt: skip
RESPONSES = pd.DataFrame(
    [
        ("s", objective, knob, direction, 40, 5, 0.1, 0.05, 0.15, 3.0, 2.0, 0.5, zero, visibility)
        for objective in ("self_architect", "self_architect_common", "self_architect_rollout")
        for knob, direction, zero, visibility in (
            ("attention_const_weight", 1, 62.5, "visible"),
            ("attention_const_weight", -1, 100.0, "invisible"),
            ("ego_alpha", 1, 100.0, "invisible"),
        )
    ],
    columns=["scenario", "objective", "knob", "direction", "n", "seeds", "mean", "low", "high",
             "noise", "sd_null", "signal", "zero", "visibility"],
)  # fmt: skip
CHOICES = pd.DataFrame(
    [("s", "self_architect", "moves", "%", 88.88, 76.9, math.inf, 5)],
    columns=["scenario", "chooser", "quantity", "unit", "mean", "low", "high", "seeds"],
)


def test_what_a_scenario_does_is_shown_with_the_digits_of_its_unit():
    header, rows = world_rows(WORLDS)
    angle, _, share, drift = (dict(zip(header, row, strict=True)) for row in rows)
    assert (angle["mean"], angle["95 % interval"], angle["5 %"]) == ("52.3", "51.0 to 53.0", "44.0")
    assert (share["mean"], share["sd"], share["median"]) == ("12.5", "", "")
    assert (drift["mean"], drift["95 % interval"]) == ("0.123", "0.120 to 0.130")


def test_what_a_scenario_does_is_said_in_plain_sentences():
    assert world_lines(WORLDS) == [
        "s: the regime change on day 120, described as a rotation by 60 degrees, turns the self by "
        "52.3 degrees (51.0 to 53.0); 90 % of the seeds lie between 44.0 and 60.0 (n = 1,000).",
        "s: in a year the self ends 30.0 degrees from where it began (90 % of the seeds: 24.0 to "
        "36.0); some constitutional block is ever above elfmem's threshold in 12.5 % of the seeds "
        "(10.0 to 15.0; n = 1,000).",
    ]


def test_responses_are_shown_of_the_published_objective_and_the_rollout():
    header, rows = response_rows(RESPONSES)
    assert {row[1] for row in rows} == {"self_architect", "self_architect_rollout"}
    assert dict(zip(header, rows[1], strict=True)) == {
        "scenario": "s", "objective": "self_architect", "knob": "attention_const_weight",
        "step": "down", "mean": "0.100", "95 % interval": "0.050 to 0.150", "noise": "3.000",
        "null": "2.000", "signal": "0.500", "exactly zero": "100.0 %", "visibility": "invisible",
        "n": "40", "seeds": "5",
    }  # fmt: skip


def test_a_knob_is_hidden_from_an_objective_that_never_responds_to_it():
    # One direction of the weight is seen, so the weight is; every comparison of the other counts.
    assert sight_lines(RESPONSES)[0] == (
        "self_architect: ego_alpha cannot be seen by it: exactly no response in any of 40 "
        "comparisons."
    )


def test_an_objective_that_sees_every_knob_is_said_to():
    assert sight_lines(RESPONSES.assign(visibility="visible"))[0] == (
        "self_architect: responds, somewhere, to each of the 2 knobs."
    )


def test_a_choice_is_shown_with_its_unit():
    _, rows = choice_rows(CHOICES)
    assert rows == [["s", "self_architect", "moves", "88.88 %", "unbounded", "5"]]


@pytest.fixture(scope="module")
def whole_audit():
    records = {adr: load_claims(f"adr-{adr}")[0] for adr in ("0001", "0004")}
    verdicts = {"0001": [verdict(id="a")], "0004": [verdict(id="b", verdict="HELD")]}
    context = {
        "climbers.csv": differences(["adr-0003-self-architect/stable"]).head(1),
        "worlds.csv": WORLDS,
        "responses.csv": RESPONSES,
        "choices.csv": CHOICES,
    }
    return audit_markdown(records, verdicts, AUDIT, context, ["ADR 0001: Precision reached."])


def test_the_audit_has_its_sections_in_order(whole_audit):
    sections = [line[3:] for line in whole_audit.splitlines() if line.startswith("## ")]
    assert sections == [
        "What stands and what changes",
        "The table",
        "What the scenarios really do",
        "Can the self-architect see its own knobs?",
        "The self-architect with other objectives",
        "Threats to validity",
    ]


def test_the_audit_concludes_on_every_claim_under_its_record(whole_audit):
    first, second = whole_audit.split("### ADR ")[1:]
    assert first.startswith("0001: ")
    assert second.startswith("0004: ")
    assert f"\n- {CONCLUSIONS['REPRODUCED']}\n" in first
    assert f"\n- {CONCLUSIONS['HELD']}\n" in second


def test_the_tables_of_the_audit_are_well_formed(whole_audit):
    widths = [{len(row) for row in rows} for rows in tables(whole_audit)]
    assert widths == [{12}, {10}, {13}, {6}, {7}]


def test_the_audit_has_its_notes_and_its_figure(whole_audit):
    assert "\nADR 0001: Precision reached.\n" in whole_audit
    assert "](audit.png)" in whole_audit


def test_the_audit_ends_with_all_threats(whole_audit):
    assert bullets(whole_audit) == [f"- {threat}" for threat in THREATS + REVIEW_THREATS]


# --- a free study ---


def study(compared=None, notes=()):
    summary = differences(["s"]).drop(columns="control")
    compared = differences() if compared is None else compared
    return run_markdown("elfmem-sim run s --seeds 3", summary, compared, notes)


def test_a_study_names_its_command():
    assert study().splitlines()[2] == "`elfmem-sim run s --seeds 3`"


def test_a_study_has_differences_and_arms():
    found = tables(study())
    assert [len(rows) - 2 for rows in found] == [2 * len(OTHER_ESTIMANDS), len(OTHER_ESTIMANDS) + 1]
    assert "Each arm minus baseline, paired within seed" in study()


def test_a_study_of_one_arm_has_no_differences():
    text = study(differences().head(0))
    assert ("## Differences" in text, len(tables(text))) == (False, 1)


def test_a_study_has_its_notes():
    assert "\nPrecision 1 pp reached.\n" in study(notes=["Precision 1 pp reached."])


# --- print_table ---


def test_a_table_without_a_terminal_is_not_cut(capsys):
    words = "detail " * 80 + "end"
    print_table("Title", ["claim", "detail"], [["c", words], ["x" * 500, "short"]])
    out = capsys.readouterr().out
    assert (words in out, "x" * 500 in out, "…" in out) == (True, True, False)


def test_a_row_without_a_terminal_is_one_line(capsys):
    print_table("T", ["a", "b"], [["1", "words " * 80]])
    assert len(capsys.readouterr().out.splitlines()) == 6  # title, gap, header, rule, row, gap


def test_a_table_without_a_terminal_has_no_control_codes(capsys):
    print_table("T", ["a"], [["1"]])
    assert "\x1b" not in capsys.readouterr().out


def test_a_table_is_no_wider_than_it_needs_to_be(capsys):
    print_table("T", ["a"], [["1"]])
    assert max(map(len, capsys.readouterr().out.splitlines())) < 10


def test_brackets_are_not_read_as_markup(capsys):
    print_table("T", ["a"], [["[bold] and [/]"]])
    assert "[bold] and [/]" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def narrow(monkeypatch):
    """What a terminal of 30 columns shows of a table too wide for it."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    print_table("T", ["a", "b"], [["INCONCLUSIVE", "abcdefghij" * 6]])
    return re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())


def test_on_a_narrow_terminal_a_table_keeps_within_it(narrow):
    assert max(map(len, narrow.splitlines())) <= 30


def test_on_a_narrow_terminal_no_letter_is_lost(narrow):
    assert (narrow.count("j"), narrow.count("S"), "…" in narrow) == (6, 1, False)
