"""What an endpoint may be asked in a minute, shared by shards."""

from __future__ import annotations

import pytest

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import UsageError


def test_shards_together_keep_the_limits() -> None:
    """Each takes whole requests and tokens; what is asked at once, and how often, is its own."""
    declared = Limits(requests_per_minute=500, tokens_per_minute=100_000, concurrency=7)
    part = declared.of_a_shard(3)
    assert part == Limits(requests_per_minute=166, tokens_per_minute=33_333, concurrency=7)
    assert declared.of_a_shard(1) == declared
    assert Limits().of_a_shard(9) == Limits()


def test_a_limit_that_cannot_be_shared() -> None:
    """It says how many shards there can be."""
    with pytest.raises(
        UsageError, match="requests_per_minute: 2 cannot be shared by 3 shards: use 2"
    ):
        Limits(requests_per_minute=2).of_a_shard(3)
