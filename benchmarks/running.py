"""Clients side by side against one server: wall over ideal, CPU a call, memory.

Run: python benchmarks/running.py [--calls N] [--latency S] [--concurrency N ...] [--rounds N]
[--peers FOLDER]

The server (``latency_server.py``) has a core of its own where there are two. Each client is a fresh
process that makes as many calls with as many in flight; *ideal* is calls x latency / in flight.
Quote ratios of one run only: the machine's speed is in all of them. Clients take turns for
``--rounds``, and the median is shown.

``--peers FOLDER`` adds other tools, each from an environment of its own in FOLDER, which is made
where it is missing: they are no dependencies of this project and cannot be installed beside one
another.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CLIENTS = HERE / "running_clients"
SERVER_CORE, CLIENT_CORE = 0, 1

OURS = {
    "openai (direct)": {"type": "openai", "model": "gpt-4o-mini", "base_url": "URL/v1"},
    "ollama (direct)": {"type": "ollama", "model": "llama3", "base_url": "URL"},
    "http": {
        "type": "http",
        "url": "URL/v1/chat/completions",
        "request": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "{prompt}"}]},
        "reply": "$.choices[0].message.content",
    },
    "callable (async)": {"type": "callable"},
    "openai (litellm)": {
        "type": "openai",
        "via": "litellm",
        "model": "gpt-4o-mini",
        "base_url": "URL/v1",
    },
    "anthropic (direct)": {
        "type": "anthropic",
        "model": "claude-sonnet-4-5-20250929",
        "base_url": "URL",
        "default_parameters": {"max_tokens": 400},
    },
    "azure (direct)": {
        "type": "azure",
        "model": "gpt-4o-mini",
        "base_url": "URL",
        "api_version": "2024-06-01",
        "api_key_env": "BENCHMARK_KEY",
    },
    "simulated": {"type": "simulated", "latency": None},
}


@dataclass(frozen=True)
class Client:
    """A program to run: its command without port, calls and concurrency, and what comes after
    those.
    """

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()


def clients(latency: float, peers: Path | None) -> list[Client]:
    python = sys.executable
    found = [
        Client("aiohttp, bare", (python, str(CLIENTS / "raw.py"))),
        Client("openai package", (python, str(CLIENTS / "openai_client.py"))),
        *(
            Client(f"litellm, bare: {route}", (python, str(CLIENTS / "litellm_bare.py")), (route,))
            for route in ("openai", "anthropic", "azure")
        ),
    ]
    for name, entry in OURS.items():
        told = {key: latency if key == "latency" else value for key, value in entry.items()}
        found.append(
            Client(
                f"pytest-fairness: {name}", (python, str(CLIENTS / "ours.py")), (json.dumps(told),)
            )
        )
    return found + ([] if peers is None else _peers(peers))


def _peers(folder: Path) -> list[Client]:
    found = []
    for name, script, packages in (
        ("LangFair", "peer_langfair.py", ("langfair", "langchain-openai")),
        ("Inspect AI", "peer_inspect.py", ("inspect-ai", "openai")),
        ("DeepEval", "peer_deepeval.py", ("deepeval",)),
    ):
        python = folder / packages[0] / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / packages[0])], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        found.append(Client(name, (str(python), str(CLIENTS / script))))
    if shutil.which("npm"):
        main = folder / "promptfoo" / "node_modules" / "promptfoo" / "dist" / "src" / "main.js"
        if not main.exists():
            main.parents[4].mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "promptfoo"],
                cwd=main.parents[4],
                check=True,
            )
        found.append(
            Client("promptfoo", (sys.executable, str(CLIENTS / "peer_promptfoo.py")), (str(main),))
        )
    return found


class Server:
    """The server as a process of its own."""

    def __init__(self, latency: float) -> None:
        command = [sys.executable, str(HERE / "latency_server.py"), str(latency)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        pin(self._process.pid, SERVER_CORE)

    def served(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/served", timeout=10) as response:
            told: dict[str, int] = json.load(response)
        return told

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def pin(pid: int, core: int) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


def measure(client: Client, server: Server, calls: int, concurrency: int) -> dict[str, float]:
    """One round of *client*; raises RuntimeError where it did not get every answer, or asked more
    than that.
    """
    before = server.served()["served"]
    command = [*client.command, str(server.port), str(calls), str(concurrency), *client.after]
    path = os.pathsep.join(part for part in (str(CLIENTS), os.environ.get("PYTHONPATH")) if part)
    environment = {**os.environ, "PYTHONPATH": path, "OPENAI_API_KEY": "none"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        pin(process.pid, CLIENT_CORE)
        out, err = process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("MEASURED ")]
    if not lines:
        raise RuntimeError(f"{client.name} failed:\n{err[-2000:]}")
    told: dict[str, float] = json.loads(lines[-1].removeprefix("MEASURED "))
    told["asked"] = server.served()["served"] - before
    return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--only", nargs="+", help="parts of names")
    given = parser.parse_args()
    chosen = [
        client
        for client in clients(given.latency, given.peers)
        if given.only is None or any(part in client.name for part in given.only)
    ]
    with Server(given.latency) as server:
        for concurrency in given.concurrency:
            ideal = given.calls * given.latency / concurrency
            print(
                f"\n{given.calls} calls of {given.latency * 1000:g} ms, {concurrency} in flight: "
                f"ideal {ideal:.2f} s"
            )
            print(
                f"{'client':36} {'wall/ideal':>10} {'CPU ms/call':>12} {'+MiB':>6} {'peak MiB':>9} "
                f"{'answers':>8}"
            )
            rounds: dict[str, list[dict[str, float]]] = {client.name: [] for client in chosen}
            for _ in range(given.rounds):
                for client in chosen:
                    try:
                        rounds[client.name].append(
                            measure(client, server, given.calls, concurrency)
                        )
                    except RuntimeError as error:
                        print(error, file=sys.stderr)
            for name, taken in rounds.items():
                if taken:
                    print(_row(name, taken, ideal, given.calls), flush=True)


def _row(name: str, taken: list[dict[str, float]], ideal: float, calls: int) -> str:
    def median(key: str) -> float:
        return statistics.median(one[key] for one in taken)

    added = statistics.median(one["peak"] - one["imported"] for one in taken)
    return (
        f"{name:36} {median('wall') / ideal:10.2f} {median('cpu') / calls * 1000:12.2f} "
        f"{added:6.0f} "
        f"{median('peak'):9.0f} {int(median('answered')):8}"
    )


if __name__ == "__main__":
    main()
