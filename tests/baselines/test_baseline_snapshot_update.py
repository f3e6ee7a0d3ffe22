"""``--snapshot-update`` is for syrupy's snapshots; the baselines are not among them."""

from __future__ import annotations

import pytest

from .project import APPROVE, FALLEN, PARALLEL, PLAIN, SUITE, Project


@pytest.fixture
def mixed(project: Project) -> Project:
    """Two approved baselines and, beside them, a test with an ordinary snapshot."""
    project.pytester.makepyfile(
        test_letters=SUITE + "\ndef test_other(held):\n    held('other')\n",
        test_plain="def test_plain(snapshot):\n    assert 1 == snapshot\n",
    )
    # All three are asked: approving baselines writes no snapshots, so that the plain one still fails.
    project.run(*PLAIN, *APPROVE).assert_outcomes(passed=2, failed=1)
    assert len(project.files) == 2
    assert not list(project.pytester.path.glob("__snapshots__/*"))
    return project


@pytest.mark.parametrize("mode", [PLAIN, PARALLEL], ids=["plain", "n2"])
def test_it_neither_writes_nor_deletes(mixed: Project, mode: tuple[str, ...]) -> None:
    """Fallen scores still fail, forsaken baselines stay, and the ordinary snapshot is written as ever."""
    before = mixed.files
    mixed.score(FALLEN)
    mixed.run(*mode, "--snapshot-update").assert_outcomes(failed=2, passed=1)
    assert list(mixed.pytester.path.glob("__snapshots__/*"))
    mixed.pytester.makepyfile(test_letters="def test_nothing():\n    pass\n")
    mixed.run(*mode, "--snapshot-update").assert_outcomes(passed=2)
    assert mixed.files == before


def test_it_creates_none(mixed: Project) -> None:
    """A missing baseline stays missing, also under the option that writes only what is new."""
    for path in mixed.folder.iterdir():
        path.unlink()
    for option in ("--snapshot-update", "--snapshot-update-new-only"):
        mixed.run(*PLAIN, option, "test_letters.py").assert_outcomes(failed=2)
        assert mixed.files == {}


def test_a_selection_makes_nobody_elses_baseline_unused(mixed: Project) -> None:
    """syrupy fails a session with unused snapshots; the baselines of tests that did not run are none."""
    result = mixed.run(*PLAIN, "-k", "test_other")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*snapshot* unused*")


def test_its_folder_may_not_be_ours(mixed: Project) -> None:
    """``--snapshot-dirname baselines`` would have every baseline deleted: an error says so instead."""
    before = mixed.files
    result = mixed.run(*PLAIN, "--snapshot-dirname", "baselines", "test_letters.py")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*lies in a folder of syrupy's snapshots*"])
    assert mixed.files == before
