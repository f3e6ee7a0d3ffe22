"""``endpoints.yaml``: which systems can be asked, and how. Plain data, checked whole before the first call.

The format is that of the ISO 42001 test specification (§6.4)::

    endpoints:
      - name: "gpt-4o"
        type: "openai"
        model: "gpt-4o"
        base_url: "https://api.openai.com/v1"
        supports_system_prompt: true
        default_temperature: 1.0

and may also hold ``default_parameters``, ``api_key_env``, ``price``, ``concurrency``, ``requests_per_minute``,
``tokens_per_minute``, ``server_error_attempts``, ``via``, ``api_version``, ``batch``, and what is planted in a
``simulated`` endpoint. Keys are never in the file, only the names of the variables that hold them. Nothing else
is read: no tags, no aliases, no key twice, no unknown key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import yaml

from pytest_fairness import documents
from pytest_fairness.endpoints.batch_api import BatchOptions
from pytest_fairness.endpoints.http_options import HTTP_KEYS, read_http
from pytest_fairness.endpoints.http_template import Misplaced
from pytest_fairness.endpoints.parameters import check_parameters, unknown
from pytest_fairness.endpoints.pipeline_options import StepConfig, linked, read_steps
from pytest_fairness.endpoints.protocol import Limits, Price
from pytest_fairness.endpoints.simulated import planted
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

MAX_BYTES = 1_000_000
MAX_ENDPOINTS = 1_000

_PLANTED = ("bias", "noise", "name_sd", "position_bias", "refusal_rate", "channels", "latency", "scrub_recall", "seed")
_COMMON = frozenset(
    ("name", "type", "supports_system_prompt", "default_temperature", "default_parameters", "price", "concurrency")
)
_REMOTE = _COMMON | {
    "model",
    "base_url",
    "api_key_env",
    "requests_per_minute",
    "tokens_per_minute",
    "server_error_attempts",
}
#: Type → the keys that its entry may hold, of those types that come with the package.
KEYS: Mapping[str, frozenset[str]] = {
    "openai": _REMOTE | {"via", "batch"},
    "anthropic": _REMOTE | {"batch"},
    "ollama": _REMOTE,
    "azure": _REMOTE | {"api_version", "batch"},
    "litellm": _REMOTE | {"api_version"},
    "http": (_REMOTE - {"model"}) | {"url", *HTTP_KEYS},
    "pipeline": frozenset(("name", "type", "steps")),
    "simulated": _COMMON | set(_PLANTED),
}
#: Types that a file cannot hold, and why.
_NOT_IN_A_FILE = {
    "callable": "a file must not say which code runs; name the function in Python: let the fixture `endpoint` return "
    'it, or callable_endpoint("my_app.letters:write")',
    "replay": "a recorded run is replayed with --fairness-replay RUN; its systems are those that it asked",
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "openai": ("model",),
    "anthropic": ("model",),
    "ollama": ("model",),
    "azure": ("model", "base_url"),
    "litellm": ("model",),
}
#: Types of third parties take any option under ``options``.
_THIRD_PARTY = _REMOTE | {"options"}
_NAME = re.compile(r"[^\W_][\w.:@/+ -]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LOOKS_LIKE_KEY = re.compile(r"(?:sk|pk|gsk|xai|hf|AIza|AKIA)[-_]?[A-Za-z0-9_\-]{12,}|[A-Za-z0-9_\-]{40,}")
_VERSION = re.compile(r"[\w.\-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """One entry, checked. ``source`` is ``file:line``, for errors; ``options`` is what a simulated, http or
    third-party endpoint is given on top; ``steps`` are those of a pipeline."""

    name: str
    type: str
    model: str | None = None
    base_url: str | None = None
    supports_system_prompt: bool = True
    default_parameters: Mapping[str, JSON] = field(default_factory=dict)
    api_key_env: str | None = None
    price: Price | None = None
    via: str | None = None
    api_version: str | None = None
    concurrency: int | None = None
    limits: Limits = field(default_factory=Limits)
    batch: BatchOptions | None = None
    options: Mapping[str, JSON] = field(default_factory=dict)
    steps: tuple[StepConfig, ...] = ()
    source: str = ""


def load_endpoints(path: Path, *, types: Iterable[str] = ()) -> dict[str, EndpointConfig]:
    """The entries of *path* by name; *types* are those of third parties, beside the built-in ones.

    Raises UsageError, beginning with ``path:line``, for whatever is not as described above.
    """
    data = documents.load_path(path, max_bytes=MAX_BYTES)
    # The document was found to be free of aliases and of a bounded depth, so composing it again is safe.
    lines = _Lines(yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader))
    if not isinstance(data, dict):
        raise UsageError(f"{path}:1: begin with `endpoints:` and a list of endpoints")
    for key in data:
        if key != "endpoints":
            raise UsageError(f"{path}:{lines.of(key)}: {unknown('key', key, ('endpoints',))}")
    entries = data.get("endpoints")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}:{lines.of('endpoints')}: endpoints must be a list with at least one entry")
    if len(entries) > MAX_ENDPOINTS:
        raise UsageError(f"{path}: more than {MAX_ENDPOINTS:,} endpoints; split the file")
    known_types = frozenset(types)
    found: dict[str, EndpointConfig] = {}
    for index, entry in enumerate(entries):
        config = _Entry(str(path), lines, ("endpoints", index), entry, known_types).read()
        if config.name in found:
            first = found[config.name].source
            raise UsageError(f"{config.source}: a second endpoint {config.name!r}; the first is at {first}")
        found[config.name] = config
    return linked(found)


class _Lines:
    """Where in the file something stands, by its path from the root."""

    def __init__(self, root: yaml.Node | None) -> None:
        self._at: dict[tuple[str | int, ...], int] = {}
        stack: list[tuple[tuple[str | int, ...], yaml.Node]] = [((), root)] if root is not None else []
        while stack:
            path, node = stack.pop()
            self._at.setdefault(path, node.start_mark.line + 1)
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    self._at[(*path, key.value)] = key.start_mark.line + 1
                    stack.append(((*path, key.value), value))
            elif isinstance(node, yaml.SequenceNode):
                stack.extend(((*path, number), value) for number, value in enumerate(node.value))

    def of(self, *path: str | int) -> int:
        """The line of *path*, or of the nearest thing around it that is there."""
        while path and path not in self._at:
            path = path[:-1]
        return self._at.get(path, 1)


class _Entry:
    """Reads one entry; every complaint names its line."""

    def __init__(
        self, file: str, lines: _Lines, path: tuple[str | int, ...], entry: object, types: frozenset[str]
    ) -> None:
        self._file, self._lines, self._path, self._types = file, lines, path, types
        if not isinstance(entry, dict):
            raise self.wrong((), "an endpoint must be a mapping with name, type and what the type needs")
        self._entry: dict[str, JSON] = entry

    def wrong(self, path: tuple[str | int, ...], why: str) -> UsageError:
        return UsageError(f"{self._where(*path)}: {why}")

    def _where(self, *path: str | int) -> str:
        return f"{self._file}:{self._lines.of(*self._path, *path)}"

    def read(self) -> EndpointConfig:
        name, kind = self._text("name"), self._text("type")
        if name is None or kind is None:
            raise self.wrong((), f"an endpoint needs {'a name' if name is None else 'a type'}")
        if not _NAME.fullmatch(name):
            raise self.wrong(
                ("name",), f"the name {name!r} must begin with a letter or digit and hold no more than 100 of "
                "letters, digits, spaces and . : @ / + -"
            )  # fmt: skip
        if kind in _NOT_IN_A_FILE and kind not in self._types:
            raise self.wrong(("type",), f"type {kind}: {_NOT_IN_A_FILE[kind]}")
        builtin = kind in KEYS
        if not builtin and kind not in self._types:
            raise self.wrong(("type",), unknown("type", kind, {*KEYS, *self._types}))
        self._check_keys(kind, KEYS[kind] if builtin else _THIRD_PARTY)
        for key in _REQUIRED.get(kind, ()):
            if self._entry.get(key) is None:
                raise self.wrong((), f"endpoint {name!r} of type {kind} needs {key}")
        return EndpointConfig(
            name=name,
            type=kind,
            model=self._text("model"),
            base_url=self._url(),
            supports_system_prompt=self._flag("supports_system_prompt", default=True),
            default_parameters=self._parameters(kind, name),
            api_key_env=self._variable(),
            price=self._price(),
            via=self._via(),
            api_version=self._version(),
            concurrency=self._count("concurrency"),
            limits=Limits(
                requests_per_minute=self._count("requests_per_minute", most=1_000_000_000),
                tokens_per_minute=self._count("tokens_per_minute", most=1_000_000_000_000),
                concurrency=self._count("concurrency"),
                server_error_attempts=self._count("server_error_attempts", most=3) or 1,
            ),
            batch=self._batch(),
            options=self._options(kind),
            steps=self._steps() if kind == "pipeline" else (),
            source=self._where(),
        )

    def _check_keys(self, kind: str, known: frozenset[str]) -> None:
        for key in self._entry:
            if key in known:
                continue
            if key in ("api_key", "key", "token", "password", "secret"):
                raise self.wrong((key,), f"{key}: a key must not stand in a file; name its variable with api_key_env")
            raise self.wrong((key,), f"{unknown('key', key, known)} (type {kind})")

    def _text(self, key: str) -> str | None:
        value = self._entry.get(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise self.wrong((key,), f"{key} must be a text: put {value!r} in quotes")
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 500:
            raise self.wrong((key,), f"{key} must be a text on one line, not {value!r}")
        return value

    def _flag(self, key: str, *, default: bool) -> bool:
        value = self._entry.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong((key,), f"{key} must be true or false, not {value!r}")
        return value

    def _count(self, key: str, most: int = 4096) -> int | None:
        value = self._entry.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most):
            raise self.wrong((key,), f"{key} must be a whole number from 1 to {most:,}, not {value!r}")
        return value

    def _url(self) -> str | None:
        name = "url" if "url" in self._entry else "base_url"
        url = self._text(name)
        if url is None:
            return None
        if name == "url" and "base_url" in self._entry:
            raise self.wrong((name,), "url and base_url are one thing; keep url")
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            raise self.wrong((name,), f"{name} is no address") from None
        # The address itself is not repeated: it may hold a password.
        if parts.username is not None or parts.password is not None or "@" in parts.netloc:
            raise self.wrong((name,), f"{name} holds a user or password; name the key with api_key_env")
        if parts.query or parts.fragment:
            hint = "; with method: GET the request is the query" if self._entry.get("type") == "http" else ""
            raise self.wrong((name,), f"{name} holds a query; leave off everything from ? or #{hint}")
        if not sound or any(character.isspace() for character in url):
            raise self.wrong((name,), f"{name} must begin with http:// or https:// and a host, not {url!r}")
        return url

    def _variable(self) -> str | None:
        variable = self._text("api_key_env")
        if variable is not None and (not _VARIABLE.fullmatch(variable) or _LOOKS_LIKE_KEY.fullmatch(variable)):
            raise self.wrong(
                ("api_key_env",), "api_key_env must be the name of an environment variable, such as OPENAI_API_KEY, "
                "not the key itself"
            )  # fmt: skip
        return variable

    def _via(self) -> str | None:
        via = self._text("via")
        if via not in (None, "litellm"):
            raise self.wrong(("via",), f"via must be litellm, or left off, not {via!r}")
        return via

    def _version(self) -> str | None:
        version = self._text("api_version")
        if version is not None and not _VERSION.fullmatch(version):
            raise self.wrong(("api_version",), f"api_version must be like 2024-10-21, not {version!r}")
        return version

    def _parameters(self, kind: str, name: str) -> dict[str, JSON]:
        given = self._entry.get("default_parameters") or {}
        if not isinstance(given, dict):
            raise self.wrong(("default_parameters",), "default_parameters must map parameters to values")
        parameters = dict(given)
        temperature = self._entry.get("default_temperature")
        if temperature is not None:
            if "temperature" in parameters:
                raise self.wrong(
                    ("default_temperature",), "the temperature stands here twice; keep default_temperature"
                )
            check_parameters(kind, {"temperature": temperature}, self._where("default_temperature"))
            parameters["temperature"] = temperature
        for key, value in given.items():
            check_parameters(kind, {key: value}, f"{self._where('default_parameters', key)}: endpoint {name!r}")
        return parameters

    def _price(self) -> Price | None:
        given = self._entry.get("price")
        if given is None:
            return None
        known = ("input_per_million", "output_per_million", "per_call")
        if not isinstance(given, dict) or not given:
            raise self.wrong(("price",), f"price must hold {', '.join(known)} in US dollars")
        for key, value in given.items():
            if key not in known:
                raise self.wrong(("price", key), unknown("key", key, known))
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
                raise self.wrong(("price", key), f"{key} must be US dollars, 0 or more, not {value!r}")
        if "per_call" not in given and not {"input_per_million", "output_per_million"} <= given.keys():
            raise self.wrong(("price",), "price needs input_per_million and output_per_million, or per_call")
        amounts = {key: float(given.get(key, 0.0)) for key in known}  # type: ignore[arg-type]  # checked above
        return Price(**amounts)

    def _batch(self) -> BatchOptions | None:
        given = self._entry.get("batch") or False
        if isinstance(given, bool):
            return BatchOptions() if given else None
        try:
            return msgspec.convert(given, BatchOptions)
        except msgspec.ValidationError as error:
            raise self.wrong(("batch",), f"batch: {error}") from None

    def _options(self, kind: str) -> dict[str, JSON]:
        if kind == "simulated":
            options = {key: value for key, value in self._entry.items() if key in _PLANTED}
            try:
                planted(options)
            except UsageError as error:
                raise self.wrong((next(iter(options), "name"),), str(error)) from None
            return options
        if kind == "http":
            return self._http()
        options = self._entry.get("options") or {}  # type: ignore[assignment]
        if not isinstance(options, dict):
            raise self.wrong(("options",), "options must map names to values")
        return options

    def _steps(self) -> tuple[StepConfig, ...]:
        try:
            return read_steps(self._entry.get("steps"))
        except Misplaced as error:
            raise self.wrong(error.place, str(error)) from None

    def _http(self) -> dict[str, JSON]:
        options = {key: self._entry[key] for key in HTTP_KEYS if key in self._entry}
        try:
            read = read_http(options)
        except Misplaced as error:
            raise self.wrong(error.place, str(error)) from None
        if self._entry.get("url", self._entry.get("base_url")) is None:
            raise self.wrong((), "type http needs url: where the application listens")
        if self._entry.get("supports_system_prompt") is True and not read.takes_system:
            raise self.wrong(
                ("supports_system_prompt",), 'the request has no place for a system prompt: put "{system}" or '
                '"{messages}" into it'
            )  # fmt: skip
        for name in self._parameters("http", str(self._entry["name"])):
            if name not in read.request.parameters:
                raise self.wrong(
                    ("default_parameters", name), f'the request has no place for {name}: put "{{{name}}}" into it'
                )
        if "api_key_env" in self._entry and any(name.lower() == "authorization" for name in read.headers):
            raise self.wrong(("api_key_env",), "api_key_env is the Authorization header, which stands in headers too")
        return options
