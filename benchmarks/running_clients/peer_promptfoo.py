"""promptfoo eval, without its cache. A run of one call is taken off, which is what starting costs.

The fourth argument is promptfoo's main.js.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import arguments, cpu


def evaluate(url: str, prompts: list[str], concurrency: int) -> tuple[float, float, int, float]:
    """(wall seconds, CPU seconds, answers, peak MiB) of one evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "prompts": ["{{prompt}}"],
            "providers": [
                {
                    "id": "openai:chat:gpt-4o-mini",
                    "config": {"apiBaseUrl": f"{url}/v1", "apiKey": "none"},
                }
            ],
            "tests": [{"vars": {"prompt": prompt}} for prompt in prompts],
        }
        Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
        out = Path(folder, "out.json")
        before, started = cpu(), time.perf_counter()
        command = ["node", sys.argv[4], "eval", "-c", "config.json", "-j", str(concurrency)]
        subprocess.run(
            [
                *command,
                "--no-cache",
                "--no-table",
                "--no-progress-bar",
                "--no-write",
                "-o",
                str(out),
            ],
            cwd=folder,
            env={
                **os.environ,
                "PROMPTFOO_CONFIG_DIR": folder,
                "PROMPTFOO_DISABLE_TELEMETRY": "1",
                "PROMPTFOO_DISABLE_UPDATE": "1",
                "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        wall, used = time.perf_counter() - started, cpu() - before
        results = json.loads(out.read_text(encoding="utf-8"))["results"]["results"]
    import resource

    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return wall, used, sum(bool(row.get("response", {}).get("output")) for row in results), memory


url, prompts, concurrency = arguments()
start_wall, start_cpu, _, start_memory = evaluate(url, prompts[:1], 1)
wall, used, answered, memory = evaluate(url, prompts, concurrency)
told = {"wall": wall - start_wall, "cpu": used - start_cpu, "answered": answered}
print("MEASURED " + json.dumps({**told, "imported": start_memory, "peak": memory}))
