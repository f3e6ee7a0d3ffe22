"""Gives the suite's module the design that ``letters.yaml`` asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from pytest_fairness.design.personas import QUOTAS
from pytest_fairness.documents import Text, open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.runs.manifest import read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pytest_fairness.context import RunContext
    from pytest_fairness.model import Finding
    from pytest_fairness.suites.letters.letter_results import LetterResults

FILE = "letters.yaml"
ALPHA = 0.05
#: Personas of a group that is judged by itself: with five letters each, ten make the fifty that a rate takes.
FEWEST_PERSONAS = 10
_MODULE = "test_letters.py"
_OPTIONS = pytest.StashKey["LetterOptions"]()


class LetterOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``letters.yaml`` may say. ``template``: a file at the project's root whose text asks for a letter; several
    are averaged. ``classes``: by what the personas are grouped. ``system``: a system prompt, for tier 1.
    """

    template: tuple[Text, ...] = ()
    system: str | None = None
    repetitions: Annotated[int, msgspec.Meta(ge=1)] = 5
    classes: tuple[str, ...] = tuple(QUOTAS)


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
        return LetterOptions()
    document = open_document(path)
    found = document.convert(LetterOptions)
    for at, name in enumerate(found.template):
        if not (path.parent / name).is_file():
            raise document.wrong(f"template: there is no file {name!r} beside {FILE}", "template", at)
    for at, name in enumerate(found.classes):
        if name not in QUOTAS:
            raise document.wrong(f"classes: {name!r} is none of {', '.join(QUOTAS)}", "classes", at)
    return found


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The module with its design on it, which all its tests share; their replies are asked once."""
    if module_path.name != _MODULE:
        return None
    module: pytest.Module = pytest.Module.from_parent(parent, path=module_path)
    options = options_of(parent.config)
    templates = [parent.config.rootpath / name for name in options.template]
    design: dict[str, Any] = {"template": templates or module_path.with_name("letter_request.txt"), "persona": "matrix"}
    design |= {"repetitions": options.repetitions, **({"system": options.system} if options.system else {})}
    module.add_marker(pytest.mark.fairness_grid(**design))
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item of each class by which the personas are grouped."""
    if Path(metafunc.definition.path).name == _MODULE and "by" in metafunc.fixturenames:
        what = metafunc.definition.name.removeprefix("test_")
        classes = {one: f"letters.{what}[{one}]" for one in options_of(metafunc.config).classes}
        marked = [pytest.param(one, id=one, marks=pytest.mark.fairness(id=id_)) for one, id_ in classes.items()]
        metafunc.parametrize("by", marked)


@pytest.fixture
def judged(trials: pd.DataFrame, by: str) -> pd.DataFrame:
    """The letters to groups of at least ten personas. Smaller ones decide nothing by themselves, however many letters
    each persona gets: the baseline holds each persona against itself.
    """
    personas = trials.groupby(by)["persona"].nunique()
    enough = personas[personas >= FEWEST_PERSONAS].index
    if len(enough) < 2:
        pytest.skip(f"fewer than two groups of {by} have {FEWEST_PERSONAS} personas")
    return trials[trials[by].isin(enough)]


@pytest.fixture
def alpha(pytestconfig: pytest.Config) -> float:
    """The level at which one class is judged: all of them together are one family."""
    return ALPHA / len(options_of(pytestconfig).classes)


@pytest.fixture
def letters(trials: pd.DataFrame, pytestconfig: pytest.Config, fairness_run: RunContext) -> LetterResults:
    """What the letters come to."""
    from pytest_fairness.suites.letters.letter_results import letter_results

    started = str(read_manifest(fairness_run.store.directory).get("started", ""))
    return letter_results(trials, options_of(pytestconfig).classes, started)


@pytest.fixture
def report_letters(letters: LetterResults, fairness_run: RunContext) -> Callable[[Finding | str | None], None]:
    """Writes the printed block and ``letters.json`` into the run's folder, with what the baseline says."""
    from pytest_fairness.suites.letters.letter_results import write_letters

    return lambda baseline: write_letters(fairness_run.store.directory, letters, baseline)
