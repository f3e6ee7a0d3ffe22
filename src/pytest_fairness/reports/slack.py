"""What a Slack channel is sent of a session: one message of Block Kit, on a FAIL or a regression."""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pytest_fairness.endpoints.redaction import redact, remember
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import ALARMS, Finding, PairResult, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.changes import REGRESSIONS, FindingChange, counted
from pytest_fairness.reports.escaping import line, shortened, slack
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.outputs import job_address
from pytest_fairness.words import enumerated

VARIABLE = "FAIRNESS_SLACK_WEBHOOK"
#: Slack takes 50 blocks, 3,000 characters in a text and some 13,000 in all blocks together.
_MOST_FINDINGS, _LONGEST, _MOST = 20, 500, 10_000
#: Scopes of a baseline that are named, and what the gate calls the one of all personas.
_MOST_SCOPES, _OVERALL = 5, "overall"
_SECONDS = 10.0
_ADDRESS = re.compile(r"https://[\w.:-]+/[\w./-]*", re.ASCII)
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
    """What was meant for Slack goes nowhere else."""

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
        timed_out = isinstance(error.reason, TimeoutError)
        why = "Slack cannot be reached"
        if timed_out:
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
    """The message on *results*, and on what has changed since another run, if it was compared with
    one; None where no test has a FAIL and nothing has become worse.
    """
    worse = {
        change.at: change
        for change in changes or ()
        if change.change in REGRESSIONS and change.at is not None
    }
    failed = [
        at
        for at, finding in enumerate(results.findings)
        if _fails(finding, results.maker_of(at).outcome)
    ]
    reported = sorted(
        {*failed, *worse}, key=lambda at: (-results.findings[at].verdict.severity, at)
    )
    if not reported:
        return None
    head = _head(results)
    shown_facts = [slack(redact(fact)) for fact in _run_facts(results, changes)]
    job = job_address(environment)
    if _ADDRESS.fullmatch(job):
        shown_facts.append(f"<{job}|this job>")
    scores = [f"*{slack(redact(_cut(score)))}*" for score in _overall_scores(results.findings)]
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": head[:150], "emoji": False}},
        _section(" · ".join([*scores, *shown_facts])),
        {"type": "divider"},
    ]
    shown = 0
    for at in reported[:_MOST_FINDINGS]:
        block = _section(_words(results.findings[at], results.maker_of(at).nodeid, worse.get(at)))
        if len(json.dumps([*blocks, block])) > _MOST:
            break
        blocks.append(block)
        shown += 1
    if shown < len(reported):
        blocks.append(_section(f"… and {len(reported) - shown} more, in the report"))
    blocks.append(_section(_required([results.findings[at] for at in reported])))
    return {"text": head, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _head(results: RunResults) -> str:
    """How many findings of each verdict there are, and whether they are simulated or replayed."""
    head = ", ".join(f"{count} {verdict}" for verdict, count in results.counts.items() if count)
    marks = []
    if results.simulated:
        marks.append("simulated")
    if results.replayed:
        marks.append("replayed")
    if marks:
        head += f" ({', '.join(marks)})"
    return f"Fairness: {head}"


def _run_facts(results: RunResults, changes: Sequence[FindingChange] | None) -> list[str]:
    """The run, whom it asked, what that cost, and what has changed since another."""
    shown = [f"run {results.run.get('id')}"]
    if endpoints := ", ".join(map(str, results.run.get("endpoints") or ())):
        shown.append(f"endpoint {_cut(endpoints)}")
    if cost := formatting.cost_line(results.run):
        shown.append(cost)
    if changes is not None:
        shown.append(f"compared: {counted(changes)}")
    return shown


def _fails(finding: Finding, outcome: str) -> bool:
    return finding.verdict is Verdict.FAIL and outcome not in ("xfailed", "xpassed")


def _words(finding: Finding, nodeid: str, change: FindingChange | None) -> str:
    since = ""
    if change is not None:
        since = f" ({change.change}{f': {change.why}' if change.why else ''})"
    marks = [
        mark
        for mark in (finding.model_endpoint, "simulated" if finding.simulated else None)
        if mark
    ]
    about = ""
    if marks:
        about = f" [{', '.join(dict.fromkeys(marks))}]"
    sentence = formatting.without_verdict(finding.sentence, finding.verdict)
    said = slack(redact(_cut(f"{about}{since}: {sentence}")))
    fallen = "".join(
        f"\n• {slack(redact(_cut(line)))}"
        for line in formatting.regressions(finding)[:_MOST_SCOPES]
    )
    return f"*{finding.verdict}*{said}{fallen}\n{slack(redact(_cut(nodeid or finding.test_id)))}"


def _overall_scores(findings: Sequence[Finding]) -> Iterator[str]:
    """``Overall letter_score: 89.20 (baseline: 94.20)`` of each finding that was held to a
    baseline.
    """
    for finding in findings:
        for pair in finding.pairs if finding.assertion == "baseline" else ():
            now, approved = (pair.statistics.get(name) for name in ("now", "approved"))
            if (
                pair.metric == _OVERALL
                and isinstance(now, (int, float))
                and isinstance(approved, (int, float))
            ):
                was, is_now = (formatting.value(score, finding) for score in (approved, now))
                yield f"Overall {finding.outcome}: {is_now} (baseline: {was})"


def _required(reported: Sequence[Finding]) -> str:
    """Return what somebody has to do about the findings *reported*: where to look, and what ends
    it.
    """
    fallen = {
        pair.metric
        for finding in reported
        if finding.assertion == "baseline"
        for pair in finding.pairs
        if _alarms(pair)
    }
    classes = {
        finding.protected_class
        for finding in reported
        if finding.assertion != "baseline" and finding.protected_class
    }
    about = sorted((fallen - {_OVERALL}) | classes)[:_MOST_SCOPES]
    where = ""
    if about:
        where = f" for what treats people unlike by {enumerated(about)}"
    ways = ["mend and test again, entering what is done in mitigations.yaml"]
    if any(finding.verdict is Verdict.FLAG for finding in reported):
        ways.append("document why a FLAG is accepted in justifications.yaml")
    if fallen:
        ways.append("have the new scores approved as a baseline, with a justification")
    text = f"review the prompts, templates and model{where}; then {', or '.join(ways)}"
    return f"*Action required:* {slack(redact(_cut(text)))}"


def _alarms(pair: PairResult) -> bool:
    return pair.verdict in ALARMS


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _cut(text: str) -> str:
    return shortened(line(text), _LONGEST)
