"""A run is set against the clauses of a law: what it has, what it lacks, and that it is no advice."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_fairness.analysis.frameworks import Artefact, framework_called, frameworks
from pytest_fairness.cli import main
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.framework_page import ARTEFACTS, framework_page
from pytest_fairness.reports.plain_text import page_text
from tests.reports.factories import HOSTILE, disparity
from tests.support.sessions import run_pytest

TODAY = datetime.date(2026, 11, 26)
RUN = {"id": "2026-02-28-001", "finished": "2026-02-28T09:30:00Z", "endpoints": ["letters"]}
RATES = Finding(
    assertion="four_fifths",
    verdict=Verdict.PASS,
    sentence="PASS: a",
    protected_class="gender",
    outcome="hired",
)


def text_of(name: str, results: RunResults, folder: Path, today: datetime.date = TODAY) -> str:
    text = page_text(framework_page(framework_called(name), results, folder, today))
    return " ".join(text.split())


def test_every_artefact_has_its_answer() -> None:
    """Of an empty run each lacks something, or says what little there is."""
    assert set(ARTEFACTS) == set(get_args(Artefact))


@pytest.mark.parametrize("name", sorted(frameworks()))
def test_each_says_that_it_is_no_certificate_and_no_advice(name: str, tmp_path: Path) -> None:
    text = text_of(name, RunResults(run=RUN), tmp_path)
    assert "Evidence, not certification; no legal advice" in text
    assert "Nothing here is a reason to treat groups differently" in text
    for line in framework_called(name).lines:
        assert f"{line.clause}: {line.title}" in text
        assert line.source in text
    assert len(re.findall(r"checked 20\d\d-", text)) == 1 + len(framework_called(name).lines)
    assert "MORE THAN A YEAR" not in text


def test_what_was_checked_long_ago_is_said(tmp_path: Path) -> None:
    later = TODAY + datetime.timedelta(days=366)
    text = text_of("nist-ai-rmf", RunResults(run=RUN), tmp_path, later)
    assert text.count("checked 2026-11-26: MORE THAN A YEAR AGO") == 2


def test_what_a_run_has_and_lacks(tmp_path: Path) -> None:
    results = RunResults(run={**RUN, "exit_status": 1}, findings=(disparity(),))
    text = text_of("eu-ai-act", results, tmp_path)
    assert "metrics sentiment, each with its rule (direct)" in text
    assert "a git commit, which shows that tests and thresholds were there before" in text
    assert f"a mitigation or a justification of {results.ids[0]}" in text
    assert "statistics/groups.csv: race_ethnicity (direct)" in text
    assert "a log that was closed" in text
    assert "dated 2026-02-28 (direct) It lacks: a signature" in text
    mitigated = {**RUN, "mitigations": [{"findings": [results.ids[0]]}]}
    text = text_of("california-crd", replace(results, run=mitigated), tmp_path)
    assert "mitigations.csv: 1 entry (direct)" in text
    assert "a mitigation or a justification" not in text


def test_how_long_records_are_kept(tmp_path: Path) -> None:
    """California's four years: no day, one too early, the day itself, one later."""
    days = {
        None: "It lacks: a day until which it is kept: fairness_retain_years",
        "2030-02-27": "It lacks: days until 2030-02-28: fairness_retain_years = 4",
        "2030-02-28": "",
        "2031-02-28": "",
    }
    for day, lacks in days.items():
        run = {**RUN, "started": "2026-02-28T09:00:00Z", "versions": {"Python": "3.11"}}
        if day is not None:
            run["retain_until"] = day
        text = text_of("california-crd", RunResults(run=run), tmp_path)
        _, _, answer = text.partition("records: Data of the system are kept for four years")
        assert (f"to be kept until {day}" in answer) == (day is not None)
        if lacks:
            assert lacks in answer
        else:
            assert "It lacks" not in answer


def test_ratios_and_alternatives(tmp_path: Path) -> None:
    lacking = RunResults(run=RUN, findings=(disparity(),))
    assert "It lacks: a finding of assert_four_fifths" in text_of("nyc-ll144", lacking, tmp_path)
    assert "It lacks: a second system" in text_of("new-jersey", lacking, tmp_path)
    both = {**RUN, "endpoints": ["old", "new"]}
    having = RunResults(run=both, findings=(RATES,))
    text = text_of("nyc-ll144", having, tmp_path)
    assert "1 finding on selection rates (supporting) It lacks: an independent auditor" in text
    assert "findings of old, new (supporting)" in text_of("new-jersey", having, tmp_path)


def test_a_simulated_endpoint_is_context(tmp_path: Path) -> None:
    results = RunResults(run={**RUN, "simulated": True}, findings=(disparity(),))
    text = text_of("iso-42001", results, tmp_path)
    assert "(context, for a simulated endpoint is no system)" in text
    assert "(direct)" not in text


def test_hostile_names_are_taken_apart(tmp_path: Path) -> None:
    finding = disparity(protected_class=HOSTILE, outcome=HOSTILE)
    results = RunResults(run={**RUN, "id": HOSTILE}, findings=(finding,))
    page = framework_page(framework_called("eu-ai-act"), results, tmp_path, TODAY)
    assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(page_text(page))


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints, and writes nothing."""
    suite = (
        "import pandas as pd\nimport pytest\nfrom pytest_fairness import assert_four_fifths\n"
        "@pytest.mark.fairness\ndef test_it():\n"
        '    frame = pd.DataFrame({"hired": [1, 0] * 300, "race": ["a", "a", "b", "b"] * 150})\n'
        '    assert_four_fifths(frame, outcome="hired", by="race", cluster=None)\n'
    )
    (tmp_path / "test_it.py").write_text(suite, encoding="utf-8")
    run_pytest(tmp_path, "-p", "no:cacheprovider", "-q")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    def told(*arguments: str) -> tuple[int, Any]:
        code = main(["audit", *arguments])
        return code, capsys.readouterr()

    code, printed = told("--framework", "nyc-ll144", "last")
    assert code == 0
    assert "§ 5-301(b)-(c)" in printed.out
    assert "1 finding on selection rates" in printed.out
    assert "not verified here: pytest-fairness verify" in printed.out
    assert sorted(tmp_path.rglob("*")) == before
    code, printed = told("--framework", "nowhere", "last")
    assert code == 2
    assert "there are california-crd" in printed.err
    code, printed = told("--framework", "nyc-ll144", "last", "--into", "x.zip")
    assert code == 2
    assert "--framework writes nothing" in printed.err
