"""Import litellm, late and quietly.

Left to itself, the import fetches a price map from the network, reads a ``.env`` file from above
site-packages into the process and warns; it takes seconds. So it happens on the first question to a model
that needs it, never before.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pytest_fairness.errors import MissingExtra, UsageError

# Published by an attacker in March 2026 (BerriAI/litellm#24512): not even to be imported.
_COMPROMISED = ("1.82.7", "1.82.8")
_AT_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_OFFLINE_MODE": "true",
}
# They log headers and prompts when somebody sets the root logger to DEBUG, as pytest's log_level does.
_TALKATIVE = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpx2")
_lock = threading.Lock()


def check_installed(what: str) -> None:
    """Raise MissingExtra if litellm is not installed, UsageError if it is one of the compromised releases.

    Nothing is imported for this.
    """
    if importlib.util.find_spec("litellm") is None:
        raise MissingExtra(what, "llm")
    version = importlib.metadata.version("litellm")
    if version in _COMPROMISED:
        raise UsageError(
            f"litellm {version} was published by an attacker and may have stolen keys already: remove it, "
            "change the keys that it could read, and install another version"
        )


def load_litellm() -> Any:
    """The module, imported once; blocking, for some seconds the first time."""
    with _lock, _environment(_AT_IMPORT), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm = importlib.import_module("litellm")
        importlib.import_module("openai")
        importlib.import_module("litellm.llms.custom_httpx.http_handler")
        # Otherwise every error prints an invitation to give feedback to standard output.
        litellm.suppress_debug_info = True  # type: ignore[attr-defined]
        for name in _TALKATIVE:
            logger = logging.getLogger(name)
            if logger.level == logging.NOTSET or name == "LiteLLM":
                logger.setLevel(logging.WARNING)
        return litellm


def quieten() -> None:
    """Keep warnings from within litellm from ending a call where the suite makes warnings errors.

    Filters rather than ``catch_warnings``, which would change the filters of the whole process for as long as
    a call is under way and put back the wrong ones when two calls overlap. Whoever set up filters for a test
    undoes these.
    """
    warnings.filterwarnings("ignore", module=r"(?:litellm|openai|pydantic|httpx2?)(?:\.|$)")


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
