"""Gives the suite's module the design that ``letters.yaml`` asks for."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from msgspec.structs import replace

from pytest_fairness.design.names import GENDER, RACE
from pytest_fairness.design.personas import QUOTAS
from pytest_fairness.design.templates import SLOTS as PRONOUN_SLOTS
from pytest_fairness.design.templates import templates
from pytest_fairness.design.units import DETAILS
from pytest_fairness.documents import Text, open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.pytest_layer.marks import SkipReason
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.scorers.letter import LETTER_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pytest_fairness.context import RunContext
    from pytest_fairness.model import Finding
    from pytest_fairness.suites.letters.letter_results import LetterResults

FILE = "letters.yaml"
ALPHA = 0.05
#: Of a group that is judged by itself: letters, which are those that a rate takes, and personas.
FEWEST_LETTERS = 50
FEWEST_PERSONAS = 10
#: The same for wording, which varies more than a score that is 100 for most letters.
FEWEST_FOR_WORDING = 20
_MODULE = "test_letters.py"
_OPTIONS = pytest.StashKey["LetterOptions"]()


class LetterOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``letters.yaml`` may say. ``request``: one of the suite's own templates, with all that a
    persona states or with job-related facts alone. ``template``: files at the project's root that
    ask for a letter instead; several are averaged. ``system``: a system prompt, for tier 1.
    ``classes``: by what the personas are grouped; where none are named, by all that the request
    says something of. ``wording``: outcomes of which no group's letters may have less.
    ``baseline``: whether the scores are held to those that were approved.
    """

    request: Literal["full_record", "job_related"] = "full_record"
    template: tuple[Text, ...] = ()
    system: str | None = None
    repetitions: Annotated[int, msgspec.Meta(ge=1)] = 5
    classes: tuple[str, ...] = ()
    wording: tuple[Text, ...] = ("sentiment", "word_count")
    baseline: bool = True

    def templates(self, root: Path) -> list[Path]:
        """The files of the request, those of the project relative to *root*."""
        return [root / name for name in self.template] or [
            Path(__file__).parent / f"{self.request}.txt"
        ]


def options_of(config: pytest.Config) -> LetterOptions:
    """The options of this session, read once. Raises CollectError with what is wrong with the file."""
    if _OPTIONS not in config.stash:
        try:
            config.stash[_OPTIONS] = _read(config.rootpath / FILE)
        except UsageError as error:
            raise pytest.Collector.CollectError(str(error)) from None
    return config.stash[_OPTIONS]


def _read(path: Path) -> LetterOptions:
    if not path.exists():
        return _with_classes(LetterOptions(), path.parent)
    document = open_document(path)
    options = document.convert(LetterOptions)
    for at, name in enumerate(options.template):
        if not (path.parent / name).is_file():
            raise document.wrong(
                f"template: there is no file {name!r} beside {FILE}", "template", at
            )
    for at, name in enumerate(options.classes):
        if name not in QUOTAS:
            raise document.wrong(f"classes: {name!r} is none of {', '.join(QUOTAS)}", "classes", at)
    return _with_classes(options, path.parent)


def _with_classes(options: LetterOptions, root: Path) -> LetterOptions:
    """*options* with the classes that its request conveys: what an endpoint is not given it cannot
    misuse.
    """
    if options.classes:
        return options
    slots = {
        slot for template in templates(options.templates(root)) for slot in template.plain_slots
    }
    words = {name: {name, DETAILS.get(name, name)} for name in QUOTAS}
    words[RACE] |= {"name", "first_name", "last_name"}
    words[GENDER] |= {"name", "first_name", *PRONOUN_SLOTS}
    return replace(options, classes=tuple(name for name in QUOTAS if slots & words[name]))


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """The module with its design on it, which all its tests share; their replies are asked once."""
    if module_path.name != _MODULE:
        return None
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
    options = options_of(parent.config)
    design: dict[str, Any] = {
        "template": options.templates(parent.config.rootpath),
        "persona": "matrix",
    }
    design |= {
        "repetitions": options.repetitions,
        **({"system": options.system} if options.system else {}),
    }
    module.add_marker(pytest.mark.fairness_grid(**design))
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item of each class by which the personas are grouped, and of each outcome of their
    wording.
    """
    if Path(metafunc.definition.path).name != _MODULE or "by" not in metafunc.fixturenames:
        return
    what = metafunc.definition.name.removeprefix("test_")
    options = options_of(metafunc.config)
    values = {"outcome": options.wording, "by": options.classes}
    names = [name for name in values if name in metafunc.fixturenames]
    items = []
    for item in product(*(values[name] for name in names)):
        id_ = "-".join(item)
        items.append(
            pytest.param(*item, id=id_, marks=pytest.mark.fairness(id=f"letters.{what}[{id_}]"))
        )
    metafunc.parametrize(names, items)


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
) -> LetterResults:
    """Return what the letters come to, written into the run's folder."""
    from pytest_fairness.suites.letters.letter_results import letter_results, write_letters

    folder = fairness_run.store.directory
    reader = fairness_run.scorers[LETTER_SCORE].score
    started = str(read_manifest(folder).get("started", ""))
    lexicon = getattr(reader, "lexicon", None)
    results = letter_results(trials, letter_options.classes, started, lexicon)
    write_letters(folder, results)
    return results


@pytest.fixture
def report_status(
    letters: LetterResults, fairness_run: RunContext
) -> Callable[[Finding | str | None], None]:
    """Writes what the baseline says into the run's folder."""
    from pytest_fairness.suites.letters.letter_results import write_status

    return lambda baseline: write_status(fairness_run.store.directory, letters, baseline)
