"""Inspect AI: one sample a prompt, generation alone, no scorer, the log into a folder that is
thrown away.
"""

import os
import tempfile

os.environ["OPENAI_API_KEY"] = "none"

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.solver import generate
from measured import arguments, report


def main() -> int:
    url, prompts, concurrency = arguments()
    with tempfile.TemporaryDirectory() as folder:
        logs = eval(
            Task(
                dataset=MemoryDataset([Sample(input=prompt) for prompt in prompts]),
                solver=[generate()],
            ),
            model="openai/gpt-4o-mini",
            model_base_url=f"{url}/v1",
            model_args={"responses_api": False},
            max_connections=concurrency,
            max_samples=concurrency,
            max_retries=0,
            display="none",
            log_dir=folder,
        )
        return sum(bool(sample.output.completion) for sample in logs[0].samples or [])


report(main)
