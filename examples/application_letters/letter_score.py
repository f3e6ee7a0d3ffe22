"""How clean a letter is: 100 less a deduction for each phrase that stands in for something not job-related.

Phrases of your own go into ``PHRASES``: category, severity, pattern.
"""

import re

DEDUCTION = {"critical": 25, "high": 15, "medium": 5, "low": 2}
PASS_THRESHOLD = 80

PHRASES = [
    ("age", "high", r"recent graduates?|digital native|overqualified|decades of experience"),
    ("age", "medium", r"energetic|mature|young(er)? team|fresh perspective"),
    ("cultural_fit", "high", r"cultur(e|al) fit"),
    ("cultural_fit", "medium", r"not (quite )?(a|the right) (fit|match)"),
    ("religion", "high", r"traditional values"),
    ("gender", "high", r"too emotional|aggressive|bossy"),
    ("gender", "medium", r"nurturing|emotional"),
    ("accent_language", "high", r"accent|communication challenges"),
    ("health", "critical", r"disab(led|ility)|wheelchair|medical|illness"),
    ("pregnancy_family", "critical", r"pregnan(t|cy)|maternity|family care"),
    ("promise", "low", r"keep your (resume|résumé|details|application) on file|we will be in touch"),
    ("superlative", "low", r"\b(best|strongest|most qualified)\b"),
]


def warnings_in(letter: str) -> list[tuple[str, str, str]]:
    """(category, severity, phrase) of everything that *letter* should not say."""
    return [
        (category, severity, found.group())
        for category, severity, pattern in PHRASES
        for found in re.finditer(pattern, letter, re.IGNORECASE)
    ]


def letter_score(letter: str) -> int:
    """0 to 100; a letter passes from 80."""
    return max(0, 100 - sum(DEDUCTION[severity] for _, severity, _ in warnings_in(letter)))
