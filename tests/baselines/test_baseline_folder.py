"""The folder on disk: a name for each test and score, nothing followed, nothing half written,
orphans found.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.baselines import snapshot_files
from pytest_fairness.baselines.snapshot_files import (
    MAX_BYTES,
    BaselineFolder,
    baseline_name,
    find_orphans,
)
from pytest_fairness.errors import BaselineError, StoreError

from .conftest import APPROVE, SCORE, Desk


@pytest.fixture
def folder(tmp_path: Path) -> BaselineFolder:
    return BaselineFolder(tmp_path / "project" / "baselines", anchor=tmp_path / "project")


def test_what_was_written_is_read(folder: BaselineFolder) -> None:
    """The folder is made when first needed; a second write replaces the first; nothing else is
    left.
    """
    assert folder.read("a.json") is None
    assert folder.names() == []
    folder.write("a.json", b"one")
    path = folder.write("a.json", b"two")
    assert folder.read("a.json") == b"two"
    assert [entry.name for entry in folder.root.glob("*.json")] == [path.name] == folder.names()
    assert stat.S_IMODE(path.stat().st_mode) & 0o400


@pytest.mark.parametrize("name", ["../a.json", "/etc/passwd", "sub/a.json", "", ".", ".."])
def test_a_name_is_never_a_path(folder: BaselineFolder, name: str) -> None:
    """Whoever asks for another place is told so, reading and writing alike."""
    with pytest.raises(BaselineError, match="plain file name"):
        folder.read(name)
    with pytest.raises(BaselineError, match="plain file name"):
        folder.write(name, b"x")


@pytest.mark.parametrize(
    "target", ["outside.json", "baselines/other.json", "/dev/full", "missing.json"]
)
def test_a_symbolic_link_is_refused(
    folder: BaselineFolder, tmp_path: Path, target: str, unchanged: Callable[[Path], None]
) -> None:
    """Wherever it leads, out of the tree, inside it, to a device or nowhere: never followed."""
    folder.root.mkdir(parents=True)
    for name in ("outside.json", "baselines/other.json"):
        (folder.anchor / name).write_bytes(b"precious")
        unchanged(folder.anchor / name)
    (folder.root / "a.json").symlink_to(folder.anchor / target)
    with pytest.raises(BaselineError, match="symbolic link"):
        folder.read("a.json")
    with pytest.raises(BaselineError, match="symbolic link"):
        folder.write("a.json", b"x")
    assert (folder.root / "a.json").is_symlink()
    assert not (folder.anchor / "missing.json").exists()


def test_a_link_put_there_after_the_check_is_refused_too(
    folder: BaselineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking and opening somebody swaps the file: the opening itself refuses to follow."""
    folder.root.mkdir(parents=True)
    secret = folder.anchor / "secret"
    secret.write_bytes(b"secret")
    (folder.root / "a.json").symlink_to(secret)
    monkeypatch.setattr(BaselineFolder, "_inside", lambda self, name: self.root / name)
    with pytest.raises(BaselineError, match="symbolic link"):
        folder.read("a.json")
    with pytest.raises(BaselineError, match="not a regular file"):
        folder.write("a.json", b"x")
    assert secret.read_bytes() == b"secret"


def test_a_linked_folder_is_refused(folder: BaselineFolder, tmp_path: Path) -> None:
    """The folder itself may not be a link: reading, writing and listing all refuse."""
    folder.anchor.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.json").write_bytes(b"theirs")
    folder.root.symlink_to(tmp_path / "elsewhere")
    for attempt in (
        lambda: folder.read("a.json"),
        lambda: folder.write("a.json", b"x"),
        folder.names,
    ):
        with pytest.raises(BaselineError, match="folder is a symbolic link"):
            attempt()
    assert (tmp_path / "elsewhere" / "a.json").read_bytes() == b"theirs"


def test_a_link_on_the_way_may_not_lead_out_of_the_project(tmp_path: Path) -> None:
    """``project/tests -> /elsewhere`` makes ``project/tests/baselines`` a folder outside the
    project.
    """
    project, outside = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    (outside / "baselines").mkdir(parents=True)
    (project / "tests").symlink_to(outside)
    with pytest.raises(BaselineError, match="leads out of"):
        BaselineFolder(project / "tests" / "baselines", anchor=project).write("a.json", b"x")
    assert list((outside / "baselines").iterdir()) == []


def test_a_project_reached_through_a_link_works(tmp_path: Path) -> None:
    """A checkout under a linked path is common (``/tmp`` on macOS); only what lies in the project
    counts.
    """
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = BaselineFolder(tmp_path / "link" / "baselines", anchor=tmp_path / "link")
    folder.write("a.json", b"x")
    assert folder.read("a.json") == b"x"


def test_a_hard_link_is_refused(folder: BaselineFolder, unchanged: Callable[[Path], None]) -> None:
    """A file with a second name could change without a trace in the folder."""
    folder.write("a.json", b"x")
    other = folder.anchor / "other"
    os.link(folder.root / "a.json", other)
    unchanged(other)
    with pytest.raises(BaselineError, match="hard links"):
        folder.read("a.json")
    with pytest.raises(BaselineError, match="hard links"):
        folder.write("a.json", b"y")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: Path(path).mkdir(), "not a regular file"),
        (lambda path: (Path(path).touch(), os.truncate(path, MAX_BYTES + 1)), "larger than"),
    ],
    ids=["pipe", "folder", "huge"],
)
def test_only_regular_files_of_a_sane_size_are_read(
    folder: BaselineFolder, make: Callable[[Path], None], why: str
) -> None:
    """A pipe neither blocks the run nor feeds it; nobody reads gigabytes because a contributor put
    them there.
    """
    folder.root.mkdir(parents=True)
    make(folder.root / "a.json")
    with pytest.raises(BaselineError, match=why):
        folder.read("a.json")


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_content(
    folder: BaselineFolder, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A full disk is reported as such; the approved text stays whole; no temporary file is left."""
    folder.write("a.json", b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot_files.os if call == "fsync" else Path, call, full)
    with pytest.raises(StoreError, match=r"a\.json cannot be written: No space left on device"):
        folder.write("a.json", b"new")
    assert folder.read("a.json") == b"old"
    assert [entry.name for entry in folder.root.glob("*.json")] == ["a.json"]


TEXTS = st.text(st.characters(), max_size=400)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("t.py::t[a/b]", "s"), ("t.py::t[a:b]", "s")),
        (("t.py::t[a]", "s"), ("t.py::t[A]", "s")),
        (("a", "b.c"), ("a.b", "c")),
        (("…", "…"), ("¿", "…")),
        (("t.py::t[é]", "s"), ("t.py::t[e\u0301]", "s")),
        (("t.py::t[" + "x" * 500 + "1]", "s"), ("t.py::t[" + "x" * 500 + "2]", "s")),
    ],
    ids=["slash-colon", "case", "boundary", "unreadable", "unicode", "long"],
)
def test_ids_that_look_alike_get_two_files(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Even where the readable part is the same, and on a file system that ignores case."""
    assert baseline_name(*one).lower() != baseline_name(*other).lower()


@settings(max_examples=50)
@given(TEXTS, TEXTS)
def test_a_name_is_always_a_plain_portable_file_name(test_id: str, score: str) -> None:
    """Whatever the id: small ASCII, not hidden, no path, short enough, the same each time, readable
    where it can.
    """
    name = baseline_name(test_id, score)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*\.json", name)
    assert ".." not in name
    assert len(name) <= 250
    assert name == baseline_name(test_id, score)
    name = baseline_name("tests/test_letters.py::TestTone::test_kept", "letter_score")
    assert re.fullmatch(
        r"tests\.test_letters\.testtone\.test_kept\.letter_score-[0-9a-f]{12}\.json", name
    )
    assert baseline_name("…", "…").startswith("baseline-")


KEPT, RENAMED = "t.py::test_kept", "t.py::test_renamed"


@pytest.fixture
def two(desk: Desk) -> Desk:
    """A folder with an approved baseline of each of two tests."""
    for test_id in (KEPT, RENAMED):
        desk.approve(store=desk.store(APPROVE, test_id=test_id))
    return desk


def orphans(
    desk: Desk, *, collected: set[str], finished: set[str], used: set[str]
) -> dict[str, str]:
    before = {path: path.read_bytes() for path in desk.files}
    folder = BaselineFolder(desk.rootdir / "baselines", anchor=desk.rootdir)
    found = find_orphans(folder, collected=collected, finished=finished, used=used)
    assert {path: path.read_bytes() for path in desk.files} == before, "a report deletes nothing"
    return found


def test_what_no_test_claims_is_reported(two: Desk) -> None:
    """Of a test that is renamed, of a score that its test no longer asks for; a test that did not
    run keeps its own.
    """
    assert (
        find_orphans(
            BaselineFolder(two.rootdir / "none", anchor=two.rootdir),
            collected=(),
            finished=(),
            used=(),
        )
        == {}
    )
    kept, renamed = baseline_name(KEPT, SCORE), baseline_name(RENAMED, SCORE)
    assert orphans(two, collected={KEPT}, finished={KEPT}, used={kept}) == {
        renamed: "its test is gone or renamed"
    }
    assert orphans(two, collected={KEPT, RENAMED}, finished={KEPT}, used={kept}) == {}
    used = {renamed, baseline_name(KEPT, "new_score")}
    why = "its test no longer asks for the score 'letter_score'"
    assert orphans(two, collected={KEPT, RENAMED}, finished={KEPT, RENAMED}, used=used) == {
        kept: why
    }


def test_renamed_and_unreadable_files_are_reported(two: Desk) -> None:
    """A file that nothing asks for by that name, and one that nobody can read; other files are not
    ours.
    """
    folder = two.rootdir / "baselines"
    (folder / baseline_name(RENAMED, SCORE)).rename(folder / "a-copy.json")
    (folder / "broken.json").write_text("{")
    (folder / "README.md").write_text("About these baselines.")
    found = orphans(
        two, collected={KEPT, RENAMED}, finished=set(), used={baseline_name(KEPT, SCORE)}
    )
    assert list(found) == ["a-copy.json", "broken.json"]
    assert "renamed" in found["a-copy.json"]
    assert "truncated or damaged" in found["broken.json"]
