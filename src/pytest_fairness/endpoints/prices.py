"""Our own price table, versioned and hashed: what a run was charged can be recomputed from its log
for ever after.

litellm's own map drops old models, lacks new ones, and prices an answer by the name that the server
chose to put into it; none of that is good enough for a cap on somebody's money.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated

from msgspec import Meta, Struct, structs

from pytest_fairness import documents
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.model import JSON

#: US dollars per million tokens.
_Dollars = Annotated[float, Meta(ge=0, lt=1e6)]


class PriceTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``prices`` maps a provider to models to what input and output cost; ``sha256`` is that of the
    file.
    """

    version: int
    as_of: str
    source: str
    prices: dict[str, dict[str, tuple[_Dollars, _Dollars]]]
    sha256: str = ""

    def find(self, provider: str, model: str) -> Price | None:
        """The price of exactly *model*, ``None`` if it is not in the table: a similar name may cost
        ten times more.
        """
        pair = self.prices.get(provider, {}).get(model)
        if pair is None:
            return None
        return Price(input_per_million=pair[0], output_per_million=pair[1])

    def provenance(self) -> dict[str, JSON]:
        """Return which table a price came from that nobody gave, for the run's log."""
        return {key: getattr(self, key) for key in ("version", "as_of", "sha256")}


@cache
def price_table() -> PriceTable:
    """The table that is shipped with the package."""
    data = files(__package__).joinpath("prices.yaml").read_bytes()
    table = documents.parse(data, "prices.yaml").convert(PriceTable)
    return structs.replace(table, sha256=hashlib.sha256(data).hexdigest())
