"""How the bias programme reads what a model answers over the wire, in the styles of today's models.

    python benchmarks/wire_styles.py [--tests 'BIAS-*-socioeconomic_status*'] [--tiers all]
        [--styles modern thinking json terse hedged] [--refusals 0.08] [--form]

One session a style of ``pytest --pyargs pytest_fairness.suites.bias`` (ten names a group and signal, the
default temperature) asks a server on 127.0.0.1 that speaks as OpenAI does, answers as the simulated
endpoint does in that style, and takes no schema: tier 1 is asked by line, tier 2 in prose; with
``--form`` it takes one, and tier 1 is asked by form. The server knows what each reply means, by the
value that the same request gets as JSON.

Printed: of each test and tier the trials, those that were refused to the end, those left unread, and
those that were read as something else than was meant.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import pandas as pd
from tests.support.servers import ModelServer

from pytest_fairness.endpoints.protocol import Reply, Request
from pytest_fairness.endpoints.simulated import Planted, SimulatedEndpoint
from pytest_fairness.model import Status
from pytest_fairness.reports.run_tables import open_run
from pytest_fairness.runs.reader import reading
from pytest_fairness.scorers import BUILT_IN, Scorer
from pytest_fairness.suites.bias.associations import RANK

STYLES = ("modern", "thinking", "json", "terse", "hedged")
#: The outcome of a test whose replies mean one value: under which key that stands, and what reads
#: the bare value.
MEANT: Mapping[str, tuple[str, Scorer]] = {
    "rating": ("rating", BUILT_IN["rating"]),
    "decision": ("decision", BUILT_IN["decision"]),
    "triage_esi": ("level", BUILT_IN["triage_esi"]),
    "rank_of_choice": ("answer", RANK),
}
#: One of several outcomes of the same trials is enough.
FIRST_OF = ("agentic_words", "communal_words", "detail_of_choice")
ENTRY = """
endpoints:
  - name: wire
    type: openai
    model: gpt-4o-mini
    base_url: "{url}"
    api_key_env: OPENAI_API_KEY
    supports_system_prompt: true
    supports_structured_output: {form}
    default_temperature: 1.0
    price: {{input_per_million: 0, output_per_million: 0}}
"""


class Answered(NamedTuple):
    """A *request* that was answered, and whether it was *refused*."""

    request: Request
    refused: bool


class RememberedEndpoint(SimulatedEndpoint):
    """A simulated endpoint that remembers which request each conversation and reply belong to."""

    def __init__(self, planted: Planted) -> None:
        super().__init__(planted)
        self.answered: dict[tuple[str, str], Answered] = {}

    def reply(self, request: Request) -> Reply:
        """Return the reply; a refusal is said in words, as most models do."""
        reply = super().reply(request)
        messages = [[message.role, message.content] for message in request.messages]
        refused = reply.status is Status.REFUSED
        self.answered[json.dumps(messages), reply.text or ""] = Answered(request, refused)
        return replace(reply, status=Status.ANSWERED)

    def meant(self, request: Request, key: str) -> str:
        """Return the value that *request* gets under *key*, which is not refused."""
        schema = {"json_schema": {"schema": {"properties": {key: {}}}}}
        reply = super().reply(replace(request, parameters={"response_format": schema}))
        return str(json.loads(reply.text or "")[key])


def count_session(style: str, options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Run a session of *style*, and yield test, tier and what became of a trial, of each trial."""
    endpoint = RememberedEndpoint(Planted(style=style, refusal_rate=options.refusals))
    with tempfile.TemporaryDirectory() as name, ModelServer(endpoint) as server:
        folder = Path(name)
        form = str(options.form).lower()
        entry = ENTRY.format(url=server.openai_url, form=form)
        (folder / "endpoints.yaml").write_text(entry, encoding="utf-8")
        sizes = "names: [10]\ntemperatures: [default]\n"
        (folder / "bias.yaml").write_text(sizes, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "no:xdist", "--pyargs", "pytest_fairness.suites.bias"]
        command += ["--fairness-endpoint=wire", f"--fairness-tier={options.tiers}"]
        command += [f"--fairness-test={options.tests}"]
        environment = {**os.environ, "OPENAI_API_KEY": "sk-none"}
        session = subprocess.run(
            command, cwd=folder, env=environment, check=False, capture_output=True, text=True
        )
        runs = sorted((folder / ".fairness" / "runs").glob("2*"))
        if not runs:
            raise SystemExit(f"the session found nothing:\n{session.stdout}{session.stderr}")
        yield from count_run(runs[-1], endpoint)


def count_run(run: Path, endpoint: RememberedEndpoint) -> Iterator[tuple[str, str, str]]:
    """Yield test, tier and what became of a trial, of each trial that a finding of *run* judged."""
    with reading(run, check=False) as reader:
        records = {record["key"]: record for record in reader.all_records()}
    tables = open_run(run)
    for place, finding in enumerate(tables.results.findings):
        if finding.outcome in FIRST_OF:
            continue
        test = finding.test_id.replace(f"-{finding.protected_class}", "")
        for row in tables.judged(place).to_dict("records"):
            yield test, str(finding.tier), fate(row, records[row["key"]], finding.outcome, endpoint)


def fate(
    row: Mapping[str, Any], record: Mapping[str, Any], outcome: str, endpoint: RememberedEndpoint
) -> str:
    """Return what became of the trial of *row*: refused, unread, misread or right."""
    messages = list(record["messages"])
    if messages[-1]["role"] == "assistant":
        messages.pop()
    sent = json.dumps([[message["role"], message["content"]] for message in messages])
    request, refused = endpoint.answered[sent, record["replies"][-1]]
    if refused != (row["status"] == Status.REFUSED):
        return "misread"
    if refused:
        return "refused"
    score = row[outcome]
    if pd.isna(score):
        return "unread"
    if outcome not in MEANT:
        return "right"
    key, scorer = MEANT[outcome]
    given = {name: row[name] for name in scorer.columns}
    if scorer(endpoint.meant(request, key), **given) != score:
        return "misread"
    return "right"


def main() -> None:
    """Run the sessions, and print what is counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", default="BIAS-*-socioeconomic_status*")
    parser.add_argument("--tiers", default="all")
    parser.add_argument("--styles", nargs="+", default=list(STYLES), choices=STYLES)
    parser.add_argument("--refusals", type=float, default=0.08, help="the share that is declined")
    parser.add_argument("--form", action="store_true", help="the server takes a schema")
    options = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    for style in options.styles:
        counts.update(count_session(style, options))
    print("| test | tier | trials | refused | unread | misread |\n|---|---|---|---|---|---|")
    for test, tier in sorted({(test, tier) for test, tier, _ in counts}):
        fates = {
            name: counts[test, tier, name] for name in ("refused", "unread", "misread", "right")
        }
        shown = [fates[name] for name in ("refused", "unread", "misread")]
        print(f"| {test} | {tier} | {sum(fates.values())} | {' | '.join(map(str, shown))} |")


if __name__ == "__main__":
    main()
