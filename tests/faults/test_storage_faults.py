"""F30 to F38 of the catalogue in docs/reliability.md: disks that fill, logs that are damaged,
clocks that jump.

Each is a session of a user's project where it is about sessions. Property by property, the log is
tested in tests/runs/test_database.py, the folder of a run in test_folder.py, salvaging in
test_salvage.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main
from pytest_fairness.runs import files
from pytest_fairness.runs.database import insert_records
from pytest_fairness.runs.folder import reserve_run, run_folders
from pytest_fairness.runs.lines import body_of
from pytest_fairness.runs.reader import RunReader, reading
from pytest_fairness.runs.store import RunStore
from tests.support.runs import archived, edit, exported, lines, records, rehashed, rewrite

from .conftest import SUITE, TRIALS, Project, words
from .oracles import check, newest_run, same_statistics
from .sessions import Background

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits and locks of POSIX")
CONCURRENCY = 8


def recorded(project: Project) -> Path:
    """An undisturbed run of the project, with one test more."""
    project.write()
    case = project.run()
    assert case.code == 0, case.output
    return project.folder(case)


def log_of(run: Path) -> Path:
    return run / "trials.jsonl"


# ---------------------------------------------------------------- F30: a disk that is full


LIMITED = """
import resource, signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (320_000, resource.RLIM_INFINITY))
"""


def test_f30_the_disk_fills_while_asking(project: Project) -> None:
    """In the middle of a record nothing more can be written: the short write is noticed, nothing is
    sent after it, the session is red and says why; with room again, going on asks what is missing
    and no more."""
    project.write()
    project.server.latency = 0.05
    project.path.joinpath("conftest.py").write_text(LIMITED)
    full = Background(project).end()
    project.path.joinpath("conftest.py").unlink()
    assert full.code == 1, full.output
    assert "cannot be written" in full.output
    assert "the disk or a quota is full" in words(full)
    sent = len(full.ledger)
    assert CONCURRENCY <= sent < TRIALS
    logged = len(full.of("attempt"))
    assert sent - logged <= CONCURRENCY, "what was paid for after the disk was full"
    check(full, oracles="2456")
    held_back = (
        len(full.of("sent")) - sent
    )  # announced, and stopped before the first byte left: nobody knows that
    assert 0 <= held_back <= CONCURRENCY

    case = project.run("--fairness-resume=last")
    assert len(case.ledger) == TRIALS - held_back
    assert len({record["key"] for record in case.of("trial")}) == TRIALS
    check(case, oracles="2567")


# ---------------------------------------------------------------- F32: damage in the middle

Lines = list[bytes]
#: What somebody makes of a record who then hashes all of them anew.
EDIT = (b'"answered"', b'"refused"')
#: What is done to the lines, and the line that is named; all that tests/runs does to a log is one
#: of these.
DAMAGE: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "changed": (
        lambda lines: [*lines[:9], lines[9].replace(b'"', b"'", 1), *lines[10:]],
        "line 10",
    ),
    "reordered": (lambda lines: [*lines[:8], lines[9], lines[8], *lines[10:]], "line 9"),
    "line endings": (lambda lines: [line.replace(b"\n", b"\r\n") for line in lines], "line 1"),
}


def test_f32_damage_is_named_and_never_passed_over(project: Project) -> None:
    """Whatever was done to a record in the middle: resuming and replaying end with exit status 4
    and name file and line, nothing is asked, and only an explicit command salvages what is left,
    into a new run."""
    run = recorded(project)
    sent = len(project.server.requests)
    stored = (run / "run.sqlite3").read_bytes()
    rewrite(run, 9, "time", "date")
    refused(project, run, "record 9 of trials.jsonl: the record was changed")
    (run / "run.sqlite3").write_bytes(stored)

    whole = log_of(archived(run)).read_bytes().splitlines(keepends=True)
    for damage, line in DAMAGE.values():
        log_of(run).write_bytes(b"".join(damage(whole)))
        refused(project, run, f"trials.jsonl, {line}")
    assert len(project.server.requests) == sent

    log_of(run).write_bytes(b"".join(DAMAGE["changed"][0](whole)))
    assert main(["salvage", str(run)]) == 0
    salvaged = newest_run(project.path)
    assert salvaged is not None
    assert salvaged != run
    case = project.run(f"--fairness-resume={salvaged.name}")
    assert "salvaged from the damaged run" in words(case)
    assert sent <= len(project.server.requests) <= sent + 1
    check(case, oracles="4567")


def refused(
    project: Project, run: Path, why: str, options: Sequence[str] = ("resume", "replay")
) -> None:
    """The run can neither be resumed nor replayed."""
    for option in options:
        case = project.run(f"--fairness-{option}={run.name}")
        assert case.code == pytest.ExitCode.USAGE_ERROR, case.output
        assert why in words(case), case.output
        assert "INTERNALERROR" not in case.output


# ---------------------------------------------------------------- F33: heads that are anchored


def test_f33_what_was_cut_off_or_made_anew_shows(project: Project) -> None:
    """A tail or a whole file taken away, a record edited and hashed again: the log is sound in
    itself, the head in the manifest is not its head. Resuming, replaying and salvaging say so."""
    run = recorded(project)
    stored = (run / "run.sqlite3").read_bytes()
    edit(run, "DELETE FROM records WHERE number > 100")
    refused(project, run, "ends after 100 records")
    (run / "run.sqlite3").write_bytes(stored)

    whole = log_of(archived(run)).read_bytes().splitlines(keepends=True)
    log_of(run).unlink()
    refused(project, run, "is missing, but manifest.json lists it", ["replay"])
    for content, damage in ((whole[:-3], "ends after"), (rehashed(whole, *EDIT), "made anew")):
        log_of(run).write_bytes(b"".join(content))
        refused(project, run, damage)
    assert len(project.server.requests) == TRIALS
    assert main(["salvage", str(run)]) == 2


# ---------------------------------------------------------------- F34: two at one place

WRITER = """
import sys
from pathlib import Path
from pytest_fairness.runs.store import RunStore
with RunStore.open(Path(sys.argv[1]), writer=sys.argv[2]) as store:
    for number in range(int(sys.argv[3])):
        store.append({"type": "note", "number": number, "text": sys.argv[2] * (int(sys.argv[4]) // 3)})
"""


def test_f34_two_sessions_in_one_project(project: Project) -> None:
    """Begun at once they have runs of their own; two that go on with one run share nothing, the
    second is told who has it; the lock of a dead one holds nobody up."""
    project.write()
    sessions = [Background(project), Background(project)]
    assert [session.end().code for session in sessions] == [0, 0]
    folders = run_folders(project.path / ".fairness" / "runs")
    assert len(folders) == 2
    for folder in folders:
        assert len(RunReader.open(folder)) == TRIALS
    same_statistics(*folders)

    with RunStore.open(folders[0]) as held:
        case = project.run(f"--fairness-resume={folders[0].name}")
        assert case.code == pytest.ExitCode.USAGE_ERROR, case.output
        assert f"is being written by process {os.getpid()} on " in words(case)
        assert held.directory == folders[0]
    child = (
        f"import os, sys; from pathlib import Path; {WRITER.splitlines()[3]}; "
        "RunStore.open(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", f"{child}; os._exit(9)", folders[0]], check=False)
    assert project.run(f"--fairness-resume={folders[0].name}").code == 0


def test_f34_eight_writers(tmp_path: Path) -> None:
    """Eight processes write into one run at once, records of 9 kB or of 10 MB: every one is there,
    whole.
    """
    run = reserve_run(tmp_path / "runs", "t")
    sizes = [(30, 9_000)] * 6 + [(1, 10_000_000)] * 2
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, run, f"gw{number}", *map(str, size)])
        for number, size in enumerate(sizes)
    ]
    assert [child.wait(120) for child in children] == [0] * 8
    with reading(run) as reader:
        found = {name: head.records for name, head in reader.logs.items()}
    assert found == {
        f"trials-gw{number}.jsonl": count + 1 for number, (count, _) in enumerate(sizes)
    }


# ---------------------------------------------------------------- F35: clocks

JUMPING = """
import datetime, itertools, time, types
from pytest_fairness.pytest_layer import reporting
from pytest_fairness.runs import records
from pytest_fairness.runs import folder

real, jumps = time.time, itertools.cycle([0.0, 86_400.0, -86_400.0, 3_600.0, -3_600.0])
time.time = lambda: real() + next(jumps)

class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(time.time(), tz)

for module in (reporting, records, folder):
    module.datetime = types.SimpleNamespace(datetime=Jumping, date=datetime.date, UTC=datetime.UTC)
"""


def test_f35_the_wall_clock_jumps(project: Project) -> None:
    """A day forth and back at every look: durations stay what they were, the deadline neither comes
    nor goes, trials keep their order, and the findings are those of a quiet clock."""
    quiet = recorded(project)
    project.path.joinpath("jumping.py").write_text(JUMPING)
    case = Background(project, "-p", "jumping", "--fairness-deadline", "600").end()
    jumped = next(run for run in run_folders(project.path / ".fairness" / "runs") if run != quiet)
    assert case.code == 0, case.output
    case = project.case(run=jumped, ledger=project.server.requests[TRIALS:], code=0)
    assert len(case.of("trial")) == TRIALS
    assert {record["status"] for record in case.of("trial")} == {"answered"}
    assert all(0 <= record["seconds"] < 60 for record in case.of("attempt"))
    times = [record["monotonic"] for record in case.of("sent")]
    assert times == sorted(times)
    assert len({record["order"] for record in case.of("trial")}) == TRIALS
    check(case)
    same_statistics(jumped, quiet)


# ---------------------------------------------------------------- F36: places where nothing can be logged


def test_f36_no_place_for_a_log(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out before the first call: exit status 4, and the message names the place and the
    option that mends it.
    """
    project.write()
    places = tmp_path_factory.mktemp("places")
    (places / "a file").write_text("")
    (places / "link").symlink_to(places)
    odd = [places / name for name in ("a file", "a file/runs", "link", "x" * 300)]
    for place in (*odd, Path("/dev/null"), places / "nfs"):
        if place.name == "nfs":
            monkeypatch.setattr(files, "network_file_system", lambda _: "nfs4")
        case = project.run(f"--override-ini=fairness_run_dir={place}")
        assert case.code == pytest.ExitCode.USAGE_ERROR, case.output
        assert "INTERNALERROR" not in case.output
        output = "".join(case.output.split())
        assert str(place).replace(" ", "") in output
        assert "fairness_run_dir" in output
        assert not case.ledger


@pytest.mark.parametrize(
    "name", ["d" * 200 + "/" + "e" * 120, "CON/trailing./Runs/nul.txt/a b ü"], ids=["long", "odd"]
)
def test_f36_odd_places_that_do(project: Project, name: str) -> None:
    """Long paths, names that mean devices or are trimmed elsewhere: where the system takes them,
    the run is there and whole; and no file of ours in it has such a name, nor two that differ by
    case alone."""
    project.write()
    place = project.path / name
    case = project.run(f"--override-ini=fairness_run_dir={place}")
    assert case.code == 0, case.output
    (run,) = run_folders(place)
    assert len(RunReader.open(run)) == TRIALS
    names = [path.name for path in place.rglob("*")]
    assert all(part.isascii() and not part.endswith((".", " ")) for part in names)
    assert not {part.split(".")[0].upper() for part in names} & {
        "CON",
        "NUL",
        "AUX",
        "PRN",
        "COM1",
        "LPT1",
    }
    for folder in (run, run / "state"):
        inside = [path.name for path in folder.iterdir()]
        assert len({part.lower() for part in inside}) == len(inside)


# ---------------------------------------------------------------- F37: going on with something else


def _git(project: Project, message: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", "-C", project.path, "init", "-q"], check=True)
    subprocess.run(
        ["git", "-C", project.path, *identity, "commit", "-q", "--allow-empty", "-m", message],
        check=True,
    )


def edited(old: str, new: str) -> dict[str, Any]:
    """The suite with *new* in the place of *old*."""
    return {"suite": SUITE.replace(old, new)}


CHANGES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "prompt": (edited("a nurse", "a doctor"), [], "the prompt: the text of template 't1' changed"),
    "n": (edited("repetitions=1", "repetitions=2"), [], "n: repetitions were 1, are 2"),
    "groups": (edited('"black"', '"asian"'), [], "the groups of race_ethnicity were black, white"),
    "parameters": (
        edited("repetitions=1", 'repetitions=1, parameters={"temperature": 0.5}'),
        [],
        "the parameter temperature was not given, is 0.5",
    ),
    "model": ({"model": "gpt-4o"}, [], "the endpoint's model was 'gpt-4o-mini', is 'gpt-4o'"),
    "address": ({"base_url": "http://127.0.0.1:9/v1"}, [], "the endpoint's base_url was"),
    "seed": ({}, ["--fairness-seed=5"], "the seed was 0, is 5"),
    "endpoint": (
        {},
        ["--fairness-endpoint=simulated"],
        "the endpoint was 'direct', is 'simulated'",
    ),
    "tier": ({}, ["--fairness-tier=2"], "the tier was 'auto', is '2'"),
}


def test_f37_each_change_is_named_and_nothing_mixed(project: Project) -> None:
    """Going on after an edit: the message names what changed, nothing is asked, the old records
    stay as they were.
    """
    run = recorded(project)
    before = lines(run)
    for what, (changed, options, named) in CHANGES.items():
        project.write(**{"suite": SUITE, **changed})
        case = project.run("--fairness-resume=last", *options)
        assert case.code in (1, pytest.ExitCode.USAGE_ERROR), f"{what}: {case.output}"
        assert named in words(case), f"{what}: {case.output}"
        assert len(project.server.requests) == TRIALS, what
        after = lines(run)
        assert after[: len(before)] == before, what
        assert sum(line.startswith('{"type":"trial"') for line in after) == TRIALS, what
    project.write()
    case = project.run("--fairness-resume=last")
    assert case.code == 0, case.output
    check(case)


def test_f37_another_version_of_the_code(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this package, or of the application under test: named, and refused."""
    run = recorded(project)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["versions"]["pytest-fairness"] = "0.0.1"
    (run / "manifest.json").write_text(json.dumps(manifest))
    case = project.run("--fairness-resume=last")
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "the version of pytest-fairness was 0.0.1, is" in words(case)

    application = (
        "import pytest\n\n@pytest.fixture\ndef endpoint():\n    return lambda prompt: 'Some "
        "words.'\n"
    )
    project.pytester.makeconftest(application)
    project.path.joinpath("pytest.ini").write_text("[pytest]\n")
    _git(project, "one")
    assert project.run("--fairness-smoke").code in (0, 1)
    _git(project, "two")
    case = project.run("--fairness-resume=last")
    assert case.code == pytest.ExitCode.USAGE_ERROR
    assert "the code was at commit" in words(case)


# ---------------------------------------------------------------- F38: other locales

PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SPOKEN = SUITE.replace("a nurse in", "a nurse — “Zoë”, 看護師 — in").replace(
    "Write a landlord", "Écris a landlord"
)


def test_f38_other_locales(project: Project) -> None:
    """In the C locale, with a console that cannot say it: the records and findings of an ordinary
    session, and the console writes what it can."""
    project.write(SPOKEN)
    ordinary = project.run().run
    assert ordinary is not None
    case = Background(project, env={**PLAIN, "PYTHONIOENCODING": "cp1252"}, fresh=True).end()
    assert case.code == 0, case.output
    case = project.case(ledger=project.server.requests[TRIALS:], output=case.output, code=0)
    check(case)
    assert case.run != ordinary
    assert log_of(exported(case.run)).read_bytes().isascii()
    assert sorted(_timeless(case.run)) == sorted(_timeless(ordinary))
    assert any("看護師" in text for text in _timeless(case.run))
    same_statistics(case.run, ordinary)
    assert "看護師".encode() in (case.run / "report.html").read_bytes()


def _timeless(run: Path) -> list[str]:
    """What was asked and answered, without what tells one session from another."""
    wanted = (
        "key",
        "status",
        "messages",
        "replies",
        "cell",
        "parameters",
        "repetition",
        "usage",
        "cost",
    )
    trials = [{key: record[key] for key in wanted} for record in records(run, "trial")]
    return [json.dumps(trial, ensure_ascii=False, sort_keys=True) for trial in trials]


# ---------------------------------------------------------------- F56: the run's folder goes while it is written

GOES = SUITE + """
def test_goes():
    import pathlib, shutil
    (folder,) = pathlib.Path(".fairness").glob("runs")
    (run,) = folder.glob("2*")
    if HOW == "removed":
        shutil.rmtree(run)
    elif HOW == "moved":
        run.rename("elsewhere")
    else:
        shutil.rmtree(".fairness")

@pytest.mark.fairness_grid(template="Write of {{name}} in " + PLACE, groups={{"race_ethnicity": ["white", "black"]}})
def test_later(trials):
    raise AssertionError("nothing can be asked any more")

def test_of_its_own():
    raise AssertionError("an error of the test's own")
""".replace("{{", "{").replace("}}", "}")  # fmt: skip


def test_f56_the_run_goes_between_two_tests(project: Project) -> None:
    """Removed, moved, or removed with all runs: nothing more is asked, the tests' own errors are
    shown, and one message says what became of the run."""
    for how in ("removed", "moved", "removed with all runs"):
        project.write(GOES.replace("HOW", repr(how)))
        # A session that a failure may end asks nothing ahead of time.
        case = project.run("--maxfail=9", price=None)
        assert case.code == 1
        # Whoever looks while the folder is being removed finds it without its database.
        gone = (
            r"was removed or moved while this session wrote to it: nothing more is sent"
            r"|was removed (or replaced )?while"
        )
        assert re.search(gone, words(case))
        assert "an error of the test's own" in case.output
        for unwanted in ("nothing can be asked any more", "Traceback", "INTERNALERROR"):
            assert unwanted not in case.output
        assert len(case.ledger) == TRIALS
        shutil.rmtree(project.path / ".fairness", ignore_errors=True)
        shutil.rmtree(project.path / "elsewhere", ignore_errors=True)


def test_f56_the_run_goes_while_it_asks(project: Project) -> None:
    """No more than was under way is sent; the end is shown as such."""
    project.write(SUITE.replace("repetitions=1", "repetitions=20"))
    project.server.latency = 0.05
    session = Background(project, "-n2")
    session.until_received(30)
    run = newest_run(project.path)
    assert run is not None
    run.rename(project.path / "elsewhere")
    sent = len(project.server.requests)
    case = session.end(deadline=20)
    assert case.code == 1
    assert "was removed or moved while this session wrote to it" in words(case)
    assert "Traceback" not in case.output
    assert len(case.ledger) <= sent + 2 * CONCURRENCY


def test_f56_the_run_goes_after_the_last_test(project: Project) -> None:
    """All has passed, and nothing is left of it: not green."""
    project.write(
        GOES.replace("HOW", "'moved'").partition("\n@pytest.mark.fairness_grid(template")[0]
    )
    case = project.run(price=None)
    assert case.code == pytest.ExitCode.INTERNAL_ERROR
    assert "was removed or moved while this session wrote to it" in words(case)
    assert "Traceback" not in case.output


# ---------------------------------------------------------------- F70: the log of changes goes while it is written

CHANGES_GO = (
    SUITE
    + """
def test_goes():
    import os, pathlib, sqlite3, time
    (run,) = pathlib.Path(".fairness/runs").glob("2*")
    # A commit that is under way when the log is cut makes it longer again: let the last one be over.
    connection = sqlite3.connect(run / "run.sqlite3")
    while connection.execute("SELECT count(*) FROM records WHERE type = 'judgement'").fetchone() == (0,):
        time.sleep(0.01)
    connection.close()
    log = run / "run.sqlite3-wal"
    if HOW == "emptied":
        with sqlite3.connect(run / "run.sqlite3") as connection:
            connection.execute("DELETE FROM records WHERE number = 3")
        connection.close()
    elif HOW == "removed":
        log.unlink()
    else:
        os.truncate(log, 40_000)
"""
)


def test_f70_what_sqlite_has_not_yet_moved_is_lost_after_the_last_test(project: Project) -> None:
    """Removed or cut when all has passed: noticed before the run counts as finished, exit status 3,
    nothing judged.
    """
    for how in ("removed", "cut"):
        project.write(CHANGES_GO.replace("HOW", repr(how)))
        # Without progress the controller has not looked at the log before: a worker says it.
        # One worker: a second would have no file.
        quiet = ("-n1", "-o", "fairness_progress=off")
        for options in ((), ("-n1",), quiet):
            code, output = _ended(Background(project, *options))
            assert code == pytest.ExitCode.INTERNAL_ERROR, output
            assert f"run.sqlite3-wal was {how} while this session wrote to it" in output
            assert "Traceback" not in output
            (run,) = run_folders(project.path / ".fairness" / "runs")
            assert not (run / "findings.json").exists()
            assert not (run / "report.html").exists()
            assert "finished" not in json.loads((run / "manifest.json").read_text())
            shutil.rmtree(project.path / ".fairness")


def test_f70_a_record_is_gone_from_files_that_look_as_they_did(project: Project) -> None:
    """What the database holds is counted before anything is judged from it."""
    project.write(CHANGES_GO.replace("HOW", repr("emptied")))
    code, output = _ended(Background(project))
    assert code == pytest.ExitCode.INTERNAL_ERROR, output
    assert "records of trials.jsonl, and" in output
    assert "Traceback" not in output
    (run,) = run_folders(project.path / ".fairness" / "runs")
    assert not (run / "findings.json").exists()


def test_f70_it_goes_while_it_asks(project: Project) -> None:
    """Noticed at the next commit: no more than was under way is sent, and nothing is judged."""
    project.write(SUITE.replace("repetitions=1", "repetitions=20"))
    project.server.latency = 0.05
    session = Background(project)
    session.until_received(30)
    run = newest_run(project.path)
    assert run is not None
    (run / "run.sqlite3-wal").unlink()
    sent = len(project.server.requests)
    code, output = _ended(session)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "run.sqlite3-wal was removed while this session wrote to it" in output
    assert len(project.server.requests) <= sent + 2 * CONCURRENCY
    assert not (run / "findings.json").exists()


def _ended(session: Background) -> tuple[int, str]:
    """The exit status and the words of a session, of whose run perhaps nothing can be read."""
    output = session.process.communicate(timeout=60)[0].decode("utf-8", "replace")
    return session.process.returncode, " ".join(output.split())


# ---------------------------------------------------------------- F57: heads that were taken out of the manifest


def test_f57_a_finished_run_without_its_heads_is_damaged(project: Project) -> None:
    """Edited, hashed anew, and its heads, or one of them, taken away or emptied: nothing shows that
    it is whole, so it is not."""
    run = recorded(project)
    with RunStore.open(run, writer="another") as store:
        store.append({"type": "note"})
        store.export()
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    made = rehashed(log_of(run).read_bytes().splitlines(keepends=True), *EDIT)
    with contextlib.closing(sqlite3.connect(run / "run.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM records WHERE writer = 'main'")
        insert_records(connection, "main", [body_of(line.decode().rstrip()) for line in made])
    for path in run.glob("*.jsonl"):
        path.unlink()
    own = manifest["logs"].pop("trials.jsonl")
    others = manifest["logs"]
    empty = others | {"trials.jsonl": own | {"records": 0, "head": "0" * 64}}
    for logs in (None, others, empty):
        changed = {
            key: value for key, value in {**manifest, "logs": logs}.items() if value is not None
        }
        (run / "manifest.json").write_text(json.dumps(changed), encoding="utf-8")
        why = "when the run was closed" if logs is empty else "is damaged: the run came to its end"
        refused(project, run, why, ["replay"] if logs is empty else ["resume", "replay"])
    assert len(project.server.requests) == TRIALS
