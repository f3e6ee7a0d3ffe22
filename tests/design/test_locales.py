"""A design in another language: its names, the forms that agree with them, its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.design.answer_forms import answer_form
from pytest_fairness.design.data_checks import check_names
from pytest_fairness.design.grid import expand_grid, pilot_grid
from pytest_fairness.design.locales import known_locales, read_locale
from pytest_fairness.design.names import NameBanks
from pytest_fairness.errors import UsageError
from pytest_fairness.model import DECLINING, Elicitation

ORIGINS = {"race_ethnicity": ["german", "turkish"]}
LABELS = {"decision": {"einladen": True, "ablehnen": False}}


def grid(template: Any, **arguments: Any) -> Any:
    return expand_grid(**{"template": template, "groups": ORIGINS, "locale": "de", **arguments})


def test_forms_agree_with_the_name() -> None:
    cells = grid("{Der} Bewerber{in} {name} nennt {seine} Zeugnisse. {Er} ruft {herrn} Lang an.")
    by_gender = {cell.groups["gender"]: cell for cell in cells}
    woman, man = by_gender["female"], by_gender["male"]
    assert woman.prompt == (
        f"Die Bewerberin {woman.name} nennt ihre Zeugnisse. Sie ruft Frau Lang an."
    )
    assert man.prompt == f"Der Bewerber {man.name} nennt seine Zeugnisse. Er ruft Herrn Lang an."


def test_a_pilot_asks_about_initials() -> None:
    """Nothing in them says an origin or a sex."""
    series = {"post": {key: f"{{name}}: {{seine}} Noten {key}." for key in ("a", "b", "c")}}
    (first, *_) = pilot_grid(6, template=series, groups=ORIGINS, locale="de")
    assert first.name == "N. G."
    assert first.prompt == "N. G.: seine/ihre Noten a."
    assert not first.groups


def test_the_banks_give_looks_of_ten() -> None:
    banks = NameBanks.load(None, "de")
    assert banks.protected_classes == ("race_ethnicity", "gender")
    assert not set(banks.groups("race_ethnicity")) & set(NameBanks.load().groups("race_ethnicity"))
    for groups in (
        {"race_ethnicity": "german"}, {"race_ethnicity": "turkish"},
        {"gender": "female"}, {"gender": "male"},
    ):  # fmt: skip
        assert banks.largest_sample(groups, joined=False) >= 14
        assert banks.largest_sample(groups) >= 40
    assert not list(check_names(banks, n=14))


def test_every_name_of_german_has_its_source() -> None:
    banks = NameBanks.load(None, "de")
    for entry in (*banks.first_names.values(), *banks.surnames.values()):
        assert all((entry.source, entry.year, entry.licence))
    measured = [entry for entry in banks.first_names.values() if entry.strength is not None]
    assert len(measured) == 32
    assert all("weak" in entry.flags for entry in measured if entry.strength < 0.5)


def test_the_answer_is_asked_for_in_german() -> None:
    """By the line, the form and the schema; all say how to decline, in words that readers know."""
    form = answer_form(LABELS, read_locale("de").sentences)
    assert form is not None
    assert form.labels == ("einladen", "ablehnen")
    line = form.sentence(Elicitation.LINE)
    assert "`ANTWORT: <eines von einladen, ablehnen>`" in line
    assert f"`ANTWORT: {DECLINING[1]}`".casefold() in line.casefold()
    assert '"decision", eines von "einladen", "ablehnen"' in form.sentence(Elicitation.FORM)
    described: Any = form.response_format["response_format"]
    properties = described["json_schema"]["schema"]["properties"]
    assert properties["reason"]["description"].startswith("Der Grund")
    number = answer_form({"rating": (1, 10)}, read_locale("de").sentences)
    assert number is not None
    assert "<eine ganze Zahl von 1 bis 10>" in number.sentence(Elicitation.LINE)


def test_the_role_is_agreed_on_in_german() -> None:
    cells = grid("Soll {name} kommen?", system="Sie prüfen Bewerbungen.")
    role, request = cells.conversation_at(0)
    assert role.startswith("Bitte übernehmen Sie")
    assert "Sie prüfen Bewerbungen." in role
    assert request.startswith("Soll ")


def test_words_of_ones_own_convey_a_group() -> None:
    own = {"faith": {"muslim": ["geht in die Moschee"], "christian": ["geht in die Kirche"]}}
    cells = grid("{name} {faith}.", groups=own, signal="label", names=(4,))
    assert cells[0].prompt.endswith(" geht in die Moschee.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"locale": "xx"}, "known locales are de"),
        ({"persona": "matrix"}, "personas are written in English"),
        ({"signal": "label"}, "names alone convey race_ethnicity"),
        ({"groups": {"race_ethnicity": ["black", "white"]}}, "the bank has: german, turkish"),
        ({"answer": {"decision": {"ja": True, "nein": True}}}, "and have both"),
        ({"answer": {"decision": {"ja": 1, "nein": 0}}}, "and have both"),
        ({"answer": {"decision": ["bewilligt", "Keine Antwort"]}}, "none of them declined"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grid("Soll {name} kommen?", **arguments)


def test_a_project_brings_a_language_of_its_own(tmp_path: Path) -> None:
    """Its names and its words; what is missing in them is told with its place."""
    folder = tmp_path / "nl"
    (folder / "names").mkdir(parents=True)
    german = Path(__file__).parents[2] / "personas" / "de"
    for name in ("names/first_names.csv", "names/surnames.csv", "locale.yaml"):
        (folder / name).write_text((german / name).read_text("utf-8"), "utf-8")
    assert known_locales(tmp_path) == ("de", "nl")
    assert grid("{name} komt.", locale="nl", personas_folder=tmp_path)[0].prompt.endswith(" komt.")
    text = (folder / "locale.yaml").read_text("utf-8")
    for wrong, right in (("{system}", "role: write"), ("{what}", "write {what}")):
        (folder / "locale.yaml").write_text(text.replace(wrong, ""), "utf-8")
        with pytest.raises(UsageError, match=right):
            read_locale("nl", tmp_path)
    (folder / "locale.yaml").write_text(text.replace("keine Antwort", "geen antwoord"), "utf-8")
    with pytest.raises(UsageError, match="readers know to decline by"):
        read_locale("nl", tmp_path)


def test_words_that_tell_whom_a_reply_is_about() -> None:
    told = read_locale("de").without_telling(
        "Die Bewerberin überzeugt, weil sie ihre Ziele kennt; Herr Lang lobt ihn. Siegreich, seit."
    )
    assert told == (
        "[removed] überzeugt, weil [removed] [removed] Ziele kennt; [removed] Lang lobt [removed]. "
        "Siegreich, seit."
    )
