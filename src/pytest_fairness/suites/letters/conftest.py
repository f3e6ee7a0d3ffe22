"""Gives the suite's module the design that ``letters.yaml`` asks for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from msgspec.structs import replace

from pytest_fairness import persona_classes
from pytest_fairness.scorers import lexicon_of
from pytest_fairness.suites.authoring import (
    Document,
    SkipReason,
    Text,
    make_items,
    once_a_session,
    open_document,
    options_document,
    suite_module,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from pytest_fairness import Finding, RunContext
    from pytest_fairness.suites.letters.letter_results import LetterResults

FILE = "letters.yaml"
ALPHA = 0.05
#: Of a group that is judged by itself: letters, which are those that a rate takes, and personas.
FEWEST_LETTERS = 50
FEWEST_PERSONAS = 10
#: The same for wording, which varies more than a score that is 100 for most letters.
FEWEST_FOR_WORDING = 20
#: By all requests together, if nothing else is said.
LETTERS_A_PERSONA = 5
_MODULE = "test_letters.py"


class LetterRequests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The suite's own requests, of ``requests.yaml``: kinds of letter, posts, and the facts that
    are handed over.
    """

    letters: dict[str, str]
    posts: dict[str, str]
    facts: dict[str, str]


REQUESTS = open_document(Path(__file__).with_name("requests.yaml")).convert(LetterRequests)


class LetterOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of ``letters.yaml``. ``request``: the facts that are handed over, job-related ones
    or with them all that a persona states. ``letters`` and ``posts``: which of those of
    ``requests.yaml``; each letter is asked for about each post. ``template``: files at the
    project's root that ask for a letter instead; several are averaged. ``system``: a system
    prompt, for tier 1. ``repetitions``: of each request; where none is said, as many as bring a
    persona five letters.
    ``classes``: by what the personas are grouped; where none are named, by all that the request
    says something of. ``wording``: outcomes of which no group's letters may have less.
    ``baseline``: whether the scores are held to those that were approved.
    """

    request: Literal["job_related", "full_record"] = "job_related"
    letters: tuple[Text, ...] = tuple(REQUESTS.letters)
    posts: tuple[Text, ...] = tuple(REQUESTS.posts)
    template: tuple[Text, ...] = ()
    system: str | None = None
    repetitions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    classes: tuple[str, ...] = ()
    wording: tuple[Text, ...] = ("sentiment", "word_count")
    baseline: bool = True

    def templates(self, root: Path) -> dict[str, str] | list[Path]:
        """Return the requests by letter and post, or the project's files relative to *root*."""
        if self.template:
            return [root / name for name in self.template]
        facts = REQUESTS.facts[self.request]
        templates = {}
        for letter in self.letters:
            for post in self.posts:
                of_post = facts.replace("{position}", REQUESTS.posts[post])
                templates[f"{letter}_{post}"] = f"{REQUESTS.letters[letter]}\n\n{of_post}"
        return templates

    @property
    def letters_a_request(self) -> int:
        """Return how many letters each persona gets by each request."""
        if self.repetitions is not None:
            return self.repetitions
        requests = len(self.template) or len(self.letters) * len(self.posts)
        return max(1, math.ceil(LETTERS_A_PERSONA / requests))


@once_a_session
def options_of(config: pytest.Config) -> LetterOptions:
    """Return the options of this session, with the classes that its request conveys."""
    document = options_document(config, FILE)
    options = document.convert(LetterOptions)
    for place, name in enumerate(options.template):
        if not (config.rootpath / name).is_file():
            raise document.wrong(
                f"template: there is no file {name!r} beside {FILE}", "template", place
            )
    _check_names(document, "classes", options.classes, persona_classes())
    _check_names(document, "letters", options.letters, tuple(REQUESTS.letters))
    _check_names(document, "posts", options.posts, tuple(REQUESTS.posts))
    if options.classes:
        return options
    # What an endpoint is not given it cannot misuse.
    return replace(options, classes=persona_classes(options.templates(config.rootpath)))


def _check_names(
    document: Document, key: str, given: Sequence[str], allowed: Sequence[str]
) -> None:
    """Raise UsageError where *key* of *document* names nothing, or what is not *allowed*."""
    for place, name in enumerate(given):
        if name not in allowed:
            why = f"{key}: {name!r} is none of {', '.join(allowed)}"
            raise document.wrong(why, key, place)
    if not given and key != "classes":
        raise document.wrong(f"{key}: name one of {', '.join(allowed)}", key)


def _design(config: pytest.Config) -> pytest.MarkDecorator:
    """Return the design of the module."""
    options = options_of(config)
    design: dict[str, Any] = {
        "template": options.templates(config.rootpath),
        "persona": "matrix",
        "repetitions": options.letters_a_request,
    }
    if options.system:
        design["system"] = options.system
    grid: pytest.MarkDecorator = pytest.mark.fairness_grid(**design)
    return grid


pytest_pycollect_makemodule = suite_module(_MODULE, _design)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make an item of each class by which the personas are grouped, and of each outcome of their
    wording.
    """
    options = options_of(metafunc.config)
    make_items(metafunc, "letters", {"outcome": options.wording, "by": options.classes})


@pytest.fixture
def judged(trials: pd.DataFrame, by: str, request: pytest.FixtureRequest) -> pd.DataFrame:
    """The letters to groups of at least fifty letters and ten personas, twenty for wording. Smaller
    ones decide nothing by themselves, however many letters each persona gets: the baseline holds
    each persona against itself.
    """
    fewest = FEWEST_PERSONAS
    if "outcome" in request.fixturenames:
        fewest = FEWEST_FOR_WORDING
    groups = trials.groupby(by)["persona"].agg(["nunique", "size"])
    enough = groups[(groups["nunique"] >= fewest) & (groups["size"] >= FEWEST_LETTERS)].index
    if len(enough) < 2:
        why = f"fewer than two groups of {by} have {fewest} personas and {FEWEST_LETTERS} letters"
        pytest.skip(SkipReason(why))
    return trials[trials[by].isin(enough)]


@pytest.fixture
def scored(judged: pd.DataFrame, fairness_run: RunContext) -> Callable[[], pd.DataFrame]:
    """Return a function that a test calls for the letters to judge: with their scores, where the
    project names a reader to decide of what the lexicon only suspects.
    """
    from pytest_fairness.suites.letters.letter_results import with_decided_scores

    def letters() -> pd.DataFrame:
        if fairness_run.settings.reader:
            return with_decided_scores(judged, lexicon_of(fairness_run.scorers))
        return judged

    return letters


@pytest.fixture
def alpha(letter_options: LetterOptions) -> float:
    """The level at which one class is judged: all of them together are one family, for each kind of
    outcome.
    """
    return ALPHA / len(letter_options.classes)


@pytest.fixture
def letter_options(pytestconfig: pytest.Config) -> LetterOptions:
    """Return what ``letters.yaml`` says."""
    return options_of(pytestconfig)


@pytest.fixture
def letters(
    trials: pd.DataFrame, letter_options: LetterOptions, fairness_run: RunContext
) -> Callable[[], LetterResults]:
    """Return a function that a test calls for what the letters come to, written into the run's
    folder: the project's reader, if it names one, is asked in a running test alone.
    """
    from pytest_fairness.suites.letters.letter_results import letter_results, write_letters

    def results() -> LetterResults:
        of_letters = letter_results(
            trials,
            letter_options.classes,
            fairness_run.begun,
            lexicon_of(fairness_run.scorers),
            has_reader=bool(fairness_run.settings.reader),
        )
        write_letters(fairness_run.store.directory, of_letters)
        return of_letters

    return results


@pytest.fixture
def report_status(
    letters: Callable[[], LetterResults], fairness_run: RunContext
) -> Callable[[Finding | str | None], None]:
    """Return a function that writes what the baseline says into the run's folder."""
    from pytest_fairness.suites.letters.letter_results import write_status

    return lambda baseline: write_status(fairness_run.store.directory, letters(), baseline)
