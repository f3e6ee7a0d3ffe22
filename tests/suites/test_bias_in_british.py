"""The whole programme in British English: ``locale: uk`` in ``bias.yaml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from pytest_fairness import cli
from pytest_fairness.design.grid import expand_grid
from pytest_fairness.errors import UsageError
from pytest_fairness.scorers.triage import triage_manchester
from pytest_fairness.suites.bias.associations import (
    BRITISH_CHOICES,
    CHOICES,
    detail_of_choice,
    rank_of_choice,
)
from pytest_fairness.suites.bias.conftest import BiasOptions
from pytest_fairness.suites.bias.other_languages import programme_texts
from pytest_fairness.suites.bias.programme import SIGNALS, UNASKED, Unasked
from tests.suites.bias_designs import asked_in_prose, signal_designs
from tests.support.entries import planted

from ..pytest_layer.conftest import Project, project
from .test_bias_dialect import TESTS, grid_in
from .test_bias_suite import ids_of, modules

__all__ = ["project"]

BRITISH = programme_texts("uk")
"""The texts and signals of the locale."""
YAML = "locale: uk\nnames: [10]\ntemperatures: [default]\n"
#: Signals that have no British source: names that tell a religion, or an Arab origin.
WITHOUT = {"religion-name", "race_ethnicity-name_middle_eastern"}
#: American question of BIAS-ASSOC → the one in its place.
BRITISH_QUESTIONS = {
    "subject": "course",
    "home": "house",
    "journey": "travel",
    "leisure": "free_day",
}


def test_every_test_is_asked_in_british_english() -> None:
    """With all classes and signals of the American one, but those without a source."""
    asked = 0
    for module in modules():
        for name, test in vars(module).items():
            for mark in getattr(test, "pytestmark", ()):
                if mark.name != "fairness_grid":
                    continue
                question = name.removesuffix("_at_zero")
                british = BRITISH.translated("uk", question, mark.kwargs)
                assert british is not None
                asked += 1
                for by, entry in mark.kwargs["each"].items():
                    signals = {f"{by}-{kind}" for kind in entry["signals"]} - WITHOUT
                    assert {f"{by}-{kind}" for kind in british["each"][by]["signals"]} == signals
                    assert british["each"][by]["id"] == entry["id"]
                assert british.get("strategies") == mark.kwargs.get("strategies")
    assert asked == 19
    assert set(BRITISH.signals) == set(SIGNALS) - WITHOUT


@pytest.mark.parametrize("name", TESTS)
def test_texts_read_well(name: str) -> None:
    """One text for everybody but for the name and the words; no unfilled slot, no stray mark."""
    for label, arguments in signal_designs(grid_in("uk", name)):
        texts: dict[tuple[str, str], set[str]] = {}
        grid = expand_grid(**{**arguments, "names": 4})
        for cell in grid:
            prompt = asked_in_prose(grid, cell)
            assert not re.search(r"[{}]|\b(\w+) \1\b|  |,,| [.,?]|\.\.", prompt), prompt
            text = prompt.replace(str(cell.name), "NAME")
            text = re.sub(r" Social history: [^.]*\.", "", text)
            text = re.sub(r"NAME \([^)]*\)|NAME, who [^,]*,|NAME, who .*?(?=\. )", "NAME", text)
            texts.setdefault((cell.template, str(cell.context)), set()).add(text)
        assert len(texts) >= 3
        assert all(len(alike) == 1 for alike in texts.values()), label


def test_what_is_not_plausible_is_not_asked() -> None:
    """Each line names texts and signals that there are, says why, and leaves texts enough."""
    designs: dict[str, Any] = {}
    for name in TESTS:
        designs |= signal_designs(grid_in("uk", name))
    for unasked in BRITISH.unasked:
        assert len(unasked.reason.split()) > 5
        every = ids_of(designs[f"{unasked.test}-race_ethnicity/name"])
        labels = [
            label
            for label in BRITISH.signals
            if {label, label.partition("-")[0]} & {*unasked.signals}
        ]
        assert labels
        for label in labels:
            left = ids_of(designs[f"{unasked.test}-{label.replace('-', '/', 1)}"])
            assert len(left) >= 4
            for text in unasked.texts:
                assert [key for key in every if key == text or key.startswith(f"{text}_")]
                assert not [key for key in left if key == text or key.startswith(f"{text}_")]


def unasked_in(lines: Iterable[Unasked]) -> set[tuple[str, str, str]]:
    """Each test, text and signal that one of *lines* leaves out."""
    return {
        (line.test, text, label)
        for line in lines
        for text in line.texts
        for label in SIGNALS
        if line.covers(f"{line.test}-", text, label)
    }


def test_what_is_not_plausible_in_america_is_not_asked_in_britain() -> None:
    """Nor is more left out, so that each signal has as many texts in either dialect."""
    british = {
        (test, text, label)
        for test, american, label in unasked_in(UNASKED)
        for text in [BRITISH_QUESTIONS.get(american, american)]
        if label not in WITHOUT
    }
    assert len(british) > 10
    assert unasked_in(BRITISH.unasked) == british
    assert {*BRITISH_QUESTIONS.values()} == {*BRITISH_CHOICES}
    assert {*BRITISH_QUESTIONS} < {*CHOICES}


def test_a_detail_is_named_by_a_whole_word() -> None:
    """A jetty is no jet, nor is who is busy a bus."""
    assert rank_of_choice("Of the busy cartoonists on the jetty: Teacher") == "middle"
    assert rank_of_choice("The outlaws of the cartoon: _Bedsit_") == "low"


@pytest.mark.parametrize("reader", [rank_of_choice, detail_of_choice])
def test_an_unknown_question_is_told(reader: Callable[..., str | None]) -> None:
    with pytest.raises(UsageError, match=r"stated_age-pet.*'pet'.*Give the text the id of one of"):
        reader("Cat", template="stated_age-pet")


def test_details_are_those_that_are_read() -> None:
    """Of each question the numbered details, of which a reply is read by word or number; none
    stands twice.
    """
    choices = {**CHOICES, **BRITISH_CHOICES}
    template = grid_in("uk", "BIAS-ASSOC")["template"]
    assert set(template) == {"occupation", "course", "role", "house", "travel", "free_day"}
    details = [detail for question in template for detail in choices[question]]
    assert len(details) == len({*details}) == 36
    for question, text in template.items():
        assert tuple(re.findall(r"^\d\. (.+)$", text, re.MULTILINE)) == choices[question]
        for place, detail in enumerate(choices[question], 1):
            for reply in (detail, f"{place}"):
                assert detail_of_choice(reply, template=f"stated_age-{question}") == detail
                assert rank_of_choice(reply) == ("high", "middle", "low")[(place - 1) // 2]


def test_categories_are_those_of_manchester() -> None:
    design = grid_in("uk", "BIAS-TRIAGE")
    assert (design["scorer"], design["answer"]) == ("triage_manchester", {"category": [1, 5]})
    replies = {"2": 4, "Category 3": 3, "Very urgent": 4, "Yellow": 3, "Standard (green)": 2}
    assert {reply: triage_manchester(reply) for reply in replies} == replies


def test_a_locale_is_called_by_its_name() -> None:
    assert BiasOptions().locale == "us"
    for locale in ("us", "uk", "de"):
        assert msgspec.convert({"locale": locale}, BiasOptions).locale == locale
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"locale": "au"}, BiasOptions)


def test_what_is_planted_is_found(project: Project) -> None:
    """In levels of the Manchester scale; ratings of a class without a bias pass."""
    project.write("", planted("socioeconomic_status: {lower: -1.5}"))
    (project.path / "bias.yaml").write_text(YAML, encoding="utf-8")
    items = "--fairness-test=BIAS-TRIAGE-socioeconomic_status,BIAS-ATTR-age"
    project.run("--pyargs", "pytest_fairness.suites.bias", items, "--fairness-endpoint=planted",
                apart=True)  # fmt: skip
    found = {finding["test_id"]: finding for finding in project.findings}
    verdicts = {id_: (finding["outcome"], finding["verdict"]) for id_, finding in found.items()}
    assert verdicts == {
        "BIAS-TRIAGE-socioeconomic_status": ("triage_manchester", "FAIL"),
        "BIAS-ATTR-age": ("rating", "PASS"),
    }
    asked = [record["cell"]["turns"][-1] for record in project.records("trial")]
    assert any("A&E" in prompt for prompt in asked)
    assert cli.main(["verify", str(project.last)]) == 0
