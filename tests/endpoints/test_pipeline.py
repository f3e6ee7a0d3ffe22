"""Entries of type ``pipeline``: what they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints import (
    AttemptError,
    as_endpoint,
    create_endpoint,
    load_endpoints,
    pipeline_endpoint,
)
from pytest_fairness.endpoints.pipeline import PipelineEndpoint, PipelineStep
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.model import Ask
from pytest_fairness.testing import ask

from .test_config import DATA


def test_an_entry_names_other_entries(tmp_path: Path) -> None:
    """Those before it and those after it; its steps are made as they would be by themselves."""
    path = tmp_path / "endpoints.yaml"
    path.write_text(DATA["bases"]["both"], encoding="utf-8")
    both: Any = create_endpoint(load_endpoints(path)["both"])
    assert isinstance(both, PipelineEndpoint)
    scrubber, judge = both.steps
    assert (scrubber.ready.type, scrubber.prompt, scrubber.system) == (
        "http",
        "Anonymise: {text}",
        None,
    )
    assert (judge.ready.type, judge.system) == ("openai", "Be fair.")
    assert both.price == Price(input_per_million=1.0, output_per_million=2.0, per_call=0.01)
    assert (both.simulated, both.supports_system_prompt, both.supports_conversation) == (
        False,
        False,
        False,
    )
    with pytest.raises(AttemptError, match="its steps are asked"):
        ask(both)
    identity: Any = both.identity()
    assert identity["steps"][1] == {
        "endpoint": judge.ready.identity(),
        "parameters": {"temperature": 0.5},
        "prompt": "Asked {prompt}, judge {text}",
        "system": "Be fair.",
    }


def test_a_pipeline_of_names_is_an_endpoint_already() -> None:
    """So that the fixture may return it; what it is made of, the session finds."""
    pipeline = pipeline_endpoint(["scrubber", str.upper])
    assert as_endpoint(pipeline) is pipeline
    assert pipeline.price is None
    assert not pipeline.simulated


def test_a_prompt_is_filled_in_one_pass() -> None:
    """What is put in is not read again; other braces stay as they are."""
    step = PipelineStep("judge", '{text} {"a": {}} {prompt}')
    assert step.filled(text="{prompt}", prompt="{text}") == '{prompt} {"a": {}} {text}'
    assert pipeline_endpoint([Ask(endpoint="judge", prompt='Answer as {"a": 1}: {text}')]).steps
