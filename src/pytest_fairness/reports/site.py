"""A run as a static site that may be shown to anybody: what was tested, when, and with which
verdicts, made of its verified bundle alone.

The same bundle and the same version of this tool give the same bytes, so that whoever has the
bundle can make the site again and compare. Replies of the system are left out unless they are asked
for. See ``docs/decisions/0226-what-is-published.md``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pytest_fairness import words
from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.model import Verdict
from pytest_fairness.reports.audit_sections import (
    conclusions,
    controls_section,
    justifications_section,
    mitigations_section,
    recorded_section,
)
from pytest_fairness.reports.bundle import (
    SUMS,
    check_sums,
    sha256_of,
    sums_of,
    unpack,
    verify,
)
from pytest_fairness.reports.escaping import clipped, columns_of, html
from pytest_fairness.reports.findings_json import RunResults, end_of, read_results, sources_of
from pytest_fairness.reports.html import NAME as REPORT
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.reports.overview import (
    banners,
    by_verdict,
    counted_findings,
    failures_without_finding,
)
from pytest_fairness.reports.report_page import cards_without_replies
from pytest_fairness.reports.run_sections import chosen_facts
from pytest_fairness.reports.sections import Counts, Page, Printed, Section, facts
from pytest_fairness.reports.verification import Verification
from pytest_fairness.runs.export import stored
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.runs.manifest import FINISHED, read_manifest
from pytest_fairness.runs.manifest import versions as installed
from pytest_fairness.runs.reader import Watch, unwatched

INDEX, BADGE, FINDINGS, EVIDENCE = "index.html", "badge.svg", "findings.html", "evidence.zip"
#: Exit statuses of pytest that a session has which came to its end: passed, failed.
_WHOLE = (0, 1)
_FACTS = (
    "Run",
    "Finished",
    "Endpoints",
    "Models that answered",
    "Fairness tests",
    "Trials",
    "Git commit",
    "Versions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The site of a bundle: its SHA-256, whether replies are shown, and what was not compared."""

    sha256: str
    replies: bool
    records_only: bool

    @property
    def options(self) -> str:
        """Return the options that make the same site again."""
        options = ""
        if self.replies:
            options += " --replies"
        if self.records_only:
            options += " --records-only"
        return options

    @property
    def cards(self) -> str:
        """Return the file that has a card for each finding."""
        if self.replies:
            return REPORT
        return FINDINGS


def write_site(
    bundle: Path,
    into: Path,
    *,
    replies: bool = False,
    records_only: bool = False,
    watch: Watch = unwatched,
) -> RunResults:
    """Write the site of the file *bundle* to the folder *into*; the results that it shows.

    *replies*: also the report with its examples, and the bundle itself. *records_only*: the pages
    of the bundle are not compared. Raises UsageError where the bundle does not verify, its run is
    not complete, or *into* holds anything but an unchanged site; StoreError where it cannot be
    written.
    """
    _refuse_unverified(bundle, verify(bundle, watch, records_only=records_only))
    _refuse_other_files(into)
    publication = Publication(sha256=sha256_of(bundle), replies=replies, records_only=records_only)
    with tempfile.TemporaryDirectory(prefix="fairness-publish-") as temporary:
        folder = unpack(bundle, Path(temporary) / "bundle")
        results = read_results(folder)
        _refuse_incomplete(folder, results)
        site = Path(temporary) / "site"
        site.mkdir()
        if replies:
            _write_replies(bundle, folder, site, watch)
        else:
            _write_page(site / FINDINGS, _findings_page(results), results)
        _write_page(site / INDEX, index_page(results, folder, publication), results)
        write_atomically(site / BADGE, badge(results).encode("utf-8", "backslashreplace"))
        write_atomically(site / SUMS, sums_of(site).encode("ascii"))
        _replace(into, site)
    return results


def _refuse_unverified(bundle: Path, verification: Verification) -> None:
    if verification.problems:
        raise UsageError(
            f"{bundle} does not verify, so nothing is published: {verification.problems[0]}; "
            f"pytest-fairness verify {bundle} lists all that is wrong"
        )


def _refuse_incomplete(folder: Path, results: RunResults) -> None:
    """Raise UsageError where the run in *folder* has not judged all that it set out to judge."""
    name = results.run.get("id")
    resume = f"finish it with pytest --fairness-resume={name}, and publish what that gives"
    if FINISHED not in read_manifest(folder):
        raise UsageError(f"run {name} did not come to its end: {resume}")
    if results.missing:
        never = words.count(len(results.missing), "fairness test")
        raise UsageError(f"run {name} is not complete, {never} never finished: {resume}")
    if results.run.get("exit_status") not in _WHOLE:
        status = results.run.get("exit_status")
        raise UsageError(f"run {name} is not complete, pytest ended with {status}: {resume}")
    if not results.findings:
        raise UsageError(
            f"run {name} judged nothing, so there is no verdict to publish: name a run with "
            "findings (pytest-fairness list)"
        )


def _refuse_other_files(into: Path) -> None:
    """Raise UsageError where *into* holds anything but a site as it was written."""
    if not into.exists() and not into.is_symlink():
        return
    if into.is_symlink() or not into.is_dir():
        raise UsageError(f"{into} is no folder: name another one")
    if any(into.iterdir()) and (not (into / BADGE).is_file() or check_sums(into, Verification())):
        raise UsageError(
            f"{into} holds other files than an unchanged site: empty it, or name another folder"
        )


def _write_replies(bundle: Path, folder: Path, site: Path, watch: Watch) -> None:
    """Write into *site* the pages of the run in *folder*, replies included, and the *bundle*."""
    with stored(folder, watch):
        write_html(folder)
    for page in sorted(folder.glob("*.html")):
        if page.name != INDEX:
            shutil.copyfile(page, site / page.name)
    shutil.copyfile(bundle, site / EVIDENCE)


def _write_page(path: Path, page: Page, results: RunResults) -> None:
    links = [("all verdicts", INDEX)]
    if path.name == INDEX:
        links = [("the badge", BADGE)]
    text = render(page, results.run, links)
    write_atomically(path, text.encode("utf-8", "backslashreplace"))


def _replace(into: Path, site: Path) -> None:
    """Put the files of *site* in the place of those in *into*."""
    try:
        into.mkdir(parents=True, exist_ok=True)
        for path in into.iterdir():
            path.unlink()
        for path in sorted(site.iterdir()):
            shutil.copyfile(path, into / path.name)
    except OSError as error:
        raise StoreError(
            f"{into} cannot be written ({error.strerror}): name another folder"
        ) from error


# ---------------------------------------------------------------- pages


def index_page(results: RunResults, folder: Path, publication: Publication) -> Page:
    """The page that says what was tested, when and with which verdicts, and how to verify that."""
    builders = (
        partial(_concluded_section, publication=publication),
        _scope_section,
        partial(_check_section, publication=publication),
        lambda *_: recorded_section(),
        partial(mitigations_section, report=publication.cards),
        lambda results, _: justifications_section(results),
        lambda *_: controls_section(),
    )
    sections = (build(results, folder) for build in builders)
    return Page(
        name="all verdicts",
        title="Fairness tests",
        lead=f"{scope(results)}, tested until {day(results)}: {counted_findings(results)}.",
        sections=tuple(section for section in sections if section is not None),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=banners(results),
    )


def _findings_page(results: RunResults) -> Page:
    """The page with a card for each finding, without replies."""
    about = Section(
        heading="What this page leaves out",
        id="left-out",
        parts=("Replies of the system are not published. The bundle has them, chained by hashes.",),
    )
    return Page(
        name="all findings",
        title="Findings",
        lead=f"{scope(results)}, tested until {day(results)}: {counted_findings(results)}.",
        sections=(about, *cards_without_replies(results)),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=banners(results),
    )


def _concluded_section(results: RunResults, _: Path, *, publication: Publication) -> Section:
    counts = Counts(rows=tuple(results.counts.items()))
    table = conclusions(results, publication.cards)
    return Section(heading="What was concluded", id="concluded", parts=(counts, table))


def _scope_section(results: RunResults, _: Path) -> Section:
    tested = facts(
        {
            "Protected classes": words.listed(classes(results)),
            "Outcomes": words.listed(sorted({finding.outcome for finding in results.findings})),
        }
    )
    limit = (
        "A verdict is about these systems, tests and prompts on that date, and about nothing else. "
        "PASS means that the interval of every effect excludes a medium difference, not that there "
        "is none. A class or an outcome that is not listed was not tested."
    )
    parts = (tested, chosen_facts(results, *_FACTS), limit)
    return Section(heading="Scope and date", id="scope", parts=parts)


def _check_section(_: RunResults, __: Path, *, publication: Publication) -> Section:
    """Return how anybody verifies the bundle, and makes this site again from it."""
    whose = "ask whoever published this for it; it holds prompts and replies"
    if publication.replies:
        whose = f"{EVIDENCE}, beside this page"
    version = installed()["pytest-fairness"]
    commands = (
        f"pip install pytest-fairness=={version}",
        f"sha256sum {EVIDENCE}   # {publication.sha256}",
        f"pytest-fairness verify {EVIDENCE}",
        f"pytest-fairness publish {EVIDENCE} again{publication.options}",
        f"diff again/{SUMS} {SUMS}   # of this site: no difference",
    )
    parts = (
        f"Everything here is made from one bundle of the run's logs: {whose}. Verifying it derives "
        "each verdict again from what was asked and answered.",
        Printed(lines=commands),
        "Whoever made the bundle could have made all of it anew. The SHA-256 shows that it is the "
        "same as on the day it was published, if that number was kept elsewhere.",
    )
    return Section(heading="How to verify this", id="verify", parts=parts)


def classes(results: RunResults) -> list[str]:
    """Return the protected classes that were compared."""
    return sorted({finding.protected_class for finding in results.findings} - {""})


def scope(results: RunResults) -> str:
    """Return which classes of which systems the verdicts are about."""
    about = words.listed(classes(results), none="all groups")
    systems = words.listed(results.endpoints, none="a table of decisions")
    return f"{about} · {systems}"


def day(results: RunResults) -> str:
    """Return the day on which the run came to its end."""
    return end_of(results)[:10]


# ---------------------------------------------------------------- badge

_COLOURS: Mapping[str, str] = {
    "FAIL": "#b3261e",
    "FLAG": "#9a5b00",
    "INCONCLUSIVE": "#5a5f73",
    "PASS": "#1f7a4d",
}
_LETTER, _AIR, _HEIGHT, _MOST_COLUMNS = 7, 8, 20, 44
_DARK, _BROKEN = "#3a4050", "#b3261e"


def badge(results: RunResults) -> str:
    """Return an SVG with the verdicts, their scope and their date, which leads to how they are
    verified.
    """
    verdicts = by_verdict(results.counts)
    worst = Verdict.worst([finding.verdict for finding in results.findings])
    colour = _COLOURS[worst.value]
    unjudged = len(failures_without_finding(results))
    if unjudged:
        verdicts += f", {words.count(unjudged, 'test')} failed without a verdict"
        colour = _BROKEN
    fields: list[tuple[str, Any]] = [
        ("fairness", _DARK),
        (", ".join([*sources_of(results), verdicts]), colour),
        (scope(results), _DARK),
        (day(results), _DARK),
    ]
    drawn = []
    left = 0
    for text, behind in fields:
        shown = clipped(text, _MOST_COLUMNS)
        if behind == colour:
            shown = text  # a verdict is never cut short
        width = columns_of(shown) * _LETTER + 2 * _AIR
        drawn.append(f'<rect x="{left}" width="{width}" height="{_HEIGHT}" fill="{behind}"/>')
        drawn.append(
            f'<text x="{left + _AIR}" y="14" textLength="{width - 2 * _AIR}" '
            f'lengthAdjust="spacingAndGlyphs">{html(shown)}</text>'
        )
        left += width
    title = html("fairness: " + "; ".join(text for text, _ in fields[1:]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{_HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title><a href="{INDEX}#verify">'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{''.join(drawn)}</g></a></svg>\n"
    )
