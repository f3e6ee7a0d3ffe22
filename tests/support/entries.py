"""Texts of ``endpoints.yaml``, for systems that many tests ask."""

from __future__ import annotations

from collections.abc import Iterable


def planted(bias: str, *more: str) -> str:
    """A file whose one endpoint, ``planted``, is simulated with this *bias* and *more* keys."""
    keys = ("type: simulated", f"bias: {{{bias}}}", *more)
    return "endpoints:\n  - name: planted\n" + _lines(keys)


def openai_entry(
    name: str,
    url: str,
    *more: str,
    model: str = "gpt-4o-mini",
    key: str = "OPENAI_API_KEY",
    price: tuple[float, float] | None = None,
    max_tokens: int = 100,
) -> str:
    """An entry for a *model* behind a server at *url*; its *price* is of a million tokens of input
    and of output.
    """
    keys = [
        "type: openai",
        f"model: {model}",
        f'base_url: "{url}"',
        f"api_key_env: {key}",
        f"default_parameters: {{max_tokens: {max_tokens}}}",
        *more,
    ]
    if price is not None:
        asked, answered = price
        keys.append(f"price: {{input_per_million: {asked}, output_per_million: {answered}}}")
    return f"  - name: {name}\n" + _lines(keys)


def _lines(keys: Iterable[str]) -> str:
    return "".join(f"    {key}\n" for key in keys)
