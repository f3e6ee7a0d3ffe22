"""``batch:`` in endpoints.yaml: which types take it, what it may say, and how a slip is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.endpoints import load_endpoints
from pytest_fairness.endpoints.batch_api import BatchOptions
from pytest_fairness.endpoints.config import ProviderConfig
from pytest_fairness.errors import UsageError

ENTRY = """\
endpoints:
  - name: "large"
    type: "{type}"
    model: "m"
    base_url: "http://127.0.0.1:1"
    batch: {batch}
"""


def loaded(tmp_path: Path, batch: str, kind: str = "openai") -> BatchOptions | None:
    path = tmp_path / "endpoints.yaml"
    path.write_text(ENTRY.format(type=kind, batch=batch), encoding="utf-8")
    config = load_endpoints(path)["large"]
    assert isinstance(config, ProviderConfig)
    assert not isinstance(config.batch, bool)
    return config.batch


@pytest.mark.parametrize("kind", ["openai", "anthropic", "azure"])
def test_types_with_a_batch_api_take_it(tmp_path: Path, kind: str) -> None:
    """``true`` is enough; ``false`` is as if it were not there."""
    assert loaded(tmp_path, "true", kind) == BatchOptions()
    assert loaded(tmp_path, "false", kind) is None


def test_a_mapping_says_how(tmp_path: Path) -> None:
    """Each key is read; the others keep their defaults."""
    given = "{poll_seconds: 5, max_requests: 500, max_wait_hours: 48.5, price_share: 0.25}"
    assert loaded(tmp_path, given) == BatchOptions(
        poll_seconds=5, max_requests=500, max_wait_hours=48.5, price_share=0.25
    )
    assert loaded(tmp_path, "{poll_seconds: 5}") == BatchOptions(poll_seconds=5)


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ("yes", "batch: expected true or false or a mapping, got text"),
        ("[true]", "batch: expected true or false or a mapping, got a list"),
        ("{poll_second: 5}", "unknown key 'poll_second'; did you mean 'poll_seconds'?"),
        ("{poll_seconds: 0}", "poll_seconds: expected a number >= 0.01"),
        ("{poll_seconds: true}", "poll_seconds: expected a number, got true or false"),
        ("{poll_seconds: .nan}", "poll_seconds: expected a number, got text"),
        ("{max_requests: 60000}", "max_requests: expected a whole number <= 50000"),
        ("{max_requests: 2.5}", "max_requests: expected a whole number, got a number"),
        ("{price_share: 2}", "price_share: expected a number <= 1"),
        ("{max_bytes: 5}", "unknown key 'max_bytes'"),
    ],
)
def test_a_slip_is_told_with_its_line(tmp_path: Path, batch: str, told: str) -> None:
    """Before the first call: file, line, what is wrong and what would be right."""
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, batch)
    assert "endpoints.yaml:6: " in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", ["ollama", "litellm", "simulated"])
def test_types_without_a_batch_api_refuse_it(tmp_path: Path, kind: str) -> None:
    """A type that cannot be asked in batches does not quietly ask one by one."""
    with pytest.raises(UsageError, match="unknown key"):
        loaded(tmp_path, "true", kind)
