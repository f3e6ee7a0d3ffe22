"""litellm's ``acompletion`` as its documentation has it, without retries; the route is the fourth
argument.
"""

import asyncio
import os
import sys

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MODE="PRODUCTION")

import litellm
from measured import arguments, report

ROUTE = sys.argv[4] if len(sys.argv) > 4 else "openai"


async def main() -> int:
    url, prompts, concurrency = arguments()
    options = {
        "openai": {"model": "openai/gpt-4o-mini", "api_base": f"{url}/v1"},
        "anthropic": {
            "model": "anthropic/claude-sonnet-4-5-20250929",
            "api_base": url,
            "max_tokens": 400,
        },
        "azure": {"model": "azure/gpt-4o-mini", "api_base": url, "api_version": "2024-06-01"},
    }[ROUTE]
    queue = iter(prompts)
    answered = 0

    async def ask(prompt: str) -> bool:
        reply = await litellm.acompletion(
            **options, api_key="none", max_retries=0, messages=[{"role": "user", "content": prompt}]
        )
        return bool(reply.choices[0].message.content)

    async def work() -> None:
        nonlocal answered
        for prompt in queue:
            got = await ask(prompt)  # before the sum: another worker may add to it meanwhile
            answered += got

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return answered


report(lambda: asyncio.run(main()))
