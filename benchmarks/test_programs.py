"""Every program of ``benchmarks/`` runs: with its smallest setting, without a network and without
looking at a time.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CLIENTS = FOLDER / "running_clients"
#: Its arguments, and what the last lines of its output have.
PROGRAMS = {
    "arms": ("--runs 1", "as large as before"),
    "bias_programme": (
        "--seeds 1 --d 0 --tests BIAS-REFUSE-gender",
        "| BIAS-REFUSE | gender | 1 | 0 |",
    ),
    "calibration": ("--audits 2 --only binary", "| G10 |"),
    "comparison": ("--count 1", "yes/no"),
    "crashes": ("1 12", "its findings are those of an undisturbed run"),
    "joined_names": ("--audits 4 --sizes 20 --only 'white, black'", "| white, black | 20 |"),
    "judging": ("1", "the same again with scores kept"),
    "look_sessions": ("--fair 1 --biased 0 --only 2", "of 1 audits"),
    "letter_gate": ("--runs 1", "1 runs without a change"),
    "lexicon": ("", "all categories: precision"),
    "looks": ("--audits 1 --rounds 1 --only four-fifths,", "four-fifths, .5, 2 groups"),
    "looks_under_way": ("--tests 1 --latency 0.01 --rounds 1", "wall over ideal, median of 1"),
    "log_memory": ("40", "bytes a trial"),
    "pilot_sessions": ("--audits 1 --only '3.5, rule'", "| border 3.5, rule |"),
    "pooled_classes": ("--audits 1 --names 6 --built", "rating, 2 groups, 6 names"),
    "published_tables": ("TABLES", "1 PASS, 1 FAIL"),
    "mutations": ("--only LEAST_ROWS", "1 mutations, 0 alive"),
    "reader_errors": ("--audits 2 --labels 0 50", "| 50 |"),
    "reader_sessions": ("--audits 1 --labels 50 --rates 0.30", "50 labels a group: red"),
    "running": ("CLIENTS", "pytest-fairness: simulated"),
    "scoring": ("decision --characters 500", "slowest:"),
    "selection": ("--seeds 1", "change of the win rate"),
    "startup": ("1", "peak  added"),
    "statistics_speed": ("--repetitions 1 --size 1 --audits 2", "2 null audits"),
    "tables": ("--rows 20000 --most 20000 --names 500", "10,000 yes/no rows"),
    "verdict_shares": ("--audits 1", "2 groups, 1 template"),
    "wire_styles": (
        "--tests BIAS-ATTR-gender --tiers 2 --styles json",
        "| BIAS-ATTR | 2 | 400 | 0 | 0 | 0 |",
    ),
}
#: The routes that need no package beside those of the tests.
ROUTES = ["aiohttp", "openai package", "bare: openai", "direct", "http", "callable", "simulated"]
#: What reads texts that are no part of the repository.
READERS = {"ordinary_mails"}
#: What other programs run or import.
PARTS = {"asked_in_memory", "audits", "destruction", "latency_server", "uneven"}
#: Other tools, each of which ``running.py --peers`` installs into an environment of its own.
PEERS = {"peer_deepeval", "peer_inspect", "peer_langfair", "peer_promptfoo"}


def test_each_program_is_run_here() -> None:
    programs = {path.stem for path in FOLDER.glob("*.py")} - {"test_programs"}
    assert programs == PROGRAMS.keys() | PARTS | READERS
    clients = {path.stem for path in CLIENTS.glob("*.py")} - {"__init__", "measured"}
    assert clients == {"raw", "openai_client", "litellm_bare", "ours"} | PEERS


def test_other_mails_than_those_counted_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text("word " * 100, encoding="ascii")
    command = [sys.executable, str(FOLDER / "ordinary_mails.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs(name: str, tmp_path: Path) -> None:
    given, expected = PROGRAMS[name]
    arguments = shlex.split(given)
    if given == "CLIENTS":
        arguments = ["--calls", "6", "--latency", "0.01", "--concurrency", "3", "--only", *ROUTES]
    if given == "TABLES":
        arguments = [str(tmp_path / "tables.csv")]
        rows = [
            "table,group,n,rate",
            "A,Male,400,60",
            "A,Female,400,59",
            "B,Male,300,50",
            "B,Female,300,30",
        ]
        (tmp_path / "tables.csv").write_text("\n".join(rows), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    # Of so few audits some miss their mark, which the calibration ends with.
    codes = {0, 1} if name == "calibration" else {0}
    assert done.returncode in codes, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    assert expected in done.stdout
    assert "failed:" not in done.stderr  # a client that got no answers, which the table leaves out
