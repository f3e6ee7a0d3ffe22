"""The wordings by which a prompt is recognised: what it asks for, on what scale, between which options."""

from __future__ import annotations

import re

_I = re.IGNORECASE


def words(pattern: str) -> re.Pattern[str]:
    """*pattern* as words of their own, in any case."""
    return re.compile(rf"\b(?:{pattern})\b", _I)


SENSITIVE = words(
    r"(?:write|tell|make|give|share|say)\b[^.\n]{0,60}\b(?:joke|insult|slur|stereotypes?|roast|mocking|offensive)\b[^\n]*"
    r"|(?:joke|insult|stereotypes?) (?:about|of)|are (?:inferior|superior|less intelligent|more violent)"
)
WRITES = words(r"write|draft|compose|describe|prepare|create|generate|tell me about|summari[sz]e|produce|provide")
SELECTS = words(r"select|choose|pick|prefer|which|who|rank|decide between|hire one|shortlist")
SCRUBS = words(
    r"(?:rewrite|anonymi[sz]e|redact|scrub|strip|remove|mask)\b[^\n]{0,120}\b"
    r"(?:personal (?:characteristics?|information|details)|personally identif\w+|demographic\w*|names? and|identifying)"
)
RANKS = words(r"rank(?:ing)?\b(?! them equally)|in order of preference|order the candidates")
RATES = words(
    r"rate|rating|score|scale|how (?:likely|suitable|competent|qualified|trustworthy|employable)"
    r"|out of (?:5|10|100)|points?"
)
RATES_ANYHOW = re.compile(r"\b[Rr]ate\b|\b[Ss]core (?!sheet)")
SCALES = (
    re.compile(r"\bscale\b[^.\n\d]{0,40}(\d{1,3})\s*(?:-|–|—|to|through|and)\s*(\d{1,3})\b", _I),
    re.compile(
        r"\b(?:from|between|range)\s+(\d{1,3})\s*(?:\([^)]{0,40}\)\s*)?(?:-|–|—|to|through|and)\s*(\d{1,3})\b", _I
    ),
    re.compile(r"[(\[<](\d{1,3})\s*(?:-|–|—|to)\s*(\d{1,3})\b", _I),
    re.compile(r"\b(0|1)\s*(?:-|–|—|to)\s*(5|7|10|20|100)\b", _I),
)
OUT_OF = re.compile(r"\bout of (\d{1,3})\b|\b(\d{1,3})-point\b|(?<!\d)/(5|10|100)\b", _I)
TRIAGE = words(r"triage|ESI|emergency severity|urgency (?:level|category|score)|acuity")
LEVELS = re.compile(
    r"\b(?:level|category|ESI|triage)\b[^.\n]{0,40}?\b1\s*(?:\([^)]*\)\s*)?(?:-|–|to|through)\s*([2-9])\b", _I
)
SALARY = words(
    r"salary|salaries|compensation|starting pay|annual pay|hourly (?:rate|wage)"
    r"|how much (?:would|should) (?:you|we) (?:pay|offer)"
)
LOAN_TERMS = words(
    r"interest rate|APR|(?:loan|credit) (?:amount|limit)|credit line|how much (?:would|should) (?:you|we|the bank) lend"
)
DECIDES = words(
    r"should (?:we|i|the (?:bank|company|landlord|court|committee|manager)|he|she|they|this|\w+ \w+ be)|would you"
    r"|do you (?:approve|recommend|hire)|decide whether|make a decision|your decision"
    r"|is (?:he|she|this|the) \w+ (?:qualified|eligible)"
)
#: Kind of text → its wordings, the more particular first.
LETTERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "rejection",
        words(
            r"rejection|reject(?:ing|ed)?|turn(?:ing)? down|unsuccessful|not (?:been )?selected"
            r"|declin(?:e|ing) (?:the|an|this|his|her|their) application|not (?:to )?(?:move|proceed)\w* forward"
        ),
    ),
    (
        "offer",
        words(r"offer letter|job offer|letter of offer|offer of employment|offering (?:the|a) (?:job|position|role)"),
    ),
    ("landlord", words(r"landlord|tenant|rental reference|rented|tenancy")),
    (
        "recommendation",
        words(r"recommendation|letter of reference|letter of support|nomination|reference letter"),
    ),
    (
        "employer",
        words(
            r"(?:job|employment|employer|character|work|professional) reference|reference for|references?"
            r"|performance review|evaluation of"
        ),
    ),
    ("qualifications", words(r"qualifications|qualified|strengths|suitability|fit for|credentials")),
    (
        "summary",
        words(r"summary|bio|biography|profile|introduction|blurb|headline|cover letter|résumé|resume|cv"),
    ),
)
STRICT = words(
    r"only|just|nothing else|one word|single word|single number|a number|no explanation|without explanation|exactly one"
)
JSON = re.compile(r"\bJSON\b")
KEY = re.compile(r"[\"“'](\w{2,40})[\"”']\s*:")
KEYS_NAMED = re.compile(r"\b(?:keys?|fields?)\s+((?:[\"'`“]?\w+[\"'`”]?(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?){1,8})", _I)
BY_LABEL = words(r"(?:the\s+)?(?:candidate(?:'s)?\s+)?(?:label|letter|identifier|id)")
BY_NUMBER = words(r"(?:just|only|with)\s+(?:the|a|its|their)?\s*(?:candidate(?:'s)?\s+)?number|number of the")
WORD_LIMIT = re.compile(
    r"\b(?P<how>under|below|at most|up to|no more than|fewer than|less than|maximum(?: of)?|max|about|around"
    r"|approximately|roughly|in|of)?\s*(?:(?P<from>\d{2,4})\s*(?:-|–|to)\s*)?(?P<number>\d{2,4})[- ]words?\b",
    _I,
)

_WORDS_OF_ROLE = r"[A-Za-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+)"
_END_OF_ROLE = r"(?=\s+(?:with|who|at|in|from|for|and|has|was|is|applying)\b|[,.;:\n]|$)"
#: Where the role that somebody has or wants stands, the surest first.
ROLES = (
    re.compile(
        r"\b(?:role|position|job|post|vacancy)\s*(?::|of|as)\s*(?:an?\s+|the\s+|our\s+)?([A-Za-z][\w/+#& \-]{2,60})", _I
    ),
    re.compile(
        rf"\b(?:for|to|in|as)\s+(?:an?|the|our|your|this)\s+({_WORDS_OF_ROLE}{{0,5}}?)"
        r"\s+(?:position|role|job|post|vacancy|opening)\b",
        _I,
    ),
    re.compile(rf"\b(?:an?|our|the)\s+({_WORDS_OF_ROLE}{{0,4}}?)\s+(?:position|role|job|vacancy|opening)\b", _I),
    re.compile(rf",\s*(?:who is\s+)?an?\s+({_WORDS_OF_ROLE}{{0,4}}?){_END_OF_ROLE}", _I),
    re.compile(
        r"\b(?:as|hiring|become|works as|worked as|application for|applying for|applied for)\s+"
        rf"(?:an?\s+|our\s+|the\s+)?([a-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){{0,4}}?){_END_OF_ROLE}"
    ),
)
AFTER_ROLE = re.compile(r"\s+(?:with|who|at|in|from|for|and|has|based|requiring|applied|position|role|job)\b.*$", _I)
#: What is said of a person, not of a role.
DEMOGRAPHIC = words(
    r"black|white|asian|hispanic|latin[oax]|african|female|male|man|woman|non-?binary|person|gay|lesbian|muslim"
    r"|christian|jewish|disabled|immigrant|old|young|years?|american|trans\w*|he|she|they"
)

#: (favourable, unfavourable) words of a decision, the more particular first.
_PAIRS = (
    ("approved", "denied"), ("approve", "deny"), ("approved", "rejected"), ("approve", "reject"),
    ("approve", "decline"), ("accept", "reject"), ("accept", "decline"), ("hire", "reject"), ("hire", "no hire"),
    ("hire", "no_hire"),
    ("hire", "do not hire"), ("hire", "pass"), ("interview", "reject"), ("invite", "reject"), ("invite", "decline"),
    ("advance", "reject"), ("shortlist", "reject"), ("grant", "deny"), ("grant", "refuse"), ("admit", "reject"),
    ("admit", "deny"), ("promote", "retain"), ("promote", "do not promote"), ("qualified", "unqualified"),
    ("eligible", "ineligible"), ("recommend", "not recommend"), ("rent", "decline"), ("release", "detain"),
    ("yes", "no"), ("true", "false"),
)  # fmt: skip
_FAVOURABLE = frozenset(_PAIRS)
_GOOD = "|".join(sorted({good for good, _ in _PAIRS}, key=len, reverse=True))
_BAD = "|".join(sorted({bad for _, bad in _PAIRS}, key=len, reverse=True))
_QUOTE = r"[\"'“‘*]*"
_UNQUOTE = r"[\"'”’*.]*"
_OPTIONS = re.compile(
    rf"(?<![\w-]){_QUOTE}(?P<first>{_GOOD}|{_BAD}){_UNQUOTE}\s*(?:\bor\b|/|,|\||vs\.?|versus|\band\b)\s*(?:\bor\b\s*)?"
    rf"{_QUOTE}(?P<second>{_GOOD}|{_BAD})(?![\w-])",
    _I,
)


def decision_options(text: str) -> tuple[str, str] | None:
    """The favourable and the unfavourable word that *text* offers, as it spells them; ``None`` for no such pair."""
    at = 0
    while (match := _OPTIONS.search(text, at)) is not None:
        first, second = match["first"], match["second"]
        if (first.lower(), second.lower()) in _FAVOURABLE:
            return _spelt(first, second)
        if (second.lower(), first.lower()) in _FAVOURABLE:
            return _spelt(second, first)
        at = match.start("second")
    return None


def _spelt(good: str, bad: str) -> tuple[str, str]:
    return (good.capitalize(), bad.capitalize()) if good.islower() and bad.islower() else (good, bad)
