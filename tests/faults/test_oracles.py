"""The oracles can fail: each of them sees the thing that it is there to see."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import StoreError
from tests.support.runs import records, rewrite
from tests.support.servers import Fault

from .conftest import KEY, PRICE, Ask
from .oracles import Called, Case, check, same_statistics


@pytest.fixture
def case(ask: Ask) -> Case:
    """A case on which all is well: three trials, one of them throttled first."""
    requested = ask("direct", Fault(status=429, headers={"Retry-After": "0"}), count=3)
    check(requested.case)
    return requested.case


def edited(case: Case, change: Callable[[dict[str, Any]], None]) -> Case:
    """The case with *change* made to the records of its attempts."""
    records = json.loads(json.dumps(case.records))
    for record in records:
        if record["type"] == "attempt":
            change(record)
    return dataclasses.replace(case, records=records)


def lost_byte(record: dict[str, Any]) -> None:
    record["wire"]["response_body"] = record["wire"]["response_body"][:-1]


def without_attempts(case: Case) -> Case:
    return dataclasses.replace(
        case, records=[record for record in case.records if record["type"] != "attempt"]
    )


def billed_again(case: Case) -> Case:
    return dataclasses.replace(case, ledger=[*case.ledger, case.ledger[-1]])


def sent_unknown(case: Case) -> Case:
    return dataclasses.replace(case, ledger=[*case.ledger, *[Called(prompt="?", billed=False)] * 2])


def numbered_twice(case: Case) -> Case:
    return dataclasses.replace(case, records=[*case.records, case.of("attempt")[0]])


SEEN: dict[str, tuple[str, Callable[[Case], Case]]] = {
    "a byte is missing": ("O1", lambda case: edited(case, lost_byte)),
    "an answer is missing": ("O1", without_attempts),
    "billed twice": ("O2", billed_again),
    "sent unknown to the log": ("O2", sent_unknown),
    "one number for two attempts": ("O2", numbered_twice),
    "half the price": (
        "O3",
        lambda case: edited(case, lambda one: one.update(cost=(one["cost"] or 0) / 2)),
    ),
    "less than nothing": ("O3", lambda case: edited(case, lambda one: one.update(cost=-0.1))),
    "beyond the cap": ("O3", lambda case: dataclasses.replace(case, cap=1e-6)),
    "a green session with a hole": (
        "O5",
        lambda case: dataclasses.replace(case, planned=4, code=0),
    ),
    "a green session without a run": (
        "O5",
        lambda case: dataclasses.replace(case, run=None, code=0),
    ),
    "too late": ("O6", lambda case: dataclasses.replace(case, seconds=100.0)),
}


def test_an_oracle_sees(case: Case) -> None:
    """And says which one it is."""
    for oracle, spoil in SEEN.values():
        with pytest.raises(AssertionError, match=oracle):
            check(spoil(case), oracles=oracle[1])


def test_keys_and_prompts_are_seen_in_any_file_and_spelling(case: Case) -> None:
    """Keys also where prompts may stand, which is the log alone; files that were there before are
    none of its business. The terminal is a file that others read."""
    forms = [KEY.encode(), base64.b64encode(KEY.encode()), KEY.encode().hex().encode()]
    for place in (
        "junit.xml",
        ".pytest_cache/v/x",
        ".fairness/runs/report.html",
        "baselines/b.json",
    ):
        path = case.project / place
        path.parent.mkdir(parents=True, exist_ok=True)
        for form in forms:
            path.write_bytes(b"..." + form + b"...")
            with pytest.raises(AssertionError, match="O4"):
                check(case, oracles="4")
            check(dataclasses.replace(case, given=frozenset({path})), oracles="4")
        path.unlink()
    case = dataclasses.replace(case, prompts=("candidate 1 of",))
    check(case, oracles="4")
    for output in (f"key {KEY}", "candidate 1 of"):
        with pytest.raises(AssertionError, match="O4"):
            check(dataclasses.replace(case, output=output), oracles="4")
    case.project.joinpath("cache").write_text("Write of candidate 1 of it")
    with pytest.raises(AssertionError, match="O4"):
        check(case, oracles="4")


def test_a_log_that_was_changed_does_not_verify(case: Case) -> None:
    """One letter is enough."""
    assert case.run is not None
    number = next(at for at, record in enumerate(records(case.run), 1) if record["type"] == "trial")
    rewrite(case.run, number, "answered", "refused_")
    with pytest.raises(StoreError, match="its hash does not fit"):
        check(case, oracles="7")


def test_findings_that_differ_are_seen(tmp_path: Path) -> None:
    """To the last bit; what tells one session from another does not count."""
    finding = {"verdict": "PASS", "p_value": 0.5, "replayed": False, "nodeid": "a"}
    for name, changes in (
        ("one", {}),
        ("two", {"replayed": True, "nodeid": "b"}),
        ("three", {"p_value": 0.5 + 2**-53}),
    ):
        tmp_path.joinpath(name).mkdir()
        tmp_path.joinpath(name, "findings.json").write_text(
            json.dumps({"findings": [finding | changes]})
        )
    same_statistics(tmp_path / "one", tmp_path / "two")
    with pytest.raises(AssertionError, match="O7: the findings differ in p_value"):
        same_statistics(tmp_path / "one", tmp_path / "three")


def test_what_is_allowed_is_not_held_against_anybody(case: Case) -> None:
    """A policy of paying again allows a second bill; a red session may have a hole."""
    attempt = case.of("attempt")[-1] | {"attempt": 9}
    twice = dataclasses.replace(billed_again(case), records=[*case.records, attempt])
    with pytest.raises(AssertionError, match="O2"):
        check(twice, oracles="2")
    check(dataclasses.replace(twice, repeats=2), oracles="2")
    check(dataclasses.replace(case, planned=4, code=1), oracles="5")
    assert case.price == PRICE
