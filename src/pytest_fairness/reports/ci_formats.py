"""A run in the formats that forges and build servers read, each finding at the line of its test:
annotations, JUnit, SARIF, GitLab's code quality.
"""

from __future__ import annotations

import json
import posixpath
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, TypeAlias
from urllib.parse import quote

from pytest_fairness.model import JSON, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import line, shortened, workflow_data, xml
from pytest_fairness.reports.findings_json import ItemResult, RunResults
from pytest_fairness.reports.unjudged import unjudged_tests, unjudged_words
from pytest_fairness.words import bracketed, led

Level: TypeAlias = Literal["error", "warning", "note"]
#: GitHub shows ten annotations of each level in a step, and drops the others.
MOST_ANNOTATIONS = 10
_ANNOTATION = {"error": "error", "warning": "warning", "note": "notice"}
_SEVERITY = {"FAIL": "critical", "FLAG": "major", "INCONCLUSIVE": "minor"}
_PLACEHOLDER = re.compile(r"\{(?=\d+\})")
_BRACKET = re.compile(r"[\[\]\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A remark for a reader of the code, at a test: a finding that is no PASS, or how a test
    without one failed.

    ``id`` is the same from run to run; ``rule`` is the assertion, or ``test``.
    """

    level: Level
    id: str
    rule: str
    verdict: Verdict | None
    title: str
    text: str
    nodeid: str
    file: str
    line: int


def remarks(results: RunResults, folder: str = "") -> list[Remark]:
    """Return what there is to remark on, the worst first. *folder*: where the project's root lies
    in the repository.
    """
    remarks_ = [*_of_findings(results, folder), *_of_tests(results, folder)]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(
        remarks_,
        key=lambda remark: (order[remark.level], -(remark.verdict or Verdict.FAIL).severity),
    )


def _of_findings(results: RunResults, folder: str) -> Iterator[Remark]:
    for at, finding in enumerate(results.findings):
        maker = results.maker_of(at)
        if finding.verdict is Verdict.PASS:
            continue
        level: Level = "warning"
        if maker.outcome in ("failed", "error"):
            level = "error"
        if finding.justification is not None or maker.outcome == "xfailed":
            level = "note"
        by = led(" by ", finding.protected_class)
        marks = ", ".join(formatting.marks(finding, maker.outcome))
        title = bracketed(f"{finding.verdict}: {finding.outcome}{by}", marks)
        file, number = _place(maker, folder)
        yield Remark(
            level=level,
            id=results.ids[at],
            rule=finding.assertion,
            verdict=finding.verdict,
            title=line(shortened(title, 200)),
            text=line(shortened(finding.sentence, 1000)),
            nodeid=line(results.test_of(at)),
            file=file,
            line=number,
        )


def _of_tests(results: RunResults, folder: str) -> Iterator[Remark]:
    """Tests that failed or never finished, and have no finding that says why; and those that
    concluded nothing.
    """
    unfinished = [ItemResult(nodeid=nodeid, outcome="never finished") for nodeid in results.missing]
    for item in [*(item for item in results.failed if not item.findings), *unfinished]:
        text = shortened(item.message or "The test was collected and never finished.", 1000)
        yield _of_test(item, folder, "error", f"test {item.nodeid}", item.outcome, text)
    for item, words in unjudged_tests(results):
        text = shortened(f"The test {words}.", 1000)
        yield _of_test(
            item, folder, "warning", f"unjudged {item.nodeid}", "concluded nothing", text
        )


def _of_test(
    item: ItemResult, folder: str, level: Level, identity: str, title: str, text: str
) -> Remark:
    """Return a remark on a test that has no finding to speak for it."""
    file, number = _place(item, folder)
    return Remark(
        level=level,
        id=identity,
        rule="test",
        verdict=None,
        title=f"Fairness test: {title}",
        text=line(text),
        nodeid=line(item.nodeid),
        file=file,
        line=number,
    )


def _place(item: ItemResult, folder: str) -> tuple[str, int]:
    """The file of a test from the repository's root on, and the line; the first one where that is
    not known.
    """
    file = item.file or item.nodeid.partition("::")[0]
    if file:
        file = line(posixpath.normpath(posixpath.join(folder, file)))
    return file, item.line or 1


# ---------------------------------------------------------------- annotations


def workflow_commands(results: RunResults, folder: str = "") -> list[str]:
    """Workflow commands that let GitHub show the worst remarks at their lines: at most ten of each
    level.
    """
    lines = []
    counts = dict.fromkeys(_ANNOTATION, 0)
    for remark in remarks(results, folder):
        counts[remark.level] += 1
        if counts[remark.level] <= MOST_ANNOTATIONS:
            place = {"file": remark.file, "line": str(remark.line), "title": remark.title}
            given = ",".join(
                f"{name}={workflow_data(value, of_property=True)}" for name, value in place.items()
            )
            lines.append(
                f"::{_ANNOTATION[remark.level]} {given}::{workflow_data(f'{remark.text} ({remark.nodeid})')}"
            )
    return lines


# ---------------------------------------------------------------- SARIF


def sarif(results: RunResults, folder: str = "") -> str:
    """SARIF 2.1.0 (OASIS, 2020): a result for each remark, found again by its
    ``partialFingerprints``.
    """
    remarks_ = remarks(results, folder)
    rules = sorted({remark.rule for remark in remarks_})
    made: list[JSON] = []
    for remark in remarks_:
        region: JSON = {"startLine": remark.line}
        place: JSON = {"artifactLocation": {"uri": quote(remark.file)}, "region": region}
        made.append(
            {
                "ruleId": remark.rule,
                "ruleIndex": rules.index(remark.rule),
                "level": remark.level,
                "message": {"text": _sarif_text(f"{remark.text} ({remark.nodeid})")},
                "locations": [{"physicalLocation": place}],
                "partialFingerprints": {"pytestFairnessFinding/v1": remark.id},
                "properties": {
                    "verdict": remark.verdict and str(remark.verdict),
                    "title": remark.title,
                },
            }
        )
    rule_texts = {rule: "Fairness test" if rule == "test" else f"assert_{rule}" for rule in rules}
    driver: JSON = {
        "name": "pytest-fairness",
        "version": version("pytest-fairness"),
        "rules": [
            {"id": rule, "shortDescription": {"text": text}} for rule, text in rule_texts.items()
        ],
    }
    run: JSON = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not results.missing}],
        "results": made,
        "properties": {"run": str(results.run.get("id")), "simulated": results.simulated},
    }
    return _json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def _sarif_text(text: str) -> str:
    """A message in which nothing is a link or a placeholder (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    return _PLACEHOLDER.sub("{ ", _BRACKET.sub(r"\\\g<0>", text))


# ---------------------------------------------------------------- GitLab's code quality


def code_quality(results: RunResults, folder: str = "") -> str:
    """GitLab's code quality report, which a merge request compares with that of its target branch."""
    return _json(
        [
            {
                "description": f"{remark.title}: {remark.text}",
                "check_name": f"fairness/{remark.rule}",
                "fingerprint": remark.id,
                "severity": "info"
                if remark.level == "note"
                else _SEVERITY.get(str(remark.verdict), "major"),
                "location": {"path": remark.file, "lines": {"begin": remark.line}},
            }
            for remark in remarks(results, folder)
        ]
    )


def _json(value: JSON) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


# ---------------------------------------------------------------- JUnit


def junit(results: RunResults) -> str:
    """JUnit's XML: a case for each test with its findings as properties; tests that never finished
    are errors.
    """
    unfinished = [ItemResult(nodeid=nodeid, outcome="error") for nodeid in results.missing]
    items = [*results.items, *unfinished]
    kinds = {
        "failed": "failure",
        "error": "error",
        "skipped": "skipped",
        "xfailed": "skipped",
        "xpassed": "skipped",
    }
    outcomes = [kinds.get(item.outcome) for item in items]
    suite = ET.Element(
        "testsuite", name="fairness", tests=str(len(items)), timestamp=xml(_started(results))
    )
    for tag, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(total, str(outcomes.count(tag)))
    for item, kind in zip(items, outcomes, strict=True):
        _case(suite, results, item, kind)
    whole = ET.Element("testsuites")
    whole.append(suite)
    ET.indent(whole)
    return ET.tostring(whole, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ET.Element, results: RunResults, item: ItemResult, kind: str | None) -> None:
    """Add the test *item* to the *suite*, with how it ended if it did not pass."""
    module, _, name = item.nodeid.partition("::")
    classname = module.removesuffix(".py").replace("/", ".")
    case = ET.SubElement(suite, "testcase", classname=xml(classname), name=xml(name or module))
    if item.file:
        case.set("file", xml(item.file))
        case.set("line", str(item.line or 1))
    if item.unjudged is not None:
        words = unjudged_words(item.unjudged)
        _properties(case, [("fairness concluded nothing", words)])
    if item.findings:
        findings = [results.findings[at] for at in item.findings]
        _properties(
            case,
            [
                (
                    f"fairness {finding.assertion}: {finding.outcome} by {finding.protected_class}",
                    finding.sentence,
                )
                for finding in findings
            ],
        )
    if kind is not None:
        message = item.message or "The test was collected and never finished."
        first = " ".join(message.split("\n\n", 1)[0].split())
        ET.SubElement(case, kind, message=xml(first), type=item.outcome).text = xml(message)


def _properties(case: ET.Element, named: Iterable[tuple[str, str]]) -> None:
    properties = ET.SubElement(case, "properties")
    for name, value in named:
        ET.SubElement(properties, "property", name=xml(name), value=xml(value))


def _started(results: RunResults) -> str:
    return str(results.run.get("started") or "")
