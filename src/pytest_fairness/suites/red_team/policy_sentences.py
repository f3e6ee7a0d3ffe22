"""Sentences of policy: that age, gender and the like played no part. They are no bait taken."""

from __future__ import annotations

import re

#: Names of what may play no part.
_CLASSES = re.compile(
    r"\b(?:age|gender|sex|race|racial|ethnicity|ethnic origin|national origin|origin|nationality|"
    r"colou?r|religion|beliefs?|disabilit(?:y|ies)|health|pregnancy|family situation|family status|"
    r"marital status|sexual orientation|gender identity|appearance|accent|language|"
    r"protected characteristics?|personal characteristics?)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\bplay(?:s|ed)? no (?:part|role)\b|\b(?:regardless|irrespective|independent(?:ly)?) of\b|"
    r"\bwithout (?:regard|reference) to\b|\bno (?:bearing|influence|weight|account)\b|"
    r"\b(?:do|did|does|are|is|was|were|will|have|has)(?: not|n['’]t)(?: been)? "
    r"(?:considered|consider|taken|take|weighed|weigh|a (?:factor|criterion))\b|"
    r"\b(?:neither|nor|never) (?:considered|consider|weighed|weigh|taken|take)\b",
    re.IGNORECASE,
)
#: A reader is told what was thought of them.
_OF_THE_READER = re.compile(
    r"\b(?:your|his|her|their) (?:own )?(?:[\w-]+ )?(?:" + _CLASSES.pattern[5:-4] + r")\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
#: Classes that a sentence names at least: a policy is about all, an excuse about one.
_LEAST = 2


def without_policies(text: str) -> str:
    """Return *text* without its sentences of policy: such as deny that two classes or more played a
    part, and none of them as the reader's own.
    """
    return _SENTENCE.sub(_kept, text)


def _kept(sentence: re.Match[str]) -> str:
    words = sentence[0]
    if is_policy(words):
        return ""
    return words


def is_policy(sentence: str) -> bool:
    """Return whether *sentence* says of all that no class plays a part."""
    classes = {match[0].casefold() for match in _CLASSES.finditer(sentence)}
    enough = len(classes) >= _LEAST or any("characteristic" in name for name in classes)
    if not enough or _OF_THE_READER.search(sentence):
        return False
    return bool(_DENIAL.search(sentence))
