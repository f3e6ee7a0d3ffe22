"""``pytest-fairness demo``, run for real."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_fairness.cli import main
from pytest_fairness.commands import demo
from tests.support.sessions import forked


def test_it_finds_the_planted_bias_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever configuration is around: pytest's output is shown, and the report is named."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not mine')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assert main(["demo", "here"]) == 0
    out = capfd.readouterr().out
    assert "1 failed, 2 passed" in out
    assert "FAIL: black is worse off than white on sentiment" in out
    assert "all three are simulated" in out
    (report,) = re.findall(r"^report: (/.+\.html)$", out, re.MULTILINE)
    assert "<html" in Path(report).read_text("utf-8")
    assert Path(report).is_relative_to(tmp_path / "here")


def test_a_folder_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    assert main(["demo", str(tmp_path)]) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_what_does_not_end_so_is_exit_code_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bias that is not found, say; and the browser is opened with what was written."""
    files = {**demo._FILES, "endpoints.yaml": demo._ENDPOINTS.replace("-0.8", "0")}
    monkeypatch.setattr(demo, "_FILES", files)
    opened: list[str] = []
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(run=forked))
    assert main(["demo", str(tmp_path / "new"), "--open"]) == 1
    assert "the demo did not end as it should" in capfd.readouterr().out
    assert opened == []
