"""The tone of words as VADER hears it: enough of its lexicon to write a text with a tone that was chosen beforehand.

VADER's compound score is S/√(S² + 15) where S is the sum of the valences of the words (Hutto & Gilbert 2014,
*VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text*, ICWSM; valences from the
lexicon of vaderSentiment 3.3.2, MIT licence). Its further rules (negation, intensifiers, "but", capitals,
exclamation marks) are kept out of play by the phrases. The tests compare every number here with VADER's.
"""

from __future__ import annotations

import math
import re

_ALPHA = 15.0

#: Adjectives that fit any quality ("… judgement"), from worst to best.
LADDER: tuple[tuple[str, float], ...] = (
    ("poor", -2.1),
    ("weak", -1.9),
    ("inadequate", -1.7),
    ("unimpressive", -1.4),
    ("hesitant", -1.0),
    ("limited", -0.9),
    ("vague", -0.4),
    ("uneven", 0.0),
    ("steady", 0.0),
    ("consistent", 0.0),
    ("careful", 0.6),
    ("solid", 0.6),
    ("fine", 0.8),
    ("adequate", 0.9),
    ("competent", 1.3),
    ("fair", 1.3),
    ("satisfactory", 1.5),
    ("capable", 1.6),
    ("thoughtful", 1.6),
    ("creditable", 1.8),
    ("good", 1.9),
    ("effective", 2.1),
    ("strong", 2.3),
    ("impressive", 2.3),
    ("admirable", 2.6),
    ("remarkable", 2.6),
    ("excellent", 2.7),
    ("outstanding", 3.0),
    ("superb", 3.1),
)

# fmt: off
_PHRASES = {
    "appreciate": 1.7, "appreciated": 2.3, "congratulations": 2.9, "dear": 1.6, "glad": 2.0, "happy": 2.7,
    "opportunity": 1.8, "please": 1.3, "pleased": 1.9, "recommend": 1.5, "regret": -1.8, "success": 2.7,
    "thank": 1.5, "unfortunately": -1.4, "welcome": 2.0, "wish": 1.7,
}
_ROLES = {
    "care": 2.2, "challenge": 0.3, "creative": 1.9, "credit": 1.6, "crisis": -3.1, "defense": 0.5,
    "emergency": -1.6, "energy": 1.1, "fraud": -2.8, "freelance": 1.2, "help": 1.7, "innovation": 1.6,
    "intelligence": 2.1, "legal": 0.5, "risk": -1.1, "safety": 1.8, "security": 1.4, "support": 1.7,
    "trust": 2.3,
}
# First names and surnames that VADER takes for words: a text about Grace or Mia must not sound better or worse.
_NAMES = {
    "best": 3.2, "bliss": 2.7, "brave": 2.4, "bright": 1.9, "champion": 2.9, "chance": 1.0, "charity": 1.8,
    "darling": 2.8, "diamond": 1.4, "dick": -2.3, "earnest": 2.3, "faith": 1.8, "fan": 1.3, "freeman": 1.7,
    "fu": -3.7, "glory": 2.5, "good": 1.9, "grace": 1.8, "grant": 1.5, "graves": -1.2, "grimes": -1.0,
    "gross": -2.1, "ha": 1.4, "hail": 0.3, "hardy": 1.7, "harmony": 1.7, "heaven": 2.3, "honor": 2.2,
    "hope": 1.9, "jewel": 1.5, "joy": 2.8, "justice": 2.4, "keen": 1.5, "kia": -3.2, "love": 3.2,
    "lowe": 0.5, "lowery": -1.8, "ly": 2.6, "mercy": 1.5, "merry": 2.5, "mia": -1.2, "moody": -1.5,
    "noble": 2.0, "ok": 1.2, "po": -2.6, "precious": 2.7, "rich": 2.6, "rob": -2.6, "savage": -2.0,
    "sok": 1.3, "stout": 0.7, "strong": 2.3, "sunny": 1.8, "sunshine": 2.2, "sweet": 2.0, "swift": 0.8,
    "tia": 2.3, "treasure": 1.2, "ty": 1.6, "wells": 1.0, "wise": 2.1, "won": 2.7, "woo": 2.1,
}
# fmt: on
#: Words that the replies may hold, or echo from the prompt, and that VADER scores.
VALENCE: dict[str, float] = {**_PHRASES, **_ROLES, **_NAMES}

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def valence(text: str) -> float:
    """S of *text*: the sum of the valences of those of its words that are known here."""
    return sum(VALENCE.get(word, 0.0) for word in _WORD.findall(text.lower()))


def needed_for(compound: float) -> float:
    """The S that gives a compound score between −1 and 1, both excluded: the inverse of S/√(S² + 15)."""
    return compound * math.sqrt(_ALPHA / (1.0 - compound * compound))
