"""What a complete response that is no success says: who is at fault, whether it cost anything, how long to wait."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.endpoints.redaction import redact

_THROTTLED = (429, 503, 529)
# 405 and redirects are the wrong address; like a wrong key or an unknown model they will not mend themselves.
_AUTH = (401, 402, 403, 404, 405)
_UNKNOWN_COST = (408, 409, 425)
# A 429 that no waiting mends.
_QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit|exceeded your current quota|billing_not_active", re.IGNORECASE
)
# A 400 by which a provider's content policy refuses to answer: an answer of the system under test.
_POLICY = re.compile(
    r"content_policy_violation|content_filter|ResponsibleAIPolicyViolation|content management policy|safety system",
    re.IGNORECASE,
)
_LONGEST_SAID = 300


def evidence_of(status: int, body: str) -> Evidence:
    """The evidence of a complete response with *status* (not a 2xx) and *body*."""
    if status in _THROTTLED:
        return Evidence.AUTH if status == 429 and _QUOTA.search(body) else Evidence.THROTTLED
    if status in _AUTH or 300 <= status < 400:
        return Evidence.AUTH
    if status >= 500 or status in _UNKNOWN_COST:
        return Evidence.SERVER
    return Evidence.REJECTED


def policy_refusal(status: int, body: str) -> str | None:
    """The provider's own word if a content policy refused the request, else ``None``."""
    if status not in (400, 422):
        return None
    match = _POLICY.search(body)
    return match[0] if match else None


def what_was_said(status: int, body: str) -> str:
    """One redacted line on a failed response: the provider's message if it gave one."""
    return f"HTTP {status}: {message_of(body)}" if body.strip() else f"HTTP {status} without a body"


def message_of(body: str) -> str:
    """The message in an error body, or the start of the body, on one line, redacted."""
    said: Any = None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        error = data.get("error", data.get("message", data.get("detail")))
        said = error.get("message", error.get("type")) if isinstance(error, dict) else error
    text = said if isinstance(said, str) and said.strip() else body
    line = " ".join(redact(text).split())
    # Model output and server output are hostile input: nothing that a terminal would obey.
    line = "".join(character if character.isprintable() else "�" for character in line)
    return line if len(line) <= _LONGEST_SAID else line[: _LONGEST_SAID - 1] + "…"


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait as the server asked, in any of its forms; ``None`` for none, or one that makes no sense."""
    lowered = {name.lower(): value for name, value in headers.items()}
    milliseconds = _seconds(lowered.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000.0
    given = lowered.get("retry-after")
    if given is None:
        return None
    seconds = _seconds(given)
    if seconds is not None:
        return seconds
    try:
        until = email.utils.parsedate_to_datetime(given).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, until - (time.time() if now is None else now))


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
