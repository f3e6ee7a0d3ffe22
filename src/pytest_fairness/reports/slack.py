"""The document as a message of Slack's Block Kit; and what a channel is sent of a session: one
message, on a FAIL or a regression.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any
from urllib.parse import urlsplit

from pytest_fairness.endpoints.redaction import redact, remember
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.changes import FindingChange
from pytest_fairness.reports.digest import MOST_OF_A_CHANNEL, channel_page, fitting
from pytest_fairness.reports.escaping import line, shortened, slack, web_address
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.outputs import job_address
from pytest_fairness.reports.overview import by_verdict
from pytest_fairness.reports.sections import (
    Counts,
    Facts,
    Notes,
    Page,
    Part,
    Section,
    Statements,
)

VARIABLE = "FAIRNESS_SLACK_WEBHOOK"
#: Slack takes 50 blocks, 3,000 characters in a text and some 13,000 in all blocks together.
_LONGEST, _MOST = 500, 11_000
_SECONDS = 10.0
_LOCAL = ("127.0.0.1", "localhost", "::1")


class NotSentError(FairnessError):
    """The message did not reach Slack; the text does not say where it was sent."""


def post(
    results: RunResults, changes: Sequence[FindingChange] | None, environment: Mapping[str, str]
) -> None:
    """Send :func:`message`, if there is one, to the webhook that the *environment* names. Raises
    NotSentError.
    """
    body = message(results, changes, environment)
    if body is None:
        return
    url = environment.get(VARIABLE, "").strip()
    if not url:
        raise NotSentError(f"{VARIABLE} is not set, so nothing was sent to Slack")
    remember(url)
    try:
        parts = urlsplit(url)
        remember(parts.path)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)
    except ValueError:
        safe = False
    if not safe:
        raise NotSentError(f"{VARIABLE} is no https address, so nothing was sent to Slack")
    _send(url, json.dumps(body).encode("ascii"))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirection: a message for Slack goes nowhere else."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _send(url: str, body: bytes) -> None:
    request = urllib.request.Request(  # noqa: S310 - checked
        url, data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    why = None
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as answer:
            answer.read(100)
    except urllib.error.HTTPError as error:
        why = f"Slack answered with status {error.code}"
        error.close()
    except TimeoutError:
        why = f"Slack gave no answer within {_SECONDS:g} s"
    except urllib.error.URLError as error:
        why = "Slack cannot be reached"
        if isinstance(error.reason, TimeoutError):
            why = f"Slack gave no answer within {_SECONDS:g} s"
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = f"Slack cannot be reached ({type(error).__name__})"
    if why is not None:  # outside the except block: what was raised may name the address
        raise NotSentError(why)


# ---------------------------------------------------------------- the message


def message(
    results: RunResults,
    changes: Sequence[FindingChange] | None,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Any] | None:
    """The message on the alarms of *results*, and on what has changed since another run, if it was
    compared with one; None where there is nothing to send.
    """
    job = web_address(job_address(environment))

    def body(most: int) -> dict[str, Any] | None:
        page = channel_page(results, changes, most)
        if page is None:
            return None
        return page_message(page, job=job)

    return fitting(body, MOST_OF_A_CHANNEL, _fits)


def _fits(body: Mapping[str, Any] | None) -> bool:
    return body is None or len(json.dumps(body["blocks"])) <= _MOST


def page_message(page: Page, *, job: str = "") -> dict[str, Any]:
    """Return *page* as a message: its title, its first section with a link to the *job*, and below
    a line the other ones.
    """
    title = line(page.title)[:150]
    first, *others = page.sections
    opening = _chips(first)
    if job:
        opening.append(f"<{job}|this job>")
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
        _block(" · ".join(opening)),
        {"type": "divider"},
    ]
    for section in (Section(heading="", parts=first.parts), *others):
        blocks += map(_block, _section(section))
    return {"text": title, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _chips(section: Section) -> list[str]:
    chips = list(map(_text, section.chips))
    if section.sentence:
        return [f"*{_text(section.sentence)}*", *chips]
    return chips


def _block(text: str) -> dict[str, Any]:
    mrkdwn = {"type": "mrkdwn", "text": text, "verbatim": True}
    return {"type": "section", "text": mrkdwn}


def _text(text: str) -> str:
    return slack(redact(shortened(line(text), _LONGEST)))


# ---------------------------------------------------------------- parts


@singledispatch
def texts_of(_part: Part) -> list[str]:
    """Return the texts of a part, a block each; none for what a channel has no room for."""
    return []


@texts_of.register(str)
def _paragraph(part: str) -> list[str]:
    return [_text(part)]


@texts_of.register(Statements)
def _statements(part: Statements) -> list[str]:
    texts = list(map(_statement, part.items))
    if part.more:
        texts.append(_text(part.more))
    return texts


def _statement(item: Section) -> str:
    """Return ``*VERDICT* [marks]: sentence``, what stands beside it, and the test, a line each."""
    marks = ""
    if item.marks:
        marks = f" [{', '.join(item.marks)}]"
    lines = [f"*{item.verdict}*{_text(f'{marks}: {item.sentence}')}", *map(_bullet, item.notes)]
    if item.about:
        lines.append(_text(item.about))
    return "\n".join(lines)


def _bullet(note: str) -> str:
    return f"• {_text(note)}"


@texts_of.register(Notes)
def _notes(part: Notes) -> list[str]:
    return ["\n".join(map(_bullet, part.items))]


@texts_of.register(Counts)
def _counts(part: Counts) -> list[str]:
    return [by_verdict(dict(part.rows))]


@texts_of.register(Facts)
def _facts(part: Facts) -> list[str]:
    return ["\n".join(f"{_text(name)}: {_text(value)}" for name, value in part.rows)]


@texts_of.register(Section)
def _section(part: Section) -> list[str]:
    texts = []
    for inner in part.parts:
        texts += texts_of(inner)
    if part.heading:
        first, *others = texts or [""]
        return [f"*{_text(part.heading)}:* {first}", *others]
    return texts
