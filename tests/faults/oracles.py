"""What must hold after every fault, whatever the fault was: seven oracles, each a function, and all
of them together.

A :class:`Case` is what somebody outside saw of a session (or of an engine): its project folder, the
run's folder, what the other side received, what was printed, how it ended and how long it took.
Every oracle raises AssertionError with what it found; none reads anything but files, the other
side's ledger and the output.

The ledger is kept by the prompt: it is the marker that every route carries to the other side, and
each cell of the designs used here has a text of its own.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.runs.reader import reading
from tests.support.runs import records
from tests.support.servers import Received

MARK = "[redacted]"
#: Seconds that a session may take beyond what it declared: loaded machines are slow, and that is no
#: fault.
GRACE = 20.0


@dataclass(frozen=True, kw_only=True)
class Called:
    """A request in the ledger of something that is no server: an application that counts its calls."""

    prompt: str
    billed: bool = True
    answer: bytes = b""
    whole: bool = True
    tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One session, or several on one run, as seen from outside.

    The files of *project* are searched; *run* is None where the session ended before it had a
    folder. *ledger*: what the other side received, in order; *planned*: how many trials there
    should be, None to read it from the log's designs. *code* is None where an engine was asked, not
    a session. *price* and *cap* in US dollars. *secrets* may stand nowhere, *prompts* in the run's
    folder alone, anything in files that were *given*. *repeats*: how many billed requests a trial's
    turn may have, more than 1 where a policy for paying again was chosen.
    """

    project: Path
    run: Path | None
    ledger: Sequence[Called | Received] = ()
    planned: int | None = None
    output: str = ""
    code: int | None = None
    seconds: float = 0.0
    deadline: float = 10.0
    price: Price | None = None
    cap: float | None = None
    secrets: Sequence[str] = ()
    prompts: Sequence[str] = ()
    given: frozenset[Path] = frozenset()
    repeats: int = 1
    records: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.run is not None and not self.records:
            self.records.extend(records(self.run))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The log's records of one type."""
        return [record for record in self.records if record.get("type") == kind]


def check(case: Case, *, oracles: str = "1234567") -> None:
    """All oracles on *case*; *oracles* leaves some out, where a test says why."""
    for number in oracles:
        ORACLES[number](case)


# ---------------------------------------------------------------- O1


def every_byte_is_logged(case: Case) -> None:
    """O1: what the other side sent of each answer is in the log, byte for byte, secrets replaced by
    a mark.

    An answer that broke off, or that we stopped reading (deadline, size), is there as far as it
    came: a beginning of what was sent, and no less than all but the last few bytes where the log
    does not say that it was cut at the limit.
    """
    sent: dict[str, list[Called | Received]] = defaultdict(list)
    for request in case.ledger:
        if request.answer:
            sent[request.prompt].append(request)
    bodies: dict[str, list[str]] = defaultdict(list)
    for attempt in case.of("attempt"):
        wire = attempt["wire"]
        if wire is not None and wire["status_code"] is not None:
            bodies[_prompt_of(wire["request_body"])].append(wire["response_body"])
    for prompt, requests in sent.items():
        there = sorted(bodies[prompt])
        assert len(there) >= len(requests), f"O1: an answer to {prompt[:60]!r} is not in the log"
        for request in requests:
            expected = request.answer.decode("utf-8", "surrogateescape")
            for secret in case.secrets:
                expected = expected.replace(secret, MARK)
            assert any(_logged_as(body, expected, request.whole) for body in there), (
                f"O1: of the answer to {prompt[:60]!r} the log has other bytes: {expected[:80]!r}, "
                f"{there[0][:80]!r}"
            )


def _logged_as(body: str, sent: str, whole: bool) -> bool:
    if len(body) >= 1_000_000:
        return body == sent[: len(body)]
    if whole:
        return body == sent
    # Sent is not arrived: a byte or two may have been on the way when the connection went.
    return bool(body) and sent.startswith(body) and len(body) >= len(sent) - 16


def _prompt_of(request_body: str) -> str:
    content = json.loads(request_body)["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


# ---------------------------------------------------------------- O2


def nothing_paid_twice(case: Case) -> None:
    """O2: no prompt was billed more often than it has trials (times ``repeats``), and none asked
    without a record.

    What was asked again is a numbered attempt in the log; attempts of one trial have numbers of
    their own.
    """
    keys: dict[str, set[str]] = defaultdict(set)
    for record in case.of("trial"):
        for prompt in {turn["content"] for turn in record["messages"] if turn["role"] == "user"}:
            keys[prompt].add(record["key"])
    for attempt in case.of("attempt"):  # of a trial that never ended, too
        if attempt["wire"] is not None:
            keys[_prompt_of(attempt["wire"]["request_body"])].add(attempt["key"])
    empty = Counter(  # an empty answer is asked once more
        attempt["key"]
        for attempt in case.of("attempt")
        if attempt["status"] == "empty" and attempt["wire"] is not None
    )
    billed = Counter(request.prompt for request in case.ledger if request.billed)
    for prompt, count in billed.items():
        again = sum(empty[key] > 0 for key in keys[prompt])
        assert count <= max(1, len(keys[prompt])) * case.repeats + again, (
            f"O2: {prompt[:60]!r} was billed {count} times"
        )
    attempts = [(record["key"], record["attempt"]) for record in case.of("attempt")]
    again = [pair for pair, count in Counter(attempts).items() if count > 1]
    assert not again, f"O2: two attempts have one number: {again[:3]}"
    announced = {(record["key"], record["attempt"]) for record in case.of("sent")}
    known = announced | set(attempts)
    assert len(case.ledger) <= len(known), (
        f"O2: {len(case.ledger)} requests arrived, the log knows of {len(known)}: some left "
        "without a record"
    )


# ---------------------------------------------------------------- O3


def money_is_accounted_for(case: Case) -> None:
    """O3: the log's cost is at least what the other side bills for it, and no more than the cap;
    never negative.
    """
    costs = [attempt["cost"] for attempt in case.of("attempt") if attempt["cost"] is not None]
    assert all(cost >= 0 for cost in costs), f"O3: a negative cost: {min(costs)}"
    if case.price is None:
        return
    lost = _lost(case)
    bill = 0.0
    for request in case.ledger:
        if request.billed and request.prompt not in lost:
            tokens_in, tokens_out = request.tokens
            bill += case.price.cost(input_tokens=tokens_in, output_tokens=tokens_out)
    spent = sum(costs)
    assert spent >= bill - 1e-9, f"O3: the log has ${spent:.9f}, the other side bills ${bill:.9f}"
    if case.cap is not None:
        assert spent <= case.cap + 1e-9, f"O3: ${spent:.6f} is more than the cap of ${case.cap:.6f}"
        assert bill <= case.cap + 1e-9, f"O3: ${bill:.6f} was billed under a cap of ${case.cap:.6f}"


def _lost(case: Case) -> set[str]:
    """Prompts that were sent by a process that died with them: their reservations stand in the
    run's account.
    """
    ended = {(record["key"], record["attempt"]) for record in case.of("attempt")}
    lost = {
        record["key"]
        for record in case.of("sent")
        if (record["key"], record["attempt"]) not in ended
    }
    return {
        turn["content"]
        for record in case.of("trial")
        if record["key"] in lost
        for turn in record["messages"]
        if turn["role"] == "user"
    }


# ---------------------------------------------------------------- O4


def canaries_stay_home(case: Case) -> None:
    """O4: no secret, in any of its spellings and in whatever case, in any file of the project or in
    the output; no prompt outside the runs.

    The policy: keys, headers that are not on the allow-list and passwords in addresses appear
    nowhere. Prompts appear in the folders of runs (log and report), and nowhere else: not on the
    terminal, in JUnit's file, in baselines or in pytest's cache.
    """
    spellings = [(secret, form) for secret in case.secrets for form in _spellings(secret)]
    for path, data in _files(case):
        lowered = data.lower()
        for secret, form in spellings:
            assert form not in lowered, f"O4: the canary {secret[:6]}… reached {path}"
        home = case.run is not None and path.is_relative_to(case.run.parent)
        for prompt in () if home else case.prompts:
            assert prompt.encode() not in data, f"O4: the prompt {prompt[:40]!r} reached {path}"
    printed = case.output.encode("utf-8", "surrogateescape")
    for secret, form in spellings:
        assert form not in printed.lower(), f"O4: the canary {secret[:6]}… was printed"
    for prompt in case.prompts:
        assert prompt.encode() not in printed, f"O4: the prompt {prompt[:40]!r} was printed"


def _files(case: Case) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(case.project.rglob("*")):
        if (
            path.is_file()
            and not path.is_symlink()
            and path not in case.given
            and path.suffix != ".pyc"
        ):
            yield path, path.read_bytes()


def _spellings(secret: str) -> set[bytes]:
    data = secret.encode()
    odd = {letter for letter in secret if not letter.isalnum() and letter not in "-_."}

    def spelt(pattern: str) -> bytes:
        return "".join(
            pattern.format(ord(letter)) if letter in odd else letter for letter in secret
        ).encode()

    forms = {
        data,
        quote(secret, safe="").encode(),
        base64.b64encode(data).rstrip(b"=")[:-1],
        binascii.hexlify(data),
        json.dumps(secret)[1:-1].encode(),
        data.replace(b"/", b"\\/"),
        *map(spelt, ("\\u{:04x}", "&#{};", "&#x{:x};", "%{:02x}")),
    }
    return {form.lower() for form in forms}


# ---------------------------------------------------------------- O5


#: The stage of a design, at the end of its part.
STAGE = re.compile(r"(\d+) [a-z ]+$")


def all_recorded_or_red(case: Case) -> None:
    """O5: every planned trial has its outcome in the log and every collected test its place in
    findings.json.

    Where not, the session's exit status is something else than 0. Of a stage that no look came to,
    the finding says that it stopped before.
    """
    planned = case.planned if case.planned is not None else _planned(case)
    uses = {(record["key"], record["cell"]["id"]) for record in case.of("use")}
    recorded = len({record["key"] for record in case.of("trial")}) + len(uses)
    findings = None if case.run is None else case.run / "findings.json"
    missing = (
        json.loads(findings.read_text("utf-8")).get("missing", [])
        if findings and findings.is_file()
        else []
    )
    if case.code is not None and (recorded < planned or missing or case.run is None):
        assert case.code != 0, (
            f"O5: {recorded} of {planned} trials recorded, missing tests {missing}: and exit 0"
        )
    assert recorded <= planned or case.planned is None, (
        f"O5: {recorded} trials recorded, {planned} planned"
    )


def _planned(case: Case) -> int:
    """Trials that the designs in the log come to: a sample counts once, however many processes
    noted it, and a stage is the beginning of the next.
    """
    stopped = _stopped(case)
    largest: dict[str, dict[str, Any]] = {}
    for record in case.of("design"):
        stage = STAGE.search(record["part"])
        if stage and int(stage[1]) > stopped.get(record["test"], int(stage[1])):
            continue
        part = STAGE.sub("", record["part"])
        sample = [record["test"], record["tier"], part, record["parameters"]]
        if not stage:
            sample.append(record["cell_ids"])
        other = largest.setdefault(json.dumps(sample), record)
        if other["cells"] < record["cells"]:
            largest[json.dumps(sample)] = record
    shared: dict[str, int] = {}
    for record in largest.values():  # tests that ask the same thing share its trials
        trials = json.dumps(
            [record["prompts"], record["parameters"], record["identity"], record["part"]]
        )
        shared[trials] = max(shared.get(trials, 0), record["cells"] * record["repetitions"])
    return sum(shared.values())


def _stopped(case: Case) -> dict[str, int]:
    """The size of the last look of each test whose finding says that it stopped there."""
    looks = {}
    findings = case.run / "findings.json" if case.run else None
    if findings and findings.is_file():
        for finding in json.loads(findings.read_text("utf-8"))["findings"]:
            said = finding["details"].get("looks") or {}
            if said.get("stopped"):
                assert "stopped" in finding["sentence"]
                looks[finding["nodeid"]] = said["made"][-1]["names"]
    return looks


# ---------------------------------------------------------------- O6


def ended_in_time(case: Case) -> None:
    """O6: the whole took no longer than its declared deadline, and a grace that is generous to slow
    machines.
    """
    assert case.seconds <= case.deadline + GRACE, (
        f"O6: {case.seconds:.1f} s, where {case.deadline:.1f} s were declared"
    )


# ---------------------------------------------------------------- O7


def log_verifies(case: Case) -> None:
    """O7, first half: every record of every log is intact, chained to the one before, and anchored
    in the manifest.
    """
    if case.run is not None and (case.run / "run.sqlite3").exists():
        with reading(case.run):
            pass


def statistics(run: Path) -> list[dict[str, Any]]:
    """What the newest session on *run* concluded: its findings without what tells one session from
    another.
    """
    left_out = ("replayed", "notes", "explanation", "nodeid", "test_id", "test_module", "details")
    found = json.loads((run / "findings.json").read_text(encoding="utf-8"))["findings"]
    return [
        {key: value for key, value in finding.items() if key not in left_out} for finding in found
    ]


def same_statistics(run: Path, other: Path) -> None:
    """O7, second half: *run* (resumed, replayed, merged) comes to the findings of *other*
    (undisturbed), to the bit.
    """
    mine, theirs = statistics(run), statistics(other)
    assert mine, "O7: no finding to compare"
    assert len(mine) == len(theirs), f"O7: {len(mine)} findings, {len(theirs)} undisturbed"
    for one, two in zip(mine, theirs, strict=True):
        differing = sorted(key for key in {*one, *two} if one.get(key) != two.get(key))
        values = [
            f"{key}: {str(one.get(key))[:120]} ≠ {str(two.get(key))[:120]}" for key in differing
        ]
        assert not values, f"O7: the findings differ in {'; '.join(values)}"


ORACLES = {
    "1": every_byte_is_logged,
    "2": nothing_paid_twice,
    "3": money_is_accounted_for,
    "4": canaries_stay_home,
    "5": all_recorded_or_red,
    "6": ended_in_time,
    "7": log_verifies,
}


def given_files(project: Path) -> frozenset[Path]:
    """The files that are there before a session: a Case may hold anything in them."""
    return frozenset(path for path in project.rglob("*") if path.is_file())


def newest_run(project: Path) -> Path | None:
    """The folder of the newest run under *project*, if there is one."""
    return max((project / ".fairness" / "runs").glob("2*"), default=None)
