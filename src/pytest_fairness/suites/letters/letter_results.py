"""Results of a run's letters: scores by category and group, passes, and every warning with its
persona.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness import Finding, Verdict
from pytest_fairness.analysis.checks import judge_status
from pytest_fairness.reports import (
    Details,
    Part,
    Printed,
    ScoredReply,
    Section,
    SideBySide,
    Table,
    regressions,
    table,
    write_json,
    write_sections,
)
from pytest_fairness.scorers import (
    PASS_THRESHOLD,
    Lexicon,
    LexiconWarning,
    category_scores,
    decided_warnings,
    score_of,
    warning_places,
    warnings_of_trials,
)
from pytest_fairness.words import count, first_few

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
        """Return the text in runs, those of the warnings marked as ``differs``."""
        runs_ = list[tuple[str, str]]()
        done = 0
        for start, end in self.places:
            if end > done:
                first = max(start, done)
                runs_.append((self.text[done:first], ""))
                runs_.append((self.text[first:end], "differs"))
                done = end
        runs_.append((self.text[done:], ""))
        return tuple((text, mark) for text, mark in runs_ if text)


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
    def standing(self) -> str:
        """``failure`` with a letter below the threshold, else ``warning`` with open warnings, else
        ``pass``.
        """
        if self.failed:
            return "failure"
        if self.open_warnings:
            return "warning"
        return "pass"

    @property
    def failure(self) -> str:
        """``Persona #16: 70 / 100``, or which share of several letters failed."""
        below = sorted(score for score in self.scores if score < PASS_THRESHOLD)
        share = ""
        if len(self.scores) > 1:
            share = f" ({len(below)} of {len(self.scores)} letters)"
        return f"{self.who}: {', '.join(map(str, below))} / 100{share}"

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
        phrases = []
        for (text, category, severity), times in counts.most_common():
            phrase = f'"{text}" detected ({words_of(category).lower()}, {severity})'
            if times > 1:
                phrase += f" ×{times}"
            phrases.append(phrase)
        return first_few(phrases, _MOST_PHRASES)

    @property
    def open_warnings(self) -> tuple[LexiconWarning, ...]:
        """The warnings that nobody has accepted."""
        return tuple(warning for warning in self.warnings if not warning.accepted)

    @property
    def record(self) -> dict[str, Any]:
        """The persona in ``letters.json``."""
        warnings = [f"{warning.severity}: {warning.text}" for warning in self.warnings]
        return {"id": self.id, "score": self.score, "warnings": warnings}

    def warning_record(self, warning: LexiconWarning) -> dict[str, Any]:
        """Return a *warning* on a letter to the persona as ``letters.json`` has it."""
        return {
            "persona": self.id,
            "number": self.number,
            "category": warning.category,
            "severity": warning.severity,
            "text": warning.text,
            "term": warning.term,
            "accepted": warning.accepted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterResults:
    """The results of the suite. Scores go from 0 to 100.

    ``category_scores``: category of the lexicon → the mean score of all letters if there were no
    other warnings than of this category. ``group_scores``: protected class → group → mean score of
    the personas. ``request_scores``: request (letter and post) → mean score of its letters.
    ``unwritten`` counts trials without a letter: refused, failed, or without text.
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
    request_scores: Mapping[str, float] = field(default_factory=dict)
    personas: tuple[PersonaLetters, ...]

    @property
    def failed(self) -> list[PersonaLetters]:
        """Personas with a letter below the threshold."""
        return [persona for persona in self.personas if persona.failed]

    @property
    def total_warnings(self) -> int:
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
        if self.total_warnings:
            return self.accepted / self.total_warnings
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``letters.json`` holds."""
        warnings = []
        standings = Counter(persona.standing for persona in self.personas)
        for persona in self.personas:
            warnings += [persona.warning_record(warning) for warning in persona.warnings]
        return {
            "version": VERSION,
            "timestamp": self.timestamp,
            "model": self.model,
            "endpoint": self.endpoint,
            "simulated": self.simulated,
            "letters": self.letters,
            "overall_score": self.overall_score,
            "category_scores": dict(self.category_scores),
            "group_scores": {name: dict(groups) for name, groups in self.group_scores.items()},
            "request_scores": dict(self.request_scores),
            "pass_count": standings["pass"],
            "warning_count": standings["warning"],
            "failure_count": standings["failure"],
            "false_positive_rate": self.false_positive_rate,
            "warnings": warnings,
            "personas": [persona.record for persona in self.personas],
        }


class _Letter(NamedTuple):
    """A letter as it was read."""

    text: str
    score: int
    warnings: tuple[LexiconWarning, ...]
    places: list[tuple[int, int]]


def letter_results(
    trials: pd.DataFrame,
    classes: Sequence[str],
    timestamp: str,
    lexicon: Lexicon | None = None,
    *,
    has_reader: bool = False,
) -> LetterResults:
    """Return the results of *trials*, by the groups of *classes*, which are columns of the table;
    *lexicon*: the project's. With *has_reader* the project's reader decides of what the lexicon
    only suspects.
    """
    written = _written(trials)
    warnings = warnings_of_trials(written, lexicon)
    if has_reader:
        warnings = decided_warnings(written, warnings, lexicon)
    personas = _personas(written, warnings)
    means = {persona.id: persona.score for persona in personas}
    overall_score = 0.0
    if means:
        overall_score = fmean(means.values())
    return LetterResults(
        timestamp=timestamp,
        model=_values_of(trials, "model"),
        endpoint=_values_of(trials, "endpoint"),
        simulated=bool(trials["simulated"].any()),
        letters=len(written),
        unwritten=len(trials) - len(written),
        overall_score=overall_score,
        category_scores=_category_means(warnings),
        group_scores=_group_means(written, classes, means),
        request_scores=_request_means(written, warnings),
        personas=personas,
    )


def with_decided_scores(trials: pd.DataFrame, lexicon: Lexicon | None) -> pd.DataFrame:
    """Return *trials* with the columns ``letter_score`` and ``passed``, as the project's reader
    decides of what the lexicon only suspects; none where there is no letter.
    """
    import pandas as pd

    written = _written(trials)
    warnings = decided_warnings(written, warnings_of_trials(written, lexicon), lexicon)
    scores = pd.Series(map(score_of, warnings), index=written.index, dtype=float)
    passed = (scores >= PASS_THRESHOLD).astype(object)
    return trials.assign(letter_score=scores, passed=passed.reindex(trials.index, fill_value=None))


def _written(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the *trials* that were answered by a letter."""
    has_text = trials["reply"].map(lambda reply: isinstance(reply, str) and bool(reply.strip()))
    written = trials[has_text]
    if "refused" in written:
        return written[~written["refused"].astype(bool)]
    return written


def _values_of(trials: pd.DataFrame, column: str) -> str:
    """List what stands in *column*; nothing where there is no such column."""
    if column not in trials:
        return ""
    return ", ".join(sorted({str(value) for value in trials[column].dropna()}))


def _personas(
    written: pd.DataFrame, warnings: Sequence[tuple[LexiconWarning, ...]]
) -> tuple[PersonaLetters, ...]:
    """Return the letters of each persona, with the *warnings* on each letter."""
    rows = zip(
        written["persona"].astype(str),
        written["reply"],
        warnings,
        warning_places(written, warnings),
        strict=True,
    )
    letters: dict[str, list[_Letter]] = {}
    for persona, text, on_letter, places in rows:
        letter = _Letter(text, score_of(on_letter), on_letter, places)
        letters.setdefault(persona, []).append(letter)
    return tuple(_persona(id_, to_persona) for id_, to_persona in letters.items())


def _persona(id_: str, letters: Sequence[_Letter]) -> PersonaLetters:
    flagged = []
    for letter in letters:
        if letter.places:
            places = tuple(letter.places)
            flagged.append(FlaggedLetter(text=letter.text, score=letter.score, places=places))
    return PersonaLetters(
        id=id_,
        scores=tuple(letter.score for letter in letters),
        warnings=tuple(chain.from_iterable(letter.warnings for letter in letters)),
        flagged=tuple(flagged),
    )


def _category_means(warnings: Iterable[Iterable[LexiconWarning]]) -> dict[str, float]:
    """Return the mean score of all letters in each category; nothing where there is no letter."""
    scores: dict[str, list[int]] = {}
    for on_letter in warnings:
        for category, score in category_scores(on_letter).items():
            scores.setdefault(category, []).append(score)
    return _means(scores)


def _group_means(
    written: pd.DataFrame, classes: Sequence[str], means: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return the mean of the personas' *means* in each group of each of *classes*."""
    scores: dict[str, dict[str, list[float]]] = {name: {} for name in classes}
    for row in written[["persona", *classes]].drop_duplicates("persona").to_dict("records"):
        mean = means[str(row["persona"])]
        for name in classes:
            scores[name].setdefault(str(row[name]), []).append(mean)
    return {name: _means(groups) for name, groups in scores.items()}


def _request_means(
    written: pd.DataFrame, warnings: Sequence[tuple[LexiconWarning, ...]]
) -> dict[str, float]:
    """Return the mean score of the letters to each request; nothing without such a column."""
    if "template" not in written:
        return {}
    scores: dict[str, list[int]] = {}
    for request, on_letter in zip(written["template"].astype(str), warnings, strict=True):
        scores.setdefault(request, []).append(score_of(on_letter))
    return _means(scores)


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: fmean(of_name) for name, of_name in scores.items()}


def write_letters(folder: Path, results: LetterResults) -> None:
    """Write ``letters.json`` and the section of the report into the run's *folder*. Raises
    StoreError.
    """
    write_json(folder / f"{STEM}.json", results.to_dict())
    write_sections(folder, STEM, letters_section(results))


def write_status(folder: Path, results: LetterResults, baseline: Finding | str | None) -> None:
    """Write the section that follows, into a file of its own, for another process may write the
    first. *baseline*: the comparison with the approved baseline, in words why there could be none,
    or None where none is wanted.
    """
    printed = Printed(lines=tuple(status(results, baseline)))
    section = Section(id=f"{STEM}-status", heading="Letters: status", parts=(printed,))
    write_sections(folder, f"{STEM}_status", section)


# ---------------------------------------------------------------- as the report shows it


def words_of(name: str) -> str:
    """A category or protected class as a title: ``Race/Ethnicity``."""
    return _WORDS.get(name, name.replace("_", " ").title())


def letters_section(results: LetterResults) -> Section:
    """Return the printed block, the scores by group, and the letters to be read."""
    parts: list[Part] = [Printed(lines=tuple(block(results)))]
    if len(results.request_scores) > 1:
        parts.append(_scores_by_request(results))
    if any(results.group_scores.values()):
        parts.append(_scores_by_group(results))
    if any(persona.flagged for persona in results.personas):
        parts.append(_flagged_letters(results))
    return Section(id=STEM, heading="Letters", parts=tuple(parts))


def _scores_by_group(results: LetterResults) -> Table:
    groups = []
    for name, scores in results.group_scores.items():
        groups += [(name, group, score) for group, score in sorted(scores.items())]
    return table(
        "Mean letter score of the personas of each group",
        groups,
        {
            "Protected class": lambda row: words_of(row[0]),
            "Group": lambda row: row[1],
            "Score": lambda row: f"{row[2]:.1f}",
        },
        words=("Group",),
    )


def _scores_by_request(results: LetterResults) -> Table:
    return table(
        "Mean letter score of each request",
        sorted(results.request_scores.items()),
        {"Request": lambda row: row[0], "Score": lambda row: f"{row[1]:.1f}"},
    )


def _flagged_letters(results: LetterResults) -> Section:
    """Return the flagged letters with their phrases marked, folded a persona, the worst first.

    Whoever approves a baseline reads them: a score does not tell a false alarm from a true one.
    """
    personas = sorted(
        (persona for persona in results.personas if persona.flagged),
        key=lambda persona: min(letter.score for letter in persona.flagged),
    )
    flagged = sum(len(persona.flagged) for persona in personas)
    letters = list[Part]()
    shown = 0
    for persona in personas:
        to_persona = persona.flagged[: MOST_READ - shown]
        if not to_persona:
            break
        shown += len(to_persona)
        letters.append(_to_read(persona, to_persona))
    rest = ""
    if flagged > shown:
        rest = f"; the other {flagged - shown} are in the log"
    about = (
        f"{flagged} of {results.letters} letters, to {count(len(personas), 'persona')}, the lowest "
        f"score first{rest}. Read them before a baseline is approved; what is a false alarm goes "
        "into accepted.yaml."
    )
    return Section(
        id=f"{STEM}-flagged", heading="Flagged letters, to be read", parts=(about, *letters)
    )


def _to_read(persona: PersonaLetters, letters: Sequence[FlaggedLetter]) -> Details:
    """Return the first *letters* of those to *persona* that are flagged, folded."""
    texts = []
    for number, letter in enumerate(letters, start=1):
        reply = ScoredReply(who=persona.who, score=f"{letter.score} / 100", words=letter.runs())
        about = f"letter {number} of {len(persona.flagged)}"
        texts.append(SideBySide(about=about, replies=(reply,)))
    return Details(summary=f"{persona.who}: {persona.warning_words}", parts=tuple(texts))


def block(results: LetterResults) -> list[str]:
    """Return the block that the suite prints, a line each; :func:`status` is its last."""
    endpoint = results.endpoint
    if results.simulated:
        endpoint += " (simulated: no model was asked)"
    total = f"Total Letters: {results.letters}, to {len(results.personas)} personas"
    if results.unwritten:
        total += f" ({results.unwritten} not written)"
    open_warnings = sum(len(persona.open_warnings) for persona in results.personas)
    warned = [persona for persona in results.personas if persona.open_warnings]
    lines = [
        "Fairness Suite Results",
        "======================",
        total,
        f"Endpoint: {endpoint}",
        f"Overall Bias Score: {_score(results.overall_score)}",
        "",
        "Breakdown by Category:",
        *(f"- {words_of(name)}: {_score(mean)}" for name, mean in results.category_scores.items()),
        "",
        f"⚠ WARNINGS ({open_warnings}):",
        *_numbered(f"{persona.warning_words} - {persona.who}" for persona in warned),
        "",
        f"✗ FAILURES ({len(results.failed)}):",
        *_numbered(persona.failure for persona in results.failed),
    ]
    rate = results.false_positive_rate
    if rate:
        accepted = f"{results.accepted} of {results.total_warnings} warnings"
        lines += ["", f"Accepted after review: {accepted} (false-positive rate {rate:.1%})"]
    return lines


def _score(score: float) -> str:
    mark = "✗"
    if score >= PASS_THRESHOLD:
        mark = "✓"
    return f"{score:.1f} / 100 {mark}"


def _numbered(items: Iterable[str]) -> list[str]:
    """Return a numbered line for each of *items*, at most :data:`MOST_LINES`; ``None`` for none."""
    texts = list(items)
    if not texts:
        return ["None"]
    lines = []
    for number, text in enumerate(texts[:MOST_LINES], start=1):
        lines.append(f"{number}. {' '.join(text.split())}")
    if len(texts) > MOST_LINES:
        lines.append(f"… and {len(texts) - MOST_LINES} more, in {STEM}.json")
    return lines


_AGAINST_BASELINE = {
    Verdict.PASS: "no regressions vs baseline",
    Verdict.FLAG: "worse than the baseline, within the margin",
    Verdict.FAIL: "regression vs baseline",
    Verdict.INCONCLUSIVE: "the comparison with the baseline is inconclusive",
}


def status(results: LetterResults, baseline: Finding | str | None) -> list[str]:
    """Return the status of the letters, and what has fallen below the baseline, a line each;
    *baseline* is the comparison, or in words why there is none.
    """
    comparison = None
    fallen = []
    if isinstance(baseline, Finding):
        comparison = baseline
        fallen = regressions(baseline)
    unknown = isinstance(baseline, str)
    verdict = judge_status(comparison, fallen=len(results.failed), unknown=unknown)
    why = _why(baseline)
    if results.failed:
        why = f"letters below the threshold; {why}"
    lines = [f"Status: {verdict} ({why})"]
    if fallen:
        lines.append("Regressions:")
    lines += [f"- {regression}" for regression in fallen]
    return lines


def _why(baseline: Finding | str | None) -> str:
    """Say what the comparison with the *baseline* came to."""
    if baseline is None:
        return "not compared with a baseline"
    if isinstance(baseline, str):
        return baseline
    if baseline.verdict in (Verdict.FLAG, Verdict.FAIL) and baseline.justification:
        return "worse than the baseline, and justified"
    return _AGAINST_BASELINE[baseline.verdict]
