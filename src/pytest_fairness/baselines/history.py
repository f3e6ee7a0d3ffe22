"""The approved versions of a baseline: the file as it is, and as each commit of git has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.baselines.approval import git
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.snapshot_files import BaselineFolder
from pytest_fairness.errors import BaselineError

_MOST = 500


@dataclass(frozen=True, kw_only=True)
class Version:
    """A version of the file: of a ``commit``, at ``committed`` by ``author``; as it lies there now,
    where these are empty. ``document`` is None where it cannot be read, and ``why`` says so.
    """

    text: str
    document: BaselineDocument | None
    why: str = ""
    commit: str = ""
    committed: str = ""
    author: str = ""

    @classmethod
    def of(cls, text: str, where: str, **facts: str) -> Version:
        try:
            return cls(
                text=text, document=BaselineDocument.from_bytes(text.encode(), where=where), **facts
            )
        except BaselineError as error:
            return cls(text=text, document=None, why=str(error), **facts)

    def scores(self) -> dict[str, float]:
        """The score of each scope: ``overall`` and each category."""
        if self.document is None:
            return {}
        summary = self.document.summary
        scores = {"overall": summary.overall, **summary.part_scores}
        for label, ids in summary.categories.items():
            means = [summary.personas[name].mean for name in ids if name in summary.personas]
            if means:
                scores[label] = sum(means) / len(means)
        return scores

    def facts(self) -> dict[str, Any]:
        """Return who approved it, when, why, and of which models; empty where that is not known."""
        if self.document is None or self.document.approval is None:
            return {}
        given = self.document.approval
        models = ", ".join(self.document.fingerprints.models)
        names = (
            "approved_by",
            "approved_by_source",
            "approved_at",
            "justification",
            "run_id",
            "regression",
        )
        facts_: Mapping[str, Any] = {
            name: getattr(given, name) for name in (*names, "simulated", "replayed")
        }
        return {**facts_, "endpoint": self.document.fingerprints.endpoint, "models": models}


def versions(path: Path, root: Path) -> tuple[list[Version], str]:
    """The versions of the baseline at *path* in the project *root*, the newest first; and why there
    are no older ones, where git cannot say. Raises BaselineError for a file that is no baseline's,
    as a link; StoreError.
    """
    content = BaselineFolder(path.parent, anchor=root).read(path.name)
    now = None
    if content is not None:
        now = content.decode("utf-8", "replace")
    versions_: list[Version] = []
    log = None
    if path.parent.exists():
        log = git(path.parent, "log", f"-{_MOST}", "--format=%H%x1f%aI%x1f%an", "--", path.name)
    for line in (log or "").splitlines():
        commit, committed, author = line.split("\x1f")
        text = git(path.parent, "show", f"{commit}:./{path.name}")
        if text is not None:  # a commit that removes it has none
            where = f"{path.name} at {commit[:10]}"
            versions_.append(
                Version.of(text, where, commit=commit, committed=committed, author=author)
            )
    if now is not None and (not versions_ or versions_[0].text != now):
        versions_.insert(0, Version.of(now, path.name))
    if log:
        why = ""
    elif log is not None:
        why = "git knows no commit of it"
    else:
        why = "its folder is in no repository of git"
    return versions_, why
