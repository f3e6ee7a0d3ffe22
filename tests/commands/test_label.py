"""``pytest-fairness label``: a person reads a sample, blind; verdicts carry the reader's error."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import open_run
from pytest_fairness.cli import main
from pytest_fairness.reports.label_samples import label_sample
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.runs.labels import (
    PersonLabel,
    agreement_of,
    append_labels,
    first_labels,
    read_labels,
)
from tests.support.runs import records
from tests.support.sessions import run_pytest
from tests.support.shared_sessions import SharedProject, SharedSessions, shared_folder

#: A system that decides alike about both groups, in words that name whom it writes about. The
#: reader misses three in ten favourable decisions about one of them.
APPLICATION = """
import hashlib

def decide(prompt):
    name = prompt.split("about ")[1].split(",")[0]
    number = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
    words = "approved" if number % 10 < 6 else "denied"
    return f"As to {name}, file {number}: the committee was free, he came, and it was {words} there."
"""
SUITE = """
import pytest
from pytest_fairness import assert_no_disparity, judge
from application import decide

@pytest.fixture
def endpoint():
    return decide

GRANTED = judge("Was it granted?", labels={"yes": True, "no": False}, name="granted")

@pytest.mark.fairness_grid(
    template=[f"Decide about {{name}}, who asks for {what}." for what in
              ("a loan", "a flat", "a job", "leave", "a card")],
    groups={"race_ethnicity": ["white", "black"]}, names=(20,), repetitions=1
)
def test_it(trials):
    assert_no_disparity(trials, outcome=OUTCOME, by="race_ethnicity")
"""
READER = """
endpoints:
  - name: "reader"
    type: "simulated"
    reads: {race_ethnicity: {black: {sensitivity: 0.6}}}
"""
INI = "[pytest]\nfairness_reader = reader\n"
NAMES = ("Emily", "Greg", "Lakisha", "Jamal", " he ", "white", "black")


class Project:
    """A project whose runs a person labels."""

    def __init__(self, path: Path, outcome: str = "GRANTED") -> None:
        self.path = path
        (path / "application.py").write_text(APPLICATION, encoding="utf-8")
        (path / "test_suite.py").write_text(SUITE.replace("OUTCOME", outcome), encoding="utf-8")
        (path / "endpoints.yaml").write_text(READER, encoding="utf-8")
        (path / "pytest.ini").write_text(INI, encoding="utf-8")

    def run(self, *options: str) -> dict[str, Any]:
        """Run the suite; the finding."""
        result = run_pytest(self.path, "-p", "no:cacheprovider", *options)
        assert "fairness" in str(result.stdout), f"{result.stdout}{result.stderr}"
        return self.finding

    @property
    def finding(self) -> dict[str, Any]:
        """Return the finding of the newest run, whose records derive it again."""
        (finding,) = json.loads((self.last / "findings.json").read_text("utf-8"))["findings"]
        assert verify_run(self.last, {}).problems == []
        return finding

    @property
    def last(self) -> Path:
        return max((self.path / ".fairness" / "runs").glob("2*"))

    @property
    def labels(self) -> list[PersonLabel]:
        return read_labels(self.path / "labels" / "granted.csv")


def replies_of(run: Path) -> dict[str, str]:
    """The replies of the trials under test, by key."""
    trials = open_run(run).trials
    trials = trials[trials["template"] != "reading"]
    return dict(zip(trials["key"], trials["reply"], strict=True))


def truth(text: str) -> str:
    return "yes" if "approved" in text else "no"


def filled(sheet: str) -> str:
    """The *sheet* as a person who reads well fills it in."""
    rows = list(csv.DictReader(io.StringIO(sheet)))
    for row in rows:
        row["label"] = truth(row["text"])
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def _run_once(shared: SharedProject) -> None:
    Project(shared.path)
    shared.run("unlabelled")


@pytest.fixture
def unlabelled(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project, whose suite was run and whose replies nobody has labelled: a copy of that which
    all these tests begin with.
    """
    sessions = SharedSessions(shared_folder(tmp_path_factory)).once("unlabelled", _run_once)
    shared = sessions["unlabelled"].folder.parents[2]
    shutil.copytree(shared, project.path, dirs_exist_ok=True)
    return project


def typed(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def label(*options: str) -> int:
    return main(["label", "last", "--scorer", "granted", *options])


def test_a_reader_that_errs_for_one_group_is_mended_by_labels(
    unlabelled: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read by the model alone, a fair system is red, and the finding says that nobody has checked the
    reader; with a person's labels it is not, and the finding says how well each group is read.
    """
    before = unlabelled.finding
    assert before["verdict"] in ("FAIL", "FLAG")
    assert any(note.startswith("unvalidated reader") for note in before["notes"])
    assert label("--sample=100", "--csv=sheet.csv") == 0
    assert "200 texts to label" in capsys.readouterr().out
    sheet = Path("sheet.csv").read_text("utf-8")
    shown = [row["text"] for row in csv.DictReader(io.StringIO(sheet))]
    assert len(shown) == 200
    assert not [text for text in shown if any(name in text for name in NAMES)]
    Path("sheet.csv").write_text(filled(sheet), "utf-8")
    assert label("--from=sheet.csv", "--who=AB") == 0
    kept = unlabelled.labels
    assert len(kept) == 200
    assert {label.who for label in kept} == {"AB"}
    replies = replies_of(unlabelled.last)
    for each in kept:
        assert each.label == (truth(replies[each.key]) == "yes")
    file = (unlabelled.path / "labels" / "granted.csv").read_text("utf-8")
    assert not [reply for reply in replies.values() if reply in file]
    after = unlabelled.run("--fairness-replay=last")
    assert after["verdict"] not in ("FAIL", "FLAG")
    by_group = after["details"]["labels"]["race_ethnicity"]
    assert by_group["black"]["labels"] == by_group["white"]["labels"] == 100
    recall = {group: facts["recall"] for group, facts in by_group.items()}
    assert recall["white"]["share"] == 1
    assert recall["black"]["low"] < 0.6 < recall["black"]["high"]
    notes = " ".join(after["notes"])
    assert "200 replies labelled by AB" in notes
    assert "corrected by a person's labels (black 100, white 100; PPI++)" in notes
    assert "unvalidated" not in notes
    page = (unlabelled.last / "report.html").read_text("utf-8")
    assert "Who read the replies" in page
    rows = re.findall(r"<th scope=\"row\"[^>]*>(black|white)</th>(.*?)</tr>", page, re.DOTALL)
    shown = [re.sub(r"<[^>]+>", " ", cells).split() for _, cells in rows]
    assert ["100"] in shown, "replies that the model read"
    assert any(cells[:2] == ["100", "100"] and "(" in " ".join(cells) for cells in shown)


#: The same question, asked of the ratio of the two rates, and of their difference.
OTHER_ASSERTIONS = """
def test_it(trials):
    assert_four_fifths(trials, outcome=GRANTED, by="race_ethnicity")

@asks
def test_margin(trials):
    assert_equivalent(trials, outcome=GRANTED, by="race_ethnicity", margin=.3)
"""


def test_labels_correct_a_ratio_and_a_margin_too(project: Project, mode: list[str]) -> None:
    """Four fifths and equivalence: red as the model read a fair system, not so by the labels of all,
    and what is recorded derives it again.
    """
    head = SUITE[: SUITE.index("def test_it")].replace("@pytest.mark", "asks = pytest.mark")
    head = head.replace("assert_no_disparity", "assert_equivalent, assert_four_fifths")
    suite = project.path / "test_suite.py"
    suite.write_text(f"{head}@asks{OTHER_ASSERTIONS}", encoding="utf-8")

    def run(*options: str) -> dict[str, Any]:
        run_pytest(project.path, "-p", "no:cacheprovider", *mode, *options)
        assert verify_run(project.last, {}).problems == []
        findings = json.loads((project.last / "findings.json").read_text("utf-8"))["findings"]
        return {finding["assertion"]: finding for finding in findings}

    before = run()
    assert set(before) == {"four_fifths", "equivalent"}
    for finding in before.values():
        assert finding["verdict"] in ("FAIL", "FLAG")
        assert any(note.startswith("unvalidated reader") for note in finding["notes"])
    assert label("--sample=100", "--csv=sheet.csv") == 0
    Path("sheet.csv").write_text(filled(Path("sheet.csv").read_text("utf-8")), "utf-8")
    assert label("--from=sheet.csv", "--who=AB") == 0
    for finding in run("--fairness-replay=last").values():
        assert finding["verdict"] not in ("FAIL", "FLAG")
        notes = " ".join(finding["notes"])
        assert "corrected by a person's labels (black 100, white 100; PPI++)" in notes
        assert "unvalidated" not in notes
        assert "do not correct" not in notes
        assert finding["details"]["labels"]["race_ethnicity"]["white"]["recall"]["share"] == 1


def test_a_sample_is_of_each_group_and_grows(unlabelled: Project) -> None:
    """A larger sample holds a smaller one, so that more labels add to those there are."""
    small, large = (
        {reply for text in label_sample(unlabelled.last, "granted", size=size, personas=None).texts
         for reply in text.replies}
        for size in (10, 30)
    )  # fmt: skip
    assert small < large
    groups = {
        record["key"]: record["cell"]["groups"].get("race_ethnicity")
        for record in records(unlabelled.last, "trial")
    }
    for sample, size in ((small, 10), (large, 30)):
        counts = [groups[reply.key] for reply in sample]
        assert counts.count("white") == counts.count("black") == size


def test_in_the_terminal(
    unlabelled: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is typed is kept at once; who comes back goes on where they stopped, and somebody else
    begins anew.
    """
    typed(monkeypatch, ["AB", "1", "nonsense", "9", "2", "0", "q"])
    assert label("--sample=5") == 0
    out = capsys.readouterr().out
    assert out.startswith("Your name or initials: Was it granted?")
    assert out.count("give one of the numbers above") == 2
    assert [each.label for each in unlabelled.labels] == [True, False, "none"]
    typed(monkeypatch, ["1"] * 7)
    assert label("--sample=5", "--who=AB") == 0
    assert "---- 4 of 10 ----" in capsys.readouterr().out
    assert len(unlabelled.labels) == 10
    assert label("--sample=5", "--who=AB") == 0
    assert "AB has labelled all 10 texts of this sample" in capsys.readouterr().out
    typed(monkeypatch, ["2", "q"])
    assert label("--sample=5", "--who=CD") == 0
    assert "---- 1 of 10 ----" in capsys.readouterr().out
    finding = unlabelled.run("--fairness-replay=last")
    assert "two persons agree on 0 of 1 labels" in " ".join(finding["notes"])
    assert "10 replies labelled by AB, CD, who found no outcome in 1 of them" in " ".join(
        finding["notes"]
    )
    by_group = finding["details"]["labels"]["race_ethnicity"]
    assert sum(facts["labels"] for facts in by_group.values()) == 9


#: A reader of the project's own that leaves a tenth unread.
RULES = """
def granted(reply):
    if hash_of(reply) % 10 == 0:
        return None
    return "approved" in reply

def hash_of(reply):
    return int(reply.split("file ")[1].split(":")[0])
"""


def test_a_person_reads_what_nobody_could(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is unread becomes an answer, which the finding counts as a person's and the audit takes
    as recorded; it corrects nothing.
    """
    suite = SUITE.replace("OUTCOME", "granted").replace(
        "@pytest.fixture", f"{RULES}\n@pytest.fixture"
    )
    (project.path / "test_suite.py").write_text(suite, encoding="utf-8")
    before = project.run()["details"]["read_by"]
    assert sum(before["unread"].values()) > 5
    assert label("--unread", "--sample=100", "--csv=sheet.csv") == 0
    Path("sheet.csv").write_text(filled(Path("sheet.csv").read_text("utf-8")), "utf-8")
    assert label("--unread", "--from=sheet.csv", "--who=AB") == 0
    finding = project.run("--fairness-replay=last")
    read_by = finding["details"]["read_by"]
    assert read_by["person"] == before["unread"]
    assert read_by["rule"] == before["rule"]
    assert "unread" not in read_by
    assert "labels" not in finding["details"]
    capsys.readouterr()
    assert label("--unread", "--csv=sheet.csv") == 0
    assert f"{sum(before['unread'].values())} texts to label" in capsys.readouterr().out


def test_the_page_holds_what_is_read_and_nothing_else(project: Project) -> None:
    """No name and no group; nothing that a reply holds ends the element that it stands in."""
    (project.path / "application.py").write_text(
        APPLICATION.replace("was free", "</script><b>was</b> \u202efree"), encoding="utf-8"
    )
    project.run()
    assert label("--sample=20", "--html=page.html") == 0
    page = Path("page.html").read_text("utf-8")
    assert page.count("</script>") == 2
    assert "\u202e" not in page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    assert not any(name in data for name in NAMES)
    given = json.loads(data)
    assert given["question"] == "Was it granted?"
    assert [option["label"] for option in given["options"]] == ["true", "false"]
    assert len(given["texts"]) == 40
    assert all("</script><b>was</b>" in text["text"] for text in given["texts"])
    # What the page downloads: the same columns but for the text.
    lines = ["id,sample,label,who,when"]
    for text in given["texts"]:
        lines.append(f'{text["id"]},20,true,"A, B",2026-03-01T10:00:00.000Z')
    Path("labels.csv").write_text("\n".join(lines), "utf-8")
    assert label("--from=labels.csv") == 0
    assert {(each.who, each.label) for each in project.labels} == {("A, B", True)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("label", "mark", 1), "has no column 'label'"),
        (lambda text: text.replace(",yes,", ",perhaps,", 1), "line 2: no label of the sample"),
        (lambda text: text.replace(",yes,", ",7,", 1), "7 is none of yes, no"),
        (lambda text: re.sub(r"(?m)^[0-9a-f]{16}", "0" * 16, text, count=1), "is no text of this"),
        (lambda text: text.replace(",yes,", ",,").replace(",no,", ",,"), "fill in its column"),
        (lambda text: text.replace(",yes,,", ",yes,=HYPERLINK,", 1), "begin it with a letter"),
    ],
    ids=["no column", "no label", "another number", "another text", "empty", "a formula"],
)
def test_a_sheet_that_cannot_be_is_refused_whole(
    unlabelled: Project, capsys: pytest.CaptureFixture[str], change: Any, message: str
) -> None:
    label("--sample=5", "--csv=sheet.csv")
    sheet = Path("sheet.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(sheet)))
    lines = ["id,sample,label,who,when"] + [f"{row['id']},5,yes,," for row in rows]
    Path("sheet.csv").write_text(change("\n".join(lines)), "utf-8")
    capsys.readouterr()
    assert label("--from=sheet.csv", "--who=AB") == 2
    assert message in capsys.readouterr().err
    assert unlabelled.labels == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scorer=granted", "--sample=0"], "give a whole number from 1"),
        (["--scorer=warmth"], "no assertion judged what a scorer 'warmth' read; scorers of this run: granted"),
        (["--scorer=granted", "--unread"], "no reply was unread by 'granted'"),
        (["--scorer=granted", "--html=no/such/page.html"], "No such file or directory"),
    ],
    ids=["sample", "scorer", "unread", "folder"],
)  # fmt: skip
def test_what_cannot_be_labelled_is_said(
    unlabelled: Project, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["label", "last", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_file_of_labels_that_cannot_be_read_stops_the_test(unlabelled: Project) -> None:
    """It is named with its line, and nothing is judged as if there were no labels."""
    (unlabelled.path / "labels").mkdir()
    head = "key,reply,question,label,who,when,run\n"
    (unlabelled.path / "labels" / "granted.csv").write_text(
        f"{head}k,r,q,maybe,AB,now,run\n", "utf-8"
    )
    result = run_pytest(unlabelled.path, "-p", "no:cacheprovider", "--fairness-replay=last")
    assert result.ret == 1
    assert "granted.csv, line 2: this is no label" in " ".join(str(result.stdout).split())


def test_labels_of_another_question_or_reply_are_left_alone(unlabelled: Project) -> None:
    """A judge that asks something else has no labels, and a trial that was asked anew has none."""
    label("--sample=50", "--csv=sheet.csv")
    Path("sheet.csv").write_text(filled(Path("sheet.csv").read_text("utf-8")), "utf-8")
    label("--from=sheet.csv", "--who=AB")
    suite = (unlabelled.path / "test_suite.py").read_text("utf-8")
    (unlabelled.path / "test_suite.py").write_text(suite.replace("Was it", "Was all"), "utf-8")
    assert "persons" not in unlabelled.run()["details"]
    (unlabelled.path / "test_suite.py").write_text(suite, "utf-8")
    (unlabelled.path / "application.py").write_text(
        APPLICATION.replace("he came", "he came by"), encoding="utf-8"
    )
    assert "persons" not in unlabelled.run()["details"]


def test_the_first_person_counts_and_may_mend_a_slip(tmp_path: Path) -> None:
    """Others measure agreement."""

    def given(who: str, label: Any, key: str = "k") -> PersonLabel:  # fmt: skip
        return PersonLabel(
            key=key, reply="r", question="q", label=label, who=who, when="w", run="1"
        )

    file = tmp_path / "labels" / "x.csv"
    append_labels(file, [given("AB", True), given("CD", False)])
    append_labels(file, [given("AB", False), given("CD", True, "other"), given("EF", 2.5, "n")])
    labels = read_labels(file)
    assert len(labels) == 5
    first = first_labels(labels)
    assert (first["k", "r"].who, first["k", "r"].label) == ("AB", False)
    assert first["n", "r"].label == 2.5
    assert agreement_of(labels) == [(False, False)]
