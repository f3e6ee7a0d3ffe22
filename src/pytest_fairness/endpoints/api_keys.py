"""Read the keys of endpoints from the environment, when a call needs them."""

from __future__ import annotations

import os

from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.endpoints.redaction import remember


def read_key(variable: str | None, endpoint: str, setting: str = "api_key_env") -> str | None:
    """Return the key in the environment variable *variable*; ``None`` if the endpoint needs none.
    *setting* names it.

    Raises AttemptError(AUTH) if the variable is not set, or holds what no header can carry.
    """
    if variable is None:
        return None
    remember(os.environ.get(variable))
    key = os.environ.get(variable, "").strip()
    if not key:
        wrong = (
            f"the environment variable {variable} is not set; export the key, or name another "
            f"variable with {setting}"
        )
        raise AttemptError(f"endpoint {endpoint!r}: {wrong}", evidence=Evidence.AUTH)
    if " " in key or not (key.isascii() and key.isprintable()):
        wrong = (
            f"{variable} holds a space, a line break or a character that no header can carry; set "
            "it again"
        )
        raise AttemptError(f"endpoint {endpoint!r}: {wrong}", evidence=Evidence.AUTH)
    return key
