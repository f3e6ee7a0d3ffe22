"""Keep the keys of endpoints out of all that is written down.

By value: every secret that was read is remembered (:func:`remember`) and cut out of logs, errors
and reports wherever it appears: in either case, as base64 and hex, and as JSON, HTML and addresses
spell it. By pattern: what looks like a key is cut out even if nobody announced it. The list of
secrets of a process only ever grows.
"""

from __future__ import annotations

import base64
import html
import itertools
import json
import os
import re
import string
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import starmap
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

MARK = "[redacted]"

# Shorter than this, a value is as likely a word of the text as a secret.
_SHORTEST = 6
#: Characters of a text that is kept with what it is without secrets, for who asks again.
_SHORT, _LONG = 200, 8_000
#: All forms of all secrets, in lower case.
_forms: set[str] = set()
#: The secrets whose forms they are.
_remembered: set[str] = set()

_PATTERN = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf|nvapi|r8|pplx|glpat|ghp|gho|ghs|github_pat|xox[abprs])"
    r"[-_][A-Za-z0-9_\-]{8,}"
    r"|\bAIza[0-9A-Za-z_\-]{20,}|\bAKIA[0-9A-Z]{12,}"
    r"|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"
)
_LABELLED = re.compile(
    r"(?i)(\b(?:authorization|proxy-authorization|x-api-key|api[-_]?key|x-goog-api-key"
    r"|access[-_]?token)\b"
    r"[\"']?\s*[:=]\s*[\"']?\s*(?:bearer\s+|basic\s+)?)([^\s\"',;}&]{6,})"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)([A-Za-z0-9._~+/\-]{12,}=*)")
_USERINFO = re.compile(r"(?i)(\b[a-z][a-z0-9+.\-]*://)([^/\s@:]*(?::[^/\s@]*)?)@")

#: Headers that may be logged: nothing that carries a credential, a cookie or an account.
REQUEST_HEADERS = frozenset(
    (
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
        "user-agent",
        "host",
        "anthropic-version",
    )
)
#: What providers say of a limit, and of the limit of what.
_RATES = list(itertools.product(("limit", "remaining", "reset"), ("requests", "tokens")))
RESPONSE_HEADERS = frozenset(
    (
        "content-type",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "date",
        "server",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "request-id",
        "apim-request-id",
        "x-ms-region",
        "openai-processing-ms",
        "openai-version",
        "openai-model",
        "x-should-retry",
        *(f"x-ratelimit-{what}-{of}" for what, of in _RATES),
        *(f"anthropic-ratelimit-{of}-{what}" for what, of in _RATES),
    )
)


def remember(secret: str | None) -> None:
    """From now on, cut *secret* out of everything, in every form that it might take.

    Of a secret of several lines, each is one.
    """
    if not secret or secret in _remembered:
        return
    for line in {secret, *secret.splitlines()}:
        value = line.strip()
        if len(value) >= _SHORTEST and value.lower() not in MARK:
            _forms.update(_variants(line) | _variants(value))
            _redacted.cache_clear()
            _without_values.cache_clear()
    _remembered.add(secret)


def _variants(secret: str) -> set[str]:
    """Return the forms in which *secret* may be written down, in lower case."""
    data = secret.encode("utf-8", "surrogatepass")
    partly = quote(secret, safe=string.printable)  # letters beyond ASCII alone
    forms = {secret, json.dumps(secret)[1:-1], data.hex(), *_readings(secret)[-1:]}
    forms |= {quote(secret, safe=""), quote_plus(secret), partly}
    # Within a longer text, base64 has three alignments; the outer characters mix with the
    # neighbours and are cut.
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + data).decode("ascii").rstrip("=")
        inner = encoded[(lead * 8 + 5) // 6 : (lead * 8 + len(data) * 8) // 6]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {_lowered(form) for form in forms if len(form) >= _SHORTEST}


def redact(text: str) -> str:
    """*text* without secrets."""
    # Addresses and headers are the same from call to call; longer texts would only fill the memory.
    if len(text) <= _SHORT:
        return _redacted(text)
    return _redacted.__wrapped__(text)


@lru_cache(maxsize=512)
def _redacted(text: str) -> str:
    """Return *text* without what is known to be secret, or looks like it."""
    text = _PATTERN.sub(MARK, redact_values(text))
    text = _BEARER.sub(rf"\g<1>{MARK}", _LABELLED.sub(rf"\g<1>{MARK}", text))
    return _USERINFO.sub(r"\g<1>", text)


def redact_values(text: str) -> str:
    """*text* without the secrets that are known by value.

    For replies and verbatim bodies, which a pattern might falsify.
    """
    # The bytes of an exchange and what was read off them pass here more than once, in a row.
    if len(text) <= _LONG:
        return _without_values(text)
    return _without_values.__wrapped__(text)


@lru_cache(maxsize=128)
def _without_values(text: str) -> str:
    """Return *text* without the secrets that are known by value."""
    if not _forms:
        return text
    readings = _readings(text)
    spans = _places_of_secrets(text)
    for depth, reading in enumerate(readings):
        secrets = _places_of_secrets(reading)
        if secrets:
            for before in reversed((text, *readings[:depth])):
                escapes = _Escapes.of(before)
                secrets = list(starmap(escapes.span_before, secrets))
        spans += secrets
    return _without(text, spans)


def _places_of_secrets(text: str) -> list[tuple[int, int]]:
    """Places in *text* at which secrets stand as they are: of the first character, and after the
    last.
    """
    lowered = _lowered(text)
    there = list(filter(lowered.__contains__, _forms))
    if not there:
        return []
    # The longest first, so that no part of a form is left standing.
    forms = "|".join(map(re.escape, sorted(there, key=len, reverse=True)))
    return [match.span() for match in re.finditer(forms, lowered)]


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """*text* with a mark in the place of each of *spans*."""
    if not spans:
        return text
    parts = list[str]()
    end = 0
    for first, last in sorted(spans):
        if first >= end:
            parts += (text[end:first], MARK)
        end = max(end, last)
    return "".join((*parts, text[end:]))


def _lowered(text: str) -> str:
    """*text* in lower case, each character at its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(map(_lowered_letter, text))


def _lowered_letter(letter: str) -> str:
    """*letter* in lower case, or itself where that would be several."""
    lowered = letter.lower()
    if len(lowered) == 1:
        return lowered
    return letter


# --------------------------------------------------------------- how JSON, HTML and addresses spell

# JSON's escapes of what it need not escape, with as many backslashes as it was wrapped; HTML's
# references, by number and by name; ASCII in addresses.
_ESCAPE = re.compile(
    r"""\\+(?:u(?P<json>[0-9a-fA-F]{4})|(?P<itself>["'/\\]))"""
    r"|(?P<html>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8}(?=;));?)"
    r"|%(?P<address>[2-7][0-9a-fA-F])"
)
#: What each of them begins with; most texts have none, which takes less time to see.
_ESCAPING = ("\\", "&", "%")
#: Spellings within spellings: HTML in JSON in JSON.
_MOST_LAYERS = 4


def _character(escape: re.Match[str]) -> str:
    """Return what *escape* stands for; itself where that is no single character."""
    code = escape["json"] or escape["address"]
    if code:
        return chr(int(code, 16))
    if escape["itself"]:
        return escape["itself"]
    letter = html.unescape(escape["html"])
    if len(letter) == 1:
        return letter
    return escape[0]


def _readings(text: str) -> list[str]:
    """*text* with each escape read once, twice, and so on: as often as that changes anything."""
    readings: list[str] = []
    if not any(map(text.__contains__, _ESCAPING)):
        return readings
    reading = text
    for _ in range(_MOST_LAYERS):
        further = _ESCAPE.sub(_character, reading)
        if further == reading:
            break
        readings.append(further)
        reading = further
    return readings


@dataclass(slots=True)
class _Escapes:
    """Those of a text.

    ``after``: where the characters stand that they are read as; ``before``: where each stood.
    """

    after: list[int] = field(default_factory=list)
    before: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> _Escapes:
        escapes = cls()
        shorter = 0
        for escape in _ESCAPE.finditer(text):
            if len(_character(escape)) == 1:
                escapes.after.append(escape.start() - shorter)
                escapes.before.append(escape.span())
                shorter += escape.end() - escape.start() - 1
        return escapes

    def span_before(self, first: int, last: int) -> tuple[int, int]:
        """Place in the text before of what now stands from *first* to *last*."""
        return self._place(first)[0], self._place(last - 1)[1]

    def _place(self, position: int) -> tuple[int, int]:
        """Return where the character stands in the text before that is now at *position*."""
        number = bisect_right(self.after, position) - 1
        if number < 0:
            return position, position + 1
        start, end = self.before[number]
        if self.after[number] == position:
            return start, end
        beyond = end + position - self.after[number] - 1
        return beyond, beyond + 1


def safe_url(url: str) -> str:
    """*url* without user, password, query and fragment, and without secrets in its path."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return redact(re.split(r"[?#]", url, maxsplit=1)[0])
    return redact(urlunsplit((parts.scheme, host, parts.path, "", "")))


def safe_headers(headers: Mapping[str, str], allowed: frozenset[str]) -> dict[str, str]:
    """Those of *headers* that may be logged, names in lower case, in order of name."""
    kept = {}
    for name, value in headers.items():
        if name.lower() in allowed:
            kept[name.lower()] = redact(value)
    return dict(sorted(kept.items()))


# ---------------------------------------------------------------- keys in the environment

_SECRET_NAME = re.compile(r"(?:^|_)(?:(?:API)?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
# Settings that are called like secrets and hold none.
_PLAIN_VALUE = re.compile(r"(?:true|false|yes|no|none|on|off|[\d.]+|[a-z]{1,8})", re.IGNORECASE)


def is_secret(name: str, value: str) -> bool:
    """Return whether what is called *name* (a variable, an option, a part of a query) is a secret,
    going by that name.
    """
    if not value or _PLAIN_VALUE.fullmatch(value):
        return False
    plain = re.sub(r"[^A-Z0-9]+", "_", name.upper())
    return _SECRET_NAME.search(plain) is not None


_variables_seen: list[int] = []


def remember_environment() -> None:
    """Remember every value whose variable is called like a secret.

    Libraries and applications read them behind our back.
    """
    _variables_seen[:] = [len(os.environ)]
    for name, value in os.environ.items():
        if is_secret(name, value):
            remember(value)


def remember_new_variables() -> None:
    """:func:`remember_environment`, where there are more variables or fewer than at the last look.

    Applications read theirs from a file when they are first asked.
    """
    if [len(os.environ)] != _variables_seen:
        remember_environment()
