"""Entries of type ``pipeline``, and functions named by their import path: what is read, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_fairness.endpoints import (
    AttemptError,
    Endpoint,
    as_endpoint,
    callable_endpoint,
    create_endpoint,
    load_endpoints,
    pipeline_endpoint,
)
from pytest_fairness.endpoints.pipeline import PipelineEndpoint, PipelineStep
from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Ask
from pytest_fairness.testing import ask

FILE = """\
endpoints:
  - name: "both"
    type: "pipeline"
    steps:
      - endpoint: "scrubber"
        prompt: "Anonymise: {text}"
      - {endpoint: "judge", system: "Be fair.", prompt: "Asked {prompt}, judge {text}"}
  - name: "scrubber"
    type: "http"
    url: "http://localhost:8080/scrub"
    request: {text: "{prompt}"}
    reply: "$.text"
    price: {per_call: 0.01}
  - name: "judge"
    type: "openai"
    model: "m"
    base_url: "http://localhost:8000/v1"
    default_temperature: 0.5
    price: {input_per_million: 1, output_per_million: 2}
"""


def load(folder: Path, text: str) -> Endpoint:
    (folder / "endpoints.yaml").write_text(text, encoding="utf-8")
    return create_endpoint(load_endpoints(folder / "endpoints.yaml")["both"])


def test_an_entry_names_other_entries(tmp_path: Path) -> None:
    """Those before it and those after it; its steps are made as they would be by themselves."""
    both = load(tmp_path, FILE)
    assert isinstance(both, PipelineEndpoint)
    scrubber, judge = both.steps
    assert (scrubber.ready.type, scrubber.prompt, scrubber.system) == ("http", "Anonymise: {text}", None)
    assert (judge.ready.type, judge.system) == ("openai", "Be fair.")
    assert both.price == Price(input_per_million=1.0, output_per_million=2.0, per_call=0.01)
    assert not both.simulated
    assert not both.supports_system_prompt
    with pytest.raises(AttemptError, match="its steps are asked"):
        ask(both)
    assert not both.supports_conversation
    identity = both.identity()
    assert isinstance(identity["steps"], list)
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


# ------------------------------------------------------------ import paths

MODULE = """
class Writer:
    def write(self, prompt):
        return prompt + "!"

writer = Writer()
number = 3
"""


@pytest.fixture
def letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module called as no other on the path."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "letters_for_a_test.py"
    path.write_text(MODULE, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "letters_for_a_test", raising=False)
    return path


def test_a_function_by_its_import_path(letters: Path) -> None:
    """The same endpoint as of the function itself."""
    endpoint = callable_endpoint("letters_for_a_test:writer.write")
    assert endpoint.identity() == callable_endpoint(sys.modules["letters_for_a_test"].writer.write).identity()
    assert ask(endpoint, "Dear Ann").text == "Dear Ann!"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("letters_for_a_test", "is no import path: write package.module:function"),
        ("letters_for_a_test:", "is no import path"),
        ("../letters:write", "is no import path"),
        ("letters_for_a_test:writer.wrote", "letters_for_a_test has no writer.wrote"),
        ("letters_for_a_test:number", "is int, which cannot be called"),
        ("letters_for_a_test.more:write", "there is no module 'letters_for_a_test.more'"),
        ("no_such_module_at_all:write", "there is no module 'no_such_module_at_all' to import; is its folder"),
    ],
)
def test_paths_that_name_nothing(letters: Path, path: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        callable_endpoint(path)


def test_what_the_module_itself_lacks_is_raised_as_it_is(letters: Path) -> None:
    """The traceback into the application is what helps then."""
    letters.write_text("import something_that_is_not_installed\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="something_that_is_not_installed"):
        callable_endpoint("letters_for_a_test:write")
