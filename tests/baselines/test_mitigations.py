"""What is done about a finding: read strictly, followed up by the next run, shown, and never a
reason to pass.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile
from pathlib import Path

import pytest

from pytest_fairness.baselines.mitigations import (
    Mitigation,
    counted,
    followed_up,
    read_file,
    unanswered,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports.audit_sections import mitigations_section
from pytest_fairness.reports.bundle import write_bundle
from pytest_fairness.reports.findings_json import RunResults, read_results
from tests.support.sessions import run_pytest

ENTRY = "action: reword the template\n  owner: Jane\n  date: 2026-02-01\n"
DAY = datetime.date(2026, 3, 1)


def entries(tmp_path: Path, text: str) -> tuple[Mitigation, ...]:
    path = tmp_path / "mitigations.yaml"
    path.write_text(text, encoding="utf-8")
    return read_file(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"- finding: f-1\n  {ENTRY}  when: now\n", "mitigations.yaml:5: unknown key 'when'"),
        ("- finding: f-1\n  action: x\n  owner: y\n", ":1: missing key `date`"),
        (f"- {ENTRY}", ":1: give one of `finding`"),
        (f"- finding: f-1\n  test: t\n  {ENTRY}", ":1: give one of `finding`"),
        (f"- finding: f-1\n  class: age\n  {ENTRY}", ":1: `outcome` and `class` go with `test`"),
        (
            f"- finding: f-1\n  {ENTRY}  due: 2026-01-31\n",
            ":5: due is 2026-01-31, before the entry itself",
        ),
        (f"- finding: f-1\n  {ENTRY}  done: soon\n", ":5: done: "),
        (f"- finding: ' '\n  {ENTRY}", ":1: finding: expected text that is not empty"),
        ("finding: f-1\n", "expected a list"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        entries(tmp_path, text)
    assert why in str(error.value)


def test_what_became_of_each(tmp_path: Path) -> None:
    """Every status, by the worst verdict of what an entry covers."""

    def finding(verdict: Verdict, **about: str) -> Finding:
        return Finding(
            assertion="no_disparity", verdict=verdict, sentence="", outcome="tone", **about
        )

    found = [
        (finding(Verdict.FAIL, protected_class="age"), "t.py::a[1]", "f-1"),
        (finding(Verdict.PASS, protected_class="gender"), "t.py::a[1]", "f-2"),
        (finding(Verdict.INCONCLUSIVE), "t.py::b", "f-3"),
        (finding(Verdict.FLAG), "t.py::c", "f-4"),
    ]
    text = "".join(
        f"- {about}\n  {ENTRY}"
        for about in (
            "finding: f-1",
            "finding: f-1\n  due: 2026-02-28",
            "finding: f-1\n  due: 2026-03-01",
            "finding: f-1\n  due: 2026-02-02\n  done: 2026-03-01",
            "finding: f-1\n  done: 2026-03-02",
            "finding: f-2",
            "finding: f-9",
            "test: t.py::a",
            "test: t.py::a\n  class: gender",
            "test: t.py::b\n  outcome: tone",
        )
    )
    assert read_file(tmp_path / "mitigations.yaml") == ()
    followed = followed_up(entries(tmp_path, text), found, DAY)
    assert [one["status"] for one in followed] == [
        "open", "overdue", "open", "re-tested", "open", "fixed", "not tested", "open", "fixed", "open",
    ]  # fmt: skip
    # A run is a re-test of what was done by its day, and of nothing else.
    assert [one["retested"] for one in followed] == [None] * 3 + [DAY.isoformat()] + [None] * 6
    assert followed[7]["findings"] == ["f-1", "f-2"]
    assert followed[7]["verdict"] == "FAIL"
    assert unanswered(found, followed) == ["f-4"]
    assert counted(followed) == "1 overdue, 1 re-tested, 5 open, 1 not tested, 2 fixed"


SUITE = """
import pandas as pd
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness
@pytest.mark.parametrize("gap", [0, 3])
def test_table(gap):
    frame = pd.DataFrame({"race": ["a", "b"] * 200})
    frame["score"] = [(at // 2) % 5 + gap * (at % 2) for at in range(400)]
    assert_no_disparity(frame, outcome="score", by="race", cluster=None, block=None)
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_session_follows_up(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    path = tmp_path / "mitigations.yaml"
    path.write_text(
        "- test: test_it.py::test_table[3]\n  action: <b>reword</b>\n  owner: Jane\n  date: "
        "2026-02-01\n"
        "- test: test_it.py::test_table[0]\n  action: none\n  owner: Sam\n  date: 2026-02-01\n"
        "- finding: f-0000000000\n  action: none\n  owner: Sam\n  date: 2026-02-01\n",
        encoding="utf-8",
    )
    result = run_pytest(tmp_path, *workers)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["  mitigations: 1 open, 1 not tested, 1 fixed"])
    (run,) = (tmp_path / ".fairness" / "runs").glob("2*")
    results = read_results(run)
    assert [one["status"] for one in results.mitigations] == ["open", "fixed", "not tested"]
    section = mitigations_section(results, run)
    assert section is not None
    assert section.about.startswith("1 open, 1 not tested, 1 fixed")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;reword&lt;/b&gt;" in page
    assert (
        RunResults.from_dict(json.loads((run / "findings.json").read_text())).mitigations
        == results.mitigations
    )
    path.write_text("- test: x\n  action: y\n", encoding="utf-8")
    result = run_pytest(tmp_path, *workers)
    assert result.ret == (4 if not workers else 1)
    assert "mitigations.yaml:1: missing key `owner`" in str(result.stdout) + str(result.stderr)


def test_a_bundle_ties_each_other_run_to_the_action_that_came_before_it(tmp_path: Path) -> None:
    """Of two other runs both finished after the action was done: both are re-tests of it, by date."""
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    entry = (
        "- test: test_it.py::test_table[3]\n  action: reword\n  owner: Jane\n  date: 2026-02-01\n"
    )
    for when in ("2026-02-02", "2999-01-01"):
        (tmp_path / "mitigations.yaml").write_text(f"{entry}  done: {when}\n", encoding="utf-8")
        run_pytest(tmp_path)
    runs = sorted((tmp_path / ".fairness" / "runs").glob("2*"))
    for run, relation in zip(runs, ("re-test", "before"), strict=True):
        with zipfile.ZipFile(write_bundle(run, tmp_path / f"{run.name}.zip")) as bundle:
            files = {name.rpartition("/")[2]: name for name in bundle.namelist()}
            tables = {
                name: list(csv.DictReader(io.StringIO(bundle.read(files[f"{name}.csv"]).decode())))
                for name in ("retests", "mitigations")
            }
        (row,) = tables["retests"]
        assert (row["mitigation"], row["relation"]) == ("reword", relation)
        assert row["mitigation_done"] == ("2026-02-02" if relation == "re-test" else "2999-01-01")
        (mitigation,) = tables["mitigations"]
        assert bool(mitigation["retested"]) == (relation == "re-test")
