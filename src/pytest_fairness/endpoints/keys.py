"""Keys: read from the environment when a call needs them, remembered only so that they can be cut out of texts."""

from __future__ import annotations

import os
import re

from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.endpoints.redaction import remember
from pytest_fairness.errors import UsageError

_SECRET_NAME = re.compile(r"(?:^|_)(?:(?:API)?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
# Sets of settings that end like secrets and hold none.
_PLAIN_VALUE = re.compile(r"(?:true|false|yes|no|none|on|off|[\d.]+|[a-z]{1,8})", re.IGNORECASE)


def read_key(variable: str | None, endpoint: str, setting: str = "api_key_env") -> str | None:
    """The key in the environment variable *variable*; ``None`` if the endpoint needs none. *setting* names it.

    Raises AttemptError(AUTH) if the variable is not set, or holds what no header can carry.
    """
    if variable is None:
        return None
    key = os.environ.get(variable, "")
    remember(key)
    if not key.strip():
        raise AttemptError(
            f"endpoint {endpoint!r}: the environment variable {variable} is not set; export the key, "
            f"or name another variable with {setting}",
            evidence=Evidence.AUTH,
        )
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise AttemptError(
            f"endpoint {endpoint!r}: {variable} holds a space, a line break or a character that no header can "
            "carry; set it again",
            evidence=Evidence.AUTH,
        )
    return key


def refuse_rerouting(provider: str, endpoint: str) -> None:
    """Raise UsageError where a variable of the environment would send what *endpoint* asks *provider* somewhere else:
    then the address would stand neither in the run's identity nor in any file.
    """
    for ending in ("API_BASE", "BASE_URL", "API_URL", "API_ENDPOINT"):
        variable = f"{provider.upper().replace('-', '_')}_{ending}"
        if os.environ.get(variable, "").strip():
            raise UsageError(
                f"endpoint {endpoint!r}: the environment variable {variable} is set, and would send its requests to "
                "another address than the provider's own: write that address as base_url, or unset the variable"
            )


def is_secret(name: str, value: str) -> bool:
    """Whether what is called *name* (a variable, an option, a part of a query) is a secret, going by that name."""
    plain = re.sub(r"[^A-Z0-9]+", "_", name.upper())
    return bool(value) and _SECRET_NAME.search(plain) is not None and not _PLAIN_VALUE.fullmatch(value)


def remember_environment() -> None:
    """Remember every value whose variable is called like a secret: libraries read them behind our back."""
    for name, value in os.environ.items():
        if is_secret(name, value):
            remember(value)
