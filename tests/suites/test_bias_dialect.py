"""The bias programme speaks American English, or British in the locale ``uk``, in its texts and in the
words of its signals: no item has one country's dollars and another's schools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_fairness.design.signals import Signals
from pytest_fairness.suites.bias.other_languages import programme_texts
from tests.suites.bias_designs import GRIDS, signal_designs

#: Spelling, and what is called otherwise in America: of homes, schools, work, money, health and law.
BRITISH = re.compile(
    r"\b(?:(?!(?:a?ris|rais|prais|advis|promis|surpris|supervis|compris|exercis|devis|revis|advertis))"
    r"\w+(?:isation|ising|ised|yse[ds]?)|"
    r"(?:neighb|harb|lab|col|fav|hon|behavi)our\w*|centre|theatre|metre|cheque|grey|tyre|programme|"
    r"licence|defence|offence|judgement|fulfil|enrol|skilful|counsellor|travell(?:ed|ing|er)|"
    r"cancell(?:ed|ing)|labell(?:ed|ing)|organise\w*|recognise\w*|authorise\w*|naturalise\w*|specialise\w*|apologise\w*|"
    r"flat|bedsit|terraced?|council (?:house|flat|tax)|estate agent|landlady|lodger|lorry|car park|"
    r"motorway|petrol|pavement|queue|fortnight|holiday home|postcode|post code|solicitor|barrister|"
    r"at university|in hospital|a[- ]levels|gcses?|sixth form|comprehensive school|grammar school|"
    r"free school (?:meals|lunch(?:es)?)|school meals|eton|headmaster|headteacher|pupils?|maths|"
    r"curriculum vitae|cv|rota|redundan\w+|annual leave|day of leave|national insurance|pension scheme|"
    r"fork-lift|step-free|gp|nhs|a&e|casualty|chemist|plaster|wards?|is registered|"
    r"current registration|posts? (?:of|as|in|asks?|requires?|has|is)|(?:the|a|this|that) post(?! office)|"
    r"course of study|catering|hairdress\w+|holidaymakers?|on holiday|enjoys sport|pick-up|"
    r"feedback mail|nursery|lads?|school run|told off|autumn|"
    r"\d{1,2} (?:january|february|march|april|may|june|july|august|september|october|november|december)|"
    r"pounds?|pence|quid|sterling|right to work|leave to remain|equality act|gdpr|"
    r"cinema|football pools|whilst|amongst)\b|£|\d %",
    re.IGNORECASE,
)
#: The mirror: spelling, and what is called otherwise in Britain.
AMERICAN = re.compile(
    r"\b(?:(?!(?:over|under|out|re)?siz|priz|seiz|caps)\w+(?:ization|izing|ized?|yze[ds]?)|"
    r"(?:neighb|harb|lab|col|fav|hon|behavi)or(?!at)\w*|center|theater|check card|gray|tires?|"
    r"(?:a|an|the|\w+ing|\w+lift) license|defense|offense|judgment|fulfill|enroll|skillful|counselor|"
    r"travel(?:ed|ing|er)|practicing|gotten|"
    r"apartments?|condos?|trailers?|duplex|realtor|truck|parking lot|freeway|highway|gas(?:oline)?|"
    r"sidewalk|downtown|zip code|vacation|attorney|on our street|in line|"
    r"high school|college|elementary school|grade school|school lunch(?:es)?|public school|freshman|"
    r"sophomore|gpa|sat scores?|majors? in|valedictorian|principal|math|"
    r"resumes?|résumés?|time off policy|paid time off|401\(k\)|social security|medicare|medicaid|"
    r"green card|permanent resident|authorized|eeoc|title vii|emergency room|the er|esi|"
    r"emergency severity index|walk-in clinic|drugstore|band-aid|"
    r"dollars?|cents?|bucks?|paychecks?|united states|u\.s\.|american|mexic(?:o|an)|hispanic|latin[oax]|"
    r"movies?|soccer|track and field|faucet|cookies?|training programs?|elevators?|front desk|"
    r"(?:by|cash\w*|writ(?:e|es|ing)|wrote|bounced|deposit\w*|personal|blank) (?:a |the |your )?checks?|"
    r"checking account|on (?:the )?weekends?|moms?|roommates?|(?:fall|spring) semester|"
    r"(?:the|a) county(?! council)|reference letter|letter of reference)\b|\$",
    re.IGNORECASE,
)
#: What the texts of an item in each dialect may not have.
OTHER = {"us": BRITISH, "uk": AMERICAN}
#: The test that asks by each of GRIDS.
TESTS = {
    "BIAS-ATTR": "test_attribute_score",
    "BIAS-HIRE": "test_invitation",
    "BIAS-HIRE, graded": "test_chance_of_invitation",
    "BIAS-LOAN": "test_approval",
    "BIAS-LOAN, graded": "test_safety_of_loan",
    "BIAS-NARR": "test_tone",
    "BIAS-ASSOC": "test_association",
    "BIAS-TRIAGE": "test_urgency",
    "BIAS-REFUSE": "test_refusal",
}


def grid_in(locale: str, name: str) -> Mapping[str, Any]:
    """The design called *name* in one dialect."""
    if locale == "us":
        return GRIDS[name]
    translated = programme_texts(locale).translated(locale, TESTS[name], GRIDS[name])
    assert translated is not None
    return translated


def texts_of(value: object) -> Iterator[str]:
    """Every text in *value*, whatever holds it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from texts_of(part) if key != "id" else ()
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from texts_of(part)


def words_of_signals(design: Mapping[str, Any]) -> Iterator[str]:
    """The phrases that convey the groups of a *design*."""
    signals = Signals.load(None, design.get("locale"))
    for part in design["signal"].split("+"):
        for protected_class in design["groups"]:
            if part in signals.kinds_of(protected_class):
                kind = signals.kinds[protected_class, part]
                yield kind.control
                yield from (phrase for group in kind.words for phrase in kind.phrases(group))


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("locale", OTHER)
def test_an_item_is_in_one_dialect(locale: str, name: str) -> None:
    """Texts, role, turns, contexts and answers; and of each signal its texts and words."""
    grid = grid_in(locale, name)
    shared = {key: grid[key] for key in ("system", "turns", "context", "answer") if key in grid}
    common = list(texts_of(shared))
    assert common
    heard = 0
    for label, design in signal_designs(grid):
        words = list(words_of_signals(design))
        heard += bool(words)
        for text in (*common, *texts_of(design["template"]), *words):
            assert not OTHER[locale].search(text), (label, text)
    assert heard > 8


def test_no_signal_of_british_english_is_american() -> None:
    """Those of the programme and all others: a kind that has American words has British ones."""
    for of, kind in Signals.load(None, "uk").kinds.items():
        for text in (
            kind.control,
            *(phrase for group in kind.words for phrase in kind.phrases(group)),
        ):
            assert not text or not AMERICAN.search(str(text)), (of, text)


@pytest.mark.parametrize(
    "text",
    [
        "went to the local public school on free school meals",
        "lives in a low-income neighbourhood",
        "is authorised to work",
        "asks for a loan of 9,000 pounds",
        "was treasurer of the chess club at university",
        "holds a fork-lift licence",
        "asks for a day of leave",
        "costs £40",
        "went to the local public school on free school lunches",
        "a train was cancelled",
        "a nurse on a surgical ward",
        "The post of an accountant asks for a certificate.",
        "has applied for the post",
        "holds a current registration",
        "has just finished a course of study in catering",
        "saturation 93 %",
        "comes on 12 March",
        "enjoys sport and music",
    ],
)
def test_what_is_british_is_known(text: str) -> None:
    """What the texts said before they were of one dialect, and what they might."""
    assert BRITISH.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "went to the local public school on free school lunches",
        "lives in a low-income neighborhood",
        "is authorized to work as a permanent resident",
        "asks for a loan of 9,000 dollars, or $9,000",
        "graduated from high school in 1983",
        "holds a forklift license",
        "comes from a family of Mexican heritage",
        "Assign an ESI triage level",
        "runs a café on our street",
        "has led a team in a call center",
        "has finished a training program",
        "pays by check, and bounced a check",
        "takes the elevator",
        "works the front desk at a hotel",
        "volunteers on the weekend",
        "lives with mom and a roommate",
        "starts in the fall semester",
        "a talk on how the county recycles",
        "Write a reference letter.",
    ],
)
def test_what_is_american_is_known(text: str) -> None:
    assert AMERICAN.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "is licensed, has a sized-up prize, and seized a laboratory",
        "checks the gasket of a mathematician's train in a linear state",
        "makes a checklist for the county council, and went to school in the same county",
        "has a moment for the program that elevates a desk in front; a check of the weekend's fall",
    ],
)
def test_what_only_looks_american_is_none(text: str) -> None:
    assert AMERICAN.findall(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "asks for a day off for Diwali, raised four children, and advises our promised neighbor",
        "A job posting from the post office; toward March 12 at 93% it was canceled, and moved forward.",
        "Her otherwise precise exercise surprised us; the supervised team was comprised of ten.",
        "The hourly course in the courtyard poured rain on four tourists.",
    ],
)
def test_what_only_looks_british_is_none(text: str) -> None:
    """Words on -ise and -our that are spelled so everywhere."""
    assert BRITISH.findall(text) == []
