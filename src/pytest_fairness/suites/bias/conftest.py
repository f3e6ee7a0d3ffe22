"""Gives the designs of the programme the sizes that ``bias.yaml`` asks for; the level at which an
item is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
import pytest

from pytest_fairness import UsageError
from pytest_fairness.suites.authoring import marked_module, once_a_session, options_document, slug
from pytest_fairness.suites.bias.other_languages import programme_texts
from pytest_fairness.suites.bias.programme import ALPHA, Report, is_at_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    import pandas as pd

    from pytest_fairness import Finding, RunContext

FILE = "bias.yaml"
_Names = Annotated[int, msgspec.Meta(ge=10)]
#: n and 2n names a group, or the looks; None: those of the kind of outcome.
_Looks = _Names | tuple[_Names, ...] | None
#: The locale in which the modules of the suite have their texts.
AMERICAN: Literal["us"] = "us"
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]


class BiasOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of ``bias.yaml``. ``names``: the looks, in names a group and signal.
    ``temperatures``: a finding at each, and at 0 a table. ``locale``: the dialect of English, or
    another language, of which some tests have texts; the others are skipped.
    """

    names: _Looks = None
    repetitions: Annotated[int, msgspec.Meta(ge=1)] = 1
    temperatures: tuple[Literal["default"] | _Temperature, ...] = ("default", 0.0)
    locale: Literal["us", "uk", "de"] = AMERICAN

    @property
    def judged_at(self) -> list[float | str]:
        """Return the temperatures at which there are findings."""
        return [temperature for temperature in self.temperatures if temperature != 0]


@once_a_session
def options_of(config: pytest.Config) -> BiasOptions:
    """Return what ``bias.yaml`` says. Raises UsageError for temperatures at which nothing is
    judged.
    """
    options = options_document(config, FILE).convert(BiasOptions)
    if not options.judged_at:
        raise UsageError(
            f"{FILE}: temperatures: at 0 nothing is judged; name 'default', or one above 0"
        )
    return options


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Return the module with its designs at the sizes of this session."""
    if not module_path.name.startswith("test_"):
        return None
    options = options_of(parent.config)
    module = marked_module(module_path, parent)
    _settle_language(module, options.locale)
    module.add_marker(pytest.mark.fairness(alpha=_level(module.obj)))
    for _, mark in _designs(module.obj):
        design = cast("dict[str, Any]", mark.kwargs)
        design |= {"names": options.names, "repetitions": options.repetitions}
        if not is_at_zero(mark):
            design["temperatures"] = options.judged_at
    return module


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Return no item of a test at temperature 0 where ``bias.yaml`` names others alone."""
    if 0 in options_of(collector.config).temperatures:
        return None
    marks = [mark for mark in getattr(obj, "pytestmark", ()) if mark.name == "fairness_grid"]
    if any(map(is_at_zero, marks)):
        return []
    return None


def _settle_language(module: pytest.Module, locale: str) -> None:
    """Give the designs of *module* the texts of *locale*, or the American ones that they had; skip
    it where it has no texts of that language.
    """
    for test, mark in _designs(module.obj):
        design = cast("dict[str, Any]", mark.kwargs)
        american = _AMERICAN.setdefault((module.obj.__name__, test), dict(design))
        translated: dict[str, Any] | None = american
        if locale != AMERICAN:
            question = test.removesuffix("_at_zero")
            translated = programme_texts(locale).translated(locale, question, american)
        if translated is None:
            module.add_marker(pytest.mark.skip(reason=f"it has no texts in the locale {locale}"))
            return
        design.clear()
        design |= translated


#: Module and test → its design as the module declares it.
_AMERICAN: dict[tuple[str, str], dict[str, Any]] = {}


def _designs(module: ModuleType) -> Iterator[tuple[str, pytest.Mark]]:
    """Yield each test of *module* that has a design, and the mark of that."""
    for name, test in vars(module).items():
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "fairness_grid":
                yield name, mark


def _level(module: ModuleType) -> float:
    """Return the level of each item of *module* that is judged."""
    judged = [mark for _, mark in _designs(module) if not is_at_zero(mark)]
    return ALPHA / sum(len(mark.kwargs["each"]) for mark in judged)


@pytest.fixture
def by(fairness_protected_class: str) -> str:
    """Return the column of the class that an item is about."""
    return fairness_protected_class


@pytest.fixture
def alpha(request: pytest.FixtureRequest) -> float:
    """All classes of one file, at one tier and temperature, are one family, whichever of them run."""
    return _level(request.module)


@pytest.fixture
def urgency(request: pytest.FixtureRequest) -> str:
    """Return the reader of the scale of triage that an item asks for: the Emergency Severity Index,
    where its locale has no other.
    """
    for _, mark in _designs(request.module):
        scale: str | None = mark.kwargs["scorer"]
        if scale is not None:
            return scale
    return "triage_esi"


@pytest.fixture
def report_words(
    request: pytest.FixtureRequest, fairness_protected_class: str, fairness_run: RunContext
) -> Callable[[pd.DataFrame], None]:
    """Return a function that puts the words that follow a group into the report: a table to look
    at, for it judges nothing.
    """
    from pytest_fairness import analyze_words
    from pytest_fairness.reports import write_sections
    from pytest_fairness.suites.bias.associations import words_section

    def report(trials: pd.DataFrame) -> None:
        words = analyze_words(trials, fairness_protected_class)
        section = words_section(request.node.name, fairness_protected_class, words)
        write_sections(fairness_run.store.directory, f"words-{slug(request.node.name)}", section)

    return report


@pytest.fixture
def report_effects(request: pytest.FixtureRequest, fairness_run: RunContext) -> Report:
    """Return a function that puts the effects of a finding, by pair and signal, into the report: a
    table to look at, for it judges nothing.
    """
    from pytest_fairness.reports import write_sections
    from pytest_fairness.suites.bias.temperature_zero import effects_section

    def report(finding: Finding) -> None:
        item = request.node.name
        section = effects_section(item, finding)
        write_sections(fairness_run.store.directory, f"effects-{slug(item)}", section)

    return report
