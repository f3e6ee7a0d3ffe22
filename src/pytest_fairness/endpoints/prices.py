"""Our own price table, versioned and hashed: what a run was charged can be recomputed from its log for ever after.

litellm's own map drops old models, lacks new ones, and prices an answer by the name that the server chose to
put into it; none of that is good enough for a cap on somebody's money.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pytest_fairness import documents
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """``prices`` maps a provider to models to prices; ``sha256`` is that of the file, for the run's log."""

    version: int
    as_of: str
    source: str
    sha256: str
    prices: Mapping[str, Mapping[str, Price]]

    def find(self, provider: str, model: str) -> Price | None:
        """The price of exactly *model*, ``None`` if it is not in the table: a similar name may cost ten times more."""
        return self.prices.get(provider, {}).get(model)


@cache
def price_table() -> PriceTable:
    """The table that is shipped with the package."""
    data = files("pytest_fairness.endpoints").joinpath("prices.yaml").read_bytes()
    return read_price_table(data, "prices.yaml")


def provenance() -> dict[str, JSON]:
    """Which table of ours a price came from that nobody gave, for the run's log."""
    table = price_table()
    return {"version": table.version, "as_of": table.as_of, "sha256": table.sha256}


def read_price_table(data: bytes, source: str) -> PriceTable:
    """The table in *data*. Raises UsageError, naming *source* and the model, for anything that is no price."""
    table = documents.load(data, source)
    if not isinstance(table, dict) or not isinstance(table.get("prices"), dict):
        raise UsageError(f"{source}: no prices: a table has version, as_of, source and prices")
    version, providers = table.get("version"), table["prices"]
    if isinstance(version, bool) or not isinstance(version, int) or not isinstance(providers, dict):
        raise UsageError(f"{source}: version must be a whole number")
    prices: dict[str, dict[str, Price]] = {}
    for provider, models in providers.items():
        if not isinstance(models, dict):
            raise UsageError(f"{source}: {provider}: must map models to [input, output]")
        prices[provider] = {model: _price(pair, f"{source}: {provider} {model}") for model, pair in models.items()}
    return PriceTable(
        version=version,
        as_of=str(table.get("as_of", "")),
        source=str(table.get("source", "")),
        sha256=hashlib.sha256(data).hexdigest(),
        prices=prices,
    )


def _price(pair: object, where: str) -> Price:
    if not isinstance(pair, list) or len(pair) != 2:
        raise UsageError(f"{where}: must be [input, output] in US dollars per million tokens")
    numbers = []
    for value in pair:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            raise UsageError(f"{where}: {value!r} is no price in US dollars per million tokens")
        numbers.append(float(value))
    return Price(input_per_million=numbers[0], output_per_million=numbers[1])
