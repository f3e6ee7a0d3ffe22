"""What an approval changed, as an entry for people: from which version to which, who, why, scores
and warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    if old:
        versions = f"{old.version} → {new.version}"
    else:
        versions = new.version
    facts = {
        "Baseline": f"{new.test_id} · {new.score}",
        "Date": approval.approved_at[:10] if approval else "not approved",
        "Approver": approval.approved_by if approval else "nobody",
    }
    changes = list(_changes(new, old))
    if approval is not None and approval.regression:
        changes.insert(0, "Approved although it is worse")
    lines = [
        f"## Baseline Update: {versions}",
        "",
        *(f"**{name}:** {value}  " for name, value in facts.items()),
        "",
        "**Changes:**",
        "",
        *(f"- {change}" for change in changes or ["no score and no warning moved"]),
        "",
        "**Justification:**",
        "",
        f"> {approval.justification if approval else '–'}",
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
        better = (now.overall > before.overall) == new.lower_is_worse
        yield (
            f"Overall score {'improved' if better else 'fell'} from {before.overall:.6g} to "
            f"{now.overall:.6g}"
        )
    then = before.part_scores
    for part, score in now.part_scores.items():
        if part in then and abs(score - then[part]) >= _LEAST:
            yield f"{part}: {then[part]:.1f} → {score:.1f}"
    lost = set(before.personas) - set(now.personas)
    gained = set(now.personas) - set(before.personas)
    for words, personas in (("no longer scored", lost), ("scored anew", gained)):
        if personas:
            yield f"{count(len(personas), 'persona')} {words}"
    patterns = now.patterns
    its = before.patterns
    for words, ours, theirs in (("New warnings", patterns, its), ("Gone", its, patterns)):
        if several := [pattern for pattern in ours if pattern not in theirs]:
            yield f"{words}: {', '.join(several[:_MOST])}{', …' if len(several) > _MOST else ''}"
