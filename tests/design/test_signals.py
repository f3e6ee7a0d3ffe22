"""Labels and signals: every protected class, every kind, each with a neutral control and its
source.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import CONTROL, LABEL, Signals
from pytest_fairness.errors import UsageError

# The table of protected classes of the specification: each class with the signals that its tests
# use, beside labels. Names and pronouns are not phrases; they come from the banks and from
# signal="pronoun".
SPECIFIED = {
    "race_ethnicity": {"cultural_marker"},
    "gender": {"pronoun_label"},
    "age": {"stated_age", "generation_marker", "graduation_year"},
    "disability": {"condition", "accommodation"},
    "religion": {"practice", "holiday", "interview_date"},
    "sexual_orientation": {"partner_of_a_man", "partner_of_a_woman", "community_marker"},
    "national_origin": {"birthplace", "accent", "immigration_status"},
    "socioeconomic_status": {"neighbourhood", "education_institution", "hobbies"},
    "pregnancy_family": set(),
    "marital_status": set(),
    "appearance": set(),
    "health": set(),
    "accent_language": {"accent"},
}


@pytest.mark.parametrize("protected_class", SPECIFIED)
def test_every_kind_of_every_class_makes_a_grid(signals: Signals, protected_class: str) -> None:
    """Those of the specification are there; each has a control, a source, two groups, and runs in a
    sentence.
    """
    assert SPECIFIED[protected_class] | {LABEL} <= set(signals.kinds_of(protected_class))
    for kind in signals.kinds_of(protected_class):
        known = signals.kinds[protected_class, kind]
        assert known.control
        assert known.source
        groups = [*signals.groups(protected_class, kind), CONTROL]
        assert len(groups) >= 3
        if "" not in known.words[groups[0]]:  # they depend on the gender: see below
            continue
        slot = f"{{{protected_class}}}"
        template = (
            f"{{name}} ({slot}) applies." if kind == LABEL else f"{{name}}, who {slot}, applies."
        )
        grid = expand_grid(
            template=template, groups={protected_class: groups}, signal=kind, names=4
        )
        assert len(grid) == 4 * len(groups)
        assert {cell.signal for cell in grid} == {kind}
        assert all(
            list(cell.signals.values()) == [{protected_class: cell.groups[protected_class]}]
            for cell in grid
        )


def test_what_a_signal_says_stands_in_the_text_as_whole_words(matrix: PersonaMatrix) -> None:
    """Surface strings are looked for as words; one that was cut within a word would never be found."""
    everything = (
        "Candidate {name} from abroad\nAge: {age} (about)\nSays {they} {are} {language}, "
        "{disability_detail} and well"
    )
    long = "The person considered extensively, {name}, who {religion} undoubtedly, applies."
    two = {"religion": ["jewish", "muslim"]}
    for grid in (
        expand_grid(template=everything, persona=matrix),
        expand_grid(template=long, groups=two, signal=["holiday", "practice"]),
        expand_grid(template="{name} ({religion}) applies.", groups=two, signal="label"),
    ):
        for cell in grid:
            assert cell.signals
            for surface in cell.signals:
                assert re.search(rf"(?<!\w){re.escape(surface)}(?!\w)", cell.prompt), (
                    surface,
                    cell.prompt,
                )


def test_several_phrases_of_one_group_are_dealt_over_the_names() -> None:
    """No single phrase stands for the group; the same name has the same phrase position in every
    group.
    """
    ages = {"age": ["younger", "older"]}
    grid = expand_grid(template="{name} {age}.", groups=ages, signal="graduation_year", names=4)
    assert [cell.prompt for cell in grid] == [
        f"{name} {words} in {year}."
        for year in (2017, 1983)
        for name, words in (
            ("Charley Owens", "graduated from high school"),
            ("Kendall Lewis", "finished high school"),
            ("Frankie Evans", "graduated from high school"),
            ("Shea Wilson", "finished high school"),
        )
    ]


def test_words_that_depend_on_the_gender_are_crossed_with_it() -> None:
    """A wife says one thing of a man and another of a woman: each combination has its own words."""
    groups = {"gender": ["female", "male"], "sexual_orientation": ["gay", "heterosexual"]}
    grid = expand_grid(
        template="Rate {name}, who {sexual_orientation}.",
        groups=groups,
        signal="name+partner",
        names=4,
    )
    assert len(grid) == 16
    for cell in grid:
        gender, orientation = cell.groups["gender"], cell.groups["sexual_orientation"]
        partner = "wife" if (gender == "male") == (orientation == "heterosexual") else "husband"
        assert f"who lives with a {partner} and two dogs." in cell.prompt


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("relgion", "muslim"), "unknown protected class 'relgion'.*did you mean 'religion'"),
        (
            ("age", "older", "graduation"),
            "age has no signal of the kind 'graduation'.*did you mean 'graduation_year'",
        ),
        (
            ("religion", "moslem"),
            "no label is known for the religion group 'moslem'.*did you mean 'muslim'",
        ),
        (
            ("sexual_orientation", "heterosexual", "community_marker"),
            "group 'heterosexual' .*; it has words of the kind label, partner_of_a_man",
        ),
        (
            ("sexual_orientation", "gay", "partner"),
            r"depend on the gender, which is not known: cross the two, groups=\{'gender'",
        ),
    ],
)
def test_unknown_things_come_with_a_suggestion(
    signals: Signals, arguments: tuple[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        signals.phrases(*arguments)


def test_a_users_folder_extends_and_replaces(own: Path) -> None:
    """Groups are added to a kind, kinds to a class, classes to the whole; .only.yaml replaces a
    file.
    """
    for path, text in {
        "labels.yaml": 'religion: {source: "ours", groups: {shinto: "Shinto", jewish: "Jew"}}',
        "signals/caste.yaml": 'surname: {source: "ours", control: "c", groups: {a: "x", b: [y, z]}}',
        "signals/age.only.yaml": 'era: {source: "ours", groups: {a: "x", b: "y"}}',
    }.items():
        (own / path).write_text(text)
    extended = Signals.load(own)
    religions = {
        group: extended.phrases("religion", group) for group in ("shinto", "jewish", "muslim")
    }
    assert religions == {"shinto": ("Shinto",), "jewish": ("Jew",), "muslim": ("Muslim",)}
    assert extended.kinds["religion", "label"].source.endswith("; ours")
    assert extended.phrases("caste", "b", "surname") == ("y", "z")
    assert extended.kinds_of("age") == ("label", "era")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping, got nothing"),
        ("- a\n", "labels.yaml:1: expected a mapping, got a list"),
        ("x: 1\n", "labels.yaml:1: expected a mapping"),
        ('x: {groups: {a: "b"}}\n', "x: source is missing"),
        ('x: {source: "s"}\n', "x: missing key .groups"),
        ('x: {source: "s", groups: {}}\n', "x: groups: give at least one"),
        (
            'x: {source: "s", groups: {a: 3}}\n',
            "labels.yaml:1: x: groups: expected text or a mapping or a list, got",
        ),
        ('x: {source: "s", groups: {a: ["b", "b"]}}\n', "x: a: give one or more different phrases"),
        ('x: {source: "s", groups: {a: []}}\n', "x: a: give one or more different phrases"),
        ('x: {source: "s", groups: {a: ""}}\n', "x: a: give one or more different phrases"),
        (
            'x: {source: "s", groups: {a: "b"}, contrl: "c"}\n',
            "x: unknown key 'contrl'; did you mean 'control'",
        ),
    ],
)
def test_faults_in_a_users_file_say_where(own: Path, text: str, message: str) -> None:
    """File, class, key."""
    (own / "labels.yaml").write_text(text)
    with pytest.raises(UsageError, match=message):
        Signals.load(own)
