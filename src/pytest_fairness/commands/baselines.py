"""``pytest-fairness baseline show``, ``diff`` and ``history``: what was approved, by whom, why, and
what it changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_path
from pytest_fairness.words import agreeing

if TYPE_CHECKING:
    from pytest_fairness.baselines.history import Version

FOLDER = "baselines"


def add(subparsers: Any) -> None:
    """Declare ``baseline``."""
    parser = subparsers.add_parser(
        "baseline",
        help="approved baselines: their scores, changes and history",
        description="Reads the files and what git knows of them, and changes neither.",
        example="pytest-fairness baseline history",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, what, run in (
        ("show", "the scores that are approved now", show),
        ("diff", "what the last approval changed: old and new score of each scope", diff),
        (
            "changelog",
            "the entry of each approval: from which version to which, what changed, why",
            changelog,
        ),
        ("history", "every approved version: when, by whom, why, of which models", history),
    ):
        action = actions.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            example=f"pytest-fairness baseline {name}",
        )
        action.add_argument(
            "which",
            nargs="?",
            metavar="FILE|TEST",
            help="one file, or what the test id holds (all)",
        )
        add_path(action, "--folder", f"where the baselines are ({FOLDER}/)", metavar="DIR")
        action.set_defaults(run=run)


def show(arguments: argparse.Namespace) -> tuple[str, int]:
    """The current scores of each baseline."""

    def lines(versions: list[Version], _why: str) -> Iterator[str]:
        yield f"  {_approved(versions[0])}"
        for scope, score in versions[0].scores().items():
            yield f"  {_score(score):>12}  {scope}"
        if versions[0].document is not None and versions[0].document.threshold is not None:
            counts = ", ".join(
                f"{number} {name}" for name, number in versions[0].document.counts().items()
            )
            yield f"  {versions[0].document.version}: {counts}"
        personas = len(_personas(versions[0]))
        yield f"  {personas:>12}  {agreeing(personas, 'persona')}"

    return _each(arguments, lines)


def diff(arguments: argparse.Namespace) -> tuple[str, int]:
    """Old → new of each scope, between a baseline and the version before it."""

    def lines(versions: list[Version], why: str) -> Iterator[str]:
        if len(versions) < 2:
            reason = ""
            if why:
                reason = f": {why}"
            yield f"  there is no version before this one{reason}"
            return
        new, old = versions[:2]
        yield f"  new: {_approved(new)}"
        yield f"  old: {_approved(old)}"
        yield from _changed_scores(new.scores(), old.scores())
        yield from _few("no longer scored", _personas(old) - _personas(new))
        yield from _few("scored anew", _personas(new) - _personas(old))
        if new.document is not None and old.document is not None:
            changes = new.document.fingerprints.changes_since(old.document.fingerprints)
            yield from (f"  {change}" for change in changes)

    return _each(arguments, lines)


def _changed_scores(new: Mapping[str, float], old: Mapping[str, float]) -> Iterator[str]:
    """Yield old → new of each scope."""
    for scope in dict.fromkeys([*new, *old]):
        change = ""
        if scope in new and scope in old:
            change = f"{new[scope] - old[scope]:+.4g}"
        before = _score(old.get(scope))
        after = _score(new.get(scope))
        yield f"  {before:>12} → {after:<12} {change:<10} {scope}"


def _few(what: str, personas: set[str]) -> Iterator[str]:
    """Yield *what* holds of which *personas*, the first five; nothing where there are none."""
    if personas:
        names = ", ".join(sorted(personas)[:5])
        if len(personas) > 5:
            names += ", …"
        yield f"  {what}: {names}"


def changelog(arguments: argparse.Namespace) -> tuple[str, int]:
    """The entry of each approved version of each baseline, the newest first."""
    from pytest_fairness.baselines.changelog import changelog_entry

    def lines(versions: list[Version], why: str) -> Iterator[str]:
        documents = [version.document for version in versions if version.document is not None]
        for document, before in zip(documents, [*documents[1:], None], strict=True):
            yield f"\n{changelog_entry(document, before)}".rstrip()
        if why:
            yield f"\n  no earlier versions: {why}"

    return _each(arguments, lines)


def history(arguments: argparse.Namespace) -> tuple[str, int]:
    """Every version of each baseline, the newest first."""

    def lines(versions: list[Version], why: str) -> Iterator[str]:
        for at, version in enumerate(versions):
            before = None
            if at + 1 < len(versions):
                before = versions[at + 1].scores().get("overall")
            now = version.scores().get("overall")
            if before is None:
                score = _score(now)
            else:
                score = f"{_score(before)} → {_score(now)}"
            yield f"  {version.commit[:10] or 'not committed'}  {score}  {_approved(version)}"
        if why:
            yield f"  no earlier versions: {why}"

    return _each(arguments, lines)


def _folder() -> Path:
    """Return where the project around the working directory keeps its baselines."""
    from pytest_fairness.runs.project import configuration

    root, settings = configuration(Path.cwd()) or (Path(), {})
    return root / str(settings.get("fairness_baseline_dir") or FOLDER)


def _each(
    arguments: argparse.Namespace, lines: Callable[[list[Version], str], Iterator[str]]
) -> tuple[str, int]:
    """*lines* of each baseline that is meant, under its test and score."""
    from pytest_fairness.baselines.history import versions
    from pytest_fairness.baselines.snapshot_files import BaselineFolder
    from pytest_fairness.errors import UsageError
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.words import listed

    which = arguments.which
    folder = arguments.folder or _folder()
    if which and Path(which).is_file():
        folder = Path(which).parent
        which = Path(which).name
    shown = []
    others = []
    for name in BaselineFolder(folder, anchor=Path.cwd()).names():
        versions_, why = versions(folder / name, Path.cwd())
        document = versions_[0].document
        about = name
        if document is not None:
            about = f"{document.test_id} · {document.score}"
        others.append(about)
        if not which or which == name or which in about:
            shown.append("\n".join([about, *lines(versions_, why)]))
    if not others:
        raise UsageError(f"{folder} holds no baseline: name the folder with --folder")
    if not shown:
        raise UsageError(
            f"no baseline in {folder} is called {which!r}; there are: {listed(others[:10])}"
        )
    return terminal("\n\n".join(shown)) + "\n", 0


def _approved(version: Version) -> str:
    facts = version.facts()
    if not facts:
        return " ".join(version.why.split())
    kind = ""
    for word in ("simulated", "replayed"):
        if facts[word]:
            kind += f", {word}"
    asked = f"{facts['endpoint']} ({facts['models'] or 'model unknown'}{kind})"
    words = "approved "
    if facts["regression"]:
        words = "approved although it is worse, "
    return (
        f"{words}{facts['approved_at'][:10]} by {facts['approved_by']} of {asked}: "
        f"{facts['justification']}"
    )


def _personas(version: Version) -> set[str]:
    if version.document is None:
        return set()
    return set(version.document.summary.personas)


def _score(score: float | None) -> str:
    if score is None:
        return "–"
    return f"{score:.6g}"
