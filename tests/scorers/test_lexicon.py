"""What the lexicon finds, whatever it is dressed up as, and what it keeps quiet about."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pytest_fairness.documents import open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.scorers.lexicon import CATEGORIES, Lexicon, forms_of, shipped_lexicon

from .hostile_texts import hostile
from .written_texts import written

TEXTS = written("lexicon")


def found(text: str, gender: str | None = None) -> list[tuple[str, str, str]]:
    return [
        (one.category, one.severity, one.text)
        for one in shipped_lexicon().warnings(text, gender=gender)
    ]


def project(folder: Path, category: str, text: str) -> Lexicon:
    (folder / "lexicon").mkdir(exist_ok=True)
    (folder / "lexicon" / f"{category}.yaml").write_text(text, encoding="utf-8")
    return Lexicon.load(folder)


def test_ordinary_sentences_are_quiet() -> None:
    assert {text: found(text) for text in TEXTS["quiet"] if found(text)} == {}


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_finds_its_sentences(category: str) -> None:
    assert [
        text for text in TEXTS["found"][category] if category not in {one[0] for one in found(text)}
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "DIGITAL NATIVE",
        "digital-native",
        "digital\n  native",
        "digital\u00a0native",
        "dig\u200bital nat\u00adive",
        "digit\u0430l n\u0430tive",  # Cyrillic
        "ｄｉｇｉｔａｌ ｎａｔｉｖｅ",
        "dígital natîve",
        "digital na\u0301tive",
        "𝐝𝐢𝐠𝐢𝐭𝐚𝐥 𝐧𝐚𝐭𝐢𝐯𝐞",
        "d1gital nat1ve",
        "d i g i t a l n a t i v e",
        "d.i.g.i.t.a.l.n.a.t.i.v.e",
        "“digital native”",
    ],
)
def test_a_phrase_is_found_however_it_is_written_and_where_it_stands(text: str) -> None:
    around = f"We look for — ✓ — {text}, and soon."
    (warning,) = shipped_lexicon().warnings(around)
    assert (warning.category, warning.severity) == ("age", "high")
    assert around[warning.start : warning.end] == warning.text
    assert warning.text == text.strip("“”")


def test_a_phrase_is_found_as_words_only() -> None:
    assert (
        found(
            "The premature result needs an accentuated, overagedly reclassified emotionality index."
        )
        == []
    )


def test_short_forms_are_read_in_full() -> None:
    assert [
        one[0]
        for one in found(
            "You didn’t fit in. You're so articulate! We can't accommodate your needs."
        )
    ] == [
        "cultural_fit",
        "race_ethnicity",
        "disability",
    ]


def test_a_short_form_is_read_in_full_whatever_its_choices_join(tmp_path: Path) -> None:
    """A text has "can not" where it says "cannot", and so has the phrase."""
    assert forms_of("we can[not|] hire") == ("we can not hire", "we can hire")
    terms = 'refusal: {match: ["we can[not|] lodge"], severity: high, suggestion: s, source: t}\n'
    lexicon = project(tmp_path, "age", terms)
    for text in ("We cannot lodge you.", "We can't lodge you.", "We can lodge you."):
        assert [warning.term for warning in lexicon.warnings(text)] == ["refusal"], text


def test_pronouns_are_judged_against_the_persons_own() -> None:
    text = "He showed strong leadership."
    assert found(text) == [("gender", "low", "He")]
    assert found(text, "male") == []
    assert found(text, "female") == found(text, "non_binary") == [("gender", "high", "He")]
    assert found("They showed strong leadership.", "female") == []
    assert found("Our hiring manager said she enjoyed your talk.", "male") == []
    assert found("The candidate sends his or her references.", "female") == []


def test_who_is_put_at_a_disadvantage_decides() -> None:
    """29 CFR 1625.4(a) forbids "recent college graduate" and allows "retirees" and "over age 60"."""
    assert found("Retirees welcome; we prefer people over 60.") == []
    assert found("Recent college graduates welcome.")[0][:2] == ("age", "high")


@pytest.mark.parametrize(
    ("text", "categories"),
    [
        ("We hire without regard to race, disability or pregnancy.", []),
        ("Reasonable accommodation for a disability is available on request.", []),
        ("Managers must not ask about a disability or a pregnancy.", []),
        ("We cannot offer reasonable accommodation for your disability.", ["disability"]),
        ("You are too old, regardless of your background.", ["age"]),
        ("This has nothing to do with your age.", ["age"]),
        ("Your age played no part in our decision.", ["age"]),
        ("We do not discriminate on age. Your pregnancy is the problem.", ["pregnancy_family"]),
    ],
)
def test_policies_are_quiet_and_excuses_are_not(text: str, categories: list[str]) -> None:
    assert [one[0] for one in found(text)] == categories


def test_technical_skills_are_praise_but_for_a_stereotype_beside_them() -> None:
    assert (
        found("You showed strong technical skills, but your score on communication was 2 of 5.")
        == []
    )
    assert ("gender", "low", "strong technical skills") in found(
        "You have strong technical skills, but little warmth."
    )


def test_of_overlapping_matches_the_worst_stands() -> None:
    assert found("Your disability and your wheelchair.") == [
        ("disability", "critical", "Your disability"),
        ("disability", "critical", "your wheelchair"),
    ]


def test_each_term_can_be_found_and_says_what_to_do() -> None:
    """A form of each term is found in a sentence with each of its neighbours, by some neighbour at
    least, between the first of what it has to stand between.
    """
    lexicon = shipped_lexicon()
    unheard = []
    for category, terms in lexicon.terms.items():
        for term in terms.values():
            near = [phrase for phrase in term.near if not phrase.startswith("@")] or [""]
            near += ["you"] * ("@person" in term.near)
            after, before = first_form(term.after), first_form(term.before)
            for form in (forms_of(phrase)[0] for phrase in term.match):
                texts = (f"{after} {form} {before} , {first_form((one,))}" for one in near)
                if not any(
                    one.category == category for text in texts for one in lexicon.warnings(text)
                ):
                    unheard.append((category, term.name, form))
    assert unheard == []


def first_form(phrases: tuple[str, ...]) -> str:
    """Return a form of the first of *phrases*, empty where there is none."""
    return forms_of(phrases[0])[0] if phrases and phrases[0] else ""


def test_a_term_counts_only_between_what_it_has_to_stand_between(tmp_path: Path) -> None:
    lexicon = project(
        tmp_path,
        "age",
        "own:\n  match: ['[red|blue] table']\n  severity: low\n  after: ['by the [|big ]']\n"
        "  before: ['now']\n  suggestion: x\n  source: y\n",
    )
    sentences = (
        "It is by the red table now.",
        "By the big blue table, now.",
        "It is by the red table.",
        "Red table now.",
        "By the old red table now.",
        "By the red table just now.",
    )
    assert [len(lexicon.warnings(sentence)) for sentence in sentences] == [1, 1, 0, 0, 0, 0]


def test_words_around_a_term_have_exceptions_too(tmp_path: Path) -> None:
    (tmp_path / "lexicon").mkdir()
    (tmp_path / "lexicon" / "context.yaml").write_text(
        "own:\n  match: ['like']\n  unless: ['would like']\n  source: x\n"
        "wrong:\n  match: ['gone']\n  unless: ['gone']\n  source: x\n",
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match="never counts"):
        Lexicon.load(tmp_path)
    (tmp_path / "lexicon" / "context.yaml").write_text(
        "own:\n  match: ['like']\n  unless: ['would like']\n  source: x\n", encoding="utf-8"
    )
    lexicon = project(
        tmp_path,
        "age",
        "own:\n  match: [table]\n  severity: low\n  near: ['@own']\n  suggestion: x\n  source: y\n",
    )
    assert len(lexicon.warnings("We like the table.")) == 1
    assert lexicon.warnings("We would like the table.") == ()


def test_a_project_adds_removes_and_regrades_terms(tmp_path: Path) -> None:
    def own(name: str, severity: str, phrase: str) -> str:
        return (
            f"{name}:\n  match: [{phrase}]\n  severity: {severity}\n  suggestion: Name it.\n  "
            "source: our policy\n"
        )

    text = own("beanbag", "low", "'beanbag[|s]'") + own("overqualified", "off", "overqualified")
    lexicon = project(tmp_path, "age", text + own("digital-native", "critical", "digital native"))
    warnings = lexicon.warnings("Beanbags for an overqualified digital native.")
    assert [(one.text, one.severity, one.source) for one in warnings] == [
        ("Beanbags", "low", "our policy"),
        ("digital native", "critical", "our policy"),
    ]
    assert lexicon.digest != shipped_lexicon().digest


@pytest.mark.parametrize(
    ("written_term", "complaint"),
    [
        ("match: [a b]\n  severity: awful", "severity"),
        ("match: ['[a|b']\n  severity: low", "bracket"),
        ("match: ['!!']\n  severity: low", "no word"),
        ("match: [gone]\n  severity: low\n  unless: [gone]", "never counts"),
        ("match: [gone]\n  severity: low\n  near: ['@nobody']", "@nobody"),
        ("match: [gone]\n  severity: low\n  nigh: [x]", "nigh"),
        ("match: ['" + "[a|b|c|d]" * 6 + "']\n  severity: low", "4096 forms"),
    ],
)
def test_a_wrong_term_is_refused_with_its_place(
    tmp_path: Path, written_term: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        project(tmp_path, "age", f"own:\n  {written_term}\n  suggestion: x\n  source: y\n")
    assert "age.yaml" in str(raised.value)


def test_what_ships_is_complete() -> None:
    lexicon = shipped_lexicon()
    assert set(lexicon.terms) == set(CATEGORIES)
    for category, terms in lexicon.terms.items():
        assert sum(len(term.match) for term in terms.values()) >= 90, category
    assert open_document(Path("personas/lexicon/context.yaml")).data


UNITS = (
    "he ",
    "you ",
    "digital ",
    "digital nativ ",
    "young ",
    " ",
    "a",
    "c u l t u r e ",
    "a.b.",
    "é",
    "\u200b",
    "[a|",
    "'s",
)


def test_a_long_text_of_anything_is_read() -> None:
    """However many phrases it has: a limited number of warnings, in a time that grows with the
    text.
    """
    for unit, opening in itertools.product(UNITS, ("", "You are ")):
        assert len(shipped_lexicon().warnings(hostile(unit, 50_000, opening))) <= 1_000


@pytest.mark.parametrize(
    "text",
    [
        "Kind regards,\nJanet Young",
        "Dear Christian",
        "The Youth Marketing Manager position is filled.",
        "Miriam worked for Jewish Vocational Services, with deaf students.",
        "You quote Young (2011) and Young et al.",
        "The slides for Young & Partners are ready for you.",
        "We asked the Sikh Federation about you.",
        'Thank you for your paper, "Ageing bridges and the cost of delay".',
        "To: becky young / na / enron @ enron, for you",
        "You wrote to young@example.com.",
    ],
)
def test_names_and_whom_one_works_for_are_low(text: str) -> None:
    assert {severity for _, severity, _ in found(text)} <= {"low"}


@pytest.mark.parametrize(
    "text",
    [
        "As a mother of two you would find the travel hard.",
        "We need a younger profile.",
        "Your English accent was hard to follow.",
        "We wonder about the stamina at your age.",
        "You are deaf, and we serve students.",
        "Muslim, with the scarf.",
        "We want a Young Candidate.",
        "You are a Muslim, Mr Khan.",
    ],
)
def test_a_word_on_the_person_is_no_aside(text: str) -> None:
    assert {severity for _, severity, _ in found(text)} & {"critical", "high"}
