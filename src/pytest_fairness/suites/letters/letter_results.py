"""What a run's letters come to: scores by category and group, passes, and every warning with its
persona.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.analysis.checks import judge_status
from pytest_fairness.model import ALARMS, Finding, Verdict, to_json
from pytest_fairness.reports import formatting
from pytest_fairness.reports.sections import (
    Details,
    Part,
    Printed,
    ScoredReply,
    Section,
    SideBySide,
    table,
    write_sections,
)
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.scorers.letter import (
    PASS_THRESHOLD,
    category_scores,
    score_of,
    warnings_of_trials,
)
from pytest_fairness.scorers.lexicon import Lexicon, LexiconWarning
from pytest_fairness.scorers.text import names_of, unmasked

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
STEM = "letters"
#: Lines of warnings and of failures in the printed block.
MOST_LINES = 20
#: Phrases of a persona in a line, and letters in the report.
_MOST_PHRASES, MOST_READ = 4, 100
_WORDS = {
    "race_ethnicity": "Race/Ethnicity",
    "pregnancy_family": "Pregnancy/Family",
    "accent_language": "Accent/Language",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedLetter:
    """A letter with warnings that nobody has accepted, and where these stand in it, from the first
    to the last.
    """

    text: str
    score: int
    places: tuple[tuple[int, int], ...]

    def runs(self) -> tuple[tuple[str, str], ...]:
        """The text in runs, those of the warnings marked as ``differs``."""
        runs_ = list[tuple[str, str]]()
        done = 0
        for start, end in self.places:
            if end > done:
                runs_ += [
                    (self.text[done : max(start, done)], ""),
                    (self.text[max(start, done) : end], "differs"),
                ]
                done = end
        return tuple(run for run in (*runs_, (self.text[done:], "")) if run[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaLetters:
    """The letters to one persona: the score of each, the warnings on all of them, and those with
    open warnings.
    """

    id: str
    scores: tuple[int, ...]
    warnings: tuple[LexiconWarning, ...]
    flagged: tuple[FlaggedLetter, ...] = ()

    @property
    def score(self) -> float:
        """The mean of the scores."""
        return fmean(self.scores)

    @property
    def failed(self) -> bool:
        """Return whether a letter is below the threshold: the good ones among five do not make up
        for it.
        """
        return min(self.scores) < PASS_THRESHOLD

    @property
    def failure(self) -> str:
        """``Persona #16: 70 / 100``, or which share of several letters failed."""
        below = sorted(score for score in self.scores if score < PASS_THRESHOLD)
        of = ""
        if len(self.scores) > 1:
            of = f" ({len(below)} of {len(self.scores)} letters)"
        return f"{self.who}: {', '.join(map(str, below))} / 100{of}"

    @property
    def number(self) -> int | None:
        """42 of ``persona-42``; None where the id ends otherwise."""
        match = re.search(r"(\d+)\Z", self.id)
        if match:
            return int(match[1])
        return None

    @property
    def who(self) -> str:
        if self.number is None:
            return f"Persona #{self.id}"
        return f"Persona #{self.number}"

    @property
    def warning_words(self) -> str:
        """Return what was detected, and how often: ``"recent graduate" detected (age, high) ×3;
        "energetic" …``.
        """
        counts = Counter(
            (warning.text.casefold(), warning.category, warning.severity)
            for warning in self.open_warnings
        )
        named = [
            f'"{text}" detected ({words_of(category).lower()}, {severity})'
            + (f" ×{count}" if count > 1 else "")
            for (text, category, severity), count in counts.most_common(_MOST_PHRASES)
        ]
        left = len(counts) - len(named)
        return "; ".join([*named, *([f"and {left} more"] if left else [])])

    @property
    def open_warnings(self) -> tuple[LexiconWarning, ...]:
        """The warnings that nobody has accepted."""
        return tuple(warning for warning in self.warnings if not warning.accepted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterResults:
    """The results of the suite. Scores go from 0 to 100.

    ``category_scores``: category of the lexicon → the mean score of all letters if there were no
    other warnings than of this category. ``group_scores``: protected class → group → mean score of
    the personas. ``unwritten`` counts trials without a letter: refused, failed, or without text.
    """

    timestamp: str
    model: str
    endpoint: str
    simulated: bool
    letters: int
    unwritten: int
    overall_score: float
    category_scores: Mapping[str, float]
    group_scores: Mapping[str, Mapping[str, float]]
    personas: tuple[PersonaLetters, ...]

    @property
    def passed(self) -> list[PersonaLetters]:
        """Personas without a warning."""
        return [
            persona for persona in self.personas if not persona.failed and not persona.open_warnings
        ]

    @property
    def warned(self) -> list[PersonaLetters]:
        """Personas with warnings who pass all the same."""
        return [
            persona for persona in self.personas if not persona.failed and persona.open_warnings
        ]

    @property
    def failed(self) -> list[PersonaLetters]:
        """Personas with a letter below the threshold."""
        return [persona for persona in self.personas if persona.failed]

    @property
    def found(self) -> int:
        """All warnings, accepted ones included."""
        return sum(len(persona.warnings) for persona in self.personas)

    @property
    def accepted(self) -> int:
        """The warnings that reviewers have accepted as legitimate."""
        return sum(len(persona.warnings) - len(persona.open_warnings) for persona in self.personas)

    @property
    def false_positive_rate(self) -> float | None:
        """The share of all warnings that reviewers have accepted as legitimate; None without a
        warning.
        """
        if self.found:
            return self.accepted / self.found
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``letters.json`` holds."""
        return {
            "version": VERSION,
            **{
                name: getattr(self, name)
                for name in ("timestamp", "model", "endpoint", "simulated", "letters")
            },
            "overall_score": self.overall_score,
            "category_scores": dict(self.category_scores),
            "group_scores": {name: dict(groups) for name, groups in self.group_scores.items()},
            "pass_count": len(self.passed),
            "warning_count": len(self.warned),
            "failure_count": len(self.failed),
            "false_positive_rate": self.false_positive_rate,
            "warnings": [
                {
                    "persona": persona.id,
                    "number": persona.number,
                    **{name: getattr(warning, name) for name in _FIELDS},
                }
                for persona in self.personas
                for warning in persona.warnings
            ],
            "personas": [
                {
                    "id": persona.id,
                    "score": persona.score,
                    "warnings": [
                        f"{warning.severity}: {warning.text}" for warning in persona.warnings
                    ],
                }
                for persona in self.personas
            ],
        }


_FIELDS = ("category", "severity", "text", "term", "accepted")


def letter_results(
    trials: pd.DataFrame, classes: Sequence[str], timestamp: str, lexicon: Lexicon | None = None
) -> LetterResults:
    """The results of *trials*, by the groups of *classes*, which are columns of the table;
    *lexicon*: the project's.
    """
    written = trials[
        trials["reply"].map(lambda reply: isinstance(reply, str) and bool(reply.strip()))
    ]
    if "refused" in written:
        written = written[~written["refused"].astype(bool)]
    warnings = warnings_of_trials(written, lexicon)
    scores = [score_of(found) for found in warnings]
    by_category = [category_scores(found) for found in warnings]
    flagged = _flagged(written, warnings, scores)
    own: dict[str, list[int]] = {}
    for at, persona in enumerate(written["persona"].astype(str)):
        own.setdefault(persona, []).append(at)
    mean = {persona: fmean(scores[at] for at in places) for persona, places in own.items()}
    frame = written[["persona", *classes]].drop_duplicates("persona")
    groups: dict[str, dict[str, list[float]]] = {name: {} for name in classes}
    for row in frame.to_dict("records"):
        for name in classes:
            groups[name].setdefault(str(row[name]), []).append(mean[str(row["persona"])])
    models = []
    if "model" in trials:
        models = sorted({str(trial) for trial in trials["model"].dropna()})
    return LetterResults(
        timestamp=timestamp,
        model=", ".join(models),
        endpoint=", ".join(sorted({str(trial) for trial in trials["endpoint"].dropna()})),
        simulated=bool(trials["simulated"].any()),
        letters=len(written),
        unwritten=len(trials) - len(written),
        overall_score=fmean(mean.values()) if mean else 0.0,
        category_scores={
            name: fmean(category[name] for category in by_category)
            for name in (by_category or [{}])[0]
        },
        group_scores={
            name: {group: fmean(of) for group, of in groups_.items()}
            for name, groups_ in groups.items()
        },
        personas=tuple(
            PersonaLetters(
                id=persona,
                scores=tuple(scores[at] for at in places),
                warnings=tuple(warning for at in places for warning in warnings[at]),
                flagged=tuple(flagged[at] for at in places if at in flagged),
            )
            for persona, places in own.items()
        ),
    )


def _flagged(
    written: pd.DataFrame, warnings: Sequence[Sequence[LexiconWarning]], scores: Sequence[int]
) -> dict[int, FlaggedLetter]:
    """The letters with open warnings, by their row in *written*."""
    rows = zip(written["reply"].tolist(), names_of(written), warnings, scores, strict=True)
    flagged = {}
    for at, (text, names, warnings_of, score) in enumerate(rows):
        places = sorted(
            (warning.start, warning.end) for warning in warnings_of if not warning.accepted
        )
        if places:
            flagged[at] = FlaggedLetter(
                text=text, score=score, places=tuple(unmasked(text, names, places))
            )
    return flagged


def write_letters(folder: Path, results: LetterResults) -> None:
    """Write ``letters.json`` and the section of the report into the run's *folder*. Raises
    StoreError.
    """
    text = json.dumps(to_json(results.to_dict()), ensure_ascii=True, allow_nan=False, indent=1)
    write_atomically(folder / f"{STEM}.json", text.encode("ascii"))
    write_sections(folder, STEM, letters_section(results))


def write_status(folder: Path, results: LetterResults, baseline: Finding | str | None) -> None:
    """Write the section that follows, into a file of its own, for another process may write the
    first. *baseline*: the comparison with the approved baseline, in words why there could be none,
    or None where none is wanted.
    """
    printed = Printed(lines=tuple(status(results, baseline)))
    write_sections(
        folder,
        f"{STEM}_status",
        Section(id=f"{STEM}-status", heading="Letters: status", parts=(printed,)),
    )


# ---------------------------------------------------------------- as the report shows it


def words_of(name: str) -> str:
    """A category or protected class as a title: ``Race/Ethnicity``."""
    return _WORDS.get(name, name.replace("_", " ").title())


def letters_section(results: LetterResults) -> Section:
    """The printed block, and the scores by group as a table."""
    groups = [
        (name, group, score)
        for name, scores in results.group_scores.items()
        for group, score in sorted(scores.items())
    ]
    scores = table(
        "Mean letter score of the personas of each group",
        groups,
        {
            "Protected class": lambda row: words_of(row[0]),
            "Group": lambda row: row[1],
            "Score": lambda row: f"{row[2]:.1f}",
        },
        words=("Group",),
    )
    printed = Printed(lines=tuple(block(results)))
    read = _to_be_read(results)
    return Section(
        id=STEM, heading="Letters", parts=(printed, *([scores] if groups else []), *read)
    )


def _to_be_read(results: LetterResults) -> list[Part]:
    """The flagged letters with their phrases marked, folded a persona, the worst first; nothing
    where there are none.

    Whoever approves a baseline reads them: a score does not tell a false alarm from a true one.
    """
    personas = sorted(
        (persona for persona in results.personas if persona.flagged),
        key=lambda persona: min(letter.score for letter in persona.flagged),
    )
    if not personas:
        return []
    letters = list[Part]()
    shown = 0
    for persona in personas:
        shown_letters = persona.flagged[: max(0, MOST_READ - shown)]
        shown += len(shown_letters)
        if shown_letters:
            texts = tuple(
                SideBySide(
                    about=f"letter {number} of {len(persona.flagged)}",
                    replies=(
                        ScoredReply(
                            who=persona.who, score=f"{letter.score} / 100", words=letter.runs()
                        ),
                    ),
                )
                for number, letter in enumerate(shown_letters, start=1)
            )
            letters.append(Details(summary=f"{persona.who}: {persona.warning_words}", parts=texts))
    flagged = sum(len(persona.flagged) for persona in personas)
    left = ""
    if flagged > shown:
        left = f"; the other {flagged - shown} are in the log"
    whose = words.count(len(personas), "persona")
    about = (
        f"{flagged} of {results.letters} letters, to {whose}, the lowest score first{left}. Read "
        "them before a "
        "baseline is approved; what is a false alarm goes into accepted.yaml."
    )
    return [
        Section(
            id=f"{STEM}-flagged", heading="Flagged letters, to be read", parts=(about, *letters)
        )
    ]


def block(results: LetterResults) -> list[str]:
    """The block that the suite prints, a line each; :func:`status` is its last."""
    asked = f"{results.endpoint}{' (simulated: no model was asked)' if results.simulated else ''}"
    lines = [
        "Fairness Suite Results",
        "======================",
        f"Total Letters: {results.letters}, to {len(results.personas)} personas"
        + (f" ({results.unwritten} not written)" if results.unwritten else ""),
        f"Endpoint: {asked}",
        f"Overall Bias Score: {_score(results.overall_score)}",
        "",
        "Breakdown by Category:",
        *(
            f"- {words_of(name)}: {_score(score)}"
            for name, score in results.category_scores.items()
        ),
    ]
    lines += [
        "",
        f"⚠ WARNINGS ({sum(len(persona.open_warnings) for persona in results.personas)}):",
    ]
    lines += _numbered(
        f"{persona.warning_words} - {persona.who}"
        for persona in results.personas
        if persona.open_warnings
    )
    lines += ["", f"✗ FAILURES ({len(results.failed)}):"]
    lines += _numbered(persona.failure for persona in results.failed)
    rate = results.false_positive_rate
    accepted = (
        f"Accepted after review: {results.accepted} of {results.found} warnings (false-positive "
        "rate {:.1%})"
    )
    return [*lines, *(["", accepted.format(rate)] if rate else [])]


def _score(score: float) -> str:
    return f"{score:.1f} / 100 {'✓' if score >= PASS_THRESHOLD else '✗'}"


def _numbered(items: Iterable[str]) -> list[str]:
    listed = list(items)
    lines = [
        f"{number}. {' '.join(words.split())}"
        for number, words in enumerate(listed[:MOST_LINES], start=1)
    ]
    more = []
    if len(listed) > MOST_LINES:
        more = [f"… and {len(listed) - MOST_LINES} more, in {STEM}.json"]
    return [*lines, *more] or ["None"]


_AGAINST_BASELINE = {
    Verdict.PASS: "no regressions vs baseline",
    Verdict.FLAG: "worse than the baseline, within the margin",
    Verdict.FAIL: "regression vs baseline",
    Verdict.INCONCLUSIVE: "the comparison with the baseline is inconclusive",
}


def status(results: LetterResults, baseline: Finding | str | None) -> list[str]:
    """The status of the letters, and what has fallen below the baseline, a line each; *baseline* is
    the comparison, or in words why there is none.
    """
    comparison = None
    regressions = []
    if isinstance(baseline, Finding):
        comparison = baseline
        regressions = formatting.regressions(baseline)
        about = _AGAINST_BASELINE[baseline.verdict]
        if baseline.verdict in ALARMS and baseline.justification:
            about = "worse than the baseline, and justified"
    else:
        about = baseline or "not compared with a baseline"
    if results.failed:
        about = f"letters below the threshold; {about}"
    unknown = comparison is None and bool(baseline)
    verdict = judge_status(comparison, fallen=len(results.failed), unknown=unknown)
    lines = [f"Status: {verdict} ({about})"]
    return [
        *lines,
        *(["Regressions:"] if regressions else []),
        *(f"- {regression}" for regression in regressions),
    ]
