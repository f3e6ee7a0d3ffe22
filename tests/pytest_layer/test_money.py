"""What a run cost, and what that sum leaves out or guesses: in the terminal, the manifest, the findings, the report."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.reports.formatting import cost_line
from tests.support.servers import Fault, ModelServer

from .conftest import GRID, MODELS, Run

PRICED = (
    MODELS
    + """\
    price: {{input_per_million: 0.15, output_per_million: 0.6}}
    default_parameters: {{max_tokens: 400}}
"""
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    with ModelServer() as running:
        yield running


def answer(usage: Any) -> Fault:
    message = {"role": "assistant", "content": "A fine tenant and a good nurse."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Fault(body={"model": "gpt-4o-mini", "choices": [choice], "usage": usage})


@pytest.mark.parametrize("usage", [{"prompt_tokens": -5, "completion_tokens": 3}, None, {"prompt_tokens": "many"}])
def test_charges_at_worst_case_are_said(
    pytester: pytest.Pytester, run: Run, last_run: Callable[[], Path], server: ModelServer, usage: Any
) -> None:
    pytester.makepyfile(test_tone=GRID)
    pytester.path.joinpath("endpoints.yaml").write_text(PRICED.format(url=server.openai_url), encoding="utf-8")
    server.then(*[answer(usage)] * 12)
    result = run("--fairness-endpoint=direct")
    assert result.ret == 0, result.stdout.str()
    manifest, findings, page = everything(last_run())
    charged = "12 charged at worst case because their token counts are missing or cannot be true"
    said = f"cost: ${manifest['cost']:,.4f} for 160 trials; {charged}"
    assert said in " ".join(result.stdout.str().split())
    assert said.removeprefix("cost: ") in page
    for place in (manifest, findings):
        assert (place["unpriced"], place["charged_at_worst_case"]) == (0, 12)
    worst = 12 * 400 * 0.6 / 1e6
    assert worst < manifest["cost"] == findings["cost"] < 10 * worst


def test_trials_without_a_price_are_said(
    pytester: pytest.Pytester, run_in_mode: Run, last_run: Callable[[], Path], server: ModelServer
) -> None:
    """Beside a system whose price is known; what is free is known to be."""
    own = (
        MODELS.format(url=server.openai_url) + PRICED.replace("direct", "priced").partition("\n")[2].partition("\n")[2]
    )
    pytester.path.joinpath("endpoints.yaml").write_text(own.format(url=server.openai_url), encoding="utf-8")
    other = GRID.partition("@")[2].replace("test_tone", "test_other").replace("reference", "letter")
    fixture = "\n@pytest.fixture\ndef endpoint():\n    return 'priced'\n"
    pytester.makepyfile(test_tone=GRID, test_other=GRID.partition("@")[0] + fixture + "\n@" + other)
    result = run_in_mode("--fairness-endpoint=direct")
    assert result.ret == 0, result.stdout.str()
    manifest, findings, page = everything(last_run())
    said = f"${manifest['cost']:,.4f} for 160 trials; 160 of unknown price"
    assert f"cost: {said}" in result.stdout.str()
    assert said in page
    for place in (manifest, findings):
        assert (place["unpriced"], place["charged_at_worst_case"]) == (160, 0)


def test_nothing_is_said_of_what_costs_nothing(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_tone=GRID)
    assert "cost:" not in run().stdout.str()


def everything(run: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The manifest, what findings.json says of the run, and the facts of the report."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    findings = json.loads((run / "findings.json").read_text(encoding="utf-8"))["run"]
    page = re.findall(r"<dt>Cost</dt>\s*<dd>(.*?)</dd>", (run / "report.html").read_text(encoding="utf-8"), re.DOTALL)
    return manifest, findings, html.unescape(page[0])


@pytest.mark.parametrize(
    ("cost", "unpriced", "at_worst", "total", "said"),
    [
        (0.0, 0, 0, 9, ""),
        (0.0139, 0, 0, 160, "$0.0139 for 160 trials"),
        (0.0139, 160, 0, 320, "$0.0139 for 160 trials; 160 of unknown price"),
        (0.0, 160, 0, 160, "160 trials of unknown price"),
        (0.5, 1, 1, 2, "$0.5000 for 1 trial; 1 of unknown price; 1 charged at worst case because its token counts are "
         "missing or cannot be true"),
    ],
)  # fmt: skip
def test_the_line_of_the_cost(cost: float, unpriced: int, at_worst: int, total: int, said: str) -> None:
    run = {"cost": cost, "unpriced": unpriced, "charged_at_worst_case": at_worst, "trials": {"total": total}}
    assert cost_line(run) == said
