"""THRD: who answered, under which fingerprint, with which parameters; and canary prompts that are
asked again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.suites.governance.canary import (
    CanaryReplies,
    CanaryReply,
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
    ThirdPartyOptions,
    model_finding,
)
from tests.conftest import MODES
from tests.support.servers import Fault, ModelServer, openai_body

from ..pytest_layer.conftest import GRID, MODELS, Project
from ..reports.factories import HOSTILE
from .past_project import SUITE

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


def test_case_blanks_and_punctuation_are_no_change() -> None:
    assert normalised("  Forty-two.\n") == normalised("forty two") != normalised("forty three")


# ---------------------------------------------------------------- as a session


@pytest.mark.parametrize("mode", [MODES["plain"], MODES["n2"]], ids=["plain", "n2"])
def test_the_simulated_endpoint(project: Project, mode: list[str]) -> None:
    """First there is nothing to compare with; then the same replies; what no provider has is not
    known.
    """
    project.write(GRID)
    project.run(*SUITE, "-k", "third_party", mode=mode).assert_outcomes(
        failed=3, passed=1, warnings=1
    )
    project.run().assert_outcomes(passed=1)
    project.run(*SUITE, "-k", "third_party", mode=mode).assert_outcomes(passed=4, warnings=2)
    found = {one["test_id"]: (one["verdict"], one["reason"]) for one in project.findings}
    assert found == {
        "THRD-MODEL-001": ("PASS", None),
        "THRD-FING-001": ("INCONCLUSIVE", "UNRECORDED"),
        "THRD-PARM-001": ("INCONCLUSIVE", "UNRECORDED"),
        "THRD-CANA-001": ("PASS", None),
    }
    assert {tuple(one["controls"].items()) for one in project.findings} == {
        (("A.10", "context"), ("A.6.2.6", "context"))
    }


def answering(server: ModelServer, **about: Any) -> None:
    """From now on *server* says this about itself."""

    def answer(body: str) -> Fault:
        reply = server._reply(json.loads(body))
        return Fault(body={**openai_body(reply, "gpt-4o-mini"), **about})

    server.meet = answer


def test_a_provider_that_changes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model version, fingerprint, replies and parameters of a server, over three sessions."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    grid = GRID.replace("repetitions=2", "names=4, repetitions=2").replace(
        "    assert_no_disparity(", "    4 < 20 or assert_no_disparity("
    )
    suite = (*SUITE, "-k", "third_party", "--fairness-endpoint", "direct")

    def verdicts() -> dict[str, str]:
        return {one["test_id"]: one["verdict"] for one in project.findings}

    with ModelServer() as server:
        project.write(grid, MODELS.format(url=server.openai_url) + "    default_temperature: 0.5\n")
        answering(server, model="gpt-4o-mini-2024-07-18", system_fingerprint="fp_1")
        for _ in range(2):
            project.run("--fairness-endpoint", "direct").assert_outcomes(passed=1)
        project.run(*suite).assert_outcomes(passed=4)
        assert verdicts() == {
            "THRD-MODEL-001": "PASS", "THRD-FING-001": "PASS", "THRD-PARM-001": "PASS", "THRD-CANA-001": "INCONCLUSIVE",
        }  # fmt: skip
        project.run(*suite).assert_outcomes(passed=4)
        assert verdicts()["THRD-CANA-001"] == "PASS"

        server.endpoint = simulated_endpoint(seed=9)
        answering(server, model="gpt-4o-mini-2025-01-01", system_fingerprint="fp_2")
        project.run("--fairness-endpoint", "direct").assert_outcomes(passed=1)
        result = project.run(*suite)
        result.assert_outcomes(failed=3, passed=1)
        assert verdicts() == {
            "THRD-MODEL-001": "FLAG", "THRD-FING-001": "FLAG", "THRD-PARM-001": "PASS", "THRD-CANA-001": "FAIL",
        }  # fmt: skip
        assert "fp_2 in run" in result.stdout.str()
        assert "Canary replies: direct" in project.page

        newest = project.last / "canary-direct.json"
        (project.path / "approved.json").write_bytes(newest.read_bytes())
        (project.path / "governance.yaml").write_text(
            "third_party:\n  canary: {direct: approved.json}\n  fingerprints: {direct: [fp_2]}\n"
            "  declared: {direct: [gpt-4o-mini-2024-07-18, gpt-4o-mini-2025-01-01]}\n",
            "utf-8",
        )
        project.run(*suite).assert_outcomes(passed=4)
        assert set(verdicts().values()) == {"PASS"}

        error = {
            "error": {
                "message": "Unsupported value: 'temperature' does not support 0.5",
                "type": "invalid_request",
            }
        }
        server.meet = lambda _: Fault(status=400, body=error)
        project.run("--fairness-endpoint", "direct", "--fairness-smoke")
        answering(server, model="gpt-4o-mini-2025-01-01", system_fingerprint="fp_2")
        result = project.run(*suite, "-k", "test_parameters_arrive")
        result.assert_outcomes(failed=1)
        assert "the provider refused temperature" in " ".join(result.stdout.str().split())
