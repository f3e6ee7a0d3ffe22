"""What the report tells an auditor of a run: systems, prompts, approvals, method, heads of the
logs.
"""

from __future__ import annotations

import json

import pytest

from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.run_sections import (
    method_section,
    prompts_section,
    records_section,
    systems_section,
)
from pytest_fairness.reports.sections import Dialogue, Facts, Section, Table

from .factories import baseline, disparity, passing, results, run_folder
from .page_reader import Page

TEMPLATE = "Write a reference for {name}:\n  two lines, <b>bold</b>, {{not a slot}} and 100 %."
ENGINE = {
    "type": "engine",
    "identity": "5a84",
    "endpoint": {
        "name": "gpt",
        "type": "openai",
        "identity": {
            "type": "openai",
            "model": "gpt-4o",
            "base_url": "https://api.example/v1",
            "region": "eu",
        },
        "default_parameters": {"temperature": 0.2},
        "supports_system_prompt": True,
        "simulated": False,
    },
}
DESIGNS = [
    {
        "type": "design",
        "test": f"t.py::{name}",
        "endpoint": "gpt",
        "parameters": {"temperature": 0.7, "max_tokens": 300},
        "texts": {"reference": TEMPLATE},
        "systems": ["You are terse."],
    }
    for name in ("one", "two")
]
MODELS = [{"endpoint": "gpt", "asked": "gpt-4o", "answered": {"gpt-4o-2024-08-06": 320}}]


@pytest.fixture
def folder(tmp_path):
    run = results(disparity(), passing(), baseline(), run={"models": MODELS, "exit_status": 1})
    return run_folder(tmp_path, run, [ENGINE, ENGINE, *DESIGNS, {"type": "trial", "key": "torn"}])


def test_a_system_is_shown_with_what_it_was_sent(folder):
    """Once, however many processes asked it; the parameters are those that were sent, not the
    endpoint's defaults.
    """
    section = systems_section(results(run={"models": MODELS}), folder)
    assert section is not None
    (system,) = section.parts
    assert isinstance(system, Section)
    (known,) = system.parts
    assert isinstance(known, Facts)
    assert system.heading == "gpt"
    assert dict(known.rows) == {
        "Type": "openai",
        "Address": "https://api.example/v1",
        "Model asked for": "gpt-4o",
        "Model that answered": "gpt-4o-2024-08-06 (320 trials)",
        "Parameters": "max_tokens 300, temperature 0.7",
        "Takes a system prompt": "yes",
        "Identity": "region eu",
    }


def test_prompts_stand_verbatim_and_once(folder):
    """With the tests that ask them."""
    section = prompts_section(results(), folder)
    assert section is not None
    shown = [part for part in section.parts if isinstance(part, Dialogue)]
    assert [one.turns for one in shown] == [
        (("template reference", TEMPLATE),),
        (("system prompt", "You are terse."),),
    ]
    assert {one.about for one in shown} == {"t.py::one, t.py::two"}
    assert TEMPLATE in "".join(Page(write_html(folder).read_text("utf-8")).words)


def test_heads_of_logs_are_those_of_the_manifest(folder):
    """None of a run that is not closed, or whose manifest is damaged: whoever verifies the run is
    told.
    """
    assert records_section(results(), folder) is None
    logs = {"trials.jsonl": {"records": 964, "head": "ab" * 32, "sha256": "cd" * 32}}
    (folder / "manifest.json").write_text(json.dumps({"logs": logs}))
    section = records_section(results(), folder)
    assert section is not None
    (rows,) = [part.rows for part in section.parts if isinstance(part, Table)]
    assert rows == (("trials.jsonl", "964", "ab" * 32),)
    (folder / "manifest.json").write_text("{")
    assert records_section(results(), folder) is None


def test_a_method_is_said_once(tmp_path):
    """Each sentence with the findings that it is true of; a sentence does not end at an
    abbreviation.
    """
    shared, own = "Compared by rank (Hazelwood v. United States, 1977).", "Corrected by Bonferroni."
    findings = [
        disparity(
            explanation=f"FAIL.\n\nHow this was judged. {shared} {own}\n\nWhat would change the verdict: more."
        ),
        passing(
            explanation=f"PASS.\n\nHow this was judged. {shared}\n\nWhat would change the verdict: less."
        ),
    ]
    tables = [
        part
        for part in method_section(results(*findings), tmp_path).parts
        if isinstance(part, Table)
    ]
    assert tables[0].rows == (
        (shared, "all findings"),
        (own, "sentiment by race_ethnicity (1 finding)"),
    )


def test_who_approved_stands_beside_what_was_approved(tmp_path):
    """A baseline with its file, its approver and the reason."""
    approval = {
        "approved_by": "Jane Smith",
        "approved_by_source": "git",
        "approved_at": "2026-01-20",
    }
    approved = {
        "file": "letters.json",
        "digest": "f" * 64,
        "approval": {**approval, "justification": "20 letters read"},
    }
    run = results(baseline(details={"baseline": approved}), run={"exit_status": 0})
    text = Page(write_html(run_folder(tmp_path, run)).read_text("utf-8")).text
    for words in ("letters.json", "Jane Smith (git)", "2026-01-20", "20 letters", "Signature"):
        assert words in text
