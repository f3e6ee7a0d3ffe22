"""``selection.html``: the benchmark's own page, made from the files of a run's folder alone.

Like ``report.html`` it runs no script and loads nothing, and escapes whatever a model, a name or a setting says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.pages import environment
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.suites.selection.behaviour_chapters import behaviour_chapters
from pytest_fairness.suites.selection.contrast_chapters import contrast_chapters, scrubber_chapters
from pytest_fairness.suites.selection.page_examples import examples_of
from pytest_fairness.suites.selection.page_text import (
    arm_table,
    conclusions,
    design_facts,
    glance,
    how_to_read,
    limitations,
)
from pytest_fairness.suites.selection.preference_chapters import preference_chapters
from pytest_fairness.suites.selection.results import SelectionResults

NAME = "selection.html"
SOURCE = "selection.json"
#: The results at a further temperature, which have a page each.
FURTHER = "selection-t-*.json"
_PACKAGE = "pytest_fairness.suites.selection"


def write_selection_page(run_dir: Path) -> Path:
    """Write ``selection.html`` beside ``selection.json`` in *run_dir* and return its path.

    Results at further temperatures get a page each, ``selection-t-0.html``, and all pages link to each other. Raises
    FairnessError if there are no results to read, StoreError if a page cannot be written.
    """
    sources = [run_dir / SOURCE, *sorted(run_dir.glob(FURTHER))]
    for source in sources:
        others = [other.with_suffix(".html").name for other in sources if other != source]
        page = render_selection(read_selection(source), source, others)
        write_atomically(source.with_suffix(".html"), page.encode("utf-8", "backslashreplace"))
    return run_dir / NAME


def read_selection(path: Path) -> SelectionResults:
    """The results in the file *path*. Raises FairnessError, naming it, if there are none or they cannot be read."""
    try:
        return SelectionResults.from_dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise FairnessError(
            f"{path.parent} holds no {path.name}: the selection benchmark did not run there, or did not finish"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise FairnessError(f"{path} cannot be read: {error}") from error
    except FairnessError as error:
        raise FairnessError(f"{path}: {error}") from error


def render_selection(results: SelectionResults, source: Path, others: Sequence[str] = ()) -> str:
    """The page as text; beside *source* lie the run's facts and records, and *others*, the pages to link to."""
    # The mitigation stands where its question comes up: after who is preferred, before what explains it.
    chapters = [
        *preference_chapters(results),
        *contrast_chapters(results.contrasts),
        *behaviour_chapters(results),
        *scrubber_chapters(results.scrubbers),
    ]
    return (
        environment(_PACKAGE)
        .get_template("selection.html.j2")
        .render(
            results=results,
            run=results.run,
            manifest=_manifest(source.parent),
            conclusions=conclusions(results),
            glance=glance(results),
            facts=design_facts(results),
            arms=arm_table(results),
            chapters=chapters if results.arms else [],
            reading=how_to_read(),
            limits=limitations(results),
            examples=examples_of(source.with_suffix(".jsonl"), [arm.arm for arm in results.arms]),
            report=source.with_name("findings.json").exists(),
            others=others,
        )
    )


def _manifest(run_dir: Path) -> dict[str, str]:
    """Which run it was, when and from which commit; empty words where the manifest does not say."""
    try:
        found: Any = json.loads((run_dir / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        found = {}
    known = found if isinstance(found, Mapping) else {}
    versions = known.get("versions")
    version = versions.get("pytest-fairness") if isinstance(versions, Mapping) else None
    return {
        "id": str(known.get("id") or run_dir.name),
        "version": str(version or ""),
        **{key: str(known.get(key) or "") for key in ("started", "finished", "git_commit", "seed")},
    }
