"""From a line of results to the end of an attempt: whose it is, what it says, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_fairness.endpoints.batch_protocol import Result
from pytest_fairness.endpoints.http import make_wire
from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.engine.attempt import Ended, failed, replied
from pytest_fairness.model import Status

BATCHED = "batched"


def by_request(results: Iterable[Result], known: Iterable[str]) -> tuple[dict[str, list[Result]], list[Result]]:
    """The results of each request of *known*, and those that belong to none of them."""
    found: dict[str, list[Result]] = {custom_id: [] for custom_id in known}
    strays = []
    for result in results:
        if result.custom_id in found:
            same = found[result.custom_id]
            if all(result.line != other.line for other in same):  # said twice alike is said once
                same.append(result)
        else:
            strays.append(result)
    return found, strays


def ended(results: Sequence[Result], *, request: bytes, url: str, status: str) -> Ended:
    """How the attempt with the line *request* ended, by its *results*; *status* is that of the whole batch."""
    lines = "\n".join(result.line for result in results)
    wire = make_wire(
        url=url,
        request_body=request,
        request_headers={},
        status_code=results[0].status_code if len(results) == 1 else None,
        response_headers={},
        response_body=lines.encode("utf-8", "surrogateescape"),
    )
    if not results:
        text = f"the batch ended ({status}) and its results say nothing of this request: perhaps paid for"
        return failed(Evidence.NO_RESPONSE, text, wire=wire, flags=(BATCHED, "result_missing"))
    if len(results) > 1:
        return Ended(
            status=Status.MALFORMED,
            error=f"the provider gave {len(results)} different results for this request, and none is the right one",
            flags=(BATCHED, "result_repeated"),
            wire=wire,
        )
    result = results[0]
    flags = (BATCHED,) if result.flag is None else (BATCHED, result.flag)
    if result.error is not None:
        error = result.error
        return failed(
            error.evidence, str(error), wire=wire, retry_after=error.retry_after, flags=flags, free=result.free
        )
    if result.reply is None:
        return failed(Evidence.NO_RESPONSE, "the result holds nothing", wire=wire, flags=flags)
    done = replied(result.reply)
    done.wire, done.flags, done.free = wire, (*done.flags, *flags), result.free
    return done
