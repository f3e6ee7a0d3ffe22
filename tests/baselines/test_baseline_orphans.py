"""Baselines that no test claims: found, explained, and left where they are."""

from __future__ import annotations

import pytest

from pytest_fairness.baselines.folder import Orphan, baseline_name, find_orphans

from .conftest import APPROVE, SCORE, Desk

KEPT, GONE = "t.py::test_kept", "t.py::test_gone"


@pytest.fixture
def two(desk: Desk) -> Desk:
    """A folder with an approved baseline of each of two tests."""
    for test_id in (KEPT, GONE):
        desk.approve(store=desk.store(APPROVE, test_id=test_id))
    return desk


def orphans(desk: Desk, *, collected: set[str], finished: set[str], used: set[str]) -> tuple[Orphan, ...]:
    before = {path: path.read_bytes() for path in desk.files}
    found = find_orphans(desk.store().folder, collected=collected, finished=finished, used=used)
    assert {path: path.read_bytes() for path in desk.files} == before, "a report deletes nothing"
    return found


def test_a_baseline_whose_test_is_gone_is_reported(two: Desk) -> None:
    """By file, with the test and the score that it was approved for."""
    used = {baseline_name(KEPT, SCORE)}
    (orphan,) = orphans(two, collected={KEPT}, finished={KEPT}, used=used)
    assert orphan == Orphan(
        name=baseline_name(GONE, SCORE), test_id=GONE, score=SCORE, why="its test is gone or renamed"
    )


def test_a_test_that_did_not_run_keeps_its_baseline(two: Desk) -> None:
    """Skipped, deselected or failed before it asked: it may ask next time."""
    assert orphans(two, collected={KEPT, GONE}, finished={KEPT}, used={baseline_name(KEPT, SCORE)}) == ()


def test_a_score_that_is_asked_for_no_more_is_reported(two: Desk) -> None:
    """The test ran to its end and looked at another file."""
    (orphan,) = orphans(
        two,
        collected={KEPT, GONE},
        finished={KEPT, GONE},
        used={baseline_name(GONE, SCORE), baseline_name(KEPT, "new_score")},
    )
    assert (orphan.test_id, orphan.why) == (KEPT, "its test no longer asks for the score 'letter_score'")


def test_renamed_and_unreadable_files_are_reported(two: Desk) -> None:
    """A file that nothing asks for by that name, and one that nobody can read; other files are not ours."""
    folder = two.rootdir / "baselines"
    (folder / baseline_name(GONE, SCORE)).rename(folder / "a-copy.json")
    (folder / "broken.json").write_text("{")
    (folder / "README.md").write_text("About these baselines.")
    renamed, broken = orphans(two, collected={KEPT, GONE}, finished=set(), used={baseline_name(KEPT, SCORE)})
    assert renamed.name == "a-copy.json"
    assert "renamed" in renamed.why
    assert (broken.name, broken.test_id) == ("broken.json", None)
    assert "truncated or damaged" in broken.why


def test_no_folder_has_no_orphans(desk: Desk) -> None:
    assert orphans(desk, collected=set(), finished=set(), used=set()) == ()
