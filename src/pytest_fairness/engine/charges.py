"""By which price attempts go, and what is odd about an answer's own account of itself: its model, its token counts."""

from __future__ import annotations

import re

from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import Endpoint, Price

#: Flag of an attempt: token counts that no model reaches.
USAGE_ABSURD = "usage_absurd"

_SNAPSHOT = re.compile(r"[-@:](?:latest|v?\d{3,8}(?:-\d{2}){0,2})")
_FREE = Price(input_per_million=0.0, output_per_million=0.0)


def same_model(asked: str, answered: str) -> bool:
    """Whether *answered* is *asked*, or a dated snapshot of it (``gpt-4o-mini-2024-07-18``, ``llama3:latest``).

    Providers' prefixes (``openai/``) and case do not matter.
    """
    one, two = (name.rpartition("/")[2].lower() for name in (asked, answered))
    one = one.removesuffix("-latest")
    return two == one or (two.startswith(one) and _SNAPSHOT.fullmatch(two[len(one) :]) is not None)


class Tariff:
    """The price of one endpoint's attempts: the dearer of that agreed on and that of whichever model answers.

    ``price`` is None where it is unknown; it never falls.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        identity = endpoint.identity()
        asked = identity.get("model")
        # On Azure the name is that of a deployment, which says nothing of the model in it.
        self._asked = asked if isinstance(asked, str) and endpoint.type != "azure" else None
        self._provider = self._asked.partition("/")[0] if endpoint.type == "litellm" and self._asked else endpoint.type
        self._known: dict[str, bool] = {}
        self.free = endpoint.simulated or endpoint.price == _FREE
        self.price = endpoint.price
        self._agreed = endpoint.price

    def answered_by(self, model: str | None) -> bool:
        """Take note of who answered: whether that is another model than was asked for. From then on, its listed price
        counts if it is the dearer.
        """
        if model is None or self._asked is None:
            return False
        if model not in self._known:
            self._known[model] = not same_model(self._asked, model)
            if self.price is not None and not self.free and (self._known[model] or self._by_the_list(self._asked)):
                self.price = _dearer(self.price, _listed(self._provider, model))
        return self._known[model]

    def _by_the_list(self, asked: str) -> bool:
        """Whether the price is that of the list, where snapshots have prices of their own, and not one agreed on."""
        return self._agreed == _listed(self._provider, asked)


def _listed(provider: str, model: str) -> Price | None:
    name = model.rpartition("/")[2]
    prices = price_table().prices.get(provider, {})
    bare = next((known for known in prices if same_model(known, name)), None)
    return prices.get(name) or (prices[bare] if bare is not None else None)


def _dearer(price: Price, other: Price | None) -> Price:
    if other is None:
        return price
    return Price(
        input_per_million=max(price.input_per_million, other.input_per_million),
        output_per_million=max(price.output_per_million, other.output_per_million),
        per_call=max(price.per_call, other.per_call),
    )
