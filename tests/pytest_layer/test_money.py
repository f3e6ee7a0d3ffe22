"""What a run cost, and what that sum leaves out or guesses: in the terminal, the manifest, the
findings, the report.
"""

from __future__ import annotations

import contextlib
import html
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_fairness.reports.formatting import cost_line
from tests.support.servers import Fault, ModelServer

from .conftest import GRID, MODELS, Project, shown

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


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": -5, "completion_tokens": 3}, None, {"prompt_tokens": "many"}]
)
def test_charges_at_worst_case_are_shown(project: Project, server: ModelServer, usage: Any) -> None:
    small = GRID.replace("names=(20,), repetitions=2", "names=4, repetitions=1").replace(
        "    assert_no", "    len(trials) or assert_no"
    )
    project.write(small, PRICED.format(url=server.openai_url))
    server.then(*[answer(usage)] * 12)
    result = project.run("--fairness-endpoint=direct")
    assert result.ret == 0, result.stdout.str()
    cost = project.manifest["cost"]
    charged = "12 charged at worst case because their token counts are missing or cannot be true"
    expect(project, result, f"${cost:,.4f} for 16 trials; {charged}", (0, 12))
    worst = 12 * 400 * 0.6 / 1e6
    assert worst < cost == project.results["run"]["cost"] < 10 * worst


def test_trials_without_a_price_are_shown(project: Project, server: ModelServer) -> None:
    """Beside a system whose price is known; what is free is known to be."""
    own = MODELS + PRICED.replace("direct", "priced").partition("\n")[2].partition("\n")[2]
    other = GRID.partition("@")[2].replace("test_tone", "test_other").replace("reference", "letter")
    fixture = "\n@pytest.fixture\ndef endpoint():\n    return 'priced'\n"
    project.write(
        GRID,
        own.format(url=server.openai_url),
        test_other=GRID.partition("@")[0] + fixture + "\n@" + other,
    )
    result = project.run("--fairness-endpoint=direct")
    assert result.ret == 0, result.stdout.str()
    cost = project.manifest["cost"]
    expect(
        project,
        result,
        f"${cost:,.4f} for 160 trials (priced ${cost:,.4f} for 160); 160 of unknown price (direct "
        "160)",
        (160, 0),
    )


def test_each_of_several_endpoints_has_its_share(project: Project, server: ModelServer) -> None:
    """Over the wire, with a price and without one, with token counts that cannot be true; resumed,
    and replayed. What trials cost is what the run's account has settled."""
    small = GRID.replace("names=(20,), repetitions=2", "names=4, repetitions=1").replace(
        "    assert_no", "    len(trials) or assert_no"
    )
    unpriced = (
        MODELS.replace("direct", "unpriced")
        .replace("gpt-4o-mini", "made-up")
        .partition("endpoints:\n")[2]
    )
    project.write(small, (PRICED + unpriced).format(url=server.openai_url))
    incredible = answer({"prompt_tokens": -5, "completion_tokens": 3})
    spoilt = [incredible] * 3

    def meet(body: str) -> Fault | None:
        """Spoil the first answers of the model whose price is known."""
        if '"gpt-4o-mini"' in body and spoilt:
            return spoilt.pop()
        return None

    server.meet = meet
    result = project.run("--fairness-endpoint=all")
    assert result.ret == 0, result.stdout.str()
    direct, other = project.results["run"]["costs"]
    cost = project.manifest["cost"]
    assert direct == {
        "endpoint": "direct", "trials": 16, "cost": cost, "unpriced": 0, "charged_at_worst_case": 3
    }  # fmt: skip
    assert other == {
        "endpoint": "unpriced",
        "trials": 16,
        "cost": 0,
        "unpriced": 16,
        "charged_at_worst_case": 0,
    }
    sentence = (
        f"${cost:,.4f} for 16 trials (direct ${cost:,.4f} for 16); 16 of unknown price (unpriced "
        "16); 3 charged "
        "at worst case because their token counts are missing or cannot be true (direct 3)"
    )
    expect(project, result, sentence, (16, 3))
    with contextlib.closing(sqlite3.connect(project.last / "run.sqlite3")) as database:
        ((settled, reserved),) = database.execute("SELECT settled, reserved FROM account")
    assert (settled / 1e9, reserved) == (pytest.approx(cost), 0)

    run = project.last.name
    expect(
        project, project.run("--fairness-endpoint=all", "--fairness-resume", run), sentence, (16, 3)
    )
    replayed = project.run("--fairness-replay", run)
    expect(project, replayed, f"{sentence}; paid when it was recorded, not now", (16, 3))
    assert len(server.requests) == 32


def expect(
    project: Project, result: pytest.RunResult, sentence: str, counts: tuple[int, int]
) -> None:
    """The terminal, the manifest, findings.json and the report say the same of the newest run's
    cost.
    """
    assert f"cost: {sentence}" in shown(result)
    for place in (project.manifest, project.results["run"]):
        assert (place["unpriced"], place["charged_at_worst_case"]) == counts
    (fact,) = re.findall(r"<dt>Cost</dt>\s*<dd>(.*?)</dd>", project.page, re.DOTALL)
    assert sentence in html.unescape(fact)


@pytest.mark.parametrize(
    ("cost", "unpriced", "at_worst", "total", "printed"),
    [
        (0.0, 0, 0, 9, ""),
        (0.0139, 0, 0, 160, "$0.0139 for 160 trials"),
        (0.0139, 160, 0, 320, "$0.0139 for 160 trials; 160 of unknown price"),
        (0.0, 160, 0, 160, "160 trials of unknown price"),
        (0.5, 1, 1, 2, "$0.5000 for 1 trial; 1 of unknown price; 1 charged at worst case because its token counts are "
         "missing or cannot be true"),
    ],
)  # fmt: skip
def test_the_line_of_the_cost(
    cost: float, unpriced: int, at_worst: int, total: int, printed: str
) -> None:
    run = {
        "cost": cost,
        "unpriced": unpriced,
        "charged_at_worst_case": at_worst,
        "trials": {"total": total},
    }
    assert cost_line(run) == printed
