"""A design in another language: its names, the forms that agree with them, its answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.design.answer_forms import ENGLISH, answer_form
from pytest_fairness.design.data_checks import check_names, check_signals
from pytest_fairness.design.grid import expand_grid, pilot_grid
from pytest_fairness.design.locales import is_english, known_locales, read_locale
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.pairs import expand_pairs
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals
from pytest_fairness.design.strategies import ladder_of, load_strategies
from pytest_fairness.errors import UsageError
from pytest_fairness.model import DECLINING, Elicitation
from pytest_fairness.pytest_layer.plans import PlannedPairs
from pytest_fairness.scorers.choice import read_choice

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
        ({"persona": "matrix"}, "personas are written in American English"),
        ({"groups": {"caste": ["high", "low"]}, "signal": "label"}, "has no words of the kind label"),
        ({"signal": "birthplace"}, "has no words of the kind birthplace"),
        ({"groups": {"race_ethnicity": ["black", "white"]}}, "the bank has: german, turkish"),
        ({"answer": {"decision": {"ja": True, "nein": True}}}, "and have both"),
        ({"answer": {"decision": {"ja": 1, "nein": 0}}}, "and have both"),
        ({"answer": {"decision": ["bewilligt", "Keine Antwort"]}}, "none of them no answer"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grid("Soll {name} kommen?", **arguments)


def test_labels_convey_a_group() -> None:
    """After a neutral name, and after one that says the same."""
    by_label = {
        cell.groups["race_ethnicity"]: cell for cell in grid("{name}.", signal="label", names=2)
    }
    assert by_label["german"].prompt == f"{by_label['german'].name} (deutscher Herkunft)."
    assert by_label["turkish"].prompt == f"{by_label['turkish'].name} (türkischer Herkunft)."
    assert by_label["german"].name == by_label["turkish"].name
    both = grid("{name}.", signal="name+label", names=2)
    assert {cell.prompt.rpartition("(")[2] for cell in both} == {
        "deutscher Herkunft).", "türkischer Herkunft).",
    }  # fmt: skip
    assert not {cell.name for cell in both} & {by_label["german"].name}
    ages = grid("{name}, {age}.", groups={"age": ["younger", "older"]}, signal="label", names=2)
    assert {cell.prompt.partition(", ")[2] for cell in ages} == {"27 Jahre alt.", "61 Jahre alt."}


CANDIDATES = {
    group: {"race_ethnicity": origin, "gender": gender}
    for group, origin, gender in (("deutsch", "german", "female"), ("türkisch", "turkish", "male"))
}


def pairs(template: str, **arguments: Any) -> Any:
    return expand_pairs(
        **{
            "template": template,
            "candidates": CANDIDATES,
            "repetitions": 2,
            "locale": "de",
            "answer": {"choice": "candidates"},
            **arguments,
        }
    )


def test_candidates_are_set_against_each_other() -> None:
    """By names of the German bank, with forms that agree with each; by labels with the same names."""
    cells = pairs("{name_1} nennt {seine_1} Noten, {name_2} {seine_2}. Wen wählen Sie?")
    first = next(cell for cell in cells if cell.attributes["group_1"] == "deutsch")
    names = first.attributes["name_1"], first.attributes["name_2"]
    assert first.prompt == f"{names[0]} nennt ihre Noten, {names[1]} seine. Wen wählen Sie?"
    labelled = pairs("Wählen Sie.\n{candidates}", signal="label")[0]
    first, second = labelled.prompt.splitlines()[1:]
    assert first.endswith(", Deutscher Herkunft, Weiblich")
    assert second.endswith(", Türkischer Herkunft, Männlich")


def test_a_choice_is_asked_for_in_german() -> None:
    """By name; by label, where the prompt shows no name or a model has taken the names out."""
    plan = PlannedPairs(
        pairs("Wählen Sie.\n{candidates}", role="Pflege", criteria="sorgfältig",
              arms=["raw_matched", "scrubbed"])
    )  # fmt: skip
    raw, *_, scrubbed = [entry.asked_by(Elicitation.FORM) for entry in plan.entries(1)]
    names = raw.cell.attributes["name_1"], raw.cell.attributes["name_2"]
    assert f'"choice", eines von "{names[0]}", "{names[1]}"' in raw.cell.prompt
    assert raw.cell.system.startswith("Sie beurteilen beruflich Bewerbungen.")
    assert 'eines von "Bewerbung A", "Bewerbung B"' in scrubbed.cell.prompt
    assert scrubbed.cell.turns[0].startswith("Schreiben Sie die folgenden Angaben so um")
    assert read_choice("Bewerbung B", names).number == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": ["scrubbed_by_rule", "raw_naive"]}, "there is no arm 'scrubbed_by_rule'"),
        ({"candidates": {"a": [PersonaMatrix.load()[0]], "b": [PersonaMatrix.load()[1]]}}, "English"),
        ({"locale": "xx"}, "known locales are de"),
    ],
)  # fmt: skip
def test_what_no_pair_can_be_asked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pairs("Wählen Sie.\n{candidates}", **arguments)


def test_a_project_brings_a_language_of_its_own(tmp_path: Path) -> None:
    """Its names and its words; what is missing in them is told with its place."""
    folder = tmp_path / "nl"
    (folder / "names").mkdir(parents=True)
    german = Path(__file__).parents[2] / "personas" / "de"
    for name in ("names/first_names.csv", "names/surnames.csv", "locale.yaml"):
        (folder / name).write_text((german / name).read_text("utf-8"), "utf-8")
    assert known_locales(tmp_path) == ("de", "nl", "uk")
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


# ---------------------------------------------------------------- a dialect of English

BRITONS = {"race_ethnicity": ["white", "black", "eastern_european"]}


def british(template: Any, **arguments: Any) -> Any:
    return expand_grid(**{"template": template, "groups": BRITONS, "locale": "uk", **arguments})


def test_the_british_bank_is_its_own() -> None:
    """Names that readers in the UK recognise, each with its source; none recognised by fewer than half."""
    banks = NameBanks.load(None, "uk")
    assert banks.groups("race_ethnicity") == tuple(BRITONS["race_ethnicity"])
    for groups in ({"race_ethnicity": "white"}, {"race_ethnicity": "eastern_european"},
                   {"gender": "female"}, {"gender": "male"}):  # fmt: skip
        assert banks.largest_sample(groups) >= 40
    assert banks.largest_sample({"race_ethnicity": "black"}) >= 20
    assert banks.largest_sample({}) >= 60
    for entry in (*banks.first_names.values(), *banks.surnames.values()):
        assert all((entry.source, entry.year, entry.licence))
    firsts = [entry for entry in banks.first_names.values() if entry.protected_class != "neutral"]
    assert {entry.name for entry in firsts if entry.strength is None} == {"Mariam", "Anthony"}
    assert all("unmeasured" in entry.flags for entry in firsts if entry.strength is None)
    assert all(entry.strength >= 0.5 for entry in firsts if entry.strength is not None)
    assert not list(check_names(banks, n=10))


def test_british_signals_take_the_place_of_american_ones_kind_by_kind() -> None:
    """A kind that is other in Britain has its groups alone; what is the same is not repeated."""
    american, signals = Signals.load(), Signals.load(None, "uk")
    assert set(signals.kinds) == set(american.kinds)
    assert "mexico" not in signals.groups("national_origin", "birthplace")
    assert signals.phrases("race_ethnicity", "indian") == ("British Indian",)
    same = ("religion", "practice")
    assert signals.kinds[same] == american.kinds[same]
    assert not list(check_signals(signals))
    (cell, *_) = british("{name}, who {religion}, waits.", groups={"religion": ["muslim"]},
                         signal="holiday")  # fmt: skip
    assert cell.prompt.endswith(", who has asked for a day of annual leave for Eid al-Fitr, waits.")


def test_a_dialect_is_asked_in_english() -> None:
    """Pronouns, role, sentences, strategies and arms are those of English; the names are not."""
    cells = british("Rate {name} and {their} work.", names=2, answer={"rating": (1, 10)},
                    system="You rate people.")  # fmt: skip
    assert {re.sub(r".* and (\w+) work\..*", r"\1", cell.prompt) for cell in cells} == {
        "her",
        "his",
    }
    role, _ = cells.conversation_at(0)
    assert role.startswith("In this conversation, please take the following role")
    assert cells.answer.sentences == ENGLISH
    assert cells.locale == "uk"
    assert load_strategies(None, "uk") == load_strategies()
    assert ladder_of("all", None, None, "uk") is not None
    choice = expand_pairs(
        template="Choose one.\n{candidates}",
        candidates={"a": {"race_ethnicity": "white"}, "b": {"race_ethnicity": "black"}},
        locale="uk", repetitions=2, role="nurse", criteria="careful", arms=["raw_matched", "scrubbed_by_rule"],
    )  # fmt: skip
    assert len({cell.arm for cell in choice}) == 2
    with pytest.raises(UsageError, match="American English"):
        british("Rate {name}.", persona="matrix", groups=None)


def test_a_dialect_adds_no_words(tmp_path: Path) -> None:
    folder = tmp_path / "au"
    folder.mkdir()
    (folder / "locale.yaml").write_text("source: ours\nenglish: true\n", "utf-8")
    assert is_english("au", tmp_path)
    assert not is_english("de", tmp_path)
    assert is_english(None)
    for wrong, message in (("english: false", "english"), ("english: true\nrole: r", "role")):
        (folder / "locale.yaml").write_text(f"source: ours\n{wrong}\n", "utf-8")
        with pytest.raises(UsageError, match=message):
            read_locale("au", tmp_path)
