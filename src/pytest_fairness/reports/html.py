"""``report.html``: one self-contained page, made from a run's files alone.

The page runs no script and loads nothing: its content security policy forbids both. Jinja2 escapes every
value, after :func:`~pytest_fairness.reports.escaping.visible` has spelt out what cannot be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.analysis import false_alarms
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import figures
from pytest_fairness.reports.chapters import without_verdict
from pytest_fairness.reports.drawing import Picture
from pytest_fairness.reports.examples import Examples, collect_examples
from pytest_fairness.reports.pages import environment
from pytest_fairness.reports.pictures import (
    baseline_picture,
    block_picture,
    effect_picture,
    group_picture,
    share_picture,
)
from pytest_fairness.reports.results import RunResults, read_results
from pytest_fairness.runs.files import write_atomically

NAME = "report.html"
#: Results of a suite that has a page of its own, what they are called, and that page, which is made after this one.
_PAGES = (("selection.json", "selection benchmark", "selection.html"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One finding as the page shows it."""

    number: int
    nodeid: str
    finding: Finding
    sentence: str
    marks: Sequence[str]
    groups_picture: Picture | None
    pairs_picture: Picture | None
    blocks: Sequence[Mapping[str, Any]]
    blocks_picture: Picture | None
    method: Sequence[str]
    examples: Examples | None
    examples_at: int | None


def write_html(run_dir: Path) -> Path:
    """Write ``report.html`` beside ``findings.json`` in *run_dir* and return its path.

    Raises FairnessError if there are no findings to read, StoreError if the page cannot be written.
    """
    results = read_results(run_dir)
    path = run_dir / NAME
    write_atomically(path, render(results, run_dir).encode("utf-8", "backslashreplace"))
    return path


def render(results: RunResults, run_dir: Path) -> str:
    """The page as text."""
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            run=results.run,
            results=results,
            worst=Verdict.worst([finding.verdict for finding in results.findings]) if results.findings else None,
            sections=_sections(results, run_dir),
            heat=heat_map(results.findings),
            loose=[item for item in results.items if not item.findings and item.outcome in ("failed", "error")],
            facts=_facts(results.run),
            pages=[(name, page) for source, name, page in _PAGES if (run_dir / source).exists()],
            chance_words=false_alarms.words,
            across=any(figures.session_p(finding) for finding in results.findings),
        )
    )


def _sections(results: RunResults, run_dir: Path) -> list[Section]:
    examples = collect_examples(run_dir, results.findings)
    shown_at: dict[tuple[str, str], int] = {}
    sections = []
    for index, finding in enumerate(results.findings):
        key = (finding.protected_class, finding.model_endpoint or "")
        earlier = shown_at.setdefault(key, index + 1)
        identity = f"finding-{index + 1}"
        sections.append(
            Section(
                number=index + 1,
                nodeid=results.nodeid_of(index) or finding.test_id,
                finding=finding,
                sentence=without_verdict(finding.sentence, finding.verdict),
                marks=figures.marks(finding, results.outcome_of(index)),
                groups_picture=group_picture(finding, f"{identity}-groups")
                or baseline_picture(finding, f"{identity}-scopes")
                or share_picture(finding, f"{identity}-shares"),
                pairs_picture=effect_picture(finding, f"{identity}-pairs"),
                blocks=figures.by_block(finding),
                blocks_picture=block_picture(finding, f"{identity}-blocks"),
                method=finding.explain().split("\n\n")[1:],
                examples=_in_order(examples.get(key), finding) if earlier == index + 1 else None,
                examples_at=earlier if earlier != index + 1 and key in examples else None,
            )
        )
    return sections


def _in_order(examples: Examples | None, finding: Finding) -> Examples | None:
    """The *examples* of the finding's groups, in its order."""
    return None if examples is None else examples.among([group.group for group in finding.group_results])


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The worst verdict of each model on each protected class; ``None`` where nothing was compared."""

    classes: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[Verdict, int] | None]]]


def heat_map(findings: Sequence[Finding]) -> HeatMap | None:
    """Models × protected classes, or ``None`` where there is only one of each."""
    cells: dict[tuple[str, str], list[Verdict]] = {}
    for finding in findings:
        key = (finding.model_endpoint or "no model", finding.protected_class or finding.assertion)
        cells.setdefault(key, []).append(finding.verdict)
    models = list(dict.fromkeys(model for model, _ in cells))
    classes = list(dict.fromkeys(name for _, name in cells))
    if len(models) * len(classes) < 2:
        return None
    rows = []
    for model in models:
        row = [cells.get((model, name)) for name in classes]
        rows.append((model, [None if found is None else (Verdict.worst(found), len(found)) for found in row]))
    return HeatMap(classes=classes, rows=rows)


def _facts(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of what a reader needs to repeat the run."""
    trials = run.get("trials") if isinstance(run.get("trials"), Mapping) else {}
    counted = [
        f"{count:,} {status.replace('_', ' ')}"
        for status, count in (trials or {}).items()
        if count and status != "total"
    ]
    facts = [
        ("Run", run.get("id")),
        ("Started", run.get("started")),
        ("Finished", run.get("finished")),
        ("Endpoints", ", ".join(map(str, run.get("endpoints") or []))),
        ("Models", _models(run.get("models"))),
        ("Trials", ", ".join(counted)),
        ("Cost", figures.cost_line(run)),
        ("Seed", run.get("seed")),
        ("Git commit", run.get("git_commit")),
        ("Command", _command(run.get("command"))),
        ("Versions", _listed(run.get("versions"))),
        ("Settings", _listed(run.get("parameters"))),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _models(models: Any) -> str:
    """Who was asked for at each endpoint, and who answered."""
    told = []
    for entry in models if isinstance(models, list) else []:
        asked, answered = entry.get("asked"), entry.get("answered") or {}
        who = ", ".join(f"{model} ({count:,} trials)" for model, count in answered.items())
        parts = [f"asked for {asked}"] if asked else []
        parts += [f"answered by {who}"] if who else ["no answer names its model"]
        told.append(f"{entry.get('endpoint')}: {', '.join(parts)}")
    return "; ".join(told)


def _command(command: Any) -> str:
    return " ".join(map(str, command)) if isinstance(command, list) else str(command or "")


def _listed(values: Any) -> str:
    if not isinstance(values, Mapping):
        return ""
    return ", ".join(f"{key} {value}" for key, value in values.items() if value not in (None, "", [], {}))
