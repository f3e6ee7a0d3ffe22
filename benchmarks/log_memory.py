"""Memory and time of a run's log as it grows: what a trial costs, stage by stage, from logging to
the verdict.

Run: python benchmarks/log_memory.py [trials …]          (default: 50000 200000)

Each stage is a process of its own, so that its peak is its own: *log* writes records through the
store as the engine does; *resume* opens the run and claims every trial again; *check* reads the run
back for replay and reports; *pull* is what a resumed session does, trial by trial out of the log
into the table; *frame* is that table alone, read from a pickle; *judge* compares two groups on it.
Quoted is the peak resident memory over that of the imports, and its growth per trial from the
smallest number to the largest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPLY = "An answer of some length, as models give them: {number}. " * 6
STAGES = ("log", "resume", "check", "pull", "frame", "judge")


def planned(stop: int, start: int = 0) -> list[Any]:
    """Trials *start* to *stop*: 200 cells of two groups and twenty names, with as many repetitions
    as that needs.
    """
    from pytest_fairness.model import Cell
    from pytest_fairness.runs.designs import PlannedTrial

    cells = [
        Cell(
            id=f"t-{number}",
            template=f"t{number % 5}",
            turns=(f"Write a short reference for candidate {number}.",),
            groups={"race_ethnicity": ("white", "black")[number % 2]},
            name=f"name {number % 40}",
        )
        for number in range(200)
    ]
    return [PlannedTrial(cell=cells[n % 200], repetition=n // 200) for n in range(start, stop)]


class Recorded:
    """An endpoint whose every trial is in the log already."""

    name, type, simulated, supports_system_prompt = "recorded", "openai", False, True
    default_parameters: dict[str, Any] = {}  # noqa: RUF012 - the protocol has an attribute
    price = None

    def identity(self) -> dict[str, Any]:
        return {"type": "recorded"}

    async def ask(self, request: Any) -> Any:  # noqa: ARG002 - the protocol has it
        raise AssertionError("nothing may be asked: every trial is recorded")

    async def aclose(self) -> None:
        """Nothing is open."""


def log(folder: Path, count: int) -> None:
    """Write the records of every trial: sent, attempt and trial."""
    from pytest_fairness.endpoints.protocol import Wire
    from pytest_fairness.engine.engine import Engine
    from pytest_fairness.model import Status, Trial, Usage
    from pytest_fairness.runs.records import (
        Attempt,
        attempt_record,
        conversation,
        sent_record,
        trial_record,
    )
    from pytest_fairness.runs.store import open_store

    usage = Usage(input_tokens=20, output_tokens=80)
    with open_store(folder, "t") as store, Engine(Recorded(), store) as engine:
        for start in range(0, count, 10_000):
            some = planned(min(count, start + 10_000), start)
            keys = [engine.key_of(one) for one in some]
            store.claim(keys)
            for number, (key, one) in enumerate(zip(keys, some, strict=True), start):
                reply = REPLY.format(number=number)
                store.append(sent_record(key, 0, 1, number))
                wire = Wire(
                    url="http://127.0.0.1/v1/chat/completions",
                    request_body=json.dumps({"messages": one.cell.turns}),
                    request_headers={},
                    status_code=200,
                    response_headers={"content-type": "application/json"},
                    response_body=json.dumps({"content": reply}),
                    truncated=False,
                )
                attempt = Attempt(
                    turn=0,
                    number=1,
                    status=Status.ANSWERED,
                    text=reply,
                    usage=usage,
                    cost=0.001,
                    wire=wire,
                )
                store.append(attempt_record(key, attempt))
                trial = Trial(
                    key=key, repetition=one.repetition, status=Status.ANSWERED, replies=(reply,), usage=usage,
                    cost=0.001, attempts=1, seconds=0.5, finish_reason="stop", model="m-1",
                )  # fmt: skip
                messages = conversation(None, one.cell.turns, ())
                about = {
                    "messages": messages,
                    "parameters": {"requested": {}, "sent": {}},
                    "order": number,
                }
                store.append(
                    trial_record(trial, one.cell, endpoint="recorded", identity="0" * 64, **about)
                )


def resume(folder: Path, count: int) -> None:
    """Open the run and claim every trial: nothing is left to ask."""
    from pytest_fairness.engine.engine import Engine
    from pytest_fairness.runs.folder import run_folders
    from pytest_fairness.runs.store import RunStore

    with RunStore.open(run_folders(folder)[0]) as store, Engine(Recorded(), store) as engine:
        print(json.dumps({"index": _peak()}))
        for start in range(0, count, 10_000):
            assert not store.claim(
                [engine.key_of(one) for one in planned(min(count, start + 10_000), start)]
            ).mine


def check(folder: Path, count: int) -> None:
    """Read the whole log back, each record checked."""
    from pytest_fairness.runs.folder import run_folders
    from pytest_fairness.runs.reader import RunReader

    assert len(RunReader.open(run_folders(folder)[0])) == count


def pull(folder: Path, count: int) -> None:
    """What a resumed session does for one test; the table is left for the next stages."""
    from pytest_fairness.engine.engine import Engine
    from pytest_fairness.runs.folder import run_folders
    from pytest_fairness.runs.store import RunStore
    from pytest_fairness.trials_frame import EndpointFacts, trials_frame

    plan = planned(count)
    with RunStore.open(run_folders(folder)[0]) as store, Engine(Recorded(), store) as engine:
        trials = engine.run(plan)
    print(json.dumps({"trials": _peak()}))
    pairs = [(one.cell, trial) for one, trial in zip(plan, trials, strict=True)]
    del plan, trials
    frame = trials_frame(pairs, EndpointFacts(name="recorded", simulated=False))
    print(json.dumps({"table": int(frame.memory_usage(deep=True).sum()) / 2**20}))
    frame.to_pickle(folder / "frame.pickle")


def frame(folder: Path, count: int) -> None:
    """The table alone."""
    import pandas as pd

    assert len(pd.read_pickle(folder / "frame.pickle")) == count


def judge(folder: Path, count: int) -> None:  # noqa: ARG001 - every stage is called alike
    """Compare the groups on the length of the replies."""
    import pandas as pd

    from pytest_fairness import analyze_disparity

    table = pd.read_pickle(folder / "frame.pickle")
    table["words"] = [float(len(reply) + number % 7) for number, reply in enumerate(table["reply"])]
    analyze_disparity(table, "words", "race_ethnicity")


def _peak() -> float:
    """Peak resident memory of this process, MiB. Linux: ru_maxrss would begin with the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError("this benchmark reads /proc/self/status")


def stage(name: str, folder: Path, count: int) -> None:
    """Run one stage in this process; what it took as JSON on the last line."""
    import pandas  # noqa: F401 - what every stage has loaded, and what is taken off

    import pytest_fairness.analysis.disparity
    import pytest_fairness.engine.engine
    import pytest_fairness.runs.reader  # noqa: F401

    before, started = _peak(), time.perf_counter()
    globals()[name](folder, count)
    print(
        json.dumps(
            {"MiB": _peak() - before, "seconds": time.perf_counter() - started, "before": before}
        )
    )


def main(counts: list[int]) -> None:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in STAGES}
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            for name in STAGES:
                command = [sys.executable, __file__, "--stage", name, folder, str(count)]
                lines = subprocess.run(
                    command, check=True, capture_output=True, text=True
                ).stdout.splitlines()
                told: dict[str, float] = {}
                for line in lines:
                    told |= json.loads(line)
                found[name].append(told)
                more = {
                    key: round(value - told["before"], 1)
                    for key, value in told.items()
                    if key in ("index", "trials")
                }
                more |= {key: round(value, 1) for key, value in told.items() if key == "table"}
                print(
                    f"{count:>9,} {name:7} {told['MiB']:8.1f} MiB {told['seconds']:7.1f} s  "
                    f"{more or ''}",
                    flush=True,
                )
            size = sum(path.stat().st_size for path in Path(folder).rglob("run.sqlite3*"))
            print(f"{count:>9,} log of {size / 2**20:,.0f} MiB, {size / count:,.0f} bytes a trial")
    if len(counts) > 1:
        for name, told in found.items():
            grown = (told[-1]["MiB"] - told[0]["MiB"]) * 2**20 / (counts[-1] - counts[0])
            print(f"{name:7} {grown:8.0f} bytes more a trial")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        stage(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main([int(argument) for argument in sys.argv[1:]] or [50_000, 200_000])
