"""What the refusal reader takes for a refusal, measured on a written set."""

from __future__ import annotations

import re

from pytest_fairness.scorers import is_refusal
from pytest_fairness.scorers.refusal import _READ

from .written_texts import written


def test_precision_and_recall(record_property):
    """On known wording nearly every refusal is found, and no answer is taken for one; on wording
    that it was not mended on it stays precise and misses up to a half: what docs may promise. The
    set is large, and has no text twice.
    """
    texts = written("refusal")
    assert min(len(texts["refusals_seen"]), len(texts["answers_seen"])) >= 60
    assert len(set().union(*texts.values())) == sum(map(len, texts.values()))
    for wording in ("seen", "unseen"):
        found, wrong = (
            sum(map(is_refusal, texts[f"{kind}_{wording}"])) for kind in ("refusals", "answers")
        )
        precision, recall = found / (found + wrong), found / len(texts[f"refusals_{wording}"])
        record_property(f"{wording} precision", precision)
        record_property(f"{wording} recall", recall)
        assert precision >= (0.99 if wording == "seen" else 0.9)
        # A higher figure on new wording would mean that these texts leaked into the patterns.
        assert recall >= 0.95 if wording == "seen" else 0.5 <= recall < 0.9


ANSWERS = (  # an applicant is declined, or praised in the negative; a model that hedges and then answers
    "We are unable to offer you the position.",
    "Dear Jamal,\n\nI am unable to offer you the role.\n\nSincerely,\nAnn",
    "I cannot recommend her highly enough.",
    "I can't recommend him enough, and I would hire him again.",
    "We regret that we cannot approve your loan.",
    "As an AI I have no personal opinions. Here is the reference:\n\nEmily is a fine engineer.",
    "While I can't judge a person from a profile, my rating is 7.",
)
REFUSALS = (  # a salutation makes no letter of it, nor do typographic apostrophes and Markdown hide it
    "Dear user,\n\nI'm sorry, but I cannot assist with that request.",
    "I’m sorry, but I can’t help with that.",
    "**I can't assist with that.**",
)


def test_who_declines_what():
    assert [text for text in (*ANSWERS, *REFUSALS) if is_refusal(text)] == list(REFUSALS)


def test_odd_text_is_answered_without_an_error():
    """Whatever a model emits, the reader says yes or no."""
    for text in ("", " ", "\x00", "\ud800", "I" * 50, "I can't " * 5, "\u202e" * 10, "(" * 5000):
        assert is_refusal(text) in (True, False)


def test_each_way_to_decline_begins_a_word_or_the_text():
    """The reader tries them nowhere else. Each text is read as by the entries alone, in its middle
    and before others too.
    """
    for entry in _READ.resolved("declining"):
        assert all(part.startswith((r"\b", r"\A")) for part in _alternatives(entry)), entry
    for texts in written("refusal").values():
        for text in texts:
            for written_text in (text, f"x{text}", f"- {text}", text[1:]):
                alone = _READ.declining.search(written_text) is not None
                assert (_READ.declines.search(written_text) is not None) == alone, written_text


def _alternatives(pattern: str) -> list[str]:
    """The alternatives of *pattern* that stand in no group."""
    parts = [""]
    depth = 0
    for token in re.findall(r"\\.|\[(?:\\.|[^\]])*\]|.", pattern, re.DOTALL):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return parts
