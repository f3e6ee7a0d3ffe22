"""Entries of ``endpoints.yaml``: the keys of every type. Each type's own entry stands beside its
endpoint.

The format is that of the ISO 42001 test specification (§6.4). Keys are never in the file, only the
names of variables that hold them. Which parameters may be sent is an allow-list,
``parameters.yaml``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from pytest_fairness import documents
from pytest_fairness.documents import Misplaced, is_number
from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence, Limits, Price
from pytest_fairness.errors import unknown
from pytest_fairness.model import JSON

_NAME = re.compile(r"[^\W_][\w.:@/+ -]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
LOOKS_LIKE_KEY = re.compile(
    r"(?:sk|pk|gsk|xai|hf|AIza|AKIA|ghp)[-_]?[A-Za-z0-9_\-]{12,}|[A-Za-z0-9_\-]{40,}"
)
_PRICE_KEYS = ("input_per_million", "output_per_million", "per_call")
_LONGEST = 500
_LIMITS = frozenset(field.name for field in fields(Limits))


class EndpointConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry. Checks itself, whether it comes from a file or from Python: raises
    :class:`Misplaced`.
    """

    name: str
    type: str

    def __post_init__(self) -> None:
        for key in self.__struct_fields__:
            value = getattr(self, key)
            if isinstance(value, str) and not _is_line(value):
                raise Misplaced(f"{key} must be a text on one line, not {value[:_LONGEST]!r}", key)
        if not _NAME.fullmatch(self.name):
            why = (
                "begin with a letter or digit and hold no more than 100 of letters, digits, spaces "
                "and . : @ / + -"
            )
            raise Misplaced(f"the name {self.name!r} must {why}", "name")

    @property
    def limits(self) -> Limits:
        """Return how fast the endpoint may be asked, as the entry says."""
        names = _LIMITS.intersection(self.__struct_fields__)
        return Limits(**{name: getattr(self, name) for name in names})


def _is_line(text: str) -> bool:
    """Return whether *text* says something, on one line that is not too long."""
    return all((text.strip(), text.isprintable(), len(text) <= _LONGEST))


class SystemConfig(EndpointConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of one system, asked by itself. ``default_temperature`` ends up in
    ``default_parameters``. ``takes_schemas``: systems of this type mostly answer by a JSON schema.
    """

    takes_schemas: ClassVar[bool] = False

    supports_system_prompt: bool = True
    supports_structured_output: bool | None = None
    default_temperature: Any = None
    default_parameters: dict[str, Any] = {}
    price: Any = None
    concurrency: Annotated[int, Meta(ge=1, le=4096)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "price", _price(self.price))
        for key, value in self.default_parameters.items():
            check_parameters(self, {key: value}, "default_parameters", key)
        if self.supports_structured_output is None:
            force_setattr(self, "supports_structured_output", self.takes_schemas)
        elif self.supports_structured_output:
            check_parameters(self, {"response_format": {}}, "supports_structured_output")
        if self.default_temperature is not None:
            if "temperature" in self.default_parameters:
                raise Misplaced(
                    "the temperature stands here twice; keep default_temperature",
                    "default_temperature",
                )
            given = {"temperature": self.default_temperature}
            check_parameters(self, given, "default_temperature")
            force_setattr(self, "default_parameters", {**self.default_parameters, **given})
            force_setattr(self, "default_temperature", None)

    @property
    def known_price(self) -> Price | None:
        """The price that the entry gives, or one that is known without."""
        price: Price | None = self.price
        return price


class RemoteConfig(SystemConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a system behind an address."""

    api_key_env: str | None = None
    requests_per_minute: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    tokens_per_minute: Annotated[int, Meta(ge=1, le=1_000_000_000_000)] | None = None
    server_error_attempts: Annotated[int, Meta(ge=1, le=3)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.api_key_env is not None:
            check_variable(self.api_key_env, "api_key_env")
        check_url(getattr(self, "base_url", None), "base_url")


class ThirdPartyConfig(RemoteConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a type of a project or another plugin: ``options`` are its own affair."""

    base_url: str | None = None
    model: str | None = None
    options: dict[str, Any] = {}


class ModelConfig(RemoteConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of one model of a provider; *official_key* and the price list are the provider's own
    address's.
    """

    takes_schemas: ClassVar[bool] = True
    default_url: ClassVar[str] = ""
    official_host: ClassVar[str] = ""
    official_key: ClassVar[str | None] = None

    base_url: str | None = None
    model: str

    @property
    def address(self) -> str:
        """Return where the model is asked."""
        return (self.base_url or self.default_url).rstrip("/")

    @property
    def official(self) -> bool:
        """Return whether that is the provider's own: only there do its key and its prices apply
        without being named.
        """
        host = urlsplit(self.address).hostname or ""
        return bool(self.official_host) and f".{host}".endswith(f".{self.official_host}")

    @property
    def key_variable(self) -> str | None:
        """The environment variable of the key."""
        if self.api_key_env is None and self.official:
            return self.official_key
        return self.api_key_env

    @property
    def known_price(self) -> Price | None:
        price = super().known_price
        if price is None and self.official:
            return price_table().find(self.type, self.model)
        return price


class BatchOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``batch:`` of an entry in endpoints.yaml.

    ``poll_seconds`` lie between two looks at a batch. ``max_requests`` bounds one batch;
    ``max_wait_hours`` after its submission nobody waits for it any more. A call in a batch costs
    ``price_share`` of a single call.
    """

    poll_seconds: Annotated[float, Meta(ge=0.01, le=3600)] = 60.0
    max_requests: Annotated[int, Meta(ge=1, le=50_000)] = 10_000
    max_wait_hours: Annotated[float, Meta(ge=0.0001, le=720)] = 26.0
    price_share: Annotated[float, Meta(ge=0, le=1)] = 0.5


#: What ``batch: true`` and ``batch: false`` stand for.
_BATCH_SWITCHED = {True: BatchOptions(), False: None}


class ProviderConfig(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of a provider that has a batch API, and that litellm knows too."""

    via: Literal["litellm"] | None = None
    batch: BatchOptions | bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.batch, bool):
            force_setattr(self, "batch", _BATCH_SWITCHED[self.batch])
        if self.batch is not None and self.via is not None:
            raise Misplaced("batches are not sent through litellm: leave off via", "via")

    @property
    def known_price(self) -> Price | None:
        """The price of a call: in a batch, its share of that of a single one."""
        price = super().known_price
        if price is None or not isinstance(self.batch, BatchOptions):
            return price
        return Price(
            **{name: dollars * self.batch.price_share for name, dollars in asdict(price).items()}
        )


def check_variable(name: str, key: str) -> None:
    """Raise :class:`Misplaced`, at *key*, where *name* is not that of an environment variable, but
    perhaps a key.
    """
    if not _VARIABLE.fullmatch(name) or LOOKS_LIKE_KEY.fullmatch(name):
        why = (
            "must be the name of an environment variable, such as OPENAI_API_KEY, not the key "
            "itself"
        )
        raise Misplaced(f"{key} {why}", key)


def check_url(url: str | None, key: str, hint: str = "") -> None:
    """Raise :class:`Misplaced` where *url* is none that can be asked, or holds what belongs in a
    variable.
    """
    if not url:
        return
    try:
        parts = urlsplit(url)
        leads_to_host = _leads_to_host(parts)
    except ValueError:
        raise Misplaced(f"{key} is no address", key) from None
    # The address itself is not repeated: it may hold a password.
    if "@" in parts.netloc:
        raise Misplaced(f"{key} holds a user or password; name the key with api_key_env", key)
    if parts.query or parts.fragment:
        raise Misplaced(f"{key} holds a query; leave off everything from ? or #{hint}", key)
    if not leads_to_host or any(map(str.isspace, url)):
        raise Misplaced(f"{key} must begin with http:// or https:// and a host, not {url!r}", key)


def _leads_to_host(parts: SplitResult) -> bool:
    """Return whether *parts* are those of an HTTP address. Raises ValueError for an odd port."""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return False
    return parts.port is None or parts.port >= 0


def _price(given: Any) -> Price | None:
    """Return the price that an entry gives. Raises Misplaced for what is none."""
    if isinstance(given, Price | None):
        return given
    if not isinstance(given, Mapping) or not given:
        raise Misplaced(f"price must hold {', '.join(_PRICE_KEYS)} in US dollars", "price")
    for key, value in given.items():
        _check_price(key, value)
    if "per_call" not in given and len(given) < 2:
        raise Misplaced(
            "price needs input_per_million and output_per_million, or per_call", "price"
        )
    return Price(**{key: float(given.get(key, 0.0)) for key in _PRICE_KEYS})


def _check_price(key: Any, value: Any) -> None:
    """Raise Misplaced for a line of a price that is none: another key, or no amount."""
    if key not in _PRICE_KEYS:
        raise Misplaced(unknown("key", key, _PRICE_KEYS), "price", key)
    if not is_amount(value):
        raise Misplaced(f"{key} must be US dollars, 0 or more, not {value!r}", "price", key)


def is_amount(value: object) -> bool:
    """Return whether *value* can be a price in dollars."""
    return is_number(value) and 0 <= value < 1e6


# ---------------------------------------------------------------- parameters

_PARAMETERS: Any = documents.parse(
    files(__package__).joinpath("parameters.yaml").read_bytes(), "parameters.yaml"
).data
_KINDS = ("openai", "azure", "anthropic", "ollama", "litellm", "simulated", "http", "callable")


def _allowed(kind: str) -> frozenset[str]:
    """Return the parameters that endpoints of type *kind* take."""
    return frozenset(name for name, row in _PARAMETERS.items() if kind in row["types"].split())


#: Endpoint type → the parameters it takes.
ALLOWED: Mapping[str, frozenset[str]] = {kind: _allowed(kind) for kind in _KINDS}


def check_parameters(
    system: SystemConfig | Endpoint, parameters: Mapping[str, JSON], *place: str
) -> None:
    """Raise Misplaced, at *place*, for a parameter that the type of *system* does not take or a
    value that is none.

    A type of a third party takes whatever its own factory accepts.
    """
    allowed = ALLOWED.get(system.type)
    if allowed is None:
        return
    for name, value in parameters.items():
        wrong = ""
        if name not in allowed:
            wrong = unknown("parameter", name, allowed)
        elif not _is_value(name, value):
            wrong = f"{name} must be a {_kind_of_value(name)}, not {value!r}"
        if wrong:
            raise Misplaced(f"endpoint {system.name!r}: {wrong}", *place)


#: The types of a value, by its kind in ``parameters.yaml``; any other kind is a whole number.
_TYPES_OF_NUMBERS: Mapping[str, tuple[type, ...]] = {"number": (int, float)}


def _is_value(name: str, value: Any) -> bool:
    """Return whether the parameter *name* may be *value*."""
    row = _PARAMETERS[name]
    kind = row.get("kind")
    if kind is None:
        return True
    if type(value) not in _TYPES_OF_NUMBERS.get(kind, (int,)):
        return False
    return bool(row.get("least", -math.inf) <= value <= row.get("greatest", math.inf))


def _kind_of_value(name: str) -> str:
    """Return what the parameter *name* may be, in words: "number from 0 to 2"."""
    row = _PARAMETERS[name]
    if "greatest" in row:
        return f"{row['kind']} from {row.get('least', -math.inf):g} to {row['greatest']:g}"
    if row.get("least") == 1:
        return f"{row['kind']}, 1 or more"
    return str(row["kind"])


def merged_parameters(endpoint: Endpoint, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """The endpoint's defaults with *given* over them. Raises AttemptError(AUTH) for one that it
    does not take.
    """
    parameters = {**endpoint.default_parameters, **given}
    try:
        check_parameters(endpoint, parameters)
    except Misplaced as error:
        # Every other attempt would meet the same: nothing was sent, and nothing more need be tried.
        raise AttemptError(str(error), evidence=Evidence.AUTH) from None
    return parameters
