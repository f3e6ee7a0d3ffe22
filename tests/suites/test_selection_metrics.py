"""The numbers of the selection benchmark: what is planted is found, what is not is not, and odd
tables are refused.
"""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest

from pytest_fairness import analyze_arms, analyze_preference
from pytest_fairness.analysis.looks import budget
from pytest_fairness.errors import FrameError
from pytest_fairness.model import ALARMS, Reason, Verdict, to_json
from pytest_fairness.statistics.proportions import impact_ratio
from pytest_fairness.suites.selection.choice_table import (
    by_class,
    context_columns,
    crossed_classes,
    units_column,
)
from pytest_fairness.suites.selection.findings import (
    interaction_findings,
    order_findings,
    scrubber_findings,
)
from tests.support.findings_schema import conforming

from ..reports.factories import results as findings_of
from .choices_of import (
    CLASSES,
    CRITERIA,
    GROUPS,
    arm_of,
    as_trials,
    clean,
    experiment,
    results_of,
    scrubbed,
    small,
    tiny,
)  # fmt: skip

STRENGTH = {"white_male": 1.4, "white_female": 0.8, "black_male": 0.2, "black_female": 0.0}
NURTURING = {"white_female": 0.8, "black_female": 0.8}
ARMS = {"raw_naive": 1.0, "raw_matched": 0.6, "scrubbed": 0.0}
#: Two arms of a model that heeds no prompt, and the level of the suite's thirteen tests.
UNHEEDED = {"raw_naive": 1.0, "raw_matched": 1.0}
LEVEL = budget(0.05, tests=13, place=0, alpha=0.05)
KINDS = np.array(["chosen", "neither", "both", "refused", "unlisted", "unparsed"])


@pytest.fixture(scope="module")
def planted():
    """The whole design: 6 pairs × 2 orders × 3 criteria × 2 roles × 30 in three arms, 6,480 trials."""
    frame = experiment(11, strength=STRENGTH, position=0.7, nurturing=NURTURING, arms=ARMS)
    frame["requests"] = np.where(frame["arm"] == "scrubbed", 2.0, np.nan)
    return frame, results_of(frame)


class TestTheWholeDesign:
    def test_the_facts(self, planted):
        """Counts, names, classes; a trial of two steps is two requests; cost and requests by arm,
        too.
        """
        run, arms = planted[1].run, planted[1].arms
        assert (run.trials, run.requests, run.names, run.repetitions) == (6480, 8640, 15, 30)
        assert [arm.requests for arm in arms] == [2160, 2160, 4320]
        assert (set(run.groups), set(run.criteria), run.classes) == (
            set(GROUPS),
            set(CRITERIA),
            CLASSES,
        )
        assert run.names_design == "15 sets of names, which are independent of each other"
        assert run.cost == pytest.approx(6.48)
        assert (run.simulated, run.replayed) == (True, False)
        assert json.loads(json.dumps(to_json(planted[1]), allow_nan=False))["schema"] == 1

    def test_its_findings_have_every_field_of_a_report(self, planted):
        """Where the position decides, where the context does, and what a scrubber misses: each with
        its groups, their trials, its test statistic and its effect, as the schema of findings.json
        asks.
        """
        ordered = experiment(
            3, strength={}, position=6.0, arms={"raw_naive": 1.0}, sets=4, repetitions=4
        )
        scrubs = scrubbed(clean, sets=2)
        found = [
            *interaction_findings(planted[1], planted[0]),
            *order_findings(results_of(ordered), ordered),
            *scrubber_findings(results_of(scrubs).scrubbers[0], scrubs),
        ]
        assert {one.assertion for one in found} == {
            "interaction",
            "order_effect",
            "scrubber_quality",
        }
        conforming(json.loads(json.dumps(findings_of(*found).to_dict())))
        for one in found:
            assert one.n_per_group
            assert set(one.n_per_group) == {group.group for group in one.group_results}
            assert all(group.clusters > 0 for group in one.group_results)
        (interaction, *_), (order,) = (
            [one for one in found if one.assertion == name]
            for name in ("interaction", "order_effect")
        )
        assert re.fullmatch(r"likelihood ratio = \d+\.\d{4}, df = \d", interaction.test_statistic)
        assert interaction.effect_size.startswith("widest difference of shares = 0.")
        assert order.effect_size.startswith("log odds of standing first = ")
        assert order.n_per_group == {"listed first": len(ordered)}

    def test_the_arms_share_the_level_of_the_test_about_the_context(self, planted):
        frame, results = planted
        surest = min(finding.corrected_p_value for finding in interaction_findings(results, frame))
        assert len(results.arms) == 3
        less, more = (replace(results, alpha=times * surest) for times in (2.9, 3.1))
        assert not list(interaction_findings(less, frame))
        assert list(interaction_findings(more, frame))

    def test_pairs_are_those_of_the_public_analysis(self, planted):
        """The page and an assertion on the same rows cannot say different things; scipy's binomial
        p stands beside, and each order by itself, of which the share is the mean.
        """
        frame, results = planted
        arm = arm_of(results, "raw_naive")
        finding = analyze_preference(
            frame[frame["arm"] == "raw_naive"], cluster=("first_name", "second_name")
        )
        for pair, shown in zip(finding.pairs, arm.preference.pairs, strict=True):
            assert (shown.group_1, shown.group_2, shown.verdict) == (
                pair.group_1,
                pair.group_2,
                pair.verdict,
            )
            assert shown.corrected_p_value == pytest.approx(pair.corrected_p_value)
            assert (shown.stratified_p, shown.clustered_p) == (pair.p_row, pair.p_cluster)
            assert shown.p_value == max(shown.stratified_p, shown.clustered_p)
            assert shown.binomial_p == pytest.approx(
                binomtest(shown.share.count, shown.share.n).pvalue
            )
            ahead, behind = (listing.share for listing in shown.listings)
            assert shown.listings[0].first == shown.group_1
            assert shown.share.value == pytest.approx((ahead.value + 1 - behind.value) / 2)
            assert ahead.n + behind.n == shown.share.n
            assert ahead.low < ahead.value < ahead.high
        assert (arm.preference.verdict, arm_of(results, "scrubbed").preference.verdict) == (
            finding.verdict,
            Verdict.PASS,
        )
        assert finding.verdict is Verdict.FAIL
        assert arm.equal_shares.corrected == finding.details["round_robin"]["chi_square"]
        assert arm.equal_shares.corrected == pytest.approx(arm.equal_shares.plain * 3 / 4)
        assert (
            arm.equal_shares.p_value
            == finding.details["round_robin"]["p_value"]
            > arm.equal_shares.plain_p
        )

    def test_the_interaction_is_parted_from_the_axis_without_one(self, planted):
        found = {(one.axis, one.by): one for one in arm_of(planted[1], "raw_naive").interactions}
        gender = found["criteria", "gender"]
        assert gender.p_value == gender.clustered_p < 0.001
        assert found["role", "gender"].p_value > 0.01
        levels = {
            level.level: {s.group: s.share.value for s in level.shares} for level in gender.levels
        }
        assert levels[CRITERIA[0]]["female"] > 0.5 > levels[CRITERIA[1]]["female"]

    def test_contrasts_isolate_the_prompt_and_the_scrubbing(self, planted):
        """Three contrasts between groups, by gender and by race; scrubbing beyond the prompt
        removes the race gap.
        """
        contrasts = {(one.treated, one.control, one.by): one for one in planted[1].contrasts}
        assert len(contrasts) == 9
        race = contrasts["scrubbed", "raw_naive", "race_ethnicity"]
        assert race.verdict is Verdict.PASS
        (pair,) = race.pairs
        assert (
            pair.control.value < 0
        )  # black against white: the change is positive, and so is the reduction
        assert pair.change.value == pytest.approx(pair.treated.value - pair.control.value)
        assert (pair.reduction, pair.reduction_low) == (pair.change.value, pair.change.low)
        assert 0 < pair.reduction_low < pair.reduction < pair.reduction_high

    def test_four_fifths_counts_as_the_rule_does(self, planted):
        """Ratio, Katz interval, Fisher and shortfall are those of the counts; the verdict knows the
        dependence.
        """
        arm = arm_of(planted[1], "raw_naive")
        counts = {rate.group: (rate.share.count, rate.share.n) for rate in arm.preference.rates}
        assert (arm.four_fifths.reference, arm.four_fifths.verdict) == ("white_male", Verdict.FAIL)
        for pair in arm.four_fifths.pairs:
            plain = impact_ratio(*counts[pair.group], *counts[pair.reference])
            assert (pair.ratio, pair.low, pair.high) == (
                plain.ratio,
                plain.ratio_low,
                plain.ratio_high,
            )
            assert (pair.fisher_p, pair.shortfall, pair.flip_flop) == (
                plain.fisher,
                plain.shortfall,
                plain.flip_flop,
            )
            assert pair.below == (pair.ratio < 0.8)
        assert "an impact ratio of" in arm.four_fifths.sentence
        assert arm_of(planted[1], "scrubbed").four_fifths.verdict is Verdict.PASS
        for arm in planted[
            1
        ].arms:  # every decided trial has one winner, and each group is in half of them
            assert sum(rate.share.count for rate in arm.preference.rates) == arm.decided == 2160
            assert {rate.share.n for rate in arm.preference.rates} == {1080}


class TestNames:
    def test_names_that_differ_are_no_preference_for_a_group(self):
        """With few names of strong leanings the binomial recipe raises alarms; the names as the
        unit do not.
        """
        plain = contract = 0
        for seed in range(6):
            arm = results_of(small(seed, name_sd=1.2, sets=3, repetitions=24), {}).arms[0]
            plain += min(pair.binomial_p for pair in arm.preference.pairs) < 0.05 / 6
            contract += arm.preference.verdict in (Verdict.FAIL, Verdict.FLAG)
        assert plain >= 4
        assert contract <= 1

    def test_one_name_a_group_is_a_result_about_the_names(self):
        """No clustered p, a FAIL capped at FLAG, in the four-fifths rule too, and the page says so."""
        arm = results_of(small(0, strength=STRENGTH, sets=1, repetitions=20)).arms[0]
        assert {(pair.clustered_p, pair.scope) for pair in arm.preference.pairs} == {
            (None, "labels")
        }
        assert (arm.preference.verdict, arm.four_fifths.verdict) == (Verdict.FLAG, Verdict.FLAG)
        assert any(note.startswith("one name a group") for note in arm.notes)
        assert all(one.clustered_p is None for one in arm.interactions)

    def test_names_that_meet_several_others(self):
        """30 pairs of 10 names: no sets are apart any more, so names themselves are the unit, and
        things still show.
        """
        results = results_of(small(1, strength=STRENGTH, turned=True, sets=10, repetitions=30))
        assert results.run.names_design == "10 names a group, each of which meets several others"
        arm = results.arms[0]
        assert (arm.preference.verdict, arm.four_fifths.verdict) == (Verdict.FAIL, Verdict.FAIL)
        assert {pair.name_pairs for pair in arm.preference.pairs} == {10}
        assert all(one.clustered_p is not None for one in arm.interactions)
        rows = small(0, strength=STRENGTH).drop(columns=["name", "first_name", "second_name"])
        results = results_of(as_trials(rows), {})  # without names rows stand for themselves
        assert (results.run.names, results.arms[0].preference.verdict) == (0, Verdict.FAIL)


class TestTables:
    def test_units_blocks_and_classes(self):
        """Names where both are known, conditions where there are several, classes where they are
        crossed.
        """
        frame = tiny()
        assert units_column(frame) == ("first_name", "second_name")
        assert units_column(frame.assign(first_name=None)) == "name"
        assert context_columns(frame) == ("template",)
        assert context_columns(pd.concat([frame, frame.assign(signal="name")])) == (
            "template",
            "signal",
        )
        assert set(crossed_classes(CLASSES)) == {"gender", "race_ethnicity"}
        assert (
            crossed_classes({group: CLASSES[group] for group in GROUPS[:2]}) == ()
        )  # both White: gender is the group
        assert (
            crossed_classes({"older": {"age": "older"}, "younger": {"age": "younger"}})
            == crossed_classes({})
            == ()
        )
        arm = results_of(tiny(groups=("white_male", "black_male"))).arms[0]
        assert (arm.margins, {one.by for one in arm.interactions}) == ((), {"group"})

    def test_by_class_keeps_the_pairs_that_differ_and_what_is_no_choice(self):
        frame = tiny()
        found = by_class(frame, "gender", CLASSES)
        assert set(found["first"]) == set(found["second"]) == {"male", "female"}
        assert (found["first"] != found["second"]).all()
        assert len(found) == len(frame) * 8 / 12
        assert found["chosen"].tolist() == [
            CLASSES[one]["gender"] for one in frame["chosen"][found.index]
        ]
        frame["chosen"] = np.where(np.arange(len(frame)) % 2, "neither", None)
        found = by_class(frame, "race_ethnicity", CLASSES)["chosen"]
        assert set(found.dropna()) == {"neither"}
        assert found.isna().sum() == (found == "neither").sum()

    def test_every_kind_of_reply_is_counted_by_pair(self):
        """What is no choice is no evidence; too much of it leaves every verdict open, and without
        any choice nothing is concluded: INCONCLUSIVE, never PASS, and every number that there is.
        """
        frame = tiny(2)
        kinds = KINDS[np.arange(len(frame)) % 6]
        undecided = np.where(np.isin(kinds, ["neither", "both"]), "neither", None)
        chosen = np.where(kinds == "chosen", frame["chosen"], undecided)
        arm = results_of(
            frame.assign(choice=kinds, chosen=chosen, refused=kinds == "refused"), {}
        ).arms[0]
        assert [outcome.trials for outcome in arm.outcomes] == [24] * 6
        assert arm.outcomes[0].counts == dict.fromkeys(dict.fromkeys(kinds), 4)
        assert (arm.decided, arm.preference.verdict, arm.four_fifths.reason) == (
            24,
            Verdict.INCONCLUSIVE,
            Reason.UNSCORED,
        )

        kinds = {"raw_naive": "refused", "raw_matched": "unparsed", "scrubbed": "neither"}
        frame = tiny(arms=ARMS)
        choice = frame["arm"].map(kinds)
        frame = frame.assign(
            choice=choice,
            refused=choice == "refused",
            chosen=choice.where(choice == "neither", None),
        )
        results = results_of(frame, {})
        for arm in results.arms:
            assert {arm.preference.verdict, arm.four_fifths.verdict} == {Verdict.INCONCLUSIVE}
            assert (arm.decided, arm.order, arm.strengths) == (0, None, None)
            assert arm.outcomes[0].counts[kinds[arm.arm]] == arm.outcomes[0].trials
            assert all(rate.share.value is None for rate in arm.preference.rates)
        assert {one.verdict for one in results.contrasts} == {Verdict.INCONCLUSIVE}

    def test_facts_of_a_mixed_table_and_tables_that_are_refused(self):
        """A cost of which a part is unknown is unknown; simulated if any row is; all models are
        named.
        """
        frame = tiny()
        with pytest.raises(FrameError, match="'somebody'"):
            results_of(frame.assign(chosen="somebody"))
        with pytest.raises(FrameError, match="ask for no choice"):
            results_of(frame.assign(arm="reidentified"))
        frame["simulated"] = np.arange(len(frame)) == 3
        frame.loc[::2, "model"], frame.loc[3, "cost"] = "m2", None
        run = results_of(frame, {}).run
        assert (run.cost, run.simulated, set(run.models)) == (None, True, {"m1", "m2"})


class TestContrasts:
    def race(self, treated, seed=0, lean=1.2, favoured="white"):
        strength = {f"{favoured}_male": lean, f"{favoured}_female": lean}
        frame = small(seed, strength=strength, arms={"control": 1.0, "treated": treated})
        found = results_of(frame).contrasts
        assert {one.isolates for one in found} == {"treated against control"}
        (contrast,) = (one for one in found if one.by == "race_ethnicity")
        return contrast, contrast.pairs[0]

    def test_a_reduction_points_up_whoever_is_preferred(self):
        """Where the first group wins in the control the change is negative and the reduction still
        points up.
        """
        contrast, pair = self.race(0.0, seed=1, favoured="black")
        assert contrast.verdict is Verdict.PASS
        assert pair.change.value < 0 < pair.control.value
        assert (pair.reduction, pair.reduction_low) == (-pair.change.value, -pair.change.high)
        assert pair.reduction_high == -pair.change.low

    def test_a_preference_that_turns_round_or_grows_fails(self):
        """A reduction larger than what there was, or a negative one: neither is a PASS."""
        contrast, pair = self.race(-1.5)
        assert pair.reduction > abs(pair.control.value)
        assert pair.treated.value > 0 > pair.control.value
        assert contrast.verdict is Verdict.FAIL
        contrast, pair = self.race(3.0)
        assert pair.reduction_high < 0
        assert contrast.verdict is Verdict.FAIL

    def test_arms_that_share_nothing(self):
        """Other names and other contexts in each arm: nothing is paired, and nothing is claimed."""
        frame = tiny(arms={"control": 1.0, "treated": 0.0})
        for column in ("first_name", "second_name", "name", "template"):
            frame[column] = np.where(
                frame["arm"] == "treated", "other " + frame[column], frame[column]
            )
        (contrast,) = results_of(frame, {}).contrasts
        assert contrast.verdict is Verdict.INCONCLUSIVE
        assert {(pair.change, pair.units) for pair in contrast.pairs} == {(None, 0)}

    def test_the_level_is_that_of_every_verdict(self):
        """A model that heeds no prompt: by chance one table alarms at .05 (p .013), and at the level
        of thirteen tests it does not.
        """
        frame = small(27, position=0.5, arms=UNHEEDED)
        for alpha, verdict in ((0.05, Verdict.FAIL), (LEVEL, Verdict.INCONCLUSIVE)):
            results = results_of(frame, alpha=alpha)
            assert results.alpha == alpha
            (race,) = (one for one in results.contrasts if one.by == "race_ethnicity")
            assert race.verdict is verdict
            assert race.pairs[0].corrected_p_value == pytest.approx(0.013432, abs=1e-6)
        preferred = small(0, strength={"white_male": 0.5, "white_female": 0.5})
        verdicts = {
            alpha: [
                part.verdict
                for arm in results_of(preferred, alpha=alpha).arms
                for part in (arm.preference, *arm.margins, arm.four_fifths)
            ]
            for alpha in (0.05, 1e-30)
        }
        assert Verdict.FAIL in verdicts[0.05]
        assert not {Verdict.FAIL, Verdict.FLAG} & set(verdicts[1e-30])

    def test_a_prompt_that_changes_nothing_seldom_fails(self):
        """With a preference in both arms, and names of their own: no more alarms than .05 allows of so
        many audits but once in ten thousand times.
        """
        race = {group: classes["race_ethnicity"] for group, classes in CLASSES.items()}
        strength = {"black_male": -1.0, "black_female": -1.0}
        audits = 60
        alarms = 0
        for seed in range(audits):
            found = analyze_arms(
                small(seed, strength=strength, position=0.5, name_sd=0.35, arms=UNHEEDED),
                treated="raw_matched",
                control="raw_naive",
                by="race_ethnicity",
                classes=race,
                cluster=("first_name", "second_name"),
            )
            alarms += found.verdict in ALARMS
        assert alarms <= binom.ppf(0.9999, audits, 0.05)


class TestExplanations:
    def test_qualifications_are_an_axis_like_the_others(self):
        frame = pd.concat(
            [small(at, strength={"white_male": lean}).assign(qualifications=q)
             for at, (q, lean) in enumerate([("borderline", 2.0), ("strong", 0.0)])],
            ignore_index=True,
        )  # fmt: skip
        frame["template"] += "-" + frame["qualifications"]
        results = results_of(frame, {})
        assert results.run.qualifications == ("borderline", "strong")
        (found,) = (one for one in results.arms[0].interactions if one.axis == "qualifications")
        assert found.p_value < 0.05
        share = {
            level.level: next(s.share.value for s in level.shares if s.group == "white_male")
            for level in found.levels
        }
        assert share["borderline"] > share["strong"] + 0.1

    def test_separation_makes_up_no_p(self):
        """A group that always wins, everywhere or at one level: strengths for orientation, and
        still a FAIL.
        """
        arm = results_of(small(0, strength={"white_male": 60.0}), {}).arms[0]
        assert (arm.strengths.ridge, arm.strengths.p_value, arm.preference.verdict) == (
            True,
            None,
            Verdict.FAIL,
        )
        assert any("ridge" in note for note in arm.notes)
        frame = small(repetitions=6)
        always = (frame["criteria"] == CRITERIA[0]) & (
            (frame["first"] == GROUPS[0]) | (frame["second"] == GROUPS[0])
        )
        frame.loc[always, "chosen"] = GROUPS[0]
        (one,) = (
            found
            for found in results_of(frame, {}).arms[0].interactions
            if found.axis == "criteria"
        )
        assert (one.row_p, one.p_value) == (None, None)
        level = next(level for level in one.levels if level.level == CRITERIA[0])
        assert next(s.share.value for s in level.shares if s.group == GROUPS[0]) == 1.0

    def test_positions(self):
        """Always the first: a share of 1 with an interval, even strengths, nobody preferred; none;
        and the second.
        """
        frame = tiny()
        arm = results_of(frame.assign(chosen=frame["first"]), {}).arms[0]
        assert arm.order.share.low < 1.0 == arm.order.share.value
        assert ({rate.share.value for rate in arm.preference.rates}, arm.equal_shares.p_value) == (
            {0.5},
            1.0,
        )
        assert arm.strengths.ridge
        order = results_of(small(5), {}).arms[0].order
        assert order.share.low < 0.5 < order.share.high
        assert (order.p_value > 0.05, order.df) == (True, 1)
        order = results_of(small(4, position=-1.0), {}).arms[0].order
        assert order.share.high < 0.5
        assert order.log_odds + 1.96 * order.error < 0
