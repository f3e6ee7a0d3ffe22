"""Texts made to slow the readers: each a unit that is repeated, for the tests and for
``benchmarks/scoring.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_fairness.scorers.choice import read_choice, read_ranking
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.disclaimer import has_disclaimer
from pytest_fairness.scorers.lexicon import shipped_lexicon
from pytest_fairness.scorers.rating import rating, rating_scorer
from pytest_fairness.scorers.refusal import is_refusal
from pytest_fairness.scorers.salary import salary
from pytest_fairness.scorers.sentiment import sentiment
from pytest_fairness.scorers.text import char_count, masked, word_count
from pytest_fairness.scorers.toxicity import toxicity
from pytest_fairness.scorers.triage import triage, triage_esi, triage_manchester

PAIR = ("Greg Walsh", "Emily Baker")
FOUR = ("Ann Lee", "Bo Day", "Cy Fox", None)

#: Every reader with the number of characters of which it reads all.
READERS: Mapping[str, tuple[Callable[[str], object], int]] = {
    "sentiment": (sentiment, 200_000),
    "word_count": (word_count, 1_000_000),
    "char_count": (char_count, 1_000_000),
    "rating": (rating, 20_000),
    "rating to 100": (rating_scorer(0, 100), 20_000),
    "decision": (decision, 20_000),
    "salary": (salary, 8_000),
    "refusal": (is_refusal, 20_000),
    "triage": (triage, 20_000),
    "triage_esi": (triage_esi, 20_000),
    "triage_manchester": (triage_manchester, 20_000),
    "toxicity": (toxicity, 200_000),
    "disclaimer": (has_disclaimer, 20_000),
    "choice of two": (lambda text: read_choice(text, PAIR), 20_000),
    "choice of four": (lambda text: read_choice(text, FOUR), 20_000),
    "ranking": (lambda text: read_ranking(text, PAIR), 20_000),
    "masking": (lambda text: masked(text, ("Ann", "Grace", "Lee")), 1_000_000),
    "lexicon": (lambda text: shipped_lexicon().warnings(text), 1_000_000),
}

#: What goes before the repeated units, so that a reader gets past its first look.
OPENINGS = ("", "I'm sorry ", "", "Decision: ", "1")
#: Ends that no reader takes for one: a run of marks that a blank follows is read otherwise than one
#: before a letter.
ENDS = (" x", "x!")

UNITS = (
    # What the readers look for
    "select ", "hire ", "hire, ", "deny ", "not hire ", "not ", "no ", "n't ", "recommend ", "turn down ",
    "decision: ", "yes ", "if ", "7 ", "7/10 ", "1-10 ", "rating ", "rating: ", "score for ", "say ", "rate it a ",
    "out of ", "half and a half ", "seven ", "I cannot ", "I can't recommend ", "I don't give ", "I can't praise ",
    "speak-[I can't ", "as an AI ", "Dear ", "$85,000 ", "$1-$2 ", "$", "85k", "4 ", "40,000-", "1 000 ", "per hour ",
    "forty thousand ", "hundred and ", "less than ", "€1 ", "1 EUR ", "Candidate A ", "candidate ", "Greg Walsh ",
    "Greg ", "Greg, ", "Walsh, ", "hire Greg, ", "Greg and Emily ", "choice for is ", "choice for a is ",
    "answer is ", "the answer: ", "my\n", "chosen\n", "<answer>", "<answer>a</answer>", "either a or ", "1. ",
    "I choose ", "not Greg Walsh, but ", "Hire Greg Walsh. ", "sorry ", "two hundred ", "between $9 and ",
    '{"salary": ',
    "level ", "level 3 ", "ESI: ", "ESI (a) ", "not a 3 but ", "between level ", "assign ", "urgent ", "red ",
    "1) x\n", "1, ", "1\n\n", "#", "#\n", "Ann", "Grace Lee ", "good ", "good but bad ", "very ", "kind of ", "least ",
    # What patterns trip over, whatever they look for
    " ", "\n", " \n", "\t", "\r\n", "\v", "\u00a0", "\u2003", "\u2028", "\u200b", "a", "a ", "A ", "aA", "a'", "a-",
    "...", "?!",
    "a.", "A.", "a, ", "_", "a_", "'", '"', '"0', "-", "- ", "–", "…", ".", "!", "? ", "!?", ":", "*", "`", "|", "/",
    "0", "1", "1,", "1.", "-1", "+", "%", "1%", "1/", "{", "}", "{}", "[", "[[", "]", "(", "()", "((1", '{"a":',
    '{"score":7}', '{"score":7} {', '[{"a":1}', '"\\', "\\", "<", "</", "\x00",
    # Look-alikes, and what grows when it is normalised
    "１", "٣", "²", "½", "é", "e\u0301", "\u0301\u0316", "ﷺ", "ß", "İ", "ſ", "😀", "😀 ", "\ud800", "Ａ ", "𝟕/𝟏𝟎 ",
)  # fmt: skip


def hostile(unit: str, length: int, opening: str = "", end: str = ENDS[0]) -> str:
    """*unit* repeated to *length* characters, with an *end* that no reader takes for one."""
    return (opening + unit * (length // len(unit) + 1))[: length - len(end)] + end
