"""Makes the pictures of ``docs/pictures.md`` in ``docs/pictures/``, from runs of the suite that
stands on that page.

    python tools/docs_pictures.py

The SVG files are the same bytes on every machine. The PNG files are photographs of a report, which
are taken only where Chromium is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from pytest_fairness.analysis.looks import looks_of
from pytest_fairness.reports.charts import Chart, standalone
from pytest_fairness.reports.finding_sections import (
    block_chart,
    effect_chart,
    group_chart,
    looks_chart,
    refusal_chart,
)
from pytest_fairness.reports.findings_json import read_results
from pytest_fairness.reports.judged_tables import JudgedTables
from pytest_fairness.reports.trend import chart, read_runs, trends
from pytest_fairness.runs.folder import run_folders

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
#: What is planted in each run, the oldest first.
PLANTED = ("-0.1", "-0.2", "-0.7", "-0.4", "-0.6")
SESSION = ("-q", "-p", "no:cacheprovider", "-k", "tone")
#: The width of each photograph, and how much of the card it shows.
PHOTOGRAPHS = {1280: 1300, 390: 1500}


def run_pytest(project: Path, environment: Mapping[str, str]) -> None:
    """One session of the suite in *project*."""
    command = [sys.executable, "-m", "pytest", *SESSION]
    subprocess.run(command, cwd=project, env=environment, check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def drawn(
    project: Path, session: Callable[[Path, Mapping[str, str]], object] = run_pytest
) -> dict[str, str]:
    """Run the suite in *project*, once for each of :data:`PLANTED`; each picture by the name of its
    file.
    """
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    (suite,) = re.findall(r"<!-- file: test_letters.py -->\n```python\n(.*?)```", page, re.DOTALL)
    (project / "test_letters.py").write_text(suite, encoding="utf-8")
    for planted in PLANTED:
        session(project, {**os.environ, "PLANTED": planted})
    folders = run_folders(project / ".fairness" / "runs")
    results = read_results(folders[-1])
    (finding,) = results.findings
    # The run that was asked for longest has the longest way over the looks.
    looked = max(
        (finding for folder in folders for finding in read_results(folder).findings),
        key=lambda finding: len(looks_of(finding)["way"]),
    )
    (trend,) = map(chart, trends(read_runs(folders).runs))
    rows = [
        msgspec.structs.replace(row, label=f"run {number}")
        for number, row in enumerate(trend.rows, 1)
    ]
    charts: dict[str, Chart | None] = {
        "groups": group_chart(finding, JudgedTables(folders[-1]).of(results, 0)),
        "effects": effect_chart(finding),
        "templates": block_chart(finding),
        "looks": looks_chart(looked),
        "refusals": refusal_chart(finding),
        "trend": msgspec.structs.replace(trend, rows=tuple(rows)),
    }
    return {f"{name}.svg": (one and standalone(one)) or "" for name, one in charts.items()}


def readme_picture(run: Path) -> str:
    """The groups of the first finding of *run*, for the README."""
    results = read_results(run)
    return standalone(group_chart(results.findings[0], JudgedTables(run).of(results, 0)))


def photograph(report: Path, folder: Path) -> None:
    """Photographs of the first card of *report*, as wide as a desk's screen and as a phone's."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("no Chromium: the photographs stay as they are\n")
        return
    # The card alone: a browser without a driver photographs the top of a page.
    text = report.read_text(encoding="utf-8")
    (head, card) = (
        text.partition("<body>")[0],
        re.search(r'<article class="finding.*?</article>', text, re.DOTALL),
    )
    assert card is not None  # noqa: S101 - for the type checker
    alone = folder / "card.html"
    alone.write_text(f"{head}<body><main>{card[0]}</main></body></html>", encoding="utf-8")
    for width, height in PHOTOGRAPHS.items():
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [
            f"--window-size={width},{height}",
            f"--screenshot={PICTURES / f'report-{width}.png'}",
        ]
        subprocess.run([browser, *options, alone.as_uri()], check=True, stderr=subprocess.DEVNULL)  # noqa: S603


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name, text in drawn(project).items():
            (PICTURES / name).write_text(text, encoding="utf-8")
        photograph(run_folders(project / ".fairness" / "runs")[-1] / "report.html", project)


if __name__ == "__main__":
    main()
