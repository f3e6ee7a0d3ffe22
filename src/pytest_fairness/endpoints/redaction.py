"""Keys: read from the environment when a call needs them, and kept out of all that is written down.

By value: every secret that was read is remembered (:func:`remember`) and cut out of logs, errors and reports wherever
it appears, also in its base64 and URL-encoded forms. By pattern: what looks like a key is cut out even if nobody
announced it. The list of secrets of a process only ever grows.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from pytest_fairness.endpoints.protocol import AttemptError, Evidence

MARK = "[redacted]"

# Shorter than this, a value is as likely a word of the text as a secret.
_SHORTEST = 6
_SHORT = 200
_forms: set[str] = set()
_by_value: list[re.Pattern[str]] = []

_PATTERN = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf|nvapi|r8|pplx|glpat|ghp|gho|ghs|github_pat|xox[abprs])[-_][A-Za-z0-9_\-]{8,}"
    r"|\bAIza[0-9A-Za-z_\-]{20,}|\bAKIA[0-9A-Z]{12,}"
    r"|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*"
)
_LABELLED = re.compile(
    r"(?i)(\b(?:authorization|proxy-authorization|x-api-key|api[-_]?key|x-goog-api-key|access[-_]?token)\b"
    r"[\"']?\s*[:=]\s*[\"']?\s*(?:bearer\s+|basic\s+)?)([^\s\"',;}&]{6,})"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)([A-Za-z0-9._~+/\-]{12,}=*)")
_USERINFO = re.compile(r"(?i)(\b[a-z][a-z0-9+.\-]*://)([^/\s@:]*(?::[^/\s@]*)?)@")

#: Headers that may be logged: nothing that carries a credential, a cookie or an account.
REQUEST_HEADERS = frozenset(
    ("accept", "accept-encoding", "content-type", "content-length", "user-agent", "host", "anthropic-version")
)
RESPONSE_HEADERS = frozenset((
    "content-type", "content-length", "content-encoding", "transfer-encoding", "date", "server", "retry-after",
    "retry-after-ms", "x-request-id", "request-id", "apim-request-id", "x-ms-region", "openai-processing-ms",
    "openai-version", "openai-model", "x-should-retry",
    *(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")),
    *(f"anthropic-ratelimit-{of}-{what}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")),
))  # fmt: skip


def remember(secret: str | None) -> None:
    """From now on, cut *secret* out of everything, in every form that it might take."""
    if not secret or len(secret.strip()) < _SHORTEST:
        return
    _forms.update(_variants(secret), _variants(secret.strip()))
    # The longest first, so that no part of a form is left standing.
    alternatives = "|".join(re.escape(form) for form in sorted(_forms, key=len, reverse=True))
    _by_value[:] = [re.compile(alternatives)]
    _redacted.cache_clear()


def _variants(secret: str) -> set[str]:
    data = secret.encode("utf-8", "surrogatepass")
    forms = {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], data.hex()}
    # Within a longer text, base64 has three alignments; the outer characters mix with the neighbours and are cut.
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + data).decode("ascii").rstrip("=")
        inner = encoded[(lead * 8 + 5) // 6 : (lead * 8 + len(data) * 8) // 6]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= _SHORTEST}


def redact(text: str) -> str:
    """*text* without secrets."""
    # Addresses and headers are the same from call to call; longer texts would only fill the memory.
    return _redacted(text) if len(text) <= _SHORT else _redacted.__wrapped__(text)


@lru_cache(maxsize=512)
def _redacted(text: str) -> str:
    text = _PATTERN.sub(MARK, redact_values(text))
    text = _BEARER.sub(rf"\g<1>{MARK}", _LABELLED.sub(rf"\g<1>{MARK}", text))
    return _USERINFO.sub(r"\g<1>", text)


def redact_values(text: str) -> str:
    """*text* without the secrets that are known by value: for verbatim bodies, which a pattern might falsify."""
    for pattern in _by_value:
        text = pattern.sub(MARK, text)
    return text


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
    kept = {name.lower(): redact(value) for name, value in headers.items() if name.lower() in allowed}
    return dict(sorted(kept.items()))


# ---------------------------------------------------------------- keys in the environment

_SECRET_NAME = re.compile(r"(?:^|_)(?:(?:API)?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
# Settings that are called like secrets and hold none.
_PLAIN_VALUE = re.compile(r"(?:true|false|yes|no|none|on|off|[\d.]+|[a-z]{1,8})", re.IGNORECASE)


def read_key(variable: str | None, endpoint: str, setting: str = "api_key_env") -> str | None:
    """The key in the environment variable *variable*; ``None`` if the endpoint needs none. *setting* names it.

    Raises AttemptError(AUTH) if the variable is not set, or holds what no header can carry.
    """
    if variable is None:
        return None
    remember(os.environ.get(variable))
    key, wrong = os.environ.get(variable, "").strip(), ""
    if not key:
        wrong = f"the environment variable {variable} is not set; export the key, or name another variable with "
        wrong += setting
    elif not (key.isascii() and key.isprintable()) or " " in key:
        wrong = f"{variable} holds a space, a line break or a character that no header can carry; set it again"
    if wrong:
        raise AttemptError(f"endpoint {endpoint!r}: {wrong}", evidence=Evidence.AUTH)
    return key


def is_secret(name: str, value: str) -> bool:
    """Whether what is called *name* (a variable, an option, a part of a query) is a secret, going by that name."""
    plain = re.sub(r"[^A-Z0-9]+", "_", name.upper())
    return bool(value) and _SECRET_NAME.search(plain) is not None and not _PLAIN_VALUE.fullmatch(value)


def remember_environment() -> None:
    """Remember every value whose variable is called like a secret: libraries read them behind our back."""
    for name, value in os.environ.items():
        if is_secret(name, value):
            remember(value)
