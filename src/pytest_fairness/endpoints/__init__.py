"""Whom to ask: the systems under test, each behind one small adapter."""

from __future__ import annotations

from pytest_fairness.endpoints.config import EndpointConfig, ThirdPartyConfig
from pytest_fairness.endpoints.function import callable_endpoint
from pytest_fairness.endpoints.pipeline import pipeline_endpoint
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    Endpoint,
    Evidence,
    Price,
    Reply,
    Request,
    Wire,
)
from pytest_fairness.endpoints.registry import (
    BUILT_IN_TYPES,
    as_endpoint,
    create_endpoint,
    load_endpoints,
    named_endpoint,
)
from pytest_fairness.endpoints.simulated import simulated_endpoint

__all__ = [
    "BUILT_IN_TYPES",
    "AttemptError",
    "Endpoint",
    "EndpointConfig",
    "Evidence",
    "Price",
    "Reply",
    "Request",
    "ThirdPartyConfig",
    "Wire",
    "as_endpoint",
    "callable_endpoint",
    "create_endpoint",
    "load_endpoints",
    "named_endpoint",
    "pipeline_endpoint",
    "simulated_endpoint",
]
