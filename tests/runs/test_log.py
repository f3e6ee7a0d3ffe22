"""The log: what is appended is there, word for word; what was damaged is named, and nothing is skipped."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.errors import StoreError
from pytest_fairness.runs import files
from pytest_fairness.runs.lines import FIRST, BadLineError, check_line, encode_line
from pytest_fairness.runs.log import Log
from pytest_fairness.runs.scan import Anchor, Line, scan

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
ONE_LOG_IS_ENOUGH = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(path: Path, *texts: str) -> None:
    log = Log(path)
    for text in texts:
        log.append({"type": "note", "text": text})
    log.close()


def read(path: Path, anchor: Anchor | None = None) -> list[dict[str, Any]]:
    with path.open("rb") as stream:
        lines = list(scan(stream, path, anchor=anchor))
    assert not any(line.torn for line in lines)
    return [json.loads(line.data) for line in lines]


# ------------------------------------------------------------ word for word


@ONE_LOG_IS_ENOUGH
@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_any_text_comes_back_exactly(tmp_path: Path, texts: list[str]) -> None:
    """Lone surrogates, NUL, line separators: one record is one line, and the text in it is the text that
    was."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
    written(path, *texts)
    data = path.read_bytes()
    assert data.isascii()
    assert data.count(b"\n") == len(texts) == len(data.decode().splitlines())
    assert [record["text"] for record in read(path)] == texts


def test_a_log_is_private_and_only_grows(tmp_path: Path) -> None:
    """The file is its owner's alone, and what stands in it stays as it is."""
    path = tmp_path / "trials.jsonl"
    written(path, "one")
    before = path.read_bytes()
    written(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(before)
    assert [record["text"] for record in read(path)] == ["one", "two"]


def test_each_record_is_one_system_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a record of 10 MB goes out in one piece: pieces of several writers cannot mix."""
    sizes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or write(fd, data))
    written(tmp_path / "trials.jsonl", "x" * 10_000_000, "y")
    assert len(sizes) == 2
    assert sizes[0] > 10_000_000


def test_records_are_flushed_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record reaches the disk within a moment of its writing, although nobody called flush()."""
    flushed = threading.Event()
    monkeypatch.setattr(files, "sync", lambda fd: flushed.set())
    log = Log(tmp_path / "trials.jsonl")
    log.append({"type": "note"})
    assert flushed.wait(2)
    log.close()


def test_many_records_are_flushed_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When records come fast, one flush serves many; and flush() returns only when the last is on the
    disk."""
    sizes: list[int] = []
    monkeypatch.setattr(files, "sync", lambda fd: sizes.append(os.fstat(fd).st_size))
    log = Log(tmp_path / "trials.jsonl")
    for number in range(3000):
        log.append({"type": "note", "number": number})
    log.flush()
    assert sizes[-1] == log.size or log.size in sizes
    assert len(sizes) < 100
    log.close()


def test_what_is_not_json_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    """A record that cannot be written is refused before a byte of it is."""
    log = Log(tmp_path / "trials.jsonl")
    log.append({"type": "note", "text": "good"})
    with pytest.raises(ValueError, match="JSON compliant"):
        log.append({"type": "note", "value": float("nan")})
    log.append({"type": "note", "text": "also good"})
    log.close()
    assert [record["text"] for record in read(log.path)] == ["good", "also good"]


# ------------------------------------------------------------ cut short


def test_a_tail_torn_anywhere_is_mended(tmp_path: Path) -> None:
    """Cut at any byte of the last record: what came before is whole, what follows is readable, the rest is
    kept."""
    whole = tmp_path / "whole.jsonl"
    written(whole, "first", "sécond \ud800")
    data = whole.read_bytes()
    first_end = data.index(b"\n") + 1
    for cut in range(first_end + 1, len(data)):
        path = tmp_path / str(cut) / "trials.jsonl"
        path.parent.mkdir()
        path.write_bytes(data[:cut])
        seen: list[Line] = []
        log = Log(path, seen=seen.append)
        log.append({"type": "note", "text": "after"})
        log.close()
        texts = [record["text"] for record in read(path)]
        assert len(log.notes) == 1
        if cut == len(data) - 1:  # only the newline is missing
            assert texts == ["first", "sécond \ud800", "after"]
            assert len(seen) == 2
        else:
            assert texts == ["first", "after"]
            assert path.with_name("trials.jsonl.torn-1").read_bytes() == data[first_end:cut]
            assert "line 2" in log.notes[0]


def test_every_torn_tail_is_kept(tmp_path: Path) -> None:
    """A second crash does not overwrite what the first left."""
    path = tmp_path / "trials.jsonl"
    for text in (b"torn", b"again"):
        written(path, "whole")
        with path.open("ab") as stream:
            stream.write(text)
    written(path)
    assert path.with_name("trials.jsonl.torn-1").read_bytes() == b"torn"
    assert path.with_name("trials.jsonl.torn-2").read_bytes() == b"again"


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pytest_fairness.errors import StoreError
from pytest_fairness.runs.log import Log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Log(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
written = 0
try:
    while True:
        log.append({"type": "note", "text": "x" * 600})
        written += 1
except StoreError as error:
    print(written, error)
try:
    log.append({"type": "note", "text": "small"})
except StoreError as error:
    print("still refused")
"""


def test_a_full_disk_is_noticed_at_once(tmp_path: Path) -> None:
    """A short write is an error, nothing is written after it, and the log can be read and continued."""
    path = tmp_path / "trials.jsonl"
    ran = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True)
    first, second = ran.stdout.splitlines()
    assert "bytes could be written: the disk or a quota is full" in first
    assert second == "still refused"
    written(path, "after")
    texts = [record["text"] for record in read(path)]
    assert texts == ["x" * 600] * int(first.split()[0]) + ["after"]


def test_a_failing_disk_stops_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a flush has failed, nothing more is accepted: it could not be promised to be there."""

    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    log = Log(tmp_path / "trials.jsonl")
    monkeypatch.setattr(files, "sync", broken)
    log.append({"type": "note"})
    with pytest.raises(StoreError, match="cannot be flushed to disk"):
        log.flush()
    with pytest.raises(StoreError, match="cannot be flushed to disk"):
        log.append({"type": "note"})
    with pytest.raises(StoreError, match="cannot be flushed to disk"):
        log.close()


@pytest.mark.parametrize("deed", ["removed", "replaced"])
def test_a_log_that_is_taken_away_is_noticed(tmp_path: Path, deed: str) -> None:
    """Writing on into a file that has no name any more would lose everything paid for."""
    log = Log(tmp_path / "trials.jsonl")
    log.path.unlink()
    if deed == "replaced":
        log.path.touch()

    def write_on() -> None:
        for _ in range(2):  # the flushing thread may be the one to notice
            log.append({"type": "note"})
            log.flush()

    with pytest.raises(StoreError, match="removed or replaced"):
        write_on()
    with pytest.raises(StoreError, match="removed or replaced"):
        log.close()


# ------------------------------------------------------------ damaged


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "trials.jsonl"
    written(path, "one", "two", "three")
    return path


DAMAGES = {
    "edited": lambda lines: [lines[0], lines[1].replace(b"two", b"owt"), lines[2]],
    "removed": lambda lines: [lines[0], lines[2]],
    "moved": lambda lines: [lines[0], lines[2], lines[1]],
    "doubled": lambda lines: [lines[0], lines[0], lines[1]],
    "foreign": lambda lines: [lines[0], b'{"event":"hello"}\n', lines[1]],
    "not JSON": lambda lines: [lines[0], b"!\n", lines[1]],
    "empty line": lambda lines: [lines[0], b"\n", lines[1]],
    "CRLF": lambda lines: [lines[0], lines[1].replace(b"\n", b"\r\n"), lines[2]],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_by_file_and_line(three: Path, damage: Any) -> None:
    """Whatever was done to a record in the middle, reading and continuing stop there and say where."""
    three.write_bytes(b"".join(damage(three.read_bytes().splitlines(keepends=True))))
    with pytest.raises(StoreError, match=r"trials\.jsonl, line 2: .* restore"):
        Log(three)
    with pytest.raises(StoreError, match=r"trials\.jsonl, line 2"):
        read(three)


def test_a_byte_order_mark_is_damage(three: Path) -> None:
    """An editor that saved the file has changed it, even if only by a mark at its beginning."""
    three.write_bytes(b"\xef\xbb\xbf" + three.read_bytes())
    with pytest.raises(StoreError, match="line 1"):
        read(three)


@ONE_LOG_IS_ENOUGH
@given(st.data())
def test_no_changed_byte_goes_unnoticed(tmp_path: Path, data: st.DataObject) -> None:
    """Any byte of any record turned into any other: an error, or a tail that is not a record any more."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
    written(path, "one", "two")
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with path.open("rb") as stream:
        try:
            lines = list(scan(stream, path))
        except StoreError:
            return
    assert lines[-1].torn


def test_a_tail_cut_off_shows_against_the_anchor(three: Path) -> None:
    """The chain alone cannot show that its end is missing; the manifest's count and head do."""
    with three.open("rb") as stream:
        lines = list(scan(stream, three))
    anchor = Anchor(3, lines[-1].hash)
    assert len(read(three, anchor)) == 3
    three.write_bytes(b"".join(line.data for line in lines[:2]))
    assert len(read(three)) == 2
    with pytest.raises(StoreError, match="ends after 2 records, but had 3"):
        read(three, anchor)


def test_a_log_made_anew_shows_against_the_anchor(three: Path, tmp_path: Path) -> None:
    """Edited and hashed again, a log is sound in itself, but its head is not the one that was noted."""
    with three.open("rb") as stream:
        anchor = Anchor(3, list(scan(stream, three))[-1].hash)
    forged = tmp_path / "forged.jsonl"
    written(forged, "one", "2", "three")
    with pytest.raises(StoreError, match=r"line 3: the log was made anew"):
        read(forged, anchor)


# ------------------------------------------------------------ places that are refused


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    """A log is never written through a link, into a file of two names, or into a pipe."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "symbolic").symlink_to(victim)
    os.link(victim, tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (
        ("symbolic", "symbolic link"),
        ("hard", "second name"),
        ("pipe", "plain file|cannot be opened"),
    ):
        with pytest.raises(StoreError, match=why):
            Log(tmp_path / name)
    assert victim.read_text() == "precious"


def test_a_line_is_checked_against_the_one_before() -> None:
    """The chain: a sound line in the wrong place is a bad line."""
    one, head = encode_line({"type": "note"}, FIRST)
    two, _ = encode_line({"type": "note"}, head)
    assert check_line(one, FIRST) == head
    with pytest.raises(BadLineError, match="does not follow"):
        check_line(two, FIRST)
