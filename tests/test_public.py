"""The public interface: ``docs/public.md`` lists it, it is there, and the suites use nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from pytest_fairness import plugin
from pytest_fairness.pytest_layer import hookspecs
from pytest_fairness.pytest_layer.markers import descriptions
from tests.support.source_files import SourceFile
from tests.support.surface import RECORD, surface

ROOT = Path(__file__).parents[1]
#: Fixtures that tests of everybody name; all others carry the name of the plugin.
SHORT_FIXTURES = {"cell", "endpoint", "name_banks", "persona_matrix", "tier", "trials"}
#: Modules that a suite uses beside the public names: fewer, never more.
EXCEPTIONS = {
    # It reads past runs, approvals and files in git, and charts what no assertion does.
    "governance": {
        "analysis.checks", "analysis.policy", "asserts", "baselines", "baselines.approval", "baselines.history",
        "baselines.justifications", "baselines.mitigations", "design.signals", "engine.attempt", "model",
        "reports.trend", "running_test", "runs.files", "runs.folder", "runs.manifest", "runs.reader",
        "scorers.lexicon", "statistics.control_charts", "statistics.goodness_of_fit", "statistics.proportions",
    },
    # A benchmark of choices: it reports figures that no assertion does.
    "selection": {
        "analysis.choice_columns", "analysis.choice_effects", "analysis.policy", "analysis.preference",
        "analysis.selection_ratios", "design.arms", "design.candidates", "design.signals", "design.templates",
        "model", "pytest_layer", "running_test", "runs.files", "runs.reader", "scorers.choice", "scorers.salary",
        "statistics.arrays", "statistics.bradley_terry", "statistics.choices", "statistics.clusters",
        "statistics.reidentification", "statistics.selection_rates", "statistics.win_rates",
    },
}  # fmt: skip


def sections() -> dict[str, list[str]]:
    """The names under each heading of the page."""
    text = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
    listed = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0].strip("`")
        listed[heading] = re.findall(r"^- `(\w+)`: \S", section, flags=re.MULTILINE)
    return listed


LISTED = sections()
MODULES = [heading for heading in LISTED if heading.startswith("pytest_fairness")]


@pytest.mark.parametrize("module", MODULES)
def test_the_page_lists_what_a_module_gives_away(module: str) -> None:
    assert sorted(LISTED[module]) == sorted(import_module(module).__all__)


@pytest.mark.parametrize("module", MODULES)
def test_what_the_page_lists_is_there(module: str) -> None:
    there = import_module(module)
    assert not [name for name in LISTED[module] if getattr(there, name, None) is None]


@pytest.mark.parametrize("module", MODULES)
def test_other_names_are_refused(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'assert_fair'"):
        import_module(module).assert_fair  # noqa: B018 - the access is the test


def test_the_page_lists_fixtures_markers_and_hooks() -> None:
    assert sorted(LISTED["Fixtures"]) == sorted(plugin.__all__)
    assert LISTED["Markers"] == [text.partition("(")[0] for text in descriptions()]
    assert sorted(LISTED["Hooks"]) == sorted(
        name for name in vars(hookspecs) if name.startswith("pytest_fairness_")
    )


def test_names_and_signatures_are_those_recorded() -> None:
    """A change of the public surface edits the record, and is seen in review:
    ``python -m tests.support.surface`` writes it anew.
    """
    assert surface() == RECORD.read_text(encoding="utf-8")


def test_fixtures_in_everybodys_sessions_carry_the_name_of_the_plugin() -> None:
    others = {*plugin.__all__} - SHORT_FIXTURES
    assert {*plugin.__all__} >= SHORT_FIXTURES
    assert not [name for name in others if not name.startswith("fairness_")]


def test_what_a_suite_is_written_with_imports_nothing_heavy() -> None:
    """Suites are collected before it is known whether any of their tests runs."""
    heavy = ("pandas", "numpy", "scipy", "statsmodels", "litellm")
    code = (
        "import sys; from pytest_fairness import conclude, Verdict, RunContext; "
        "import pytest_fairness.reports, pytest_fairness.words; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"


def is_public(module: str, name: str) -> bool:
    """Whether the page lists *name* of *module*, or *module* is no affair of it."""
    if not module.startswith("pytest_fairness"):
        return True
    if (
        module.startswith("pytest_fairness.suites.")
        and module != "pytest_fairness.suites.authoring"
    ):
        return True
    return name in LISTED.get(module, ()) or f"{module}.{name}" in LISTED


def test_suites_use_public_names_alone(sources: dict[str, SourceFile]) -> None:
    """But for the modules that are listed above."""
    used = set()
    for path, source in sources.items():
        room, _, file = path.partition("/")
        suite, inside, _ = file.partition("/")
        if room != "suites" or not inside:
            continue
        for _, module, name in source.imports:
            there = module.removeprefix("pytest_fairness.")
            if there in EXCEPTIONS.get(suite, ()) or is_public(module, name):
                continue
            used.add(f"{file}: from {module} import {name}")
    assert sorted(used) == []
