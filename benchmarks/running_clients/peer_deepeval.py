"""DeepEval's own model class, as its generation uses it, with as many calls in flight as asked for."""

import asyncio
import os

os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", OPENAI_API_KEY="none", ERROR_REPORTING="NO")

from deepeval.models import GPTModel
from measured import arguments, report


async def main() -> int:
    url, prompts, concurrency = arguments()
    model = GPTModel(model="gpt-4o-mini", base_url=f"{url}/v1")
    queue = iter(prompts)
    answered = 0

    async def work() -> None:
        nonlocal answered
        for prompt in queue:
            reply = await model.a_generate(prompt)
            answered += bool(reply[0])

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return answered


report(lambda: asyncio.run(main()))
