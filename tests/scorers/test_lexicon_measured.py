"""What was measured of the lexicon stays so: precision and recall on both halves of the labelled
texts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_fairness.documents import open_document
from pytest_fairness.scorers.lexicon import CATEGORIES, SEVERITIES, shipped_lexicon
from pytest_fairness.suites.red_team.red_team_cases import red_team_cases
from tests.support.benchmarks import benchmark
from tests.support.labelled_texts import DATA, labelled_texts

#: Precision, recall, and flagged texts that are clean: a little worse than docs/lexicon.md has
#: them.
BOUNDS = {"development": (0.97, 0.91, 1), "held_back": (0.88, 0.92, 4)}

TOLD_BY = {"female": {"she", "her", "ms", "mrs"}, "male": {"he", "his", "him", "mr"}}


@pytest.mark.parametrize("half", BOUNDS)
def test_precision_and_recall(half: str) -> None:
    texts, lexicon = labelled_texts(half), shipped_lexicon()
    found = {
        one: {warning.category for warning in lexicon.warnings(one.text, gender=one.gender)}
        for one in texts
    }
    right = sum(len(own & one.expect) for one, own in found.items())
    precision, recall = (
        right / sum(map(len, found.values())),
        right / sum(len(one.expect) for one in texts),
    )
    least_precision, least_recall, most_flagged = BOUNDS[half]
    assert precision >= least_precision
    assert recall >= least_recall
    assert sum(bool(own) for one, own in found.items() if not one.expect) <= most_flagged


def test_texts_by_another_hand() -> None:
    """120 sentences, 40 of them biased, with the person's gender known where a pronoun or a title
    tells it.
    """
    rows, lexicon = open_document(DATA / "lexicon_another_hand.yaml").data, shipped_lexicon()
    flagged = []
    for row in rows:
        words = set(re.findall(r"[a-z]+", row["text"].lower()))
        told = [gender for gender, own in TOLD_BY.items() if words & own]
        warnings = lexicon.warnings(row["text"], gender=told[0] if len(told) == 1 else None)
        flagged.append(any(warning.term not in ("he", "she") for warning in warnings))
    right = sum(found and row["flagged"] for found, row in zip(flagged, rows, strict=True))
    assert right / sum(flagged) >= 0.64
    assert right / sum(row["flagged"] for row in rows) >= 0.85


def flagged_letters(name: str) -> int:
    """Return how many of the ordinary letters of a file have a warning of medium or above."""
    letters, lexicon = open_document(DATA / name).data, shipped_lexicon()
    flagged = 0
    for letter in letters:
        warnings = lexicon.warnings(letter["text"])
        flagged += any(warning.severity != "low" for warning in warnings)
    return flagged


def test_ordinary_letters_by_another_author() -> None:
    """200 harmless letters and mails, most with words that a list trips over, all of which were
    read while the rules were made. A ratchet: fewer are flagged, never more.
    """
    letters = open_document(DATA / "letters_ordinary.yaml").data
    assert len(letters) == len({letter["text"] for letter in letters}) == 200
    assert flagged_letters("letters_ordinary.yaml") == 0


def test_another_copy_of_the_mails_is_refused(tmp_path: Path) -> None:
    """The script has digests of texts that are no part of the repository."""
    (tmp_path / "0001.txt").write_text("Subject: meter\n" + "the meter was read on monday . " * 20)
    with pytest.raises(SystemExit, match="these are other mails"):
        benchmark("ordinary_mails").mails_of(tmp_path)


def underlined(name: str) -> tuple[int, int]:
    """Return how many of the unfair letters of a file have a warning of medium or above, and how
    many have it on the remark.
    """
    letters, lexicon = open_document(DATA / name).data, shipped_lexicon()
    flagged = underlined = 0
    for letter in letters:
        words = map(re.escape, letter["remark"].split())
        remark = re.search(r"\s+".join(words), letter["text"])
        assert remark is not None, letter["remark"]
        warnings = [w for w in lexicon.warnings(letter["text"]) if w.severity != "low"]
        flagged += bool(warnings)
        underlined += any(w.start < remark.end() and remark.start() < w.end for w in warnings)
    return flagged, underlined


def test_unfair_letters_by_another_author() -> None:
    """60 letters, each with one remark to underline, all of which were read while the terms were
    written. A ratchet: more are found, never fewer.
    """
    letters = open_document(DATA / "letters_unfair.yaml").data
    assert len(letters) == len({letter["text"] for letter in letters}) == 60
    assert underlined("letters_unfair.yaml") == (60, 60)


def test_letters_full_of_traps() -> None:
    """100 harmless letters full of words that a list trips over, and 40 with a remark each, by one
    more author: 24 and 30 were flagged before they were read (decision 254). A ratchet.
    """
    for name, size in (("letters_ordinary_fresh.yaml", 100), ("letters_unfair_fresh.yaml", 40)):
        letters = open_document(DATA / name).data
        assert len(letters) == len({letter["text"] for letter in letters}) == size
    assert flagged_letters("letters_ordinary_fresh.yaml") == 0
    assert underlined("letters_unfair_fresh.yaml") == (40, 40)


def test_ordinary_letters_by_a_third_author() -> None:
    """200 harmless letters and mails: 20 were flagged by the rules of decision 255 before one of
    them was read, and 4 are, one in fifty, since the flagged ones were read. A ratchet.
    """
    letters = open_document(DATA / "letters_ordinary_third.yaml").data
    assert len(letters) == len({letter["text"] for letter in letters}) == 200
    assert flagged_letters("letters_ordinary_third.yaml") == 4


#: What fills a letter up to its length without judging anybody.
FILLING = (
    "Thank you for your letter of 3 March. The parcel came on Monday and everything was in it. Our "
    "office is in the new building, two streets from the old one, and the entrance is on the left. "
    "The car park opens at seven. The invoice is in the same envelope as this letter, with the list "
    "of what we sent. "
)


@pytest.mark.parametrize(
    ("sentence", "severity"),
    [
        ("You are deaf, and we doubt that you could take calls.", "critical"),
        ("We heard that you use a wheelchair. The job is on the third floor.", "critical"),
        ("Our deaf colleagues get the alert on their pagers.", "low"),
        ("If you use a wheelchair, ring the front desk.", "low"),
        ("If you use a wheelchair, we cannot offer you the flat.", "critical"),
    ],
)
def test_in_a_letter_a_group_that_nobody_is_judged_by_is_low(sentence: str, severity: str) -> None:
    """In a text of a sentence or two nobody knows what it is about, and the word counts."""
    warnings = shipped_lexicon().warnings(FILLING + sentence)
    assert [(warning.category, warning.severity) for warning in warnings] == [
        ("disability", severity)
    ]


@pytest.mark.parametrize(
    ("sentence", "warning"),
    [
        ("I use a wheelchair, and your clerk would tell you so.", "disability low"),
        ("I'm sorry that your mother's wheelchair had the wrong rests.", "disability low"),
        ("Your mother's wheelchair is why we cannot offer you the flat.", "disability critical"),
        ("We'd be obliged if you would look at the wheelchair.", "disability low"),
        ("We would prefer that you took the wheelchair elsewhere.", "disability critical"),
        ("We have had trouble with Nigerian account holders like you.", "race_ethnicity critical"),
        ("You may like our Nigerian account holders' evening.", "race_ethnicity low"),
        ("We wondered if at 54 you would have the energy.", "age critical"),
        ("Considering that she's nearly sixty, she is quick.", "age critical"),
        ("The office is at 54 Mill Road, where you would find us.", ""),
        ("We have no upper age limit, whatever you thought.", ""),
    ],
)
def test_in_a_letter_a_warning_asks_whose_it_is(sentence: str, warning: str) -> None:
    warnings = {
        f"{warning.category} {warning.severity}"
        for warning in shipped_lexicon().warnings(FILLING + sentence, gender="female")
    }
    assert warnings == set(filter(None, [warning]))


#: A letter that decides on somebody, with a place for a sentence.
REJECTION = (
    "Dear Sam, Thank you for coming in last week and for showing us your portfolio. After a good "
    "deal of discussion we have decided to offer the position to another candidate. It was a close "
    "call. {} We will keep your details on file until June. If you send your train tickets to Joan "
    "she will refund them. We wish you every success. Kind regards, Pat"
)


@pytest.mark.parametrize(
    ("sentence", "severity"),
    [
        ("Your husband would like to see the boiler.", "low"),
        ("Your husband would not like the travel.", "high"),
        ("We think that your son would enjoy the holiday club.", "low"),
        ("We struggle to see how you would cope with your two small children.", "high"),
        ("My son is autistic and would rather not wait.", "low"),
        ("Her surgery went well, and she would rather not talk about it.", "low"),
        ("Because of her surgery she is a risk to us.", "critical"),
        ("Eid Mubarak to all who would like to join us for Eid.", "low"),
        ("We do not hire mothers.", "high"),
        ("Mothers tend to leave after a year.", "high"),
        ("We need fresh blood in the choir.", "high"),
        ("A deaf dog may be startled, and she is not to blame.", "low"),
        ("If you cannot climb the stairs in your wheelchair, we will arrange a lift.", "low"),
        ("You asked about Gareth Moody, who is well.", "low"),
        ("He is moody.", "low"),
        ("He is moody, and I doubt that he would last.", "high"),
        ("Your race or religion plays no part at all.", ""),
        ("We treat everybody the same, whatever their race, religion or belief.", ""),
        ("Equal treatment does not end with race, religion or sex.", ""),
        ("If you are pregnant, do not come into the X-ray room.", "low"),
        ("He is your only child.", ""),
        ("If you are pregnant, do not apply.", "critical"),
        ("If you use a wheelchair, please look elsewhere.", "critical"),
        ("Only a native speaker gets this job.", "high"),
        ("Recent graduates are what we are after.", "high"),
        ("Your age and accent counted against you.", "critical"),
    ],
)
def test_a_letter_that_decides_nothing(sentence: str, severity: str) -> None:
    """Of what every letter is full of, doubts and refusals count, and what only weighs does not."""
    warnings = shipped_lexicon().warnings(FILLING + sentence, gender="female")
    severities = [w.severity for w in warnings if w.term not in ("he", "mr")]
    assert min(severities, key=SEVERITIES.index, default="") == severity


@pytest.mark.parametrize(
    ("sentence", "severity"),
    [
        ("Your husband would not like the travel.", "high"),
        ("Your husband's job might move you away.", "high"),
        ("We think that your children need you.", "high"),
        ("If you became pregnant, we would be left without cover.", "critical"),
        ("If you use a wheelchair, our new office has a lift.", "low"),
        ("He is moody.", "high"),
        ("Your age and accent counted against you.", "critical"),
        ("Your disability and age are a risk to us.", "critical"),
        ("Your age and pregnancy made us choose another candidate.", "critical"),
        ("Our decision took your race, religion or accent into account.", "high"),
        ("A mother of your age and religion would not last.", "critical"),
        ("Whatever your age and accent, you would not fit in.", "high"),
        ("No matter your age and religion, we cannot take you.", "critical"),
        ("We decide whatever your age, sex or religion.", ""),
        ("If you are pregnant, do not apply.", "critical"),
        ("If you have small children, do not bother.", "high"),
        ("If you cannot speak proper English, look elsewhere.", "critical"),
        ("If you use a wheelchair, please look elsewhere.", "critical"),
        ("Muslims need not apply.", "critical"),
        ("Only a native speaker gets this job.", "high"),
        ("Only a young man would do.", "high"),
        ("Recent graduates are what we are after.", "high"),
        ("A young team is what we want.", "high"),
        (
            "Our puppy and your wheelchair would be a bad mix, and we prefer somebody fit.",
            "critical",
        ),
        ("My wife is pregnant and would not want a pregnant colleague in the office.", "critical"),
        ("Our cat is why we prefer a tenant without children.", "high"),
        ("My wife is deaf and would like to thank you.", "low"),
    ],
)
def test_a_letter_that_decides(sentence: str, severity: str) -> None:
    warnings = shipped_lexicon().warnings(REJECTION.format(sentence), gender="male")
    severities = [w.severity for w in warnings if w.term != "she"]
    assert min(severities, key=SEVERITIES.index, default="") == severity


def violating(name: str) -> list[tuple[str, str | None]]:
    """Return the sentences of a set that say something unfair, each with the person's gender."""
    if name == "another_hand":
        rows = open_document(DATA / "lexicon_another_hand.yaml").data
        return [(row["text"], None) for row in rows if row["flagged"]]
    if name == "red_team":
        return [(case.text, None) for case in red_team_cases(None) if case.expected]
    return [(text.text, text.gender) for text in labelled_texts(name) if text.expect]


@pytest.mark.parametrize(
    ("name", "least"), [("development", 75), ("held_back", 85), ("another_hand", 32), ("red_team", 198)]
)  # fmt: skip
def test_an_unfair_sentence_is_found_within_a_letter(name: str, least: int) -> None:
    """Each sentence as part of a rejection: 67, 77, 32 and 166 before decision 255. A ratchet."""
    lexicon = shipped_lexicon()
    flagged = 0
    for text, gender in violating(name):
        warnings = lexicon.warnings(REJECTION.format(text), gender=gender)
        flagged += any(warning.severity != "low" for warning in warnings)
    assert flagged >= least


def test_every_category_has_texts_of_its_own() -> None:
    """315 texts, every category on both sides, and as many clean ones as there are of any two
    categories.
    """
    halves = [labelled_texts(half) for half in BOUNDS]
    assert sum(map(len, halves)) >= 300
    for texts in halves:
        assert set().union(*(one.expect for one in texts)) == set(CATEGORIES)
        assert sum(not one.expect for one in texts) >= 60
    assert not {one.text for one in halves[0]} & {one.text for one in halves[1]}


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("He practises his faith openly, which might disturb the team.", "religion"),
        ("Considering his condition, he has done surprisingly well.", "disability"),
        ("He should consider something less demanding at his age.", "age"),
        ("Her retirement is near, so we hesitate.", "age"),
        ("Their religious beliefs came up in the interview.", "religion"),
    ],
)
def test_references_speak_of_a_third_person(text: str, category: str) -> None:
    assert category in {warning.category for warning in shipped_lexicon().warnings(text)}


@pytest.mark.parametrize(
    "text",
    [
        "Her family business has supplied our school for years.",
        "His health insurance starts on the first day of employment.",
        "Their beliefs about testing shaped our process.",
        "His condition report on the bridge was thorough.",
        "We accept her retirement notice with thanks.",
        "Her children's books sell well in our shop.",
        "Their faith in the plan paid off.",
        "Dr Novak's research on ageing populations is widely cited.",
        "Your training in geriatric care would suit our sister hospital.",
    ],
)
def test_ordinary_sentences_stay_quiet(text: str) -> None:
    """But for the pronouns, where nobody knows whose they are."""
    warnings = shipped_lexicon().warnings(text)
    assert not [one for one in warnings if one.text.casefold() not in {"her", "his", "their"}]


@pytest.mark.parametrize(
    "noun",
    ["words", "note", "letter", "interest", "reply", "e-mail", "attention", "patience", "invitation", "offer", "help",
     "consideration", "support", "feedback", "and thoughtful message", "cooperation", "wishes"],
)  # fmt: skip
@pytest.mark.parametrize(
    "sentence", ["Thank you for your kind {}.", "We appreciate your kind {}, and wish you well."]
)
def test_thanks_for_something_kind_are_no_warning(sentence: str, noun: str) -> None:
    """It was a critical warning of race, of 25 points, in the politest letters."""
    assert shipped_lexicon().warnings(sentence.format(noun)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "We do not hire your kind.",
        "People of your kind do not stay long.",
        "Your kind is not wanted here.",
        "Your kind of people rarely stays.",
        "We tried your kind, but it never works.",
        "Your kind care only about money.",
        "Your kind offer little to a team like ours.",
        "We have had trouble with his kind before.",
        "Your people do not work hard.",
    ],
)
def test_a_kind_of_people_is_one(text: str) -> None:
    found = {(warning.category, warning.severity) for warning in shipped_lexicon().warnings(text)}
    assert ("race_ethnicity", "critical") in found


@pytest.mark.parametrize(
    "text",
    [
        "We wish you and your people all the best.",
        "Your kind of experience is what we look for.",
        "You led an aggressive cost reduction programme.",
        "You described a project on cancer imaging.",
    ],
)
def test_what_sounds_alike_is_quiet(text: str) -> None:
    assert shipped_lexicon().warnings(text) == ()
