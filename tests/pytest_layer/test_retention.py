"""``fairness_retain_years``: a run says until when it is to be kept, and its bundle does."""

from __future__ import annotations

import datetime
import json
import zipfile
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.runs.folder import run_folders
from pytest_fairness.runs.manifest import read_manifest, retain_until, years_after
from tests.support.sessions import run_pytest

SUITE = """
import pandas as pd, pytest
from pytest_fairness import assert_four_fifths

@pytest.mark.fairness
def test_rates():
    frame = pd.DataFrame({"group": ["a"] * 200 + ["b"] * 200, "hired": ([True] * 100 + [False] * 100) * 2})
    assert_four_fifths(frame, outcome="hired", by="group", cluster=None)
"""
START = {"started": "2024-02-29T23:00:00+00:00"}


@pytest.mark.parametrize(
    ("manifest", "day"),
    [
        ({**START, "settings": {"retain_years": None}}, None),
        ({**START, "settings": {}}, None),  # of a version that had no such setting
        ({**START, "settings": {"retain_years": 4}}, "2028-02-29"),
        ({**START, "settings": {"retain_years": 3}}, "2027-03-01"),
        (
            {
                **START,
                "settings": {"retain_years": 4},
                "resumed": [
                    {"started": "2025-05-05T00:00:00+00:00", "settings": {"retain_years": 1}},
                    {"started": "2025-06-06T00:00:00+00:00", "settings": {"retain_years": 5}},
                ],
            },
            "2030-06-06",
        ),
    ],
)
def test_the_day_is_the_latest_that_a_session_came_to(
    manifest: dict[str, object], day: str | None
) -> None:
    kept = retain_until(manifest)
    assert (kept and kept.isoformat()) == day


@pytest.mark.parametrize("options", [(), ("-n0",), ("-n2",)], ids=["plain", "n0", "n2"])
def test_a_run_its_bundle_and_the_law_say_the_day(
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Verified with all else, shown on the index, and answered to California's four years; who edits
    it in findings.json is found.
    """
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfairness_retain_years = 4\n")
    result = run_pytest(tmp_path, *options)
    assert result.ret == 0, str(result.stdout)
    (run,) = run_folders(tmp_path / ".fairness" / "runs")
    started = datetime.date.fromisoformat(read_manifest(run)["started"][:10])
    day = years_after(started, 4).isoformat()
    assert json.loads((run / "findings.json").read_text())["run"]["retain_until"] == day
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "last", "--framework", "california-crd"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"to be kept until {day} (supporting)" in printed
    assert main(["audit", "last", "--into", "evidence.zip"]) == 0
    with zipfile.ZipFile("evidence.zip") as bundle:
        (index,) = [name for name in bundle.namelist() if name.endswith("/index.html")]
        assert f"<dt>Keep until</dt><dd>{day}</dd>" in "".join(
            bundle.read(index).decode().split("\n")
        )
    findings = run / "findings.json"
    findings.write_text(findings.read_text().replace(day, "2026-01-01"))
    assert main(["verify", run.name]) == 1
    assert "retain_until is '2026-01-01'" in capsys.readouterr().out


@pytest.mark.parametrize("years", ["0", "four", "-1"])
def test_years_are_a_number(tmp_path: Path, years: str) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    result = run_pytest(tmp_path, "-o", f"fairness_retain_years={years}")
    assert result.ret == 4
    assert "fairness_retain_years" in f"{result.stdout}{result.stderr}"
