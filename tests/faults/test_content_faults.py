"""F39 to F49: hostile content, configuration that is wrong or clever, and replays that must not be
more than that.

Each number has one test that names it, in a user's session where it is about one. What is compared
with properties, or piece by piece, lies beside the piece: ``tests/reports/test_escaping.py``,
``tests/reports/test_html.py``, ``tests/test_safe_yaml.py``, ``tests/design/test_templates.py``,
``tests/endpoints/test_config.py`` and ``tests/baselines/``.
"""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import shutil
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml, Properties

from pytest_fairness.design.templates import Template
from pytest_fairness.documents import parse
from pytest_fairness.endpoints import load_endpoints, named_endpoint
from pytest_fairness.endpoints.protocol import Reply
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import FairnessError, StoreError, UsageError
from pytest_fairness.model import Usage
from pytest_fairness.reports.escaping import csv_cell, terminal
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.store import open_store
from tests.reports.factories import FORMULAS
from tests.reports.page_reader import Page
from tests.reports.test_markdown import OURS, Rendered, is_inert
from tests.support.doubles import Scripted, cell, plan
from tests.support.runs import exported
from tests.support.servers import Fault

from .conftest import KEY, PLACE, Project, message
from .oracles import Case, check, same_statistics

MARKUP = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></script><!-- ]]> javascript:alert(3) "
    '<a href="javascript:alert(4)">x</a><style>*{display:none}</style>" onmouseover="alert(5)'
)
CONTROLS = (
    "\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x07\x1b[2J\rX \u202egnp.exe "
    "\u200b\x00\u2028\u0085\ud800"
)
COMMANDS = (
    "::set-output name=a::b\n::add-mask::e\n  "
    "::error::gone\n##[error]gone\n##vso[task.complete]gone\n```\n# big\n"
    "<!channel> @everyone [x](http://evil) `rm`\n##teamcity[buildStop]"
)
HOSTILE = f"{MARKUP}\n{COMMANDS}\n{CONTROLS}"


#: Does everything with a reply that a test of a user might do.
SHOWS = f"""
import logging, sys, warnings
import pytest
from pytest_fairness import assert_no_disparity

HOSTILE = {HOSTILE!r}
grid = pytest.mark.fairness_grid(
    template="Write a reference for {{name}} of {PLACE}.", groups={{"race_ethnicity": ["white", "black"]}},
    names=5, repetitions=1,
)

@grid
def test_shows(trials, record_property):
    reply = trials.reply[0]
    assert reply == HOSTILE
    print(reply)
    print(reply, file=sys.stderr)
    logging.getLogger("application").warning("%s", reply)
    record_property("reply", reply)
    warnings.warn(reply)
    assert reply == "harmless", reply

@grid
def test_raises(trials):
    raise ValueError(trials.reply[0])

@grid
def test_skips(trials):
    pytest.skip(trials.reply[0])

@pytest.mark.parametrize("text", [HOSTILE], ids=[HOSTILE.replace("\\ud800", "").replace("##", "")])
@grid
def test_finds(trials, text):
    frame = trials.assign(**{{"class " + text: [text if i % 2 else "b " + text for i in range(len(trials))]}})
    frame["length"] = [float(i % 2) for i in range(len(frame))]
    assert_no_disparity(frame, outcome="length", by="class " + text, block=None, cluster=None)
"""


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "n2"])
def shown(
    request: pytest.FixtureRequest, project: Project, monkeypatch: pytest.MonkeyPatch
) -> Case:
    """A session in which every reply is hostile and everything is done with it, with all reports
    there are.
    """
    project.write(SHOWS)
    project.server.then(*[Fault(body=message(HOSTILE))] * 10)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    reports = ("-rA", "--html=page.html", "--self-contained-html")
    case = project.run(*reports, *request.param, apart=True, prompts=(), secrets=(KEY,))
    assert case.code == 1, case.output
    return case


def test_f39_f40_f42_a_session_obeys_nothing_that_a_model_writes(shown: Case) -> None:
    """F39, F40, F42: markup, control codes and commands of build servers in replies, ids, group and
    class names, messages and logs. The terminal shows them, JUnit's file parses, both HTML reports
    are inert, and the log has the exact text; nothing is lost, and no red test turns green, with
    workers or without."""
    check(shown)
    assert re.search(r"3 failed, 1 skipped", shown.output)
    _terminal_is_inert(shown.output)
    _summary_is_inert((shown.project / "summary.md").read_text(encoding="utf-8"))
    _junit_parses(shown.project / "junit.xml")
    _page_is_inert((shown.run / "report.html").read_text(encoding="utf-8"))
    _foreign_page_is_inert((shown.project / "page.html").read_text(encoding="utf-8"))
    trials = read_trials(shown.run)
    assert [trial.reply for trial in trials.values()] == [HOSTILE] * 10
    for log in exported(shown.run).glob("trials*.jsonl"):
        data = log.read_bytes()
        assert len(data.splitlines()) == data.count(b"\n")
        assert data.isascii()
    json.loads((shown.run / "findings.json").read_text(encoding="utf-8"))


def _terminal_is_inert(output: str) -> None:
    obeyed = {c for c in output if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {
        "\n",
        "\t",
    }
    assert not obeyed, obeyed
    commands = [
        text for text in output.splitlines() if re.match(r"\s*::|.*##(\[|vso|teamcity)", text)
    ]
    # Ours: a finding's and two of tests without one, whose texts are hostile.
    places = [
        re.match(r"::error file=test_suite\.py,line=\d+,title=[^:,]*::(?!:).*alert", text)
        for text in commands
    ]
    assert [place is not None for place in places] == [True] * 3, commands


def _summary_is_inert(text: str) -> None:
    page = Rendered(text)
    assert set(page.tags) <= OURS
    assert page.comments == 1
    assert is_inert(page.words)


def _junit_parses(path: Path) -> None:
    suites = JUnitXml.fromfile(str(path))
    assert (suites.tests, suites.failures, suites.errors, suites.skipped) == (4, 3, 0, 1)
    cases = [case for suite in suites for case in suite]
    assert any(
        "alert(1)" in entry.value for case in cases for entry in case.child(Properties) or ()
    )
    assert all(case.result[0].message for case in cases)


def _page_is_inert(text: str) -> None:
    assert "Content-Security-Policy" in text
    page = Page(text)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "link", "base", "form"}
    for _, attributes in page.elements:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("src", "action", "style")
        ]
        assert not (attributes.get("href") or "").startswith("javascript:")
    _text_is_inert(text)


def _foreign_page_is_inert(text: str) -> None:
    """pytest-html hands rows over as JSON in an attribute, and some of it to innerHTML
    (pytest-html#1024).
    """
    found = re.search(r'data-jsonblob="([^"]*)"', text)
    assert found is not None
    blob = html.unescape(found[1])
    tests = json.loads(blob)["tests"]
    assert len(tests) == 4
    assert "<img src=x" not in text
    assert "<script>alert" not in text
    for entry in (one for several in tests.values() for one in several):
        for fragment in (*entry["resultsTableRow"], entry["log"] or ""):
            assert not Tags(fragment).found & {"script", "img", "style", "iframe"}
    _text_is_inert(blob)


class Tags(HTMLParser):
    """The elements that a browser would see in a fragment."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(fragment)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")], attrs


def _text_is_inert(text: str) -> None:
    unseen = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n", "\t"}
    assert not unseen, unseen


def test_f39_a_megabyte_in_an_attribute(project: Project) -> None:
    """F39: replies of a megabyte are in the log, whole, and shortened in the report."""
    text = '"' + "A<b>" * 250_000
    project.write(SHOWS.replace("assert reply == HOSTILE", "return").replace("names=5", "names=1"))
    project.server.then(*[Fault(body=message(text))] * 2)
    case = project.run("-k", "test_shows")
    check(case, oracles="123567")
    assert [trial.reply for trial in read_trials(case.run).values()] == [text] * 2
    assert (case.run / "report.html").stat().st_size < 1_000_000


TEXTS = st.text(st.characters(exclude_categories=()), max_size=60)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_f40_any_text_survives_every_sink(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    """F40: any text, lone surrogates included, comes back from the log as it was; the report is
    well formed with it, and an XML parser reads what JUnit's file is given."""
    from pytest_fairness.reports.findings_json import conclude, save_results
    from pytest_fairness.reports.html import write_html
    from pytest_fairness.runs.manifest import read_manifest

    root = tmp_path_factory.mktemp("runs")
    answers = iter(texts * 2)
    endpoint = Scripted(
        lambda _: Reply(text=next(answers), usage=Usage(input_tokens=1, output_tokens=1))
    )
    planned = [
        PlannedTrial(cell=cell(turns=(text or "-",)), repetition=number)
        for number, text in enumerate(texts)
    ]
    with open_store(root, "session") as store, Engine(endpoint, store, concurrency=1) as engine:
        trials = engine.run(planned)
        store.update_manifest(id=store.directory.name)
    assert sorted(trial.reply or "" for trial in trials) == sorted(texts)
    assert sorted(trial.reply or "" for trial in read_trials(store.directory).values()) == sorted(
        texts
    )
    requested = [
        record["messages"][-1]["content"]
        for record in RunReader.open(store.directory).all_records()
    ]
    assert sorted(requested) == sorted(text or "-" for text in texts)
    items: list[Any] = [
        {"nodeid": text, "outcome": "failed", "message": text, "findings": []} for text in texts
    ]
    results = conclude(
        store.directory,
        read_manifest(store.directory),
        {"items": items, "findings": [], "missing": []},
    )
    save_results(results, store.directory)
    _page_is_inert(write_html(store.directory).read_text(encoding="utf-8"))
    for text in texts:
        element = ET.Element("property", value=terminal(text))
        assert ET.fromstring(ET.tostring(element)).get("value") is not None


def test_f41_cells_of_a_table_are_no_formulas() -> None:
    """F41: no report of ours is a CSV file. What writes one (the function is there for it) marks
    every opening of a formula, and keeps delimiters and new lines in their cell; the log has the
    text as it was."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows([[csv_cell(text), csv_cell('a",\n;b')] for text in FORMULAS])
    rows = list(csv.reader(io.StringIO(buffer.getvalue())))
    assert len(rows) == len(FORMULAS)
    for first, second in rows:
        assert first.startswith("'")
        assert second == 'a",\n;b'


CLEVER = [
    *[
        "{0.__class__.__init__.__globals__}",
        "{name.__class__}",
        "{name[0]}",
        "{name!r}",
        "{name!r:>999999999}",
    ],
    *["{name:>99}", "{{name}}"],
]
INNOCENT = ["{% for x in y %}", "$(id)", "%(name)s", "`id`", "$HOME", '{"a": 1}', "{{7*7}}", "{}"]


def test_f43_templates_are_no_programs(project: Project) -> None:
    """F43: attributes, indices, conversions and format specifications are refused with their place,
    before anything is asked; what other languages would read is sent as it stands; a value that
    looks like a slot stays a value."""
    for field in CLEVER:
        with pytest.raises(UsageError, match="template"):
            Template("t", f"Write about {{name}}.\n{field}")
    for text in INNOCENT:
        rendered = Template("t", f"{text} {{name}}").render({"name": "{other} %(x)s {0}"})
        assert rendered == f"{text} {{other}} %(x)s {{0}}"
    project.write(SHOWS.replace("{name} of", "{name.__class__} of"))
    case = project.run(planned=0)
    assert case.code == pytest.ExitCode.INTERRUPTED  # pytest's word for errors while collecting
    assert "{name.__class__}" in case.output
    assert project.server.requests == []
    check(case)


YAML = {
    "tag": "endpoints: !!python/object/apply:os.system ['id']\n",
    "recursive alias": "endpoints: &a\n  - *a\n",
    "alias bomb": "a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\nendpoints: [*c,*c]\n",
    "duplicate key": 'endpoints:\n  - name: "m"\n    name: "n"\n',
    "deep": "endpoints: " + "[" * 1000 + "]" * 1000,
    "two documents": "endpoints: []\n---\nendpoints: []\n",
    "merge key": "endpoints:\n  - <<: {a: 1}\n",
}


def test_f44_yaml_is_plain_data(project: Project) -> None:
    """F44: what is clever in a file of endpoints is refused with its line, and nothing is asked.
    What YAML 1.1 would read as False, numbers, times and dates stays text; a file of 50 MB is not
    read to its end."""
    names = ["NO", "No", "off", "1e3", "012", "1:30", "2026-01-01", "0x1f", "~", ".inf", "1_000"]
    assert parse("\n".join(f"- {name}" for name in names), "names.yaml").data == names
    huge = project.path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(UsageError, match="larger than"):
        load_endpoints(huge)
    huge.unlink()
    project.write()
    path = project.path / "endpoints.yaml"
    for text in reversed(YAML.values()):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=r"endpoints\.yaml:\d+: "):
            load_endpoints(path)
    case = project.run()
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "endpoints.yaml:1: the tag" in case.output
    assert project.server.requests == []
    check(case)


APPROVE = ("--fairness-approve", "--fairness-justification", "first")
IDS = [
    "../../x",
    "/etc/x",
    "C:\\x",
    "a\x00b",
    ".",
    "..",
    " ",
    "x" * 5000,
    "ｘ",
    "x",
    "X",
    "--opt",
    "con",
    "a/b",
    "a:b",
]
BASELINES = f"""
import pandas as pd, pytest
from pytest_fairness import assert_baseline

@pytest.mark.parametrize("text", {IDS!r}, ids={[text.replace(chr(0), "NUL") for text in IDS]!r})
def test_kept(text, request):
    request.node.add_marker(pytest.mark.fairness(id=text))
    frame = pd.DataFrame({{"persona": [f"p{{i}}" for i in range(40)], "name": [f"n{{i}}" for i in range(40)],
                          "score": [80.0 + i % 3 for i in range(40)]}})
    assert_baseline(frame, score="score")
"""


def test_f45_ids_are_no_paths(project: Project) -> None:
    """F45: whatever ids look like, the files named after them are plain names inside the project,
    one for each; names of runs and of templates that are paths or options are refused."""
    project.write(BASELINES)
    before = {
        path for path in project.path.parent.rglob("*") if not path.is_relative_to(project.path)
    }
    case = project.run(*APPROVE, planned=0)
    assert case.code == 0, case.output
    files = sorted(path.name for path in (project.path / "baselines").glob("*.json"))
    assert len({name.lower() for name in files}) == len(IDS)
    assert all(re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,250}\.json", name) for name in files), files
    outside = {
        path for path in project.path.parent.rglob("*") if not path.is_relative_to(project.path)
    }
    assert outside == before
    for id_ in ("../x", "/x", ".", "", "x" * 5000, "a\x00b", "--opt"):
        with pytest.raises(UsageError):
            Template(id_, "Write about {name}.") if id_ != "--opt" else Template("-opt", "{name}")
    for option in ("replay=../../x", "resume=/etc", "replay=--opt", "resume=."):
        assert project.run(f"--fairness-{option}", planned=0).code == pytest.ExitCode.USAGE_ERROR, (
            option
        )


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
def test_f46_links_are_not_followed(project: Project, tmp_path: Path) -> None:
    """F46: in the place of a run's log lies a link or a pipe: it is refused by its name, what it
    leads to is not touched, and nothing more is paid for."""
    project.write()
    first = project.run("--fairness-smoke")
    check(first)
    target = tmp_path / "precious"
    target.write_text("precious")
    log = exported(project.folder(first)) / "trials.jsonl"
    for deed in (
        lambda: log.symlink_to(target),
        lambda: os.link(target, log),
        lambda: os.mkfifo(log),
        lambda: log.symlink_to("/dev/full"),
    ):
        log.unlink()
        deed()
        # Not through a Case, which would read the pipe.
        result = project.pytester.runpytest_inprocess(
            "-W", "default", "-p", "no:xdist", "--fairness-resume", "last"
        )
        assert result.ret not in (0, None)
        output = result.stdout.str() + result.stderr.str()
        assert re.search(r"trials\.jsonl .*(link|plain file)", output), output
        assert target.read_text() == "precious"
    assert len(project.server.requests) == len(first.ledger)


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_f46_a_folder_of_runs_that_leads_elsewhere(project: Project, tmp_path: Path) -> None:
    """F46: the folder of runs is a link out of the project: refused before anything is asked. So is
    a baseline's file, which is not written through.
    """
    project.write()
    (project.path / ".fairness").mkdir()
    (project.path / ".fairness" / "runs").symlink_to(tmp_path, target_is_directory=True)
    before = sorted(tmp_path.iterdir())
    case = project.run()
    assert case.code not in (0, None)
    assert "symbolic link" in case.output
    assert project.server.requests == []
    assert sorted(tmp_path.iterdir()) == before
    (project.path / ".fairness" / "runs").unlink()
    project.write(ONE_BASELINE)
    assert project.run(*APPROVE, planned=0).code == 0
    baseline = min((project.path / "baselines").glob("*.json"))
    baseline.unlink()
    precious = tmp_path / "precious"
    precious.write_text("precious")
    baseline.symlink_to(precious)
    case = project.run(*APPROVE, planned=0)
    assert case.code == 1
    assert re.search(r"baselines.*link", case.output)
    assert precious.read_text() == "precious"


ONE_BASELINE = BASELINES.replace(repr(IDS), "['a', 'b']").replace(
    repr([text.replace(chr(0), "NUL") for text in IDS]), "['a', 'b']"
)


def test_f47_a_baseline_that_cannot_be_trusted_is_none(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F47: the test fails and says what is wrong with the file; nothing is approved by running, and
    approving a part of the tests deletes nothing. CI approves only when it is allowed to."""
    project.write(ONE_BASELINE)
    assert project.run(*APPROVE, planned=0).code == 0
    folder = project.path / "baselines"
    first, second = sorted(folder.glob("*.json"))
    intact = first.read_text(encoding="utf-8")
    edited = re.sub(r'"mean": [0-9.]+', '"mean": 1.0', intact, count=1)
    for text in (edited, f"<<<<<<< HEAD\n{intact}=======\n>>>>>>> theirs\n"):
        assert text != intact
        first.write_text(text, encoding="utf-8")
        case = project.run(planned=0)
        assert case.code == 1
        assert "1 failed, 1 passed" in case.output
        assert first.read_text(encoding="utf-8") == text
    first.unlink()
    case = project.run(planned=0)
    assert "1 failed, 1 passed" in case.output
    assert not first.exists()
    monkeypatch.setenv("CI", "true")
    case = project.run(*APPROVE, planned=0)
    assert case.code == 1
    assert "--fairness-approve-in-ci" in case.output
    assert not first.exists()
    monkeypatch.delenv("CI")
    assert project.run(*APPROVE, "-k", "test_kept[a]", planned=0).code == 0
    assert sorted(folder.glob("*.json")) == [first, second]


CONFIGS: dict[str, Any] = {
    "mock_response": "free money",
    "api_base": "http://evil",
    "fallbacks": ["gpt-4"],
    "callbacks": ["os.system"],
    "num_retries": 5,
    "drop_params": True,
    "extra_headers": {"x": "y"},
    "temprature": 0.2,
}


def test_f48_only_known_keys_are_taken(project: Project, tmp_path: Path) -> None:
    """F48: what would change the system under test behind one's back, or is a typing error, is
    refused by its name before the first request: in the endpoint's entry, in its parameters, and in
    a test's. So is each of the keys that libraries take in passing."""
    known: dict[str, Any] = {"name": "m", "type": "openai", "model": "gpt-4o-mini"}
    path = tmp_path / "endpoints.yaml"
    for key, value in CONFIGS.items():
        for entry in ({**known, key: value}, {**known, "default_parameters": {key: value}}):
            path.write_text(json.dumps({"endpoints": [entry]}), encoding="utf-8")
            with pytest.raises(UsageError, match=key):
                named_endpoint("m", path=path)
    typo, in_a_test = (
        {"temprature": 0.2},
        SHOWS.replace("names=5,", "names=5, parameters={'temprature': 0.2},"),
    )
    for suite, more, key, code in (
        (SHOWS, {"mock_response": "free money"}, "mock_response", pytest.ExitCode.USAGE_ERROR),
        (SHOWS, {"default_parameters": typo}, "temprature", pytest.ExitCode.USAGE_ERROR),
        (in_a_test, {}, "temprature", pytest.ExitCode.TESTS_FAILED),
    ):
        project.write(suite, **more)
        case = project.run("-k", "test_raises", planned=0)
        assert case.code == code
        assert key in case.output
    assert project.server.requests == []


#: Notes every touch of a socket, and lets none through.
OFFLINE = """
import sys

touched = []

def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        touched.append(event)
        raise RuntimeError(f"SOCKET {event}")

sys.addaudithook(refuse)

def pytest_unconfigure():
    with open("sockets.txt", "w") as file:
        file.write(repr(touched))
"""


def test_f49_a_replay_asks_nobody(project: Project, tmp_path: Path) -> None:
    """F49: a run recorded on another machine is judged from its folder alone, with the same
    findings and no socket touched, although the network is there. A prompt that changed, and the
    trials that are missing, are named and not asked."""
    project.write()
    recorded = project.run("--fairness-smoke")
    check(recorded)
    requested = len(project.server.requests)
    moved = tmp_path / "from-another-machine"
    shutil.move(recorded.run, moved)
    project.pytester.makeconftest(OFFLINE)
    project.path.joinpath("endpoints.yaml").unlink()

    suite = (project.path / "test_suite.py").read_text()
    changed = suite.replace("a landlord reference", "a long landlord reference")
    (project.path / "test_changed.py").write_text(changed)
    replayed = project.run("--fairness-smoke", f"--fairness-replay={moved}", apart=True, prompts=())
    assert replayed.code == 1
    assert "replayed" in replayed.output
    same_statistics(replayed.run, moved)
    assert "holds no trial for cell 't2-" in replayed.output
    assert (project.path / "sockets.txt").read_text() == "[]"
    assert len(project.server.requests) == requested


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a finished run: its manifest and the export of its records."""
    with (
        open_store(tmp_path_factory.mktemp("runs"), "session") as store,
        Engine(Scripted(), store) as engine,
    ):
        engine.run(plan(6))
        store.export()
    for database in store.directory.glob("run.sqlite3*"):
        database.unlink()
    return store.directory


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_any_flipped_bytes_are_found_or_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, recorded: Path, data: st.DataObject
) -> None:
    """Bytes of a log changed, taken out or put in anywhere: the run is refused, or its trials are
    what they were.
    """
    intact = (recorded / "trials.jsonl").read_bytes()
    at = data.draw(st.integers(0, len(intact) - 1))
    removed = data.draw(st.integers(0, 3))
    added = data.draw(st.binary(max_size=3))
    copy = tmp_path_factory.mktemp("copy") / recorded.name
    shutil.copytree(recorded, copy)
    (copy / "trials.jsonl").write_bytes(intact[:at] + added + intact[at + removed :])
    try:
        trials = read_trials(copy)
    except (StoreError, FairnessError):
        return
    assert trials == read_trials(recorded)
    assert RunReader.open(copy).logs["trials.jsonl"].records >= 0
