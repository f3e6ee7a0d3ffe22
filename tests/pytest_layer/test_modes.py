"""The behaviours of a suite, all in one project, run plain, with ``-n0`` and with ``-n2``: each
comes to the same.

What a behaviour is by itself is shown plain, in the module that is named for it; whether it
survives worker processes is shown here, in one session of each kind.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from tests.conftest import MODES
from tests.support.entries import planted
from tests.support.justifications import IN_FORCE
from tests.support.shared_sessions import (
    PastSession,
    SharedProject,
    SharedSessions,
    shared_folder,
)

from . import (
    suites,
    test_foreign_sessions,
    test_grids,
    test_looking,
    test_outcome_families,
    test_sensitivity,
    test_strategies,
    test_systems,
    test_tables,
    test_temperatures,
    test_verdicts,
)
from .conftest import GRID

ASKS_PLANTED = '\n@pytest.fixture\ndef endpoint():\n    return "planted"\n'
FLAGGED = test_verdicts.TABLE.replace("MARK", "@pytest.mark.fairness")
BROKEN = test_systems.SYNC.replace('lambda prompt: "7 out of 10"', "broken")
FILES = {
    "arms": suites.ARMS,
    "cells": test_grids.CELLS,
    "counted": suites.COUNTED,
    "broken": test_systems.SUITE.format(
        source=BROKEN + "\ndef broken(prompt):\n    raise RuntimeError('no table')\n"
    ),
    "callables_async": test_systems.SUITE.format(source=suites.ASYNC),
    "callables_conversation": test_systems.SUITE.format(source=suites.CONVERSATION),
    "callables_sync": test_systems.SUITE.format(source=test_systems.SYNC),
    "constant": test_sensitivity.BLIND,
    "flagged": FLAGGED,
    "foreign": test_foreign_sessions.OWN,
    "justified": FLAGGED,
    "looking": test_looking.EVERY_MODE,
    "planted": GRID + ASKS_PLANTED,
    "ranking": suites.RANKING,
    "scorers": suites.MARKS,
    "selection": suites.SELECTION + ASKS_PLANTED,
    "several": test_outcome_families.SUITE,
    "small": GRID.replace("names=(20,), repetitions=2", "names=4, repetitions=1"),
    "strategies": test_strategies.GRID.replace("SYSTEM", ""),
    "tables": test_tables.SUITE,
    "table": suites.NAMES,
    "table_ended_early": suites.ENDED_EARLY,
    "temperatures": test_temperatures.GRID,
    "tiers": test_grids.TIERS,
    "unbiased": GRID,
    "unclear": FLAGGED.replace(".60, .48", ".60, .50, 60"),
    "unmarked": test_verdicts.TABLE.replace("MARK\n", "").replace(".60, .48", ".60, .20"),
}
#: What does not pass in plain.
EXPECTED = {
    "broken::test_replies": "error",
    "tables::test_firms": "failed",
    "tables::test_margins_alike": "failed",
    "tables::test_rates_of_error": "failed",
    "tables::test_ratios": "failed",
    "tables::test_ratios_alike": "failed",
    "tables::test_strata": "failed",
    "tables::test_strata_of_unequal": "failed",
    "flagged::test_hired": "failed",
    "looking::test_biased": "failed",
    "looking::test_picked_by_reply": "failed",
    "looking::test_two_assertions": "failed",
    "planted::test_tone": "failed",
    "selection::test_raw": "failed",
    "small::test_tone": "failed",
    "strategies::test_persuasion": "failed",
    "strategies::test_rating": "failed",
    "unmarked::test_hired": "failed",
}
JUSTIFICATIONS = "- test: test_justified.py::test_hired\n" + "".join(
    f'  {key}: "{value}"\n' for key, value in IN_FORCE.items()
)


def short(nodeid: str) -> str:
    return nodeid.removeprefix("test_").replace(".py", "")


@dataclass(frozen=True)
class Session:
    """What came of the suite in one mode."""

    past: PastSession

    @property
    def code(self) -> int:
        return self.past.code

    @property
    def output(self) -> str:
        return self.past.output

    @cached_property
    def document(self) -> dict[str, Any]:
        return self.past.read("findings.json")

    @property
    def outcomes(self) -> dict[str, str]:
        items = self.document["items"]
        return {short(item["nodeid"]): item["outcome"] for item in items}

    @property
    def findings(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (finding["nodeid"], finding["outcome"]): finding
            for finding in self.document["findings"]
        }

    def lines(self, start: str) -> Counter[str]:
        return Counter(line for line in self.output.splitlines() if line.startswith(start))

    def written(self, name: str) -> str:
        """The file *name* that the tests wrote at the root of their project."""
        root = self.past.folder.parents[2]
        return root.joinpath(name).read_text(encoding="utf-8")


def write(project: SharedProject) -> None:
    files = {f"test_{name}__py": source for name, source in FILES.items()}
    project.write(
        **files,
        conftest__py=suites.EXCLAMATIONS,
        endpoints__yaml=planted("race_ethnicity: {black: -0.9}", "position_bias: 0.8"),
        justifications__yaml=JUSTIFICATIONS,
        pytest__ini="[pytest]\n",
    )


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Session]:
    """A session of each mode, each in a project of its own."""
    shared = SharedSessions(shared_folder(tmp_path_factory))
    sessions = {}
    for mode, arguments in MODES.items():

        def make(project: SharedProject, arguments: list[str] = arguments) -> None:
            write(project)
            project.run("session", "-rw", *arguments)

        sessions[mode] = Session(shared.once(f"modes-{mode}", make)["session"])
    return sessions


#: Verdict and the group that is worse off, of findings by their test.
WORSE_OFF = {
    "flagged::test_hired": ("FLAG", "b"),
    "planted::test_tone": ("FAIL", "black"),
    "selection::test_raw": ("FAIL", "black"),
    "selection::test_scrubbed": ("PASS", None),
    "selection::test_scrubbing_removes_the_preference": ("PASS", None),
    # Not FAIL: with four names a group and identical repetitions there are too few distinct trials.
    "strategies::test_persuasion": ("FLAG", "black"),
    "strategies::test_rating": ("FLAG", None),
    "unbiased::test_tone": ("PASS", None),
    "unmarked::test_hired": ("FAIL", "b"),
}


def test_each_test_ends_as_its_verdict_asks_for(sessions: dict[str, Session]) -> None:
    plain = sessions["plain"]
    assert {test: how for test, how in plain.outcomes.items() if how != "passed"} == EXPECTED, (
        plain.output
    )
    assert {name.partition("::")[0] for name in plain.outcomes} == set(FILES) - {"foreign"}


def test_findings_name_the_group(sessions: dict[str, Session]) -> None:
    """What was planted is found, on the group that it was planted on, and nothing else is."""
    found = {
        short(finding["nodeid"]): finding for finding in sessions["plain"].document["findings"]
    }
    for test, (verdict, group) in WORSE_OFF.items():
        pairs = found[test]["pairs"]
        assert (found[test]["verdict"], pairs[0]["worse_off"] if group else None) == (
            verdict,
            group,
        ), test
    assert found["selection::test_raw"]["details"]["first_listed_share"] > 0.55
    assert found["unbiased::test_tone"]["simulated"] is True
    assert found["unbiased::test_tone"]["n_per_group"] == {"white": 80, "black": 80}


def test_a_scorer_declares_its_kind(sessions: dict[str, Session]) -> None:
    """A count that meets 0 and 1 only stays a count where it is declared; a plain function is taken
    by its values.
    """
    marks = [
        one for one in sessions["plain"].document["findings"] if "test_scorers" in one["nodeid"]
    ]
    kinds = {one["outcome"]: (one["kind"], one["unit"], " ".join(one["notes"])) for one in marks}
    assert set(kinds) == {"exclamations", "custom score"}
    assert kinds["exclamations"][:2] == ("numeric", "marks")
    assert "taken to be" not in kinds["exclamations"][2]
    assert kinds["custom score"][0] == "binary"
    assert "taken to be binary" in kinds["custom score"][2]


@pytest.mark.parametrize("mode", ["n0", "n2"])
def test_every_mode_comes_to_the_same(sessions: dict[str, Session], mode: str) -> None:
    """Items, verdicts and every figure of every finding; the exit code; the money and trials of the
    run.
    """
    plain, other = sessions["plain"], sessions[mode]
    assert other.code == plain.code == pytest.ExitCode.TESTS_FAILED
    assert other.outcomes == plain.outcomes, other.output
    assert other.document["missing"] == plain.document["missing"] == []
    assert other.findings == plain.findings
    for fact in ("trials", "cost", "models"):
        assert other.document["run"][fact] == plain.document["run"][fact]


@pytest.mark.parametrize("mode", MODES)
def test_it_shows_the_same(sessions: dict[str, Session], mode: str) -> None:
    """What is announced, each finding's sentence in the summary, the warning of an unclear result."""
    plain, other = sessions["plain"], sessions[mode]
    assert len(plain.lines("fairness: ")) > 5
    assert other.lines("fairness: ") == plain.lines("fairness: ")
    for verdict in ("  PASS", "  FAIL", "  FLAG", "  INCONCLUSIVE"):
        assert other.lines(verdict) == plain.lines(verdict)
    assert "InconclusiveWarning" in other.output
    assert re.search(r"justified.*one site|one site", other.output)


@pytest.mark.parametrize("mode", MODES)
def test_each_trial_is_sent_once(sessions: dict[str, Session], mode: str) -> None:
    """Three tests over one grid, in one process or several, share their replies."""
    prompts = sessions[mode].written("asked.log").splitlines()
    assert len(prompts) == len({line.partition(" ")[2] for line in prompts}) * 2 == 20
