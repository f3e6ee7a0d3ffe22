"""A published site says scope, date, verdicts and how to verify them; it is made again byte for
byte, shows no reply unless asked, and is never made of what does not verify.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import bundle as reports_bundle
from pytest_fairness.reports.bundle import sha256_of, write_bundle
from pytest_fairness.reports.findings_json import ItemResult, RunResults, read_results
from pytest_fairness.reports.html import render
from pytest_fairness.reports.site import (
    Publication,
    _refuse_incomplete,
    badge,
    index_page,
    write_site,
)
from pytest_fairness.runs.reader import reading
from pytest_fairness.runs.records import trial_of
from tests.reports.factories import HOSTILE, disparity
from tests.support.sessions import run_pytest

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(template=["Write a reference for {name}, a nurse."], names=(10,), repetitions=2,
                           groups={"race_ethnicity": ["white", "black"]})
def test_reference(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""
BIASED = "endpoints:\n  - {name: planted, type: simulated, bias: {race_ethnicity: {black: -0.8}}}\n"
PUBLICATION = Publication(sha256="0" * 64, replies=False, records_only=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    (folder / "endpoints.yaml").write_text(BIASED, encoding="utf-8")
    run_pytest(folder, "-p", "no:cacheprovider", "--fairness-endpoint", "planted")
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> Path:
    return max((project / ".fairness" / "runs").glob("2*"))


@pytest.fixture(scope="module")
def bundle(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without the page to be signed, which is drawn again wherever a bundle is verified."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports_bundle, "surroundings", lambda: None)
        return write_bundle(run, tmp_path_factory.mktemp("out") / "evidence.zip")


def contents(site: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in site.iterdir()}


def replies(run: Path) -> list[str]:
    with reading(run) as reader:
        return [str(trial_of(record).reply) for record in reader.all_records()]


def test_a_site_of_a_run_and_of_its_bundle_are_the_same(
    run: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The command writes the bundle, too; whoever has that alone makes the same bytes again."""
    monkeypatch.chdir(project)
    site, bundle = tmp_path / "site", tmp_path / "kept.zip"
    assert main(["publish", "last", str(site), "--into", str(bundle)]) == 0
    printed = capsys.readouterr().out
    assert sha256_of(bundle) in printed
    assert "[![fairness](badge.svg)](index.html#verify)" in printed
    monkeypatch.chdir(tmp_path)
    assert main(["publish", str(bundle), "again"]) == 0
    assert contents(site) == contents(tmp_path / "again")
    assert sorted(contents(site)) == ["SHA256SUMS", "badge.svg", "findings.html", "index.html"]
    assert main(["publish", str(bundle), "again"]) == 0  # its own site is replaced
    page = (site / "index.html").read_text(encoding="utf-8")
    for words in (
        "race_ethnicity · planted",
        str(read_results(run).run["finished"])[:10],
        "1 FLAG",
        sha256_of(bundle),
        "pytest-fairness verify evidence.zip",
        "evidence, not certification",
        "Simulated endpoint",
    ):
        assert words in page
    anchors = re.findall(r'href="findings\.html#([\w-]+)"', page)
    findings = (site / "findings.html").read_text(encoding="utf-8")
    assert anchors
    assert all(f'id="{anchor}"' in findings for anchor in anchors)


def test_replies_are_shown_only_when_asked(bundle: Path, run: Path, tmp_path: Path) -> None:
    said = {part for reply in replies(run) for part in reply.split(". ") if len(part) > 30}
    write_site(bundle, tmp_path / "quiet")
    shown = b"".join(contents(tmp_path / "quiet").values()).decode()
    assert said
    assert not [text for text in said if text in shown]
    write_site(bundle, tmp_path / "open", replies=True)
    files = contents(tmp_path / "open")
    assert files["evidence.zip"] == bundle.read_bytes()
    assert any(text in files["report.html"].decode() for text in said)
    assert b"publish evidence.zip again --replies" in files["index.html"]
    assert b'href="report.html#f-' in files["index.html"]


def test_nothing_unverified_is_published(bundle: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bundle.read_bytes()[:-100])
    with pytest.raises(UsageError, match=r"does not verify, so nothing is published.*lists all"):
        write_site(cut, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_folder_with_other_files_is_left_alone(bundle: Path, tmp_path: Path) -> None:
    """Also a site that somebody has edited."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="other files than an unchanged site"):
        write_site(bundle, tmp_path / "site")
    write_site(bundle, tmp_path / "edited")
    (tmp_path / "edited" / "index.html").write_text("all is well")
    with pytest.raises(UsageError, match="other files than an unchanged site"):
        write_site(bundle, tmp_path / "edited")
    assert (tmp_path / "site" / "mine.txt").read_text() == "x"
    (tmp_path / "link").symlink_to(tmp_path / "site")
    with pytest.raises(UsageError, match="is no folder"):
        write_site(bundle, tmp_path / "link")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"missing": ("test_it.py::test_b",)},
            "1 fairness test never finished.*--fairness-resume=",
        ),
        ({"exit_status": 2}, "pytest ended with 2.*--fairness-resume="),
        ({"findings": ()}, "judged nothing.*pytest-fairness list"),
    ],
)
def test_an_incomplete_run_is_refused(run: Path, change: dict[str, Any], why: str) -> None:
    results = read_results(run)
    _refuse_incomplete(run, results)
    if "exit_status" in change:
        change = {"run": {**results.run, **change}}
    with pytest.raises(UsageError, match=why):
        _refuse_incomplete(run, replace(results, **change))


def test_a_run_without_an_end_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"did not come to its end.*--fairness-resume="):
        _refuse_incomplete(tmp_path, read_results(run))


def test_hostile_text_is_escaped_on_page_and_badge(tmp_path: Path) -> None:
    finding = disparity(
        sentence=f"FAIL: {HOSTILE}",
        protected_class=HOSTILE,
        outcome=HOSTILE,
        model_endpoint=HOSTILE,
        description=HOSTILE,
    )
    run = {"id": "2026-02-28-001", "finished": HOSTILE, "endpoints": [HOSTILE], "exit_status": 1}
    results = RunResults(run=run, findings=(finding,))
    text = badge(results)
    ET.fromstring(text.encode("utf-8", "backslashreplace"))
    page = render(index_page(results, tmp_path, PUBLICATION), {**run, "versions": {}})
    for shown in (text, page):
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "\u202e" not in shown
        assert "&lt;script&gt;alert(1)" in shown


def test_the_badge_says_verdicts_scope_and_date() -> None:
    """A test that failed without a verdict is never passed over."""
    passing = Finding(assertion="no_disparity", verdict=Verdict.PASS, sentence="PASS: a",
                      protected_class="gender")  # fmt: skip
    run = {"id": "r", "finished": "2026-02-28T09:30:00Z", "endpoints": ["letters"]}
    results = RunResults(run=run, findings=(passing,))
    text = badge(results)
    assert "fairness: 1 PASS; gender · letters; 2026-02-28" in text
    assert 'href="index.html#verify"' in text
    assert "#1f7a4d" in text
    failed = ItemResult(nodeid="t::a", outcome="error", message="BudgetError: cap")
    text = badge(replace(results, items=(failed,)))
    assert "1 PASS, 1 test failed without a verdict" in text
    assert "#1f7a4d" not in text
    assert "simulated, 1 PASS" in badge(replace(results, run={**run, "simulated": True}))
