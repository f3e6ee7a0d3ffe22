"""What a scrubber does: what it takes out and leaves, and whether a group can be guessed from what is left."""

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
from pytest_fairness.suites.selection.candidate_texts import body, content, conveyed, is_removed, read_guesses, split
from pytest_fairness.suites.selection.scrubber import scrubber_qualities

from .choices_of import CLASSES, GROUPS, arm_of, clean, results_of, scrubbed

ASKED = {"gender": ["female", "male"], "race_ethnicity": ["black", "white"]}


def quality(frame):
    (found,) = scrubber_qualities(frame, CLASSES, permutations=39, seed=0)
    return found


def shown(found, what, by="group"):
    return next(one for one in found if one.what == what and one.by == by)


def guesses(frame):
    return {(one.by, one.text): one for one in quality(frame).reidentified}


def leaves(text):
    """A scrubber that leaves *text*, with the candidate's words in it."""

    def scrub(place, group, name, _rng):
        race, gender = group.split("_")
        pronoun = {"female": "her", "male": "his"}[gender]
        words = {"label": f"Candidate {chr(64 + place)}", "name": name, "surname": name.split()[1]}
        kept = "Experience" if race == "black" else "2 Years of Experience"
        return f"{place}. " + text.format(**words, race=race, gender=gender, pronoun=pronoun, kept=kept)

    return scrub


class TestRecall:
    def test_a_clean_scrubber_removes_everything_and_keeps_the_job(self):
        found = quality(scrubbed(clean, sets=18))
        assert {one.overall.value for one in (*found.recall, *found.content)} == {1.0}
        assert {one.verdict for one in (*found.recall, *found.content)} == {Verdict.PASS}
        assert {one.what for one in found.recall} == {
            "all signals", "name", "words of gender", "words of race_ethnicity",
        }  # fmt: skip
        assert (found.texts, found.lines.value, found.notes) == (1, 1.0, [])

    def test_a_scrubber_that_leaves_some_names_of_one_group(self):
        """Four in ten Black women's names stand: the share is found, the interval holds it, the groups differ."""

        def leaky(place, group, name, rng):
            keeps = group == "black_female" and rng.random() < 0.4
            return f"{place}. {name if keeps else f'Candidate {chr(64 + place)}'}, 2 Years of Experience"

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
        found = quality(scrubbed(leaves("Mx {surname}, 2 Years of Experience")))
        assert shown(found.recall, "name").overall.value == 0.0
        found = quality(scrubbed(leaves("{label}, 2 Years of Experience, {gender}")))
        kinds = ("words of gender", "words of race_ethnicity", "name")
        assert [shown(found.recall, what).overall.value for what in kinds] == [0.0, 1.0, 1.0]

    def test_the_raw_text_is_a_column_or_another_arm_s_prompt(self):
        frame = scrubbed(clean)
        alone = frame[frame["arm"] == "scrubbed"]
        with pytest.raises(FrameError, match=r"give it as column 'raw_text', or run an arm that sends it unscrubbed"):
            quality(alone)
        assert shown(quality(alone.assign(raw_text=alone["prompt"])).recall, "all signals").overall.value == 1.0

    def test_candidates_that_cannot_be_parted_are_noted(self):
        def merged(place, _group, _name, _rng):
            return "Both have 2 Years of Experience." if place == 1 else ""

        found = quality(scrubbed(merged))
        assert found.lines.value == 0.0
        assert shown(found.recall, "name").overall.value == 1.0
        assert any("cannot be told apart" in note for note in found.notes)
        assert not [one for one in found.reidentified if one.text == "scrubbed"]

    def test_groups_that_share_their_names(self):
        """By label only every group has the same neutral names: a name that is left tells nothing."""
        frame = scrubbed(clean)
        for column in ("first_name", "second_name"):
            frame[column] = [f"J. N{name[2]}" for name in frame[column]]
        found = quality(frame)
        assert "name" not in {one.what for one in found.recall}
        assert any("share their names" in note for note in found.notes)


class TestContent:
    def test_a_scrubber_that_takes_the_years_from_one_group(self):
        """Of "2 Years of Experience" Black candidates keep one word in three: found, by group and by race."""

        found = quality(scrubbed(leaves("{label}, {kept}")))
        shares = {one.group: one.share.value for one in shown(found.content, "job-related words").shares}
        assert shares == {
            "white_male": 1.0, "white_female": 1.0,
            "black_male": pytest.approx(1 / 3), "black_female": pytest.approx(1 / 3),
        }  # fmt: skip
        assert shown(found.content, "job-related words").verdict is Verdict.FAIL
        assert shown(found.content, "job-related words", "race_ethnicity").verdict is Verdict.FAIL
        assert shown(found.content, "job-related words", "gender").verdict is Verdict.PASS


class TestReidentification:
    def test_labels_are_read_and_their_absence_leaves_chance(self):
        found = guesses(scrubbed(clean))
        for by, chance in (("group", 0.25), ("gender", 0.5), ("race_ethnicity", 0.5)):
            assert found[by, "raw"].accuracy.value == 1.0
            assert found[by, "raw"].p_value == pytest.approx(1 / 40)
            assert found[by, "scrubbed"].accuracy.value == pytest.approx(chance)
            assert found[by, "scrubbed"].p_value == 1.0
        assert found["group", "raw"].chance == pytest.approx(0.25, abs=0.05)

    def test_a_pronoun_that_is_left_gives_the_gender_away_and_no_more(self):
        found = guesses(scrubbed(leaves("{label}, 2 Years in {pronoun} job")))
        assert found["gender", "scrubbed"].accuracy.value == 1.0
        assert found["race_ethnicity", "scrubbed"].p_value > 0.05
        assert found["group", "scrubbed"].accuracy.value == pytest.approx(0.5, abs=0.2)

    def test_names_themselves_teach_the_classifier_nothing(self):
        """Every name is tried by a classifier that has not seen it: remembering names would look like leaking."""
        found = guesses(scrubbed(leaves("{name}, 2 Years of Experience")))
        assert found["group", "scrubbed"].accuracy.value == pytest.approx(0.25)

    def test_one_name_a_group_cannot_be_left_out(self):
        found = quality(scrubbed(clean, sets=1, repetitions=6))
        assert {one.by for one in found.reidentified} == {"gender", "race_ethnicity"}  # of two names each
        assert any("groups of two names" in note for note in found.notes)

    @pytest.mark.parametrize("right", [0.5, 0.9])
    def test_the_endpoints_own_guesses(self, right):
        """Guesses of a known accuracy are scored against the truth; at chance p is not small."""
        frame = scrubbed(clean)
        rows = frame[frame["arm"] == "scrubbed"].copy()
        rng = np.random.default_rng(3)
        other = {"female": "male", "male": "female"}

        def guess(group):
            race, gender = group.split("_")
            return f"{gender if rng.random() < right else other[gender]}, {race.title()}"

        rows["reply"] = [f"1. {guess(a)}\n2. {guess(b)}" for a, b in zip(rows["first"], rows["second"], strict=True)]
        rows["arm"], rows["chosen"], rows["choice"] = "reidentified", None, "unparsed"
        whole = pd.concat([frame.assign(reply="1"), rows], ignore_index=True)
        results = results_of(whole, permutations=39)
        assert [arm.arm for arm in results.arms] == ["raw_naive", "scrubbed"]
        (scrubber,) = results.scrubbers
        found = {one.by: one for one in scrubber.reidentified if one.reader == "endpoint"}
        assert found["gender"].accuracy.value == pytest.approx(right, abs=0.06)
        assert found["gender"].accuracy.low < right < found["gender"].accuracy.high
        assert (found["gender"].p_value < 0.05) == (right == 0.9)
        assert found["race_ethnicity"].accuracy.value == 1.0
        assert found["group"].accuracy.value == pytest.approx(right, abs=0.06)
        assert found["group"].unread == 0

    def test_guesses_that_cannot_be_read_are_counted(self):
        frame = scrubbed(clean)
        rows = frame[frame["arm"] == "scrubbed"].assign(arm="reidentified", reply="I cannot tell.", chosen=None)
        (scrubber,) = results_of(pd.concat([frame.assign(reply="1"), rows], ignore_index=True)).scrubbers
        assert not [one for one in scrubber.reidentified if one.reader == "endpoint"]
        assert f"arm reidentified: no guess of a group could be read from its {len(rows)} replies" in scrubber.notes

    def test_guesses_need_to_know_what_is_true(self):
        """Groups of unknown classes cannot be guessed at; the mend is named."""
        frame = scrubbed(clean, groups=GROUPS[:2])
        rows = frame[frame["arm"] == "scrubbed"].assign(arm="reidentified", reply="1. x")
        with pytest.raises(FrameError, match="give each group its classes"):
            results_of(pd.concat([frame.assign(reply="1"), rows], ignore_index=True), {})

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
        assert str(by_arm["reidentified_raw"].attributes["name_1"]) in by_arm["reidentified_raw"].prompt
        assert {"reidentified", "reidentified_by_rule", "reidentified_raw"} <= set(ready_arms())


def test_our_own_rules_are_measured():
    """The rule scrubber on the banks' names and labels: nothing is left, nothing of the job is lost."""
    scrub = RuleScrubber(NameBanks.load(), Signals.load())
    text = (
        "1. Greg Walsh, 2 Years of Experience, Male, White\n2. Lakisha Washington, 2 Years of Experience, Female, Black"
    )
    left = split(scrub(text))
    for part, name, group in zip(left, ("Greg Walsh", "Lakisha Washington"), (GROUPS[0], GROUPS[3]), strict=True):
        raw = split(text)[GROUPS.index(group) // 3]
        assert all(
            is_removed(kind, signals, part)
            for kind, signals in conveyed(raw, name, tuple(CLASSES[group].items())).items()
        )
        assert content(raw, name, CLASSES[group]) <= {"years", "experience", "2"} == content(raw, name, CLASSES[group])


def test_the_column_survives_where_every_pipeline_was_refused():
    """Nothing reached the evaluator: no text, no quality, and the rest of the results stands."""
    frame = scrubbed(clean)
    frame["candidates_text"] = None
    refused = frame["arm"] == "scrubbed"
    frame = frame.assign(refused=refused, chosen=frame["chosen"].where(~refused, None))
    frame["choice"] = np.where(refused, "refused", "chosen")
    results = results_of(frame)
    assert results.scrubbers == results_of(frame.drop(columns="candidates_text")).scrubbers == []
    assert arm_of(results, "scrubbed").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. Ann\n2. Ben", ("1. Ann", "2. Ben")),
        ("Please select.\n\n1. Ann, nurse\n2. Ben, nurse\n\nReply with a name.", ("1. Ann, nurse", "2. Ben, nurse")),
        ("Candidate A, nurse\nCandidate B, nurse", ("Candidate A, nurse", "Candidate B, nurse")),
        ("1. Candidate A, nurse\n2. Candidate B, nurse", ("1. Candidate A, nurse", "2. Candidate B, nurse")),
        ("**Candidate A**: nurse\n**Candidate B**: nurse", ("**Candidate A**: nurse", "**Candidate B**: nurse")),
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


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ("1. Candidate A, 2 years", "2 years"),
        ("Candidate B: 2 years", "2 years"),
        ("**Candidate A**: 2 years", "2 years"),
        ("2. Ben, 2 years", "Ben, 2 years"),
        ("Candid person", "Candid person"),
    ],
)
def test_the_text_without_its_label(part, left):
    assert body(part) == left


def test_signals_are_read_by_kind():
    found = conveyed("1. Ann M. Lee, she is Female, White", "Ann M. Lee", tuple(CLASSES["white_female"].items()))
    assert found == {
        "name": ("Ann", "Lee"),
        "words of race_ethnicity": ("White",),
        "words of gender": ("female",),
        "pronoun": ("pronoun",),
    }
    assert conveyed("A nurse.", "Ann Lee", tuple(CLASSES["white_female"].items())) == {}


@pytest.mark.parametrize(
    ("kind", "signals", "left", "gone"),
    [
        ("name", ("Ann", "Lee"), "Candidate A", True),
        ("name", ("Ann", "Lee"), "lee, a nurse", False),
        ("name", ("Ann", "Lee"), "annual leeway", True),
        ("words of gender", ("male",), "female", True),
        ("words of gender", ("female",), "Female nurse", False),
        ("pronoun", ("pronoun",), "they work there", True),
        ("pronoun", ("pronoun",), "in Her notes", False),
    ],
)
def test_what_counts_as_gone(kind, signals, left, gone):
    assert is_removed(kind, signals, left) is gone


@pytest.mark.parametrize(
    ("reply", "first", "second"),
    [
        ("1. female, White\n2. male, Black", ("female", "white"), ("male", "black")),
        ("1: Female / Black\n2: Male / White", ("female", "black"), ("male", "white")),
        ("Candidate A: a white woman\nCandidate B: a black man", ("female", "white"), ("male", "black")),
        ("1. woman, African American\n2. man, Caucasian", ("female", "black"), ("male", "white")),
        ("1. Female, White. 2. Male, Black.", ("female", "white"), ("male", "black")),
        ("**1.** F, White\n**2.** M, Black", ("female", "white"), ("male", "black")),
        ("My guesses:\n\n1. female, Black\n\n2. female, Black", ("female", "black"), ("female", "black")),
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
    """What is unclear is no guess: a wrong reading would look like a scrubber that leaks, or like one that does not."""
    one, two = read_guesses(reply, ASKED)
    assert (one["gender"], one["race_ethnicity"]) == first
    assert (two["gender"], two["race_ethnicity"]) == second
