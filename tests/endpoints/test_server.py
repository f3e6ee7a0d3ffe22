"""The test server as a program of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_serves_from_the_command_line_and_tells_what_it_saw() -> None:
    """The first line is its address; interrupted, it prints how many requests came and how many were billed."""
    command = [sys.executable, "-m", "tests.support.servers", "--options", '{"refusal_rate": 1.0}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Rate Ann."}]}).encode()
        with urllib.request.urlopen(f"{url}/v1/chat/completions", data=body, timeout=10) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGINT)
        last = json.loads(process.stdout.readline())
    assert answer["choices"][0]["message"]["refusal"]
    assert last == {"requests": 1, "billed": 1}
