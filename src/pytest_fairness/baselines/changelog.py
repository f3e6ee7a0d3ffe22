"""Changes by an approval, as an entry for people: from which version to which, who, why, scores and
warnings.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from pytest_fairness.baselines.document import BaselineDocument, visible
from pytest_fairness.words import count

NAME = "CHANGELOG.md"
#: Patterns of warnings that are named.
_MOST = 10
#: What a score has to move to be named, in its own unit: what shows with one decimal.
_LEAST = 0.05


def changelog_entry(new: BaselineDocument, old: BaselineDocument | None) -> str:
    """The entry on *new*, which took the place of *old*, as Markdown; None for the first of its
    test.
    """
    approval = new.approval
    date = "not approved"
    approver = "nobody"
    justification = "–"
    changes = list(_changes(new, old))
    if approval is not None:
        date = approval.approved_at[:10]
        approver = approval.approved_by
        justification = approval.justification
        if approval.regression:
            changes.insert(0, "Approved although it is worse")
    versions = new.version
    if old:
        versions = f"{old.version} → {new.version}"
    lines = [
        f"## Baseline Update: {versions}",
        "",
        f"**Baseline:** {new.test_id} · {new.score}  ",
        f"**Date:** {date}  ",
        f"**Approver:** {approver}  ",
        "",
        "**Changes:**",
        "",
        *(f"- {change}" for change in changes or ["no score and no warning moved"]),
        "",
        "**Justification:**",
        "",
        f"> {justification}",
    ]
    return visible("\n".join(lines)) + "\n"


def _changes(new: BaselineDocument, old: BaselineDocument | None) -> Iterator[str]:
    now = new.summary
    if old is None:
        yield f"The first baseline: overall score {now.overall:.6g} over {len(now.personas)} personas"
        return
    before = old.summary
    for change in new.fingerprints.changes_since(old.fingerprints):
        yield change[0].upper() + change[1:]
    if now.overall != before.overall:
        moved = "fell"
        if (now.overall > before.overall) == new.lower_is_worse:
            moved = "improved"
        yield f"Overall score {moved} from {before.overall:.6g} to {now.overall:.6g}"
    for part, score in now.part_scores.items():
        then = before.part_scores.get(part)
        if then is not None and abs(score - then) >= _LEAST:
            yield f"{part}: {then:.1f} → {score:.1f}"
    if lost := set(before.personas) - set(now.personas):
        yield f"{count(len(lost), 'persona')} no longer scored"
    if gained := set(now.personas) - set(before.personas):
        yield f"{count(len(gained), 'persona')} scored anew"
    yield from _patterns("New warnings", now.patterns, before.patterns)
    yield from _patterns("Gone", before.patterns, now.patterns)


def _patterns(words: str, patterns: Iterable[str], others: Container[str]) -> Iterator[str]:
    """Yield a line on those of *patterns* that are none of the *others*, if there are any."""
    several = [pattern for pattern in patterns if pattern not in others]
    if several:
        more = ""
        if len(several) > _MOST:
            more = ", …"
        yield f"{words}: {', '.join(several[:_MOST])}{more}"
