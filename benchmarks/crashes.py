"""Kill sessions again and again: is anything paid twice, lost, or counted that was not answered?

Run: python benchmarks/crashes.py [kills] [trials]          (default: 200, and 50 trials a kill)

One run of one suite is gone on with (``--fairness-resume``) after each SIGKILL, which comes at a
named point or at a random moment, in turn; the kills fall over the stages of three looks, and
between them. The server on 127.0.0.1 keeps the bill. When the last
trial is in, a run that nobody disturbs is held against it. Exit status 1 if an oracle does not
hold.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.faults.conftest import Steady  # noqa: E402 - the repository's own tests are not installed
from tests.faults.oracles import (  # noqa: E402
    Case,
    log_verifies,
    nothing_paid_twice,
    same_statistics,
)
from tests.support import killing  # noqa: E402
from tests.support.runs import records  # noqa: E402
from tests.support.servers import ModelServer  # noqa: E402

CONCURRENCY = 4
SUITE = """
import pytest
from pytest_fairness import assert_equivalent

@pytest.mark.fairness_grid(
    template=[f"Write reference number {{number}} for {{{{name}}}}." for number in range({templates})],
    groups={{"race_ethnicity": ["white", "black"]}}, names=(5, 10, 20), repetitions=1)
def test_tone(trials):
    # A margin that no look is large enough for: all of them are made.
    assert_equivalent(trials, outcome="word_count", by="race_ethnicity", margin=0.02)
"""
ENDPOINTS = """
endpoints:
  - {{name: direct, type: openai, model: m, base_url: "{url}", api_key_env: THE_KEY,
      price: {{input_per_million: 0.15, output_per_million: 0.6}}}}
"""


#: Sessions are forked from a process that has imported all they need: half of a session is imports,
#: during which there is nothing to kill.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.conftest"])


def session(folder: Path, *arguments: str, kill_at: str = "", seconds: float | None = None) -> int:
    """One session in *folder*, killed at a named point or after so many seconds; its exit status."""
    process = CONTEXT.Process(target=ask, args=(folder, arguments, kill_at or ":0"))
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return process.exitcode


def ask(folder: Path, arguments: tuple[str, ...], kill_at: str) -> None:
    """The session, in a process of its own."""
    os.chdir(folder)
    os.environ |= {"THE_KEY": "k", "KILL_AT": kill_at}
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    importlib.reload(killing)  # which reads the environment
    command = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--fairness-endpoint=direct"]
    raise SystemExit(
        int(pytest.main([*command, f"-ofairness_concurrency={CONCURRENCY}", *arguments]))
    )


def looks_made(runs: Path) -> int:
    """How many looks the newest of *runs* has in its log."""
    newest = max(runs.glob("2*"), default=None)
    if newest is None:
        return 0
    return len({record["number"] for record in records(newest, "look")})


def main(kills: int, trials: int) -> int:
    generator = random.Random(0)
    died: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, ModelServer(Steady(), latency=0.02) as server:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_suite.py").write_text(SUITE.format(templates=max(1, trials // 40)))
        (folder / "endpoints.yaml").write_text(ENDPOINTS.format(url=server.openai_url))
        started, runs = time.perf_counter(), folder / ".fairness" / "runs"
        stages: Counter[int] = Counter()
        while sum(died.values()) < kills:
            made = looks_made(runs)
            points = [*killing.POINTS[:-1], "at random"]
            if made:  # else all of the first stage would be asked before
                points += ["before-look", "after-look"]
            how = points[sum(died.values()) % len(points)]
            resume = ("--fairness-resume=last",) if any(runs.glob("2*")) else ()
            nth = (
                f"{how}:{made if 'look' in how else generator.randint(1, max(1, trials // kills))}"
            )
            if how == "at random":
                code = session(folder, *resume, seconds=0.3 + generator.random())
            else:
                code = session(folder, *resume, kill_at=nth)
            died[how] += code == -signal.SIGKILL
            stages[looks_made(runs)] += code == -signal.SIGKILL
            if sum(died.values()) % 20 == 0:
                print(f"{sum(died.values())} kills, {len(server.requests)} requests", flush=True)
            if code != -signal.SIGKILL:
                break  # all is asked
        code = session(folder, "--fairness-resume=last")
        (run,) = runs.glob("2*")
        case = Case(project=folder, run=run, ledger=list(server.requests))
        nothing_paid_twice(case)
        log_verifies(case)
        most = Counter(request.prompt for request in server.requests).most_common(1)[0][1]
        statuses = Counter(record["status"] for record in records(run, "trial"))
        print(f"{sum(died.values())} kills in {time.perf_counter() - started:.0f} s: {dict(died)}")
        print(f"kills by looks made before: {dict(sorted(stages.items()))}")
        print(
            f"{len(server.requests)} requests, none more than {most}×; trials: {dict(statuses)}; "
            f"last exit {code}"
        )
        unknown = statuses["unknown"]
        print(
            f"unknown: {unknown / max(1, sum(died.values())):.1f} a kill, at most {CONCURRENCY} "
            "are under way"
        )
        assert most == 1
        assert unknown <= CONCURRENCY * sum(died.values())
        session(folder, "--fairness-resume=last", "--fairness-retry-unknown")
        session(folder)
        same_statistics(run, max(runs.glob("2*")))
        print("asked again on request, its findings are those of an undisturbed run")
    return 0


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    kills = numbers[0] if numbers else 200
    # A kill leaves up to four trials unknown, and of a stage of which a fifth is unknown no look goes
    # on: with fewer trials a kill all would fall on the first stage.
    raise SystemExit(main(kills, numbers[1] if len(numbers) == 2 else 50 * kills))
