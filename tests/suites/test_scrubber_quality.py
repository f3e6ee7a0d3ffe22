"""What a scrubber does: what it takes out and leaves, and whether a group can be guessed from what
is left.
"""

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.design.arms import ready_arms
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.pairs import expand_pairs
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Signals
from pytest_fairness.errors import FrameError
from pytest_fairness.model import Verdict
from pytest_fairness.suites.selection.candidate_texts import (
    body,
    content,
    conveyed,
    is_removed,
    read_guesses,
    split,
)
from pytest_fairness.suites.selection.scrubber import scrubber_qualities

from .choices_of import CLASSES, GROUPS, arm_of, clean, results_of, scrubbed

REQUESTED = {"gender": ["female", "male"], "race_ethnicity": ["black", "white"]}


def quality(frame):
    (found,) = scrubber_qualities(frame, CLASSES, permutations=39, seed=0)
    return found


def shown(found, what, by="group"):
    return next(one for one in found if one.what == what and one.by == by)


def guesses(frame):
    return {(one.by, one.text): one for one in quality(frame).reidentified}


def beside(frame, rows):
    """*frame* with *rows* as those of an arm that guesses."""
    return pd.concat(
        [frame.assign(reply="1"), rows.assign(arm="reidentified", choice="unparsed")],
        ignore_index=True,
    )


def leaves(text):
    """A scrubber that leaves *text*, with the candidate's words in it."""

    def scrub(place, group, name, _rng):
        race, gender = group.split("_")
        pronoun = {"female": "her", "male": "his"}[gender]
        words = {"label": f"Candidate {chr(64 + place)}", "name": name, "surname": name.split()[1]}
        kept = "Experience" if race == "black" else "2 Years of Experience"
        return f"{place}. " + text.format(
            **words, race=race, gender=gender, pronoun=pronoun, kept=kept
        )

    return scrub


@pytest.fixture(scope="module")
def whole():
    """What is found of a scrubber that removes everything, and the table."""
    frame = scrubbed(clean, sets=18)
    return quality(frame), frame


class TestRecall:
    def test_a_clean_scrubber_removes_everything_and_keeps_the_job(self, whole):
        """Labels are read, and in their absence nobody guesses better than by chance."""
        found, _ = whole
        assert {one.overall.value for one in (*found.recall, *found.content)} == {1.0}
        assert {one.verdict for one in (*found.recall, *found.content)} == {Verdict.PASS}
        assert {one.what for one in found.recall} == {
            "all signals", "name", "words of gender", "words of race_ethnicity",
        }  # fmt: skip
        assert (found.texts, found.lines.value, found.notes) == (1, 1.0, ())
        guessed = {(one.by, one.text): one for one in found.reidentified}
        for by, chance in (("group", 0.25), ("gender", 0.5), ("race_ethnicity", 0.5)):
            assert guessed[by, "raw"].accuracy.value == 1.0
            assert guessed[by, "raw"].p_value == pytest.approx(1 / 40)
            assert guessed[by, "scrubbed"].accuracy.value == pytest.approx(chance)
            assert guessed[by, "scrubbed"].p_value == 1.0
        assert guessed["group", "raw"].chance == pytest.approx(0.25, abs=0.05)

    def test_a_scrubber_that_leaves_some_names_of_one_group(self):
        """Four in ten Black women's names stand: the share is found, the interval holds it, the
        groups differ.
        """

        def leaky(place, group, name, rng):
            keeps = group == "black_female" and rng.random() < 0.4
            return (
                f"{place}. {name if keeps else f'Candidate {chr(64 + place)}'}, 2 Years of "
                "Experience"
            )

        found = quality(scrubbed(leaky))
        name = shown(found.recall, "name")
        shares = {one.group: one.share for one in name.shares}
        assert shares["black_female"].low < 0.6 < shares["black_female"].high
        assert shares["black_female"].value == pytest.approx(0.6, abs=0.1)
        assert {shares[group].value for group in GROUPS[:3]} == {1.0}
        assert name.verdict in (Verdict.FAIL, Verdict.FLAG)
        assert "black_female" in name.sentence
        assert shown(found.recall, "words of gender").overall.value == 1.0
        assert shown(found.recall, "name", "gender").verdict in (Verdict.FAIL, Verdict.FLAG)

    def test_a_part_of_a_name_and_the_words_of_one_class_are_leaks(self):
        """A surname that is left tells as much as the whole name; each class has its own share."""
        found = quality(scrubbed(leaves("Mx {surname}, 2 Years of Experience"), sets=4))
        assert shown(found.recall, "name").overall.value == 0.0
        found = quality(scrubbed(leaves("{label}, 2 Years of Experience, {gender}"), sets=4))
        kinds = ("words of gender", "words of race_ethnicity", "name")
        assert [shown(found.recall, what).overall.value for what in kinds] == [0.0, 1.0, 1.0]

    def test_the_raw_text_is_a_column_or_another_arm_s_prompt(self):
        frame = scrubbed(clean, sets=4)
        alone = frame[frame["arm"] == "scrubbed"]
        with pytest.raises(
            FrameError,
            match=r"give it as column 'raw_text', or run an arm that sends it unscrubbed",
        ):
            quality(alone)
        assert (
            shown(
                quality(alone.assign(raw_text=alone["prompt"])).recall, "all signals"
            ).overall.value
            == 1.0
        )

    def test_candidates_that_cannot_be_parted_and_groups_that_share_their_names(self):
        """Both are noted; by label only every group has the same neutral names: a name that is left
        tells nothing.
        """

        def merged(place, _group, _name, _rng):
            return "Both have 2 Years of Experience." if place == 1 else ""

        found = quality(scrubbed(merged, sets=4))
        assert found.lines.value == 0.0
        assert shown(found.recall, "name").overall.value == 1.0
        assert any("cannot be told apart" in note for note in found.notes)
        assert not [one for one in found.reidentified if one.text == "scrubbed"]
        frame = scrubbed(clean, sets=4)
        for column in ("first_name", "second_name"):
            frame[column] = [f"J. N{name[2]}" for name in frame[column]]
        found = quality(frame)
        assert "name" not in {one.what for one in found.recall}
        assert any("share their names" in note for note in found.notes)

    def test_a_scrubber_that_takes_the_years_from_one_group(self):
        """Of "2 Years of Experience" Black candidates keep one word in three: found, by group and
        by race.
        """
        found = quality(scrubbed(leaves("{label}, {kept}")))
        shares = {
            one.group: one.share.value for one in shown(found.content, "job-related words").shares
        }
        third = pytest.approx(1 / 3)
        assert shares == {
            "white_male": 1.0,
            "white_female": 1.0,
            "black_male": third,
            "black_female": third,
        }
        verdicts = [
            shown(found.content, "job-related words", by).verdict
            for by in ("group", "race_ethnicity", "gender")
        ]
        assert verdicts == [Verdict.FAIL, Verdict.FAIL, Verdict.PASS]


class TestReidentification:
    def test_a_pronoun_that_is_left_gives_the_gender_away_and_no_more(self):
        """Names themselves teach the classifier nothing: every name is tried by one that has not
        seen it.
        """
        found = guesses(scrubbed(leaves("{label}, 2 Years in {pronoun} job")))
        assert found["gender", "scrubbed"].accuracy.value == 1.0
        assert found["race_ethnicity", "scrubbed"].p_value > 0.05
        assert found["group", "scrubbed"].accuracy.value == pytest.approx(0.5, abs=0.2)
        found = guesses(scrubbed(leaves("{name}, 2 Years of Experience"), sets=6))
        assert found["group", "scrubbed"].accuracy.value == pytest.approx(0.25)

    def test_one_name_a_group_cannot_be_left_out(self):
        found = quality(scrubbed(clean, sets=1, repetitions=4))
        assert {one.by for one in found.reidentified} == {
            "gender",
            "race_ethnicity",
        }  # of two names each
        assert any("groups of two names" in note for note in found.notes)

    @pytest.mark.parametrize("right", [0.5, 0.9])
    def test_the_endpoints_own_guesses(self, whole, right):
        """Guesses of a known accuracy are scored against the truth; at chance p is not small."""
        rows = whole[1][whole[1]["arm"] == "scrubbed"].copy()
        rng = np.random.default_rng(3)
        other = {"female": "male", "male": "female"}

        def guess(group):
            race, gender = group.split("_")
            return f"{gender if rng.random() < right else other[gender]}, {race.title()}"

        rows["reply"] = [
            f"1. {guess(a)}\n2. {guess(b)}"
            for a, b in zip(rows["first"], rows["second"], strict=True)
        ]
        found = {
            one.by: one
            for one in quality(beside(whole[1], rows)).reidentified
            if one.reader == "endpoint"
        }
        assert found["gender"].accuracy.value == pytest.approx(right, abs=0.06)
        assert found["gender"].accuracy.low < right < found["gender"].accuracy.high
        assert (found["gender"].p_value < 0.05) == (right == 0.9)
        assert found["race_ethnicity"].accuracy.value == 1.0
        assert found["group"].accuracy.value == pytest.approx(right, abs=0.06)
        assert found["group"].unread == 0

    def test_guesses_that_cannot_be_read_are_counted_and_need_to_know_what_is_true(self):
        """Groups of unknown classes cannot be guessed at; the mend is named. Arms that guess make
        no choice.
        """
        frame = scrubbed(clean, sets=2)
        rows = frame[frame["arm"] == "scrubbed"].assign(reply="I cannot tell.", chosen=None)
        results = results_of(beside(frame, rows))
        assert [arm.arm for arm in results.arms] == ["raw_naive", "scrubbed"]
        (scrubber,) = results.scrubbers
        assert not [one for one in scrubber.reidentified if one.reader == "endpoint"]
        assert (
            f"arm reidentified: no guess of a group could be read from its {len(rows)} replies"
            in scrubber.notes
        )
        with pytest.raises(FrameError, match="give each group its classes"):
            scrubber_qualities(beside(frame, rows), {}, permutations=9, seed=0)

    def test_the_ready_made_arms_send_only_what_was_scrubbed(self):
        """The last step asks for a guess, with the scrubbed text in it and no candidate's name."""
        grid = expand_pairs(
            template="Pick one {role}.\n1. {name_1}, {demographics_1}\n2. {name_2}, {demographics_2}", role=["nurse"],
            candidates="four_groups", arms=["reidentified", "reidentified_by_rule", "reidentified_raw"], repetitions=2,
        )  # fmt: skip
        by_arm = {cell.arm: cell for cell in grid}
        assert len(by_arm["reidentified"].turns) == 2
        assert all("guess the gender" in cell.prompt for cell in by_arm.values())
        assert "Candidate A" in by_arm["reidentified_by_rule"].prompt
        assert (
            str(by_arm["reidentified_raw"].attributes["name_1"])
            in by_arm["reidentified_raw"].prompt
        )
        assert {"reidentified", "reidentified_by_rule", "reidentified_raw"} <= set(ready_arms())


def test_our_own_rules_are_measured():
    """The rule scrubber on the banks' names and labels: nothing is left, nothing of the job is
    lost.
    """
    scrub = RuleScrubber(NameBanks.load(), Signals.load())
    text = (
        "1. Greg Walsh, 2 Years of Experience, Male, White\n2. Lakisha Washington, 2 Years of "
        "Experience, Female, Black"
    )
    left = split(scrub(text))
    for part, name, group in zip(
        left, ("Greg Walsh", "Lakisha Washington"), (GROUPS[0], GROUPS[3]), strict=True
    ):
        raw = split(text)[GROUPS.index(group) // 3]
        own = tuple(CLASSES[group].items())
        assert all(
            is_removed(kind, signals, part) for kind, signals in conveyed(raw, name, own).items()
        )
        assert content(raw, name, own) == {"years", "experience", "2"}


def test_the_column_survives_where_every_pipeline_was_refused():
    """Nothing reached the evaluator: no text, no quality, and the rest of the results stands."""
    frame = scrubbed(clean, sets=2)
    frame["candidates_text"] = None
    refused = frame["arm"] == "scrubbed"
    frame = frame.assign(refused=refused, chosen=frame["chosen"].where(~refused, None))
    frame["choice"] = np.where(refused, "refused", "chosen")
    results = results_of(frame)
    assert results.scrubbers == results_of(frame.drop(columns="candidates_text")).scrubbers == ()
    assert arm_of(results, "scrubbed").preference.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. Ann\n2. Ben", ("1. Ann", "2. Ben")),
        (
            "Please select.\n\n1. Ann, nurse\n2. Ben, nurse\n\nReply with a name.",
            ("1. Ann, nurse", "2. Ben, nurse"),
        ),
        ("Candidate A, nurse\nCandidate B, nurse", ("Candidate A, nurse", "Candidate B, nurse")),
        (
            "1. Candidate A, nurse\n2. Candidate B, nurse",
            ("1. Candidate A, nurse", "2. Candidate B, nurse"),
        ),
        (
            "**Candidate A**: nurse\n**Candidate B**: nurse",
            ("**Candidate A**: nurse", "**Candidate B**: nurse"),
        ),
        (
            "Candidate A:\nNurse.\n1. Ward\n2. Clinic\n\nCandidate B:\nNurse.\n1. Ward",
            ("Candidate A:\nNurse.\n1. Ward\n2. Clinic", "Candidate B:\nNurse.\n1. Ward"),
        ),
        ("1) Ann\n2) Ben", ("1) Ann", "2) Ben")),
        ("2. Ben\n1. Ann", None),
        ("1. Ann\n2. Ben\n3. Cyd", None),
        ("Ann and Ben, both nurses", None),
        ("", None),
    ],
)
def test_candidates_of_a_text(text, found):
    assert split(text) == found


def test_the_text_without_its_label():
    assert (
        body("1. Candidate A, 2 years")
        == body("Candidate B: 2 years")
        == body("**Candidate A**: 2 years")
        == "2 years"
    )
    assert (body("2. Ben, 2 years"), body("Candid person")) == ("Ben, 2 years", "Candid person")


def test_signals_are_read_by_kind_and_looked_for_as_words():
    own = tuple(CLASSES["white_female"].items())
    assert conveyed("1. Ann M. Lee, she is Female, White", "Ann M. Lee", own) == {
        "name": ("Ann", "Lee"), "words of race_ethnicity": ("White",), "words of gender": ("female",),
        "pronoun": ("pronoun",),
    }  # fmt: skip
    assert conveyed("A nurse.", "Ann Lee", own) == {}
    for kind, signals, left, removed in (
        ("name", ("Ann", "Lee"), "Candidate A", True),
        ("name", ("Ann", "Lee"), "lee, a nurse", False),
        ("name", ("Ann", "Lee"), "annual leeway", True),
        ("words of gender", ("male",), "female", True),
        ("words of gender", ("female",), "Female nurse", False),
        ("pronoun", ("pronoun",), "they work there", True),
        ("pronoun", ("pronoun",), "in Her notes", False),
    ):
        assert is_removed(kind, signals, left) is removed, (kind, left)


@pytest.mark.parametrize(
    ("reply", "first", "second"),
    [
        ("1. female, White\n2. male, Black", ("female", "white"), ("male", "black")),
        ("1: Female / Black\n2: Male / White", ("female", "black"), ("male", "white")),
        (
            "Candidate A: a white woman\nCandidate B: a black man",
            ("female", "white"),
            ("male", "black"),
        ),
        ("1. woman, African American\n2. man, Caucasian", ("female", "black"), ("male", "white")),
        ("1. Female, White. 2. Male, Black.", ("female", "white"), ("male", "black")),
        ("**1.** F, White\n**2.** M, Black", ("female", "white"), ("male", "black")),
        (
            "My guesses:\n\n1. female, Black\n\n2. female, Black",
            ("female", "black"),
            ("female", "black"),
        ),
        ("1. female\n2. male", ("female", None), ("male", None)),
        ("1. female or male, White\n2. male, Black", (None, "white"), ("male", "black")),
        ("2. male, Black\n1. female, White", (None, None), (None, None)),
        ("1. female, White", (None, None), (None, None)),
        ("I cannot tell.", (None, None), (None, None)),
        ("", (None, None), (None, None)),
        ("1. unknown\n2. unknown", (None, None), (None, None)),
    ],
)
def test_guesses_are_read_or_left_unread(reply, first, second):
    """What is unclear is no guess: a wrong reading would look like a scrubber that leaks, or like
    one that does not.
    """
    one, two = read_guesses(reply, REQUESTED)
    assert (one["gender"], one["race_ethnicity"]) == first
    assert (two["gender"], two["race_ethnicity"]) == second
