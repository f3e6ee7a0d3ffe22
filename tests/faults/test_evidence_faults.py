"""F61 to F64 and F69: no finding gets lost, and what an auditor reads is what the log has; an
honest run verifies.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.cli import main
from pytest_fairness.reports import bundle as reports_bundle
from pytest_fairness.reports.bundle import derive, unpack, verify, write_bundle
from pytest_fairness.reports.findings_json import conclude, save_results
from tests.support.runs import records, relogged, resummed, rewrite
from tests.support.sessions import run_pytest
from tests.support.shared_sessions import made_once, shared_folder

#: A system of the project's own, which speaks badly of one group.
SUITE = """
import os
import pandas as pd
import pytest
from pytest_fairness import assert_no_disparity

def clerk(prompt):
    praise = "poor and bad" if "black" in prompt.lower() else "great and excellent"
    return f"The work was {praise}, {'so ' * (len(prompt) % 4)}they say."

@pytest.fixture
def endpoint():
    return clerk

grid = pytest.mark.fairness_grid(
    template=["Describe {name}, a nurse.", "Praise {name}, a cook."], names=(20,),
    groups={"race_ethnicity": ["white", "black"]}, signal="name+label", repetitions=1)

@grid
def test_a(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@grid
def test_b(trials):
    assert_no_disparity(trials, outcome="word_count", by="race_ethnicity", min_raw_diff=1000)
"""
#: Two FLAGs, one of them justified.
FLAGS = """
def rates(one, two):
    rows = [(race, at < share) for race, share in (("a", one), ("b", two)) for at in range(400)]
    return pd.DataFrame(rows, columns=["race", "hired"])

@pytest.mark.fairness
def test_flag():
    assert_no_disparity(rates(260, 210), outcome="hired", by="race", cluster=None, block=None)

@pytest.mark.fairness
def test_justified():
    assert_no_disparity(rates(260, 210), outcome="hired", by="race", cluster=None, block=None)
"""
TODAY = datetime.datetime.now(datetime.UTC).date()
JUSTIFIED = f"""
- test: test_it.py::test_justified
  reason: One old form, withdrawn
  approver: Ann
  date: {TODAY - datetime.timedelta(days=30)}
  expiry: {TODAY + datetime.timedelta(days=365)}
"""
MITIGATED = """
- test: test_it.py::test_a
  action: Move to the next version
  owner: Ann
  date: 2026-02-01
"""
A = "test_it.py::test_a"
LEFT_OUT = ("--deselect", A)


class Folder:
    """A project in *path*, its sessions in one of the modes."""

    def __init__(self, path: Path, mode: Sequence[str] = ()) -> None:
        self.path, self.mode = path, mode
        self.write(SUITE)

    def write(self, suite: str) -> None:
        (self.path / "test_it.py").write_text(suite, encoding="utf-8")

    def session(self, *arguments: str) -> tuple[int, str]:
        """Its exit status, and what it printed, in one line."""
        result = run_pytest(self.path, "-p", "no:cacheprovider", *self.mode, *arguments)
        return int(result.ret), " ".join(result.stdout.str().split())

    @property
    def last(self) -> Path:
        return max((self.path / ".fairness" / "runs").glob("2*"))

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        """Of the newest run: the test, the verdict and where it was judged, if elsewhere."""
        data = json.loads((self.last / "findings.json").read_bytes())
        return [
            (one["nodeid"], one["verdict"], one["details"].get("judged_in", ""))
            for one in data["findings"]
        ]


@pytest.fixture
def folder(tmp_path: Path, mode: list[str]) -> Folder:
    return Folder(tmp_path, mode)


@pytest.fixture
def plain(tmp_path: Path) -> Folder:
    return Folder(tmp_path, ("-p", "no:xdist"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what is made once for all workers, and only looked at or copied."""
    return shared_folder(tmp_path_factory)


@pytest.fixture(scope="module")
def failed(shared: Path) -> Folder:
    """A project whose first test has failed, and is all that has run."""

    def make() -> Folder:
        project = Folder(Path(tempfile.mkdtemp(dir=shared)), ("-p", "no:xdist"))
        assert project.session("-k", "test_a")[0] == 1
        return project

    return made_once(shared, "evidence_failed", make)


def stands(folder: Folder, done: tuple[int, str], judged_in: str, verdict: str = "FAIL") -> None:
    """The FAIL of the first session stands in findings, pages and exit status, and the run verifies
    with it.
    """
    code, printed = done
    assert code == pytest.ExitCode.TESTS_FAILED, printed
    assert f"judged in {judged_in}, not here: {verdict}" in printed
    assert (A, verdict, judged_in) in folder.findings
    page = (folder.last / "report.html").read_text(encoding="utf-8")
    assert f"judged in {judged_in}, not here" in page
    assert "The session failed" in page
    changed = [
        line for line in verify(folder.last).problems if "(or the test changed it)" not in line
    ]
    assert changed == []


# ---------------------------------------------------------------- F61: a FAIL does not go away


def test_f61_a_fail_stays_whatever_is_left_out(folder: Folder) -> None:
    """Resumed without its test, and replayed without it: by workers and without."""
    assert folder.session()[0] == 1
    run = folder.last
    stands(folder, folder.session("--fairness-resume=last", *LEFT_OUT), f"{run.name}, session 1")
    markdown = folder.path / "report.md"
    done = folder.session(
        f"--fairness-replay={run.name}", *LEFT_OUT, f"--fairness-markdown={markdown}"
    )
    assert folder.last != run
    stands(folder, done, f"{run.name}, session 1")
    assert f"judged in {run.name}, session 1, not here" in markdown.read_text(
        encoding="utf-8"
    ).replace("\\", "")


@pytest.mark.parametrize("how", ["resume", "replay"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")', "    pass"),
        ('outcome="sentiment"', 'outcome="word_count"'),
        (
            'outcome="sentiment", by="race_ethnicity"',
            'outcome="sentiment", by="race_ethnicity", min_raw_diff=1000',
        ),
        ("trials, outcome=", 'trials[trials.template == "t1"], outcome='),
        ("trials, outcome=", "trials.assign(sentiment=.5), outcome="),
        (
            'trials, outcome="sentiment"',
            'trials.assign(race_ethnicity=["a", "b"] * 40), outcome="sentiment"',
        ),
        ("def test_a", "def test_c"),
    ],
    ids=[
        "pass",
        "other outcome",
        "other bound",
        "fewer rows",
        "other scores",
        "other groups",
        "renamed",
    ],
)
def test_f61_a_fail_stays_when_its_test_is_edited(
    failed: Folder, tmp_path: Path, how: str, before: str, after: str
) -> None:
    plain = Folder(Path(shutil.copytree(failed.path, tmp_path / "project")), failed.mode)
    run = plain.last.name
    assert before in SUITE
    plain.write(SUITE.replace(before, after, 1))
    done = plain.session("-k", "test_a or test_c", f"--fairness-{how}=last")
    stands(plain, done, f"{run}, session 1" if how == "resume" else run)


def test_f61_what_is_judged_again_alike_is_judged_once(plain: Folder) -> None:
    """The same question on the same rows: one finding, whether resumed, replayed, or replayed from
    a part.
    """
    plain.session()
    run = plain.last.name
    for arguments in (("--fairness-resume=last",), (f"--fairness-replay={run}",)):
        assert plain.session(*arguments)[0] == 1
        assert plain.findings == [(A, "FAIL", ""), ("test_it.py::test_b", "PASS", "")]
    plain.session(f"--fairness-replay={run}", *LEFT_OUT)
    assert plain.session(f"--fairness-replay={plain.last.name}")[0] == 1
    assert plain.findings == [(A, "FAIL", ""), ("test_it.py::test_b", "PASS", "")]


def test_f61_a_session_that_was_killed_has_judged(plain: Folder) -> None:
    """The process dies after its first test; its finding is in no file, and in the log."""
    plain.write(
        SUITE.replace(
            "def test_b(trials):", "def test_b(trials):\n    os.environ.get('DIES') and os._exit(9)"
        )
    )
    result = run_pytest(
        plain.path, "-p", "no:cacheprovider", *plain.mode, environment=with_variable("DIES")
    )
    assert result.ret == 9
    assert not (plain.last / "findings.json").exists()
    stands(
        plain, plain.session("--fairness-resume=last", *LEFT_OUT), f"{plain.last.name}, session 1"
    )


def with_variable(name: str) -> dict[str, str]:
    return {**os.environ, name: "1"}


def test_f61_an_expected_failure_and_a_pass_fail_nothing(plain: Folder) -> None:
    """What failed no session before fails none now; it stands all the same."""
    plain.write(SUITE.replace("@grid\ndef test_a", "@pytest.mark.xfail\n@grid\ndef test_a"))
    assert plain.session()[0] == 0
    code, printed = plain.session("--fairness-resume=last", *LEFT_OUT)
    assert code == 0, printed
    assert (A, "FAIL", f"{plain.last.name}, session 1") in plain.findings
    assert verify(plain.last).problems == []


def test_f61_what_failed_and_is_asked_again_is_judged_again(
    plain: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same question, with answers where there were errors: the finding of before is answered,
    whatever it was.
    """
    fails = (
        "    if 'FAILS' in os.environ and len(prompt) % 3 == 0:\n        raise OSError('it is "
        "locked')\n    praise"
    )
    plain.write(
        SUITE.replace("poor and bad", "great and excellent").replace("    praise", fails, 1)
    )
    monkeypatch.setenv("FAILS", "1")
    assert plain.session("-k", "test_a")[0] == 1
    assert [verdict for _, verdict, _ in plain.findings] != ["PASS"]
    monkeypatch.delenv("FAILS")
    code, printed = plain.session(
        "-k", "test_a", "--fairness-resume=last", "--fairness-retry-errors"
    )
    assert code == 0, printed
    assert plain.findings == [(A, "PASS", "")]
    assert verify(plain.last).problems == []


def test_f61_a_salvaged_run_keeps_what_it_judged(
    plain: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial was damaged; what is left of the run is resumed without the test that failed."""
    plain.session()
    monkeypatch.chdir(plain.path)
    number = next(
        at for at, record in enumerate(records(plain.last), 1) if record["type"] == "trial"
    )
    rewrite(plain.last, number, '"answered"', '"refused_"')
    assert main(["salvage", "last"]) == 0
    stands(
        plain, plain.session("--fairness-resume=last", *LEFT_OUT), f"{plain.last.name}, session 1"
    )


# ---------------------------------------------------------------- a bundle to be tampered with


@pytest.fixture(scope="module")
def run(shared: Path) -> Path:
    """A run of two sessions, the second without the test that failed; beside it another run, which
    passes.
    """
    return made_once(shared, "evidence_run", lambda: run_in(Path(tempfile.mkdtemp(dir=shared))))


def run_in(folder: Path) -> Path:
    project = Folder(folder, ("-p", "no:xdist"))
    project.write(SUITE + FLAGS)
    (project.path / "justifications.yaml").write_text(JUSTIFIED, encoding="utf-8")
    (project.path / "mitigations.yaml").write_text(MITIGATED, encoding="utf-8")
    project.session()
    (project.last / "own.sections.json").write_text(
        '[{"heading": "Letters", "parts": ["2 letters failed."]}]'
    )
    project.session("--fairness-resume=last", *LEFT_OUT)
    made = project.last
    project.write(SUITE.replace("poor and bad", "great and excellent"))
    project.session("-k", "test_a")
    return made


@pytest.fixture(scope="module")
def bundle(run: Path, shared: Path) -> Path:
    return made_once(
        shared, "evidence_bundle", lambda: write_bundle(run, shared / "evidence_signed.zip")
    )


@pytest.fixture(scope="module")
def unsigned_bundle(run: Path, shared: Path) -> Path:
    """Without the page to be signed, as where fpdf2 is not installed: a forgery of the others is
    seen all the same, and is made in a third of the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports_bundle, "surroundings", lambda: None)
        return made_once(
            shared, "evidence_unsigned", lambda: write_bundle(run, shared / "evidence_unsigned.zip")
        )


@pytest.fixture
def unpacked(unsigned_bundle: Path, tmp_path: Path) -> Path:
    return unpack(unsigned_bundle, tmp_path / "unpacked")


@pytest.fixture
def unpacked_whole(bundle: Path, tmp_path: Path) -> Path:
    return unpack(bundle, tmp_path / "whole")


class Forgery:
    """The JSON files of a bundle, to be edited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.findings, self.manifest, self.about = (
            json.loads((folder / name).read_bytes())
            for name in ("findings.json", "manifest.json", "bundle.json")
        )
        self.entries = [
            {key: value for key, value in one.items() if key in Mitigation.__struct_encode_fields__}
            for one in self.findings["run"]["mitigations"]
        ]

    def item(self, test: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            one for one in self.findings["items"] if one["nodeid"].endswith(test)
        )
        return found

    def finding(self, test: str) -> dict[str, Any]:
        found: dict[str, Any] = self.findings["findings"][self.item(test)["findings"][0]]
        return found

    def drop(self, test: str) -> None:
        """Take the test out with what it found."""
        gone = self.item(test)
        self.findings["items"].remove(gone)
        (at,) = gone["findings"]
        del self.findings["findings"][at]
        for item in self.findings["items"]:
            item["findings"] = [place - (place > at) for place in item["findings"]]

    def carry_out(self) -> None:
        """Write it, and what it concludes, as whoever tampers would."""
        for name, data in (("manifest.json", self.manifest), ("bundle.json", self.about)):
            (self.folder / name).write_text(json.dumps(data))
        ledger = {name: self.findings[name] for name in ("items", "findings", "missing")}
        results = conclude(
            self.folder, self.manifest, ledger, msgspec.convert(self.entries, list[Mitigation])
        )
        save_results(results, self.folder)


def tampered(folder: Path, edit: Callable[[Forgery], object]) -> str:
    """What `verify` has to say of the bundle with an *edit*, all hashes but those of the log made
    anew: of its records, and where these are in order, of all that follows from them, made anew.
    """
    forgery = Forgery(folder)
    edit(forgery)
    forgery.carry_out()
    resummed(folder)
    problems = verify(folder, records_only=True).problems
    if not problems:
        derive(folder)
        resummed(folder)
        problems = verify(folder).problems
    return "\n".join(problems)


def test_the_bundle_of_a_resumed_run_verifies(bundle: Path, run: Path) -> None:
    """With the finding that its last session left out; what earlier sessions wrote into files is
    not in it.
    """
    assert verify(bundle).problems == []
    assert (run / "findings-1.json").is_file()


def test_a_forgery_that_edits_nothing_verifies(unpacked: Path, unpacked_whole: Path) -> None:
    for folder in (unpacked, unpacked_whole):
        assert tampered(folder, lambda forgery: None) == ""


# ---------------------------------------------------------------- F62: a finding cannot be dropped


def session_added(forgery: Forgery) -> None:
    forgery.drop("test_b")
    forgery.manifest["planned"].remove("test_it.py::test_b")
    forgery.manifest["resumed"].append({**forgery.manifest["resumed"][0], "session": "0" * 12})
    forgery.manifest["sessions"].append("0" * 12)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (session_added, "the log has 1 judgement of test_it.py::test_b, and findings.json 0"),
        (session_added, "manifest.json tells of 3 sessions, and the log of 2"),
        (lambda forgery: forgery.drop("test_b"), "does not say how test_it.py::test_b ended"),
        (lambda forgery: forgery.drop("test_a"), "in 2"),
        (
            lambda forgery: forgery.drop("test_a"),
            "nothing judged since answers it): FAIL on sentiment",
        ),
        (
            lambda forgery: forgery.manifest["planned"].pop(),
            "planned are not the tests that were to run",
        ),
    ],
)
def test_f62_a_finding_that_is_left_out_is_named(
    unpacked: Path, edit: Callable[[Forgery], object], why: str
) -> None:
    assert why in tampered(unpacked, edit)


# ---------------------------------------------------------------- F63: pages of another version


def page_forged(folder: Path, made_by: str) -> None:
    about = json.loads((folder / "bundle.json").read_bytes())
    (folder / "bundle.json").write_text(json.dumps({**about, "made_by": made_by}))
    (folder / "index.html").write_text("All PASS. Signed by the board.")
    resummed(folder)


def test_f63_pages_of_another_version_are_not_taken_for_compared(
    unpacked_whole: Path, capsys: Any
) -> None:
    """An older version: exit 1, unless the records alone are asked for, which says what it leaves
    out.
    """
    page_forged(unpacked_whole, "0.0.9")
    assert main(["verify", str(unpacked_whole)]) == 1
    printed = capsys.readouterr().out
    assert (
        "PROBLEM: pages were not compared: version 0.0.9 made index, reports and tables" in printed
    )
    assert "install that version, or verify --records-only" in printed
    assert main(["verify", "--records-only", str(unpacked_whole)]) == 0
    *_, left_out, last = capsys.readouterr().out.splitlines()
    assert left_out.startswith("NOT compared, as --records-only asks: ")
    assert "index.html" in left_out
    assert "report.html" in left_out
    assert last == f"{unpacked_whole}: records verified, pages NOT compared"


@pytest.mark.parametrize("made_by", ["9.9", "nobody"])
def test_f63_a_newer_version_is_refused(unpacked_whole: Path, made_by: str, capsys: Any) -> None:
    """Also of the records alone: what it wrote may mean something else."""
    page_forged(unpacked_whole, made_by)
    for arguments in (("verify",), ("verify", "--records-only")):
        assert main([*arguments, str(unpacked_whole)]) == 1
        printed = capsys.readouterr().out
        assert ("newer than this one" if made_by == "9.9" else "which is no version") in printed
        assert "install pytest-fairness 9.9" in printed or made_by != "9.9"


def test_f63_a_summary_that_cannot_be_made_again_is_not_taken_for_compared(
    unpacked_whole: Path,
) -> None:
    """Of another library, or put into a bundle that has none."""
    about = json.loads((unpacked_whole / "bundle.json").read_bytes())
    (unpacked_whole / "summary.pdf").write_text("All PASS.")
    for pdf, why in (
        ("fpdf2 0.1", "summary.pdf was not compared: it was made with fpdf2 0.1"),
        (None, "is no part of"),
    ):
        (unpacked_whole / "bundle.json").write_text(json.dumps({**about, "pdf": pdf}))
        resummed(unpacked_whole)
        assert why in "\n".join(verify(unpacked_whole).problems)


# ---------------------------------------------------------------- F64: what an auditor reads


def set_in(*place: str, to: Any) -> Callable[[Forgery], None]:
    """An edit of the manifest."""

    def edit(forgery: Forgery) -> None:
        data = forgery.manifest
        for name in place[:-1]:
            data = data[int(name)] if isinstance(data, list) else data[name]
        data[place[-1]] = to

    return edit


def of_item(test: str, **fields: Any) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.item(test).update(fields)


def of_finding(test: str, **fields: Any) -> Callable[[Forgery], None]:
    return lambda forgery: forgery.finding(test).update(fields)


def justification_invented(forgery: Forgery) -> None:
    reason = {
        "reason": "Agreed by the board",
        "approver": "Chief Risk Officer",
        "date": "2026-01-01",
    }
    forgery.finding("test_flag")["justification"] = {**reason, "expiry": "2999-01-01"}
    forgery.item("test_flag").update(outcome="passed", message="")
    forgery.manifest["exit_status"] = 0


def judged_here(forgery: Forgery) -> None:
    forgery.item("test_a")["judged_in"] = ""
    del forgery.finding("test_a")["details"]["judged_in"]


def resumed_removed(forgery: Forgery) -> None:
    del forgery.manifest["resumed"]
    forgery.manifest["sessions"].pop()
    forgery.manifest["notes"] = []


EDITS: dict[str, Callable[[Forgery], object]] = {
    "exit status": set_in("exit_status", to=0),
    "begun in 2020": set_in("started", to="2020-01-01T00:00:00+00:00"),
    "resumed in 2020": set_in("resumed", "0", "started", to="2020-01-01T00:00:00+00:00"),
    "ended in 2020": set_in("finished", to="2020-01-01T00:00:00+00:00"),
    "seed": set_in("seed", to=7),
    "command": set_in("command", to=["pytest"]),
    "command of the resumed session": set_in("resumed", "0", "command", to=["pytest"]),
    "commit": set_in("git_commit", to="0" * 40),
    "who ran it": set_in("run_by", to="The board"),
    "versions": set_in("versions", "python", to="3.14.0"),
    "setting smoke": set_in("settings", "smoke", to=True),
    "setting looks": set_in("settings", "looks", to="40"),
    "looks of the run": set_in("looks", "session_alpha", to=0.5),
    "setting endpoint": set_in("settings", "endpoint", to="gpt-5-prod"),
    "model of the endpoint": set_in("endpoints", "0", "identity", "model", to="gpt-5-2026"),
    "address of the endpoint": set_in(
        "endpoints", "0", "identity", "base_url", to="https://api.openai.com/v1"
    ),
    "name of the endpoint": set_in("endpoints", "0", "name", to="gpt-5-prod"),
    "simulated endpoint": set_in("endpoints", "0", "simulated", to=True),
    "endpoints": set_in("endpoints", to=[]),
    "a session added": session_added,
    "a session removed": resumed_removed,
    "planned": set_in("planned", to=[]),
    "notes of the run": set_in("notes", to=[]),
    "run": set_in("id", to="2026-01-01-001"),
    "replay of": set_in("replay_of", to="2026-01-01-001"),
    "shard": set_in("shard", to="1/2"),
    "cost in the manifest": set_in("cost", to=12.0),
    "a key in the manifest": set_in("approved_by", to="The board"),
    "outcome and message": of_item("test_flag", outcome="passed", message=""),
    "message": of_item("test_flag", message="a network error"),
    "line": of_item("test_flag", line=1),
    "file": of_item("test_flag", file="elsewhere.py"),
    "never finished": lambda forgery: forgery.findings["missing"].append("test_it.py::test_z"),
    "a test without findings dropped": lambda forgery: forgery.drop("test_flag"),
    "a finding of an earlier session dropped": lambda forgery: forgery.drop("test_a"),
    "a finding of an earlier session as of this one": judged_here,
    "outcome of an earlier session": of_item("test_a", outcome="passed"),
    "justification invented": justification_invented,
    "approver": lambda forgery: forgery.finding("test_justified")["justification"].update(
        approver="The board"
    ),
    "justification taken away": of_finding("test_justified", justification=None),
    "verdict": of_finding("test_a", verdict="PASS"),
    "sentence": of_finding("test_flag", sentence="FLAG: nothing to speak of."),
    "p-value": of_finding("test_flag", p_value=0.4),
    "notes of a finding": of_finding("test_flag", notes=["Nothing to see."]),
    "explanation": of_finding("test_flag", explanation=""),
    "description": of_finding("test_a", description="A trial run"),
    "module": of_finding("test_a", test_module="draft"),
    "controls": of_finding("test_a", controls={"A.9.2": "direct"}),
    "what stopped the looks": lambda forgery: forgery.finding("test_a")["details"]["looks"].update(
        stopped="stopped by the cost cap: $1"
    ),
    "budget of the looks": lambda forgery: forgery.finding("test_a")["details"]["looks"].update(
        red_budget=0.05
    ),
    "owner of a mitigation": lambda forgery: forgery.entries[0].update(owner="The board"),
    "mitigations": lambda forgery: forgery.entries.clear(),
    "a suite's page": lambda forgery: (forgery.folder / "own.sections.json").write_text("[]"),
    "findings of an earlier session": lambda forgery: (
        forgery.folder / "findings-1.json"
    ).write_text("{}"),
    "run of the bundle": lambda forgery: forgery.about.update(run="2026-01-01-001"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_f64_what_an_auditor_reads_is_what_the_log_has(
    unpacked: Path, edit: Callable[[Forgery], object]
) -> None:
    """Edited, and every page, table and sum made anew: not verified, though the log is as it was."""
    assert tampered(unpacked, edit) != ""


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        (
            "retests.csv",
            lambda forgery: (forgery.folder / "retests.csv").write_text(
                "finding,run\nf-1,2027-01-01-001\n"
            ),
        ),
        ("announced", set_in("announced", to=[])),
        ("unasked", set_in("unasked", to=["time"])),
        ("asked", set_in("asked", to={})),
    ],
)
def test_f64_what_is_taken_as_recorded_is_named(
    unpacked: Path, name: str, edit: Callable[[Forgery], object]
) -> None:
    """On the bundle's own page and in the documentation."""
    section = (unpacked / "index.html").read_text(encoding="utf-8").partition('id="recorded"')[2]
    assert re.search(rf"\b{re.escape(name)}\b", section.partition("<section")[0])
    page = Path(__file__).parents[2].joinpath("docs", "audit.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page.partition("**What it takes as recorded.**")[2]
    assert tampered(unpacked, edit) == ""


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("session", {"number": "first"}),
        ("session", {"settings": []}),
        ("session", None),
        ("outcome", {"nodeid": ["a", "b"]}),
        ("outcome", None),
        ("ended", {"planned": 7}),
        ("ended", {"pages": None, "mitigations": None}),
        ("ended", None),
        ("endpoint", {"endpoint": 7}),
        ("judgement", {"finding": []}),
        ("judgement", {"finding": {}, "columns": ""}),
    ],
)
def test_f64_records_of_sessions_edited(
    unpacked: Path, kind: str, fields: dict[str, Any] | None
) -> None:
    """Also into what is none, or taken out: a problem, and no traceback."""

    def change(record: dict[str, Any]) -> None:
        if record["type"] == kind:
            if fields is None:
                record.clear()
            record.update(fields or {})

    relogged(unpacked, change)
    assert verify(unpacked).problems


# ---------------------------------------------------------------- F69: honest runs verify

HONEST = """
import pandas as pd
import pytest
from pytest_fairness import assert_no_disparity

calls = 0

@pytest.fixture
def endpoint():
    def answer(prompt):
        global calls
        calls += 1
        return f"Great work, {'so ' * (len(prompt) % 4)}they say.{chr(0xD800) * (calls % 50 == 1)}"
    return answer

@pytest.mark.fairness(id="TONE", controls={"A.5.5": "direct", "A.8.2": "context"})
@pytest.mark.fairness_grid(template=["Describe {name}, a nurse.", "Praise {name}, a cook."], names=(20,),
                           groups={"race_ethnicity": ["white", "black"]}, repetitions=1)
def test_replies_with_half_a_character(trials):
    assert trials.reply.str.contains("\\ud800").any()
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@pytest.mark.fairness(controls={"A.9.2": "supporting"})
@pytest.mark.parametrize("block", [None, "prompt", "seconds"])
def test_a_table_with_columns_of_these_names(block):
    rows = [(race, at % 3 > 0, f"n{at // 2}", f"p{at % 2}") for race in "ab" for at in range(200)]
    frame = pd.DataFrame(rows, columns=["race", "ok", "name", "reply"]).assign(template="t", cost=1.0)
    frame = frame.assign(prompt=frame.reply, seconds=frame.reply)
    assert_no_disparity(frame, outcome="ok", by="race", block=block)
"""


def test_f69_honest_runs_verify(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Controls that a test declares, lone surrogates in replies, a table with columns named as
    those of trials. The page to be signed is drawn where there are no workers.
    """
    if "-n0" in folder.mode or "-n2" in folder.mode:
        monkeypatch.setattr(reports_bundle, "surroundings", lambda: None)
    folder.write(HONEST)
    code, printed = folder.session()
    assert code == 0, printed
    monkeypatch.chdir(folder.path)
    assert main(["audit", "last", "--into", "evidence.zip"]) == 0
    assert main(["verify", "evidence.zip"]) == 0
    assert "verdicts: 4 of 4 derived again from the logs, the same" in capsys.readouterr().out
    data = json.loads((folder.last / "findings.json").read_bytes())["findings"]
    controls = {one["nodeid"].partition("::")[2]: one["controls"] for one in data}
    assert controls["test_replies_with_half_a_character"] == {"A.5.5": "direct", "A.8.2": "context"}
    assert controls["test_a_table_with_columns_of_these_names[prompt]"] == {"A.9.2": "supporting"}
