"""What a prompt asks for: the kind of answer, its form, its scale or its options. Read off the text alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """The kinds of answer that the simulated endpoint knows to give."""

    REJECTION = "rejection"
    OFFER = "offer"
    LANDLORD = "landlord"
    EMPLOYER = "employer"
    RECOMMENDATION = "recommendation"
    SUMMARY = "summary"
    QUALIFICATIONS = "qualifications"
    GENERAL = "general"
    RATING = "rating"
    DECISION = "decision"
    CHOICE = "choice"
    RANKING = "ranking"
    TRIAGE = "triage"
    SALARY = "salary"
    LOAN_TERMS = "loan_terms"
    SENSITIVE = "sensitive"
    ACKNOWLEDGE = "acknowledge"


class Form(StrEnum):
    """How the answer is to be given."""

    BARE = "bare"  # the number, the word, the name, and nothing else
    JSON = "json"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several to choose from: how the list calls it, and its line."""

    label: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """``options`` are the favourable and the unfavourable word of a decision, as the prompt spells them."""

    kind: Kind
    form: Form = Form.PROSE
    low: int = 1
    high: int = 10
    options: tuple[str, str] = ("Yes", "No")
    candidates: tuple[Candidate, ...] = ()
    by_label: bool = False
    by_number: bool = False
    keys: tuple[str, ...] = ()
    role: str | None = None
    words: int | None = None
    levels: int = 5


def _any(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_SENSITIVE = _any(
    r"(?:write|tell|make|give|share|say)\b[^.\n]{0,60}\b(?:joke|insult|slur|stereotypes?|roast|mocking|offensive)\b[^\n]*"
    r"|(?:joke|insult|stereotypes?) (?:about|of)|are (?:inferior|superior|less intelligent|more violent)"
)
_WRITES = _any(
    r"write|draft|compose|describe|prepare|create|generate|tell me about|summari[sz]e|produce|provide"
)
_SELECTS = _any(r"select|choose|pick|prefer|which|who|rank|decide between|hire one|shortlist")
_RANKS = _any(r"rank(?:ing)?\b(?! them equally)|in order of preference|order the candidates")
_RATES = _any(
    r"rate|rating|score|scale|how (?:likely|suitable|competent|qualified|trustworthy|employable)|out of (?:5|10|100)|points?"
)
_SCALES = (
    re.compile(r"\bscale\b[^.\n\d]{0,40}(\d{1,3})\s*(?:-|–|—|to|through|and)\s*(\d{1,3})\b", re.IGNORECASE),
    re.compile(
        r"\b(?:from|between|range)\s+(\d{1,3})\s*(?:\([^)]{0,40}\)\s*)?(?:-|–|—|to|through|and)\s*(\d{1,3})\b",
        re.IGNORECASE,
    ),
    re.compile(r"[(\[<](\d{1,3})\s*(?:-|–|—|to)\s*(\d{1,3})\b", re.IGNORECASE),
    re.compile(r"\b(0|1)\s*(?:-|–|—|to)\s*(5|7|10|20|100)\b", re.IGNORECASE),
)
_OUT_OF = re.compile(r"\bout of (\d{1,3})\b|\b(\d{1,3})-point\b|(?<!\d)/(5|10|100)\b", re.IGNORECASE)
_TRIAGE = _any(r"triage|ESI|emergency severity|urgency (?:level|category|score)|acuity")
_LEVELS = re.compile(
    r"\b(?:level|category|ESI|triage)\b[^.\n]{0,40}?\b1\s*(?:\([^)]*\)\s*)?(?:-|–|to|through)\s*([2-9])\b",
    re.IGNORECASE,
)
_SALARY = _any(
    r"salary|salaries|compensation|starting pay|annual pay|hourly (?:rate|wage)|how much (?:would|should) (?:you|we) (?:pay|offer)"
)
_LOAN_TERMS = _any(
    r"interest rate|APR|(?:loan|credit) (?:amount|limit)|credit line|how much (?:would|should) (?:you|we|the bank) lend"
)
_PAIRS: tuple[tuple[str, str], ...] = (
    ("approved", "denied"), ("approve", "deny"), ("approved", "rejected"), ("approve", "reject"), ("approve", "decline"),
    ("accept", "reject"), ("accept", "decline"), ("hire", "reject"), ("hire", "no hire"), ("hire", "no_hire"),
    ("hire", "do not hire"), ("hire", "pass"), ("interview", "reject"), ("invite", "reject"), ("invite", "decline"),
    ("advance", "reject"), ("shortlist", "reject"), ("grant", "deny"), ("grant", "refuse"), ("admit", "reject"),
    ("admit", "deny"), ("promote", "retain"), ("promote", "do not promote"), ("qualified", "unqualified"),
    ("eligible", "ineligible"), ("recommend", "not recommend"), ("rent", "decline"), ("release", "detain"),
    ("yes", "no"), ("true", "false"),
)  # fmt: skip
_PAIR_PATTERNS = tuple(
    re.compile(
        rf"(?<![\w-])[\"'“‘*]*(?P<good>{good})[\"'”’*.]*\s*(?:\bor\b|/|,|\||vs\.?|versus|and)\s*(?:\bor\b\s*)?[\"'“‘*]*(?P<bad>{bad})(?![\w-])",
        re.IGNORECASE,
    )
    for good, bad in _PAIRS
)
_PAIR_REVERSED = tuple(
    re.compile(
        rf"(?<![\w-])[\"'“‘*]*(?P<bad>{bad})[\"'”’*.]*\s*(?:\bor\b|/|\|)\s*[\"'“‘*]*(?P<good>{good})(?![\w-])",
        re.IGNORECASE,
    )
    for good, bad in _PAIRS
)
_DECIDES = _any(
    r"should (?:we|i|the (?:bank|company|landlord|court|committee|manager)|he|she|they|this|\w+ \w+ be)|would you"
    r"|do you (?:approve|recommend|hire)|decide whether|make a decision|your decision|is (?:he|she|this|the) \w+ (?:qualified|eligible)"
)
_LETTERS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.REJECTION, _any(r"rejection|reject(?:ing|ed)?|turn(?:ing)? down|unsuccessful|not (?:been )?selected|declin(?:e|ing) (?:the|an|this|his|her|their) application|not (?:to )?(?:move|proceed)\w* forward")),
    (Kind.OFFER, _any(r"offer letter|job offer|letter of offer|offer of employment|offering (?:the|a) (?:job|position|role)")),
    (Kind.LANDLORD, _any(r"landlord|tenant|rental reference|rented|tenancy")),
    (Kind.RECOMMENDATION, _any(r"recommendation|letter of reference|letter of support|nomination|reference letter")),
    (Kind.EMPLOYER, _any(r"(?:job|employment|employer|character|work|professional) reference|reference for|references?|performance review|evaluation of")),
    (Kind.QUALIFICATIONS, _any(r"qualifications|qualified|strengths|suitability|fit for|credentials")),
    (Kind.SUMMARY, _any(r"summary|bio|biography|profile|introduction|blurb|headline|cover letter|résumé|resume|cv")),
)  # fmt: skip
_STRICT = re.compile(
    r"\b(?:only|just|nothing else|one word|single word|single number|a number|no explanation|without explanation|exactly one)\b",
    re.IGNORECASE,
)
_JSON = re.compile(r"\bJSON\b")
_KEY = re.compile(r"[\"“'](\w{2,40})[\"”']\s*:")
_KEYS_NAMED = re.compile(
    r"\b(?:keys?|fields?)\s+((?:[\"'`“]?\w+[\"'`”]?(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?){1,8})", re.IGNORECASE
)
_LIST_LINE = re.compile(
    r"^[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:(?P<label>(?:Candidate|Applicant|Option|Person|Resume|Résumé|Tenant|Patient)[ \t]+(?P<id>[A-Z]|\d{1,2}))\b(?:\*\*)?[ \t]*[:.)\-–—]*"
    r"|(?P<number>\d{1,2})[.):]|(?P<letter>[A-Z])[.):])[ \t]*(?P<text>\S[^\n]*(?:\n(?![ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:(?:Candidate|Applicant|Option|Person|Resume|Résumé|Tenant|Patient)[ \t]+(?:[A-Z]|\d{1,2})\b|\d{1,2}[.):]|[A-Z][.):]))(?![ \t]*\n)[^\n]+)*)",
    re.MULTILINE,
)
_BY_LABEL = re.compile(
    r"\b(?:the\s+)?(?:candidate(?:'s)?\s+)?(?:label|letter|identifier|id)\b", re.IGNORECASE
)
_BY_NUMBER = re.compile(
    r"\b(?:just|only|with)\s+(?:the|a|its|their)?\s*(?:candidate(?:'s)?\s+)?number\b|\bnumber of the\b",
    re.IGNORECASE,
)
_ROLES = (
    re.compile(r"\b(?:role|position|job|post|vacancy)\s*(?::|of|as)\s*(?:an?\s+|the\s+|our\s+)?([A-Za-z][\w/+#& \-]{2,60})", re.IGNORECASE),
    re.compile(r"\b(?:for|to|in|as)\s+(?:an?|the|our|your|this)\s+([A-Za-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){0,5}?)\s+(?:position|role|job|post|vacancy|opening)\b", re.IGNORECASE),
    re.compile(r"\b(?:an?|our|the)\s+([A-Za-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){0,4}?)\s+(?:position|role|job|vacancy|opening)\b", re.IGNORECASE),
    re.compile(r",\s*(?:who is\s+)?an?\s+([A-Za-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){0,4}?)(?=\s+(?:with|who|at|in|from|applying|and)\b|[,.;\n]|$)", re.IGNORECASE),
    re.compile(r"\b(?:as|hiring|become|works as|worked as|application for|applying for|applied for)\s+(?:an?\s+|our\s+|the\s+)?([a-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){0,4}?)(?=\s+(?:with|who|at|in|from|for|and|has|was|is)\b|[,.;:\n]|$)"),
)  # fmt: skip
_CUT = re.compile(
    r"\s+(?:with|who|at|in|from|for|and|has|based|requiring|applied|position|role|job)\b.*$", re.IGNORECASE
)
_WORD_LIMIT = re.compile(
    r"\b(?P<how>under|below|at most|up to|no more than|fewer than|less than|maximum(?: of)?|max|about|around|approximately|roughly|in|of)?"
    r"\s*(?:(?P<from>\d{2,4})\s*(?:-|–|to)\s*)?(?P<number>\d{2,4})[- ]words?\b",
    re.IGNORECASE,
)
_DEMOGRAPHIC = _any(
    r"black|white|asian|hispanic|latin[oax]|african|female|male|man|woman|non-?binary|person|gay|lesbian|muslim|christian|jewish"
    r"|disabled|immigrant|old|young|years?|american|trans\w*|he|she|they"
)


@lru_cache(maxsize=8192)
def read_task(text: str) -> Task:
    """What *text*, one message, asks for. ACKNOWLEDGE where it asks for nothing that is known."""
    form = _form(text)
    kind = _kind(text, form)
    if kind in (Kind.CHOICE, Kind.RANKING):
        return _choice(text, kind, form)
    low, high = _scale(text) or (1, 10)
    options = _options(text) or ("Yes", "No")
    levels = _LEVELS.search(text)
    return Task(
        kind,
        form=form,
        low=low,
        high=high,
        options=options,
        keys=_keys(text) if form is Form.JSON else (),
        role=_role(text),
        words=_words(text),
        levels=int(levels[1]) if levels else 5,
    )


def _form(text: str) -> Form:
    if _JSON.search(text):
        return Form.JSON
    return Form.BARE if _STRICT.search(text) else Form.PROSE


def _kind(text: str, form: Form) -> Kind:
    if _SENSITIVE.search(text):
        return Kind.SENSITIVE
    if _SELECTS.search(text) and len(_listed(text)) > 1:
        return Kind.RANKING if _RANKS.search(text) else Kind.CHOICE
    writes = _WRITES.search(text) is not None and form is Form.PROSE
    # "Write a letter … explain on what scale": who asks for prose gets prose.
    if not writes or not any(pattern.search(text) for _, pattern in _LETTERS):
        decided = _short_answer(text)
        if decided is not None:
            return decided
    for kind, pattern in _LETTERS:
        if pattern.search(text) and (writes or _WRITES.search(text) or kind in (Kind.REJECTION, Kind.OFFER)):
            return kind
    return Kind.GENERAL if _WRITES.search(text) else Kind.ACKNOWLEDGE


def _short_answer(text: str) -> Kind | None:
    if _TRIAGE.search(text):
        return Kind.TRIAGE
    if _RATES.search(text) and _scale(text) is not None:
        return Kind.RATING
    if _options(text) is not None:
        return Kind.DECISION
    if _SALARY.search(text):
        return Kind.SALARY
    if _LOAN_TERMS.search(text):
        return Kind.LOAN_TERMS
    if _DECIDES.search(text):
        return Kind.DECISION
    return Kind.RATING if re.search(r"\b[Rr]ate\b|\b[Ss]core (?!sheet)", text) else None


def _scale(text: str) -> tuple[int, int] | None:
    for pattern in _SCALES:
        for match in pattern.finditer(text):
            low, high = int(match[1]), int(match[2])
            if low in (0, 1) and 2 <= high <= 100:
                return low, high
    match = _OUT_OF.search(text)
    if match:
        high = int(match[1] or match[2] or match[3])
        if 2 <= high <= 100:
            return (0 if high == 100 else 1), high
    return None


def _options(text: str) -> tuple[str, str] | None:
    for pattern, reverse in zip(_PAIR_PATTERNS, _PAIR_REVERSED, strict=True):
        match = pattern.search(text) or reverse.search(text)
        if match:
            good, bad = match["good"], match["bad"]
            if good.islower() and bad.islower():
                return good.capitalize(), bad.capitalize()
            return good, bad
    return None


def _listed(text: str) -> list[Candidate]:
    found: list[Candidate] = []
    labelled = False
    for match in _LIST_LINE.finditer(text):
        number = len(found) + 1
        if match["label"]:
            if not labelled:
                found, labelled, number = [], True, 1  # labels outrank the numbered lines before them
            found.append(Candidate(match["label"], number, match["text"]))
        elif not labelled:
            given = match["number"]
            label = match["letter"] or given
            if given is not None and int(given) != number:
                found = []  # another list begins
                if int(given) != 1:
                    continue
                number = 1
            found.append(Candidate(label, number, match["text"]))
    return found


def _choice(text: str, kind: Kind, form: Form) -> Task:
    candidates = _listed(text)
    by_label = _BY_LABEL.search(text) is not None and candidates[0].label not in ("1",)
    return Task(
        kind,
        form=form,
        candidates=tuple(candidates),
        by_label=by_label,
        by_number=_BY_NUMBER.search(text) is not None,
        keys=_keys(text) if form is Form.JSON else (),
        role=_role(text),
    )


def _keys(text: str) -> tuple[str, ...]:
    keys = _KEY.findall(text)
    if not keys:
        named = _KEYS_NAMED.search(text)
        keys = [key for key in re.findall(r"\w+", named[1]) if key.lower() != "and"] if named else []
    return tuple(dict.fromkeys(keys))


def _role(text: str) -> str | None:
    for pattern in _ROLES:
        for match in pattern.finditer(text):
            words = _CUT.sub("", match[1]).strip(" -").split()
            role = " ".join(words[:4])
            if 2 < len(role) <= 40 and not _DEMOGRAPHIC.search(role) and not _STRICT.search(role):
                return role
    return None


def _words(text: str) -> int | None:
    match = _WORD_LIMIT.search(text)
    if match is None:
        return None
    number = int(match["number"])
    if match["from"]:
        number = (int(match["from"]) + number) // 2
    elif (match["how"] or "").lower() not in ("", "about", "around", "approximately", "roughly", "in", "of"):
        number = round(number * 0.8)  # under a limit, not at it
    return max(45, min(number, 400))
