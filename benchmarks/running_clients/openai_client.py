"""The openai package's own asynchronous client."""

import asyncio

from measured import arguments, report
from openai import AsyncOpenAI


async def main() -> int:
    url, prompts, concurrency = arguments()
    queue = iter(prompts)
    answered = 0
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    async def work() -> None:
        nonlocal answered
        for prompt in queue:
            reply = await client.chat.completions.create(
                model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}]
            )
            answered += bool(reply.choices[0].message.content)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    await client.close()
    return answered


report(lambda: asyncio.run(main()))
