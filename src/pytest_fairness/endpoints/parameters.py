"""Which parameters may be sent, by allow-list: a misspelt one is refused before the first call, never passed on.

Whatever would change who answers, or how often we ask, is not a parameter of the model and is not on any
list: ``mock_response``, ``fallbacks``, ``num_retries``, ``api_base``, ``callbacks``, ``extra_headers``,
``drop_params``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping

from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON

_COMMON = frozenset(("temperature", "top_p", "max_tokens", "stop"))
_OPENAI = _COMMON | {
    "max_completion_tokens",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "reasoning_effort",
    "response_format",
    "verbosity",
    # of vLLM and other servers that speak the same format
    "top_k",
    "min_p",
    "repetition_penalty",
}
#: Endpoint type → the parameters it takes.
ALLOWED: Mapping[str, frozenset[str]] = {
    "openai": _OPENAI,
    "azure": _OPENAI - {"top_k", "min_p", "repetition_penalty"},
    "anthropic": _COMMON | {"top_k", "thinking", "reasoning_effort"},
    "ollama": _COMMON
    | {"seed", "top_k", "min_p", "frequency_penalty", "presence_penalty", "num_ctx", "num_predict", "keep_alive"},
    "litellm": _OPENAI | {"thinking"},
    "simulated": _OPENAI,
    # Of these, an application takes those for which its request has a slot.
    "http": _OPENAI,
    "callable": frozenset(),
}
# name → (lowest, highest)
_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}
_COUNTS = ("max_tokens", "max_completion_tokens", "top_k", "num_ctx", "num_predict")


def check_parameters(endpoint_type: str, parameters: Mapping[str, JSON], where: str) -> None:
    """Raise UsageError, beginning with *where*, for a parameter that the type does not take or a value that is none.

    A type of a third party takes whatever its own factory accepts.
    """
    allowed = ALLOWED.get(endpoint_type)
    if allowed is None:
        return
    for name, value in parameters.items():
        if name not in allowed:
            raise UsageError(f"{where}: {unknown('parameter', name, allowed)}")
        _check_value(name, value, where)


def merged_parameters(endpoint: Endpoint, given: Mapping[str, JSON]) -> dict[str, JSON]:
    """The endpoint's defaults with *given* over them. Raises AttemptError(AUTH) for one that it does not take."""
    parameters = {**endpoint.default_parameters, **given}
    try:
        check_parameters(endpoint.type, parameters, f"endpoint {endpoint.name!r}")
    except UsageError as error:
        # Every other attempt would meet the same: nothing was sent, and nothing more need be tried.
        raise AttemptError(str(error), evidence=Evidence.AUTH) from None
    return parameters


def _check_value(name: str, value: JSON, where: str) -> None:
    if name in _RANGES:
        low, high = _RANGES[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise UsageError(f"{where}: {name} must be a number from {low:g} to {high:g}, not {value!r}")
        if not low <= value <= high:
            raise UsageError(f"{where}: {name} must be from {low:g} to {high:g}, not {value!r}")
    elif name in _COUNTS and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise UsageError(f"{where}: {name} must be a whole number, 1 or more, not {value!r}")
    elif name == "seed" and (isinstance(value, bool) or not isinstance(value, int)):
        raise UsageError(f"{where}: seed must be a whole number, not {value!r}")


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence that *name* is no *what*, with the nearest that is one, or all of them."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(choices)}"
    return f"unknown {what} {name!r}; {hint}" if choices else f"unknown {what} {name!r}; it takes none"
