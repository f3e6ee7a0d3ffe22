"""LangFair's response generator over langchain-openai. It has no limit of its own on what is in
flight.
"""

import asyncio

from langchain_openai import ChatOpenAI
from langfair.generator import ResponseGenerator
from measured import arguments, report


def main() -> int:
    url, prompts, _ = arguments()
    model = ChatOpenAI(model="gpt-4o-mini", base_url=f"{url}/v1", api_key="none", max_retries=0)
    made = asyncio.run(
        ResponseGenerator(langchain_llm=model).generate_responses(prompts=prompts, count=1)
    )
    return sum(bool(text) and "Unable" not in text for text in made["data"]["response"])


report(main)
