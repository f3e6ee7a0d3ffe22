"""What Windows and macOS would trip over, imitated or read off the source; the list is
``docs/portability.md``.
"""

from __future__ import annotations

import ast
import importlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_fairness.engine import engine
from pytest_fairness.errors import StoreError
from pytest_fairness.runs import files
from tests.support.source_files import SourceFile

#: What exists on some systems alone, and may be imported by nobody.
POSIX_MODULES = {"fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "termios", "winreg"}
#: Attributes of ``os`` and ``signal`` that Windows lacks: taken by ``getattr`` alone.
POSIX_NAMES = {
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "fchmod",
    "fork", "getpgid", "getuid", "killpg", "mkfifo", "setsid", "statvfs", "uname",
}  # fmt: skip


Files = Mapping[str, SourceFile]


def test_no_module_of_one_system_alone_is_imported(sources: Files) -> None:
    assert not [
        f"{path}:{line}: {module}"
        for path, source in sources.items()
        for line, module, _ in source.imports
        if module in POSIX_MODULES
    ]


def test_names_that_windows_lacks_are_asked_for_by_getattr(sources: Files) -> None:
    assert not [
        f"{path}:{line}: {name}"
        for path, source in sources.items()
        for line, name in source.of_system
        if name in POSIX_NAMES
    ]


def test_every_text_file_has_an_encoding_and_line_ends(sources: Files) -> None:
    """Without an encoding a file is in the locale's; without ``newline`` Windows writes CRLF."""
    faults = []
    calls = [(path, call) for path, source in sources.items() for call in source.files]
    for path, call in calls:
        place = f"{path}:{call.lineno}"
        keywords = {keyword.arg for keyword in call.keywords}
        if call.func.attr == "write_text" and not keywords >= {"encoding", "newline"}:
            faults.append(place)
        if call.func.attr == "open" and call.args and isinstance(call.args[0], ast.Constant):
            mode = call.args[0].value
            text = mode in ("w", "a", "x", "r", "w+", "r+")
            written = text and mode != "r"
            if (text and "encoding" not in keywords) or (written and "newline" not in keywords):
                faults.append(place)
    assert calls
    assert not faults


def test_links_are_refused_without_the_flags_of_posix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has neither O_NOFOLLOW nor O_NONBLOCK: the look before opening stands alone."""
    with monkeypatch.context() as patch:
        for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
            patch.delattr(os, name, raising=False)
        importlib.reload(files)
        try:
            path = tmp_path / "manifest.json"
            files.write_atomically(path, b"{}\n")
            assert path.read_bytes() == b"{}\n"
            target = tmp_path / "other"
            target.write_bytes(b"kept")
            link = tmp_path / "link.json"
            link.symlink_to(target)
            with pytest.raises(StoreError, match="symbolic link"):
                files.write_atomically(link, b"lost")
            assert target.read_bytes() == b"kept"
        finally:
            patch.undo()
            importlib.reload(files)


def test_a_system_without_sighup_still_handles_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), engine.ended_as_by_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_unc_path_is_a_network_disk() -> None:
    class Share:
        def absolute(self) -> str:
            return "\\\\server\\runs"

    assert files.network_file_system(Share()) == "UNC path"  # type: ignore[arg-type]


def test_a_system_without_proc_knows_no_network_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_arguments: object, **_options: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert files.network_file_system(tmp_path) is None
