"""pytest-fairness with everything on: interleaving, keys, the log flushed before use, reservations,
progress.

The fourth argument is the endpoint's entry in ``endpoints.yaml``, as JSON.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from measured import arguments, report

from pytest_fairness.endpoints import load_endpoints
from pytest_fairness.endpoints.registry import as_endpoint, create_endpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.progress import Progress
from pytest_fairness.model import Cell
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.store import open_store


def main() -> None:
    url, prompts, concurrency = arguments()
    os.environ["BENCHMARK_KEY"] = "none"
    with tempfile.TemporaryDirectory(prefix="fairness-benchmark-") as folder:
        entry = json.loads(sys.argv[4].replace("URL", url))
        if entry["type"] == "callable":
            endpoint = as_endpoint(_application(url, concurrency))
        else:
            entry = {
                "name": "system",
                "price": {"input_per_million": 0.15, "output_per_million": 0.6},
                **entry,
            }
            if entry["type"] == "simulated":
                del entry["price"]
            path = Path(folder, "endpoints.yaml")
            path.write_text(json.dumps({"endpoints": [entry]}), encoding="utf-8")  # JSON is YAML
            endpoint = create_endpoint(load_endpoints(path)["system"], concurrency=concurrency)
        store = open_store(Path(folder, "runs"), "benchmark")
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            nowhere.isatty = lambda: True  # type: ignore[method-assign]
            engine = Engine(
                endpoint, store, concurrency=concurrency, max_cost=100.0, progress=Progress(nowhere)
            )
            engine.run(_plan(["A first call, so that what is imported on it is not counted."]))
            plan = _plan(prompts)
            report(lambda: sum(trial.reply is not None for trial in engine.run(plan)))
            engine.close()
        store.close()


def _plan(prompts: list[str]) -> list[PlannedTrial]:
    groups = ("white", "black", "hispanic", "asian")
    return [
        PlannedTrial(
            cell=Cell(
                id=f"c{at}",
                template="t1",
                groups={"race_ethnicity": groups[at % 4]},
                name=f"Name {at % 20}",
                turns=(prompt,),
            ),
            repetition=0,
        )
        for at, prompt in enumerate(prompts)
    ]


def _application(url: str, concurrency: int):
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    async def application(prompt: str) -> str:
        if not sessions:
            sessions.append(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency))
            )
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]}
        async with sessions[0].post(f"{url}/v1/chat/completions", json=body) as response:
            return (await response.json())["choices"][0]["message"]["content"]

    return application


main()
