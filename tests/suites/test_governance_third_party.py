"""THRD: who answered, under which fingerprint, with which parameters; and canary prompts that are
asked again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.suites.governance import third_party
from pytest_fairness.suites.governance.canary import (
    CanaryReplies,
    CanaryReply,
    answer_in,
    canary_finding,
    canary_prompts,
    canary_section,
    normalised,
    read_canary,
    reference_replies,
    write_canary,
)
from pytest_fairness.suites.governance.third_party import (
    ServiceInRun,
    ServiceLog,
    ThirdPartyOptions,
    configured_models,
    fingerprint_finding,
    model_finding,
    parameter_finding,
    service_logs,
    services_of,
)
from tests.conftest import MODES
from tests.support.servers import Fault, ModelServer, openai_body

from ..pytest_layer.conftest import GRID, MODELS
from ..reports.factories import HOSTILE
from .lives import Life, LivedProject, Sessions, lived
from .past_project import SUITE, past_of, past_run, save, scored

OPTIONS = ThirdPartyOptions()


def service(number: int, asked: str | None = "gpt-4o", **changes: Any) -> ServiceInRun:
    answered = changes.pop("answered", {"gpt-4o-2024-05-13": 80})
    return ServiceInRun(
        run=f"2026-05-{number:02}-001", folder=Path("/nowhere"), asked=asked, answered=answered,
        **{"type": "openai", "address": "https://api.openai.com/v1", "simulated": False, **changes},
    )  # fmt: skip


NEW = {"gpt-4o-2024-08-06": 80}


@pytest.mark.parametrize(
    ("runs", "options", "verdict", "words"),
    [
        ((service(1),), {}, Verdict.PASS, "gpt-4o-2024-05-13 answered in run 2026-05-01-001."),
        ((service(1), service(2)), {}, Verdict.PASS, "as in 1 run before"),
        ((service(1), service(2, answered=NEW)), {}, Verdict.FLAG, "gpt-4o-2024-05-13 did in run 2026-05-01-001"),
        ((service(1), service(2, answered=NEW)), {"gpt": ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06")}, Verdict.PASS,
         "as declared"),
        ((service(1), service(2, answered=NEW)), {"gpt": ("gpt-4o-2024-05-13",)}, Verdict.FAIL, "is declared"),
        ((service(1, answered={"gpt-4o-mini": 3, "gpt-4o": 77}),), {}, Verdict.FAIL,
         "gpt-4o-mini answered 3 of 80 trials of run 2026-05-01-001, where gpt-4o is declared"),
        ((service(1, answered={"gpt-4o": 40, **NEW}),), {}, Verdict.FLAG, "the version has changed"),
        ((service(1, asked=None, answered={}),), {}, Verdict.INCONCLUSIVE, "no reply says which model gave it"),
        ((service(1, asked=None),), {}, Verdict.INCONCLUSIVE, "nobody has declared which model may"),
        ((service(1, asked=None),), {"gpt": ("gpt-4o",)}, Verdict.PASS, "answered in run"),
        ((service(1, asked=None, simulated=True, answered={"simulated-1": 9}),), {}, Verdict.PASS, "simulated-1"),
        ((service(1, asked="gpt-4"), service(2)), {}, Verdict.PASS, "as in 1 run before"),
    ],
)  # fmt: skip
def test_the_model_that_answers(
    runs: tuple[ServiceInRun, ...],
    options: dict[str, tuple[str, ...]],
    verdict: Verdict,
    words: str,
) -> None:
    """FAIL for another than declared, FLAG for another version that nobody declared; what is not
    said is not known.
    """
    finding = model_finding("gpt", runs, ThirdPartyOptions(declared=options))
    assert finding.verdict is verdict, finding.sentence
    assert words in finding.sentence
    assert finding.reason is (Reason.UNRECORDED if verdict is Verdict.INCONCLUSIVE else None)
    assert finding.simulated == runs[0].simulated


def test_what_endpoints_yaml_says_is_declared() -> None:
    """Another address or model asked for is a note, as is what nobody has asked yet."""
    runs = (service(1, asked="gpt-4", address="https://a.example"), service(2))
    notes = model_finding("gpt", runs, OPTIONS, "gpt-5").notes
    assert "asked for gpt-4o since run 2026-05-02-001, for gpt-4 before" in notes
    assert (
        "asked at https://api.openai.com/v1 since run 2026-05-02-001, at https://a.example before"
        in notes
    )
    assert any("endpoints.yaml asks for gpt-5 now" in note for note in notes)


@pytest.mark.parametrize(
    ("answered", "configured", "notes"),
    [({}, "gpt-4o", 0), ({}, None, 0), ({}, "gpt-5", 1)],
)
def test_another_model_in_endpoints_yaml_is_noted(
    answered: dict[str, int], configured: str | None, notes: int
) -> None:
    finding = model_finding("gpt", (service(1, answered=answered),), OPTIONS, configured)
    assert len(finding.notes) == notes


def test_models_that_are_configured(tmp_path: Path) -> None:
    """Entries without a model, as functions, and files without entries name none."""
    path = tmp_path / "endpoints.yaml"
    assert configured_models(path) == {}
    path.write_text("endpoints: [{name: a, model: m1}, {name: f, type: function}]", "utf-8")
    assert configured_models(path) == {"a": "m1"}
    for text in ("", "[]", "other: 1", "endpoints:"):
        path.write_text(text, "utf-8")
        assert configured_models(path) == {}


def test_endpoints_of_past_runs(tmp_path: Path) -> None:
    """The oldest run first; a function has no model; replays and runs before ``since`` are out."""
    model = {"endpoint": "gpt", "asked": "gpt-4o", "answered": {"gpt-4o": 3}}
    identity = {"type": "openai", "base_url": "https://a.example"}
    entries = [{"name": "gpt", "identity": identity}, {"name": "f", "simulated": True}]
    past = []
    for day in ("2026-05-01", "2026-05-02", "2026-05-03"):
        run = past_run(day, scored({"a": 1.0}), models=[model], replayed=day == "2026-05-03")
        save(tmp_path, run, entries)
        past.append(run)
    folder = tmp_path / ".fairness" / "runs"
    services = services_of(past_of(past), OPTIONS, folder)
    assert {name: [s.run for s in runs] for name, runs in services.items()} == {
        "gpt": ["2026-05-01-001", "2026-05-02-001"],
        "f": ["2026-05-01-001", "2026-05-02-001"],
    }
    gpt = services["gpt"][0]
    assert (gpt.asked, gpt.answered, gpt.simulated) == ("gpt-4o", {"gpt-4o": 3}, False)
    assert (gpt.type, gpt.address) == ("openai", "https://a.example")
    function = services["f"][0]
    assert (function.asked, function.answered, function.simulated) == (None, {}, True)
    later = services_of(past_of(past), ThirdPartyOptions(since="2026-05-02-001"), folder)
    assert [s.run for s in later["gpt"]] == ["2026-05-02-001"]


# ---------------------------------------------------------------- the log


def attempt(key: str, request: Any, response: Any = None, **more: Any) -> dict[str, Any]:
    wire = {"request_body": json.dumps(request), "response_body": json.dumps(response)}
    return {"key": key, "wire": wire, **more}


@pytest.fixture
def read_log(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServiceLog]:
    """The log of an endpoint that was sent some parameters, with these attempts."""

    def log(sent: dict[str, Any], *attempts: dict[str, Any], parameters: bool = True) -> ServiceLog:
        trial = {"key": "k", "endpoint": {"name": "gpt"}, "parameters": {"requested": sent}}
        kinds = {"trial": [trial], "attempt": list(attempts)}
        reader = SimpleNamespace(each=kinds.__getitem__)
        monkeypatch.setattr(third_party, "reading", lambda *_, **__: nullcontext(reader))
        return service_logs(Path("/nowhere"), parameters=parameters)["gpt"]

    return log


@pytest.mark.parametrize(
    ("sent", "body", "dropped"),
    [
        ({"temperature": 0.5}, {"temperature": 0.5}, {}),
        ({"temperature": 0.5}, {"temperature": 1.0}, {"temperature": 1}),
        ({"temperature": 0.5}, {"model": "m"}, {"temperature": 1}),
        ({"max_tokens": 9, "stop": "."}, {"options": {"num_predict": 9, "stop": ["."]}}, {}),
        ({"stop": "."}, {"stop_sequences": ["."]}, {}),
        ({"stop": "."}, {"stop_sequences": [","]}, {"stop": 1}),
        ({"seed": 3}, {"options": "none"}, {"seed": 1}),
    ],
)
def test_parameters_in_a_request(
    read_log: Callable[..., ServiceLog],
    sent: dict[str, Any],
    body: dict[str, Any],
    dropped: dict[str, int],
) -> None:
    """By the name that the provider has for them, alone or in a list, and with their value."""
    log = read_log(sent, attempt("k", body))
    assert (log.requests, log.dropped) == (1, dropped)


def test_what_an_error_refuses(read_log: Callable[..., ServiceLog]) -> None:
    """A name as a word of its own, of a request that was rejected; a server that is down refuses
    nothing.
    """
    sent = {"top": 1, "top_p": 0.5}
    error = "top_p is not supported"
    rejected = attempt("k", sent, evidence=Evidence.REJECTED, error=error)
    assert read_log(sent, rejected).refused == {"top_p": 1}
    down = attempt("k", sent, evidence=Evidence.SERVER, error=error)
    assert not read_log(sent, down).refused


def test_fingerprints_in_replies(read_log: Callable[..., ServiceLog]) -> None:
    """Bodies that are no JSON, or no object, have none; parameters are not looked at."""
    replies = [{"system_fingerprint": "fp_1"}, {"system_fingerprint": None}, ["fp_2"], "fp_3"]
    attempts = [attempt("k", {}, reply) for reply in replies]
    attempts.append({"key": "k", "wire": {"response_body": "{"}})
    attempts.append({"key": "k"})
    log = read_log({"seed": 1}, *attempts, parameters=False)
    assert (log.fingerprints, log.requests, log.meant) == ({"fp_1": 1}, 0, {})


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the runs these logs of the endpoint, in the order in which they are read."""

    def logs(*of_runs: ServiceLog) -> None:
        left = iter(of_runs)
        monkeypatch.setattr(third_party, "service_logs", lambda *_, **__: {"gpt": next(left)})

    return logs


def marked(*fingerprints: str) -> ServiceLog:
    return ServiceLog(fingerprints=Counter(fingerprints))


@pytest.mark.parametrize(
    ("logs", "declared", "verdict", "reason", "words"),
    [
        ([marked()], (), Verdict.INCONCLUSIVE, Reason.UNRECORDED, "most providers give none"),
        ([marked("a")], (), Verdict.INCONCLUSIVE, Reason.PRECISION, "no other run to compare"),
        ([marked(), marked("a")], (), Verdict.INCONCLUSIVE, Reason.PRECISION, "no other run"),
        ([marked("a"), marked("a")], (), Verdict.PASS, None, "none of them new in 2 runs"),
        ([marked("a", "b"), marked("b")], (), Verdict.PASS, None, "b in run 2026-05-02-001"),
        ([marked("a"), marked("a", "b")], (), Verdict.FLAG, None, "b in run 2026-05-02-001 for"),
        ([marked("a")], ("a",), Verdict.PASS, None, "none of them new in 1 run"),
        ([marked("a"), marked("b")], ("b",), Verdict.PASS, None, "none of them new"),
        ([marked("a")], ("b",), Verdict.FLAG, None, "for the first time"),
    ],
)
def test_fingerprints_over_runs(
    logged: Callable[..., None],
    logs: list[ServiceLog],
    declared: tuple[str, ...],
    verdict: Verdict,
    reason: Reason | None,
    words: str,
) -> None:
    """Known from a run before, or declared; a new one is a FLAG and never a FAIL."""
    logged(*logs)
    runs = [service(1 + at) for at in range(len(logs))]
    options = ThirdPartyOptions(fingerprints={"gpt": declared})
    finding = fingerprint_finding("gpt", runs, options)
    assert (finding.verdict, finding.reason) == (verdict, reason)
    assert words in finding.sentence


@pytest.mark.parametrize(
    ("log", "about", "verdict", "words"),
    [
        (
            {"requests": 4, "meant": {"seed": 4}, "carried": {"seed": 4}},
            {},
            Verdict.PASS,
            "4 requests of run 2026-05-01-001 carried seed as they should",
        ),
        (
            {"requests": 4, "meant": {"seed": 4}, "carried": {"seed": 3}},
            {},
            Verdict.FAIL,
            "seed is missing in 1 of 4",
        ),
        (
            {"requests": 4, "refused": {"seed": 2}},
            {},
            Verdict.FAIL,
            "the provider refused seed 2 times in run",
        ),
        ({"requests": 4}, {}, Verdict.INCONCLUSIVE, "sent no parameter"),
        ({}, {}, Verdict.INCONCLUSIVE, "the log does not show what its requests carried"),
        ({"requests": 4}, {"type": "application"}, Verdict.INCONCLUSIVE, "the log does not show"),
        ({}, {"simulated": True}, Verdict.INCONCLUSIVE, "it is simulated"),
    ],
)
def test_parameters_of_the_newest_run(
    logged: Callable[..., None],
    log: dict[str, Any],
    about: dict[str, Any],
    verdict: Verdict,
    words: str,
) -> None:
    counters = {name: Counter(counts) for name, counts in log.items() if name != "requests"}
    logged(ServiceLog(requests=log.get("requests", 0), **counters))
    finding = parameter_finding("gpt", [service(1, **about)])
    assert finding.verdict is verdict
    assert finding.reason is (Reason.UNRECORDED if verdict is Verdict.INCONCLUSIVE else None)
    assert words in finding.sentence


# ---------------------------------------------------------------- canary prompts


def replies(changed: int = 0, *, answered: int = 30, **more: Any) -> CanaryReplies:
    """The same answer to every prompt, but for the first so many."""
    found = {
        name: CanaryReply(prompt, "Another one." if at < changed else "The same.")
        for at, (name, prompt) in enumerate(canary_prompts().items())
        if at < answered
    }
    return CanaryReplies(
        **{"endpoint": "gpt", "models": ("m",), "run": "2026-05-01-001", "replies": found, **more}
    )


def compared(
    changed: int, before: CanaryReplies | None = None, tolerance: float = 0.1, **more: Any
) -> Finding:
    frame = pd.DataFrame({"endpoint": ["gpt"] * 30, "simulated": [False] * 30, "tier": [2] * 30})
    now = replies(changed, **more)
    return canary_finding(
        now, before or replies(), "those of run x", tolerance, frame, "canary-gpt.json"
    )


@pytest.mark.parametrize(
    ("changed", "tolerance", "verdict"),
    [
        (0, 0.1, Verdict.PASS), (1, 0.1, Verdict.INCONCLUSIVE), (6, 0.1, Verdict.INCONCLUSIVE), (7, 0.1, Verdict.FLAG),
        (15, 0.1, Verdict.FLAG), (16, 0.1, Verdict.FAIL), (3, 0.3, Verdict.PASS), (16, 0.4, Verdict.INCONCLUSIVE),
    ],
)  # fmt: skip
def test_the_rule_of_the_canary(changed: int, tolerance: float, verdict: Verdict) -> None:
    """An exact test against the tolerance, with the prompt as the unit: none of thirty is as many
    as .1 takes.
    """
    finding = compared(changed, tolerance=tolerance)
    assert finding.verdict is verdict, finding.sentence
    assert finding.reason is (Reason.PRECISION if verdict is Verdict.INCONCLUSIVE else None)
    assert f"{changed} of 30 canary prompts" in finding.sentence


def test_when_canary_replies_cannot_be_compared() -> None:
    """Too few replies, simulated against live, nothing to compare with; another prompt is no same
    prompt.
    """
    assert compared(0, answered=28).reason is Reason.UNSCORED
    assert compared(0, simulated=True).reason is Reason.UNRECORDED
    other = {
        name: CanaryReply(one.prompt + "?", one.reply) for name, one in replies().replies.items()
    }
    assert (
        compared(
            0, replies().__class__(endpoint="gpt", models=("m",), run="x", replies=other)
        ).reason
        is Reason.UNSCORED
    )
    assert "m answered then, n now" in compared(0, models=("n",)).notes
    frame = pd.DataFrame({"endpoint": ["gpt"] * 30, "simulated": [False] * 30})
    first = canary_finding(replies(), None, "", 0.1, frame, "runs/x/canary-gpt.json")
    assert first.verdict is Verdict.INCONCLUSIVE
    assert "read runs/x/canary-gpt.json, copy it" in first.sentence


def test_replies_are_kept_and_read_back(tmp_path: Path) -> None:
    """Whatever a model says; the approved file goes first, then the oldest run; a damaged approval
    is an error.
    """
    hostile = replies()
    hostile.replies["sum"] = CanaryReply(hostile.replies["sum"].prompt, HOSTILE)
    runs = [tmp_path / "2026-05-01-001", tmp_path / "2026-05-02-001"]
    for folder in runs:
        folder.mkdir()
        assert read_canary(write_canary(folder, hostile)) == hostile
    assert (
        reference_replies("gpt", OPTIONS, tmp_path, runs)[1]
        == "those of run 2026-05-01-001, which nobody has approved"
    )
    later = ThirdPartyOptions(since="2026-05-02-001")
    assert "2026-05-02-001" in reference_replies("gpt", later, tmp_path, runs)[1]
    (runs[0] / "canary-gpt.json").write_text("{", "utf-8")
    assert "2026-05-02-001" in reference_replies("gpt", OPTIONS, tmp_path, runs)[1]
    assert reference_replies("other", OPTIONS, tmp_path, runs) == (None, "")
    approved = ThirdPartyOptions(canary={"gpt": "2026-05-01-001/canary-gpt.json"})
    with pytest.raises(UsageError, match="is no file of canary replies"):
        reference_replies("gpt", approved, tmp_path, runs)
    write_canary(runs[0], replies())
    assert (
        reference_replies("gpt", approved, tmp_path, runs)[1]
        == "the approved replies in 2026-05-01-001/canary-gpt.json"
    )
    assert canary_section(hostile, replies()) is not None
    assert canary_section(replies(), replies()) is None


def test_what_stands_around_the_answer_is_no_change() -> None:
    """The line is compared where there is one; without, or declined, all of the reply."""
    before = answer_in("It is easy enough: seventeen and 25.\n\nANSWER: 42")
    assert before == answer_in("Sure!\n**ANSWER:** `42`.") == answer_in("42")
    assert before != answer_in("ANSWER: 43")
    assert answer_in("No.\nANSWER: no answer") != answer_in("Never.\nANSWER: no answer")


def test_case_blanks_and_punctuation_are_no_change() -> None:
    assert normalised("  Forty-two.\n") == normalised("forty two") != normalised("forty three")


# ---------------------------------------------------------------- as a session


@lived
def simulated_life(project: LivedProject) -> Sessions:
    """The suite before any run, after one, and again with two workers."""
    project.write(GRID)
    suite = (*SUITE, "-k", "third_party")
    yield "first", project.run(*suite)
    project.run().assert_outcomes(passed=1)
    yield "second", project.run(*suite)
    yield "n2", project.run(*suite, mode=MODES["n2"])


def test_before_any_run_there_is_nothing_to_compare_with(simulated_life: Life) -> None:
    """Three tests are skipped; the canary prompts are asked, and warn."""
    first = simulated_life["first"]
    assert first.counts("failed", "passed", "skipped", "warnings") == (0, 1, 3, 1)
    assert {finding["reason"] for finding in first.findings} == {"PRECISION"}


def test_what_no_provider_has_is_not_known(simulated_life: Life) -> None:
    """The replies of a simulated model are the same; it has no fingerprint and no parameter."""
    second = simulated_life["second"]
    assert second.counts("failed", "passed", "warnings") == (0, 4, 2)
    conclusions = {
        name: (finding["verdict"], finding["reason"]) for name, finding in second.by_id.items()
    }
    assert conclusions == {
        "THRD-MODEL-001": ("PASS", None),
        "THRD-FING-001": ("INCONCLUSIVE", "UNRECORDED"),
        "THRD-PARM-001": ("INCONCLUSIVE", "UNRECORDED"),
        "THRD-CANA-001": ("PASS", None),
    }
    assert {tuple(finding["controls"].items()) for finding in second.findings} == {
        (("A.10", "context"), ("A.6.2.6", "context"))
    }


def test_two_workers_conclude_the_same(simulated_life: Life) -> None:
    workers = simulated_life["n2"]
    assert workers.counts("failed", "passed") == (0, 4)
    assert workers.verdicts == simulated_life["second"].verdicts


DIRECT = ("--fairness-endpoint", "direct")
OLD, NEW_MODEL = "gpt-4o-mini-2024-07-18", "gpt-4o-mini-2025-01-01"
#: A test that asks few trials and judges none.
ASKING = """
import pytest

@pytest.mark.fairness_grid(
    template="Write a short job reference for {name}, a nurse.",
    groups={"race_ethnicity": ["white", "black"]}, names=4, repetitions=2
)
def test_tone(trials):
    assert len(trials) == 16
"""
DECLARED = f"""
third_party:
  canary: {{direct: approved.json}}
  fingerprints: {{direct: [fp_2]}}
  declared: {{direct: [{OLD}, {NEW_MODEL}]}}
"""


def answering(server: ModelServer, **about: Any) -> None:
    """From now on *server* says this about itself."""

    def answer(body: str) -> Fault:
        reply = server._reply(json.loads(body))
        return Fault(body={**openai_body(reply, "gpt-4o-mini"), **about})

    server.meet = answer


@lived
def provider_life(project: LivedProject) -> Sessions:
    """A server that changes model, fingerprint and replies, is declared anew, and then refuses a
    parameter.
    """
    project.environment["OPENAI_API_KEY"] = "sk-canary-0123456789abcdef"
    suite = (*SUITE, "-k", "third_party", *DIRECT)
    with ModelServer() as server:
        endpoints = MODELS.format(url=server.openai_url) + "    default_temperature: 0.5\n"
        project.write(ASKING, endpoints)
        answering(server, model=OLD, system_fingerprint="fp_1")
        for _ in range(2):
            project.run(*DIRECT).assert_outcomes(passed=1)
        yield "first", project.run(*suite)
        yield "same", project.run(*suite)
        server.endpoint = simulated_endpoint(seed=9)
        answering(server, model=NEW_MODEL, system_fingerprint="fp_2")
        project.run(*DIRECT).assert_outcomes(passed=1)
        yield "changed", project.run(*suite)
        newest = project.last / "canary-direct.json"
        (project.path / "approved.json").write_bytes(newest.read_bytes())
        (project.path / "governance.yaml").write_text(DECLARED, "utf-8")
        yield "declared", project.run(*suite)
        message = "Unsupported value: 'temperature' does not support 0.5"
        error = {"error": {"message": message, "type": "invalid_request"}}
        server.meet = lambda _: Fault(status=400, body=error)
        project.run(*DIRECT, "--fairness-smoke")
        answering(server, model=NEW_MODEL, system_fingerprint="fp_2")
        yield "refused", project.run(*suite, "-k", "test_parameters_arrive")


def test_a_provider_that_stays_passes(provider_life: Life) -> None:
    """But for the canary prompts, which the first time have nothing to be compared with."""
    first = provider_life["first"]
    assert first.counts("passed", "failed") == (4, 0)
    assert first.verdicts == {
        "THRD-MODEL-001": "PASS",
        "THRD-FING-001": "PASS",
        "THRD-PARM-001": "PASS",
        "THRD-CANA-001": "INCONCLUSIVE",
    }
    assert "carried temperature as they should" in first.by_id["THRD-PARM-001"]["sentence"]


def test_the_same_replies_pass(provider_life: Life) -> None:
    assert set(provider_life["same"].verdicts.values()) == {"PASS"}
    assert "which nobody has approved" in provider_life["same"].by_id["THRD-CANA-001"]["sentence"]


def test_a_provider_that_changes_is_red(provider_life: Life) -> None:
    """Version and fingerprint are flagged; most replies are others, which fails."""
    changed = provider_life["changed"]
    assert changed.counts("failed", "passed") == (3, 1)
    assert changed.verdicts == {
        "THRD-MODEL-001": "FLAG",
        "THRD-FING-001": "FLAG",
        "THRD-PARM-001": "PASS",
        "THRD-CANA-001": "FAIL",
    }
    assert "fp_2 in run" in changed.output
    assert f"{OLD} answered then, {NEW_MODEL} now" in changed.by_id["THRD-CANA-001"]["notes"]
    assert "Canary replies: direct" in changed.page


def test_what_is_declared_and_approved_passes(provider_life: Life) -> None:
    declared = provider_life["declared"]
    assert declared.counts("passed", "failed") == (4, 0)
    assert set(declared.verdicts.values()) == {"PASS"}
    assert "the approved replies in approved.json" in declared.by_id["THRD-CANA-001"]["sentence"]


def test_a_parameter_that_is_refused_fails(provider_life: Life) -> None:
    """Whether the refusal was met in the run that asks or in the one before: it is in the log."""
    refused = provider_life["refused"]
    assert refused.counts("failed") == (1,)
    assert "the provider refused temperature" in refused.output
