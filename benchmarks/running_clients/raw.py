"""aiohttp with nothing around it: the least that a client over a well-kept library takes."""

import asyncio

import aiohttp
from measured import arguments, report


async def main() -> int:
    url, prompts, concurrency = arguments()
    queue = iter(prompts)
    answered = 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        for prompt in queue:
            body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]}
            async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                reply = await response.json()
                answered += bool(reply["choices"][0]["message"]["content"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
    return answered


report(lambda: asyncio.run(main()))
