"""The audit bundle: all that a run's verdicts rest on, in one ZIP that is verified without the
project.

What was recorded goes in as it is; what is made of it (index, reports, tables) is made anew from
that alone, so that whoever verifies the bundle can make it again and compare. The same inputs give
the same bytes.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.version import InvalidVersion, Version

from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.history import Version as BaselineVersion
from pytest_fairness.baselines.history import versions
from pytest_fairness.baselines.mitigations import answered_by
from pytest_fairness.errors import BaselineError, FairnessError, StoreError, UsageError
from pytest_fairness.model import GroupResult, PairResult
from pytest_fairness.reports.audit_sections import bundle_page
from pytest_fairness.reports.escaping import csv_cell, shortened
from pytest_fairness.reports.findings_json import RunResults, end_of, read_results
from pytest_fairness.reports.formatting import family_line
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.reports.pdf import surroundings, write_summary
from pytest_fairness.reports.sections import SECTIONS_SUFFIX, SUFFIX
from pytest_fairness.reports.verification import Verification, verify_run
from pytest_fairness.runs.export import export_records, stored
from pytest_fairness.runs.files import open_regular, write_atomically
from pytest_fairness.runs.folder import run_folders
from pytest_fairness.runs.manifest import FINISHED, LOGS, read_manifest
from pytest_fairness.runs.manifest import versions as installed
from pytest_fairness.runs.reader import Watch, reading, unwatched

SUMS, ABOUT = "SHA256SUMS", "bundle.json"
#: What of a run's folder is recorded, and goes in as it is.
_RECORDED = ("manifest.json", "findings.json", LOGS, f"*{SUFFIX}", f"*{SECTIONS_SUFFIX}")
#: What of a bundle is not made of something else in it.
_TAKEN = (*_RECORDED, "retests.csv", ABOUT, "baselines/**/*")
_METHODS = ("verdicts.md", "baselines.md", "calibration.md")
_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.][A-Za-z0-9_.+-]*){0,4}")
#: What a bundle may hold at the most: entries, bytes when unpacked, and how often these are those
#: of the file.
_ENTRIES, _BYTES, _RATIO = 20_000, 64 * 2**30, 200
_LEAST = 256 * 2**20
_MOMENT = (1980, 1, 1, 0, 0, 0)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)")


# ---------------------------------------------------------------- making one


def write_bundle(run_dir: Path, into: Path, watch: Watch = unwatched) -> Path:
    """Write the bundle of the run in *run_dir* to the file *into*; *into*. *watch* shows how far it
    is.

    Raises UsageError where the run has not come to its end or does not verify, and where *into* is
    another file; StoreError where it cannot be written.
    """
    if FINISHED not in read_manifest(run_dir):
        raise UsageError(
            f"{run_dir} did not come to its end: finish it with --fairness-resume={run_dir.name}"
        )
    root = project_of(run_dir)
    wrong = verify_run(run_dir, project_baselines(root), watch).problems
    if wrong:
        more = ""
        if len(wrong) > 1:
            more = f" (and {len(wrong) - 1} more)"
        raise UsageError(
            f"{run_dir} does not verify, so it is no evidence: {wrong[0]}{more}; see "
            "pytest-fairness verify"
        )
    with tempfile.TemporaryDirectory(prefix="fairness-audit-") as temporary:
        folder = Path(temporary) / f"audit-{run_dir.name}"
        folder.mkdir()
        _record(run_dir, root, folder)
        with stored(folder, watch):
            derive(folder)
        write_atomically(folder / SUMS, sums_of(folder).encode("ascii"))
        packed = Path(temporary) / "bundle.zip"
        _pack(folder, packed)
        if into.exists() and (not into.is_file() or sha256_of(into) != sha256_of(packed)):
            raise UsageError(
                f"{into} is there already, and is another: remove it, or give another name with "
                "--into"
            )
        try:
            shutil.copyfile(packed, into)
        except OSError as error:
            raise StoreError(
                f"{into} cannot be written ({error.strerror}): give another name with --into"
            ) from error
    return into


def _record(run_dir: Path, root: Path, folder: Path) -> None:
    """Copy into *folder* what was recorded: of the run, of the baselines, and of other runs that
    tested the same.
    """
    with reading(run_dir, check=False) as reader:  # it was verified
        export_records(reader.connection, folder)
    for pattern in _RECORDED:
        if pattern == LOGS:
            continue
        for path in sorted(run_dir.glob(pattern)):
            with (
                os.fdopen(open_regular(path, os.O_RDONLY), "rb") as source,
                (folder / path.name).open("wb") as copy,
            ):
                shutil.copyfileobj(source, copy)
    results = read_results(run_dir)
    rows: list[Sequence[Any]] = []
    for file in sorted({baseline["file"]: None for _, baseline in _baselines_of(results)}):
        rows += _record_versions(file, root, folder)
    if rows:
        _write_csv(folder / "baselines" / "history.csv", _HISTORY, rows)
    _write_csv(folder / "retests.csv", _RETESTS, _retests(run_dir, results))
    about = {
        "schema": 1,
        "run": run_dir.name,
        "made_by": installed()["pytest-fairness"],
        "pdf": surroundings(),
    }
    (folder / ABOUT).write_text(
        json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="ascii", newline="\n"
    )


def _record_versions(file: str, root: Path, folder: Path) -> Iterator[Sequence[Any]]:
    """Copy each version of the baseline *file* into *folder*, the oldest first; a row for each."""
    history, why = versions(root / file, root)
    before: BaselineVersion | None = None
    for number, version in enumerate(reversed(history), 1):
        digest = "unread"
        if version.document:
            digest = version.document.digest.partition(":")[2][:12]
        name = f"baselines/{Path(file).stem}/{number:03d}-{digest}.json"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(version.text.encode("utf-8"))
        yield _version_row(file, name, version, before)
        before = version
    if why:
        yield [file, "", "", "", f"no earlier versions: {why}"]


_HISTORY = (
    "file", "version", "commit", "committed", "author", "approved_by", "approved_by_source", "approved_at",
    "justification", "run_id", "endpoint", "models", "regression", "simulated", "replayed", "overall_before", "overall",
    "digest",
)  # fmt: skip
_RETESTS = (
    "finding", "run", "finished", "verdict", "test", "outcome", "class", "endpoint", "simulated", "mitigation",
    "mitigation_done", "relation",
)  # fmt: skip


def _version_row(
    file: str, name: str, version: BaselineVersion, before: BaselineVersion | None
) -> Sequence[Any]:
    facts = version.facts()
    values = list(map(facts.get, _HISTORY[5:15]))
    old = None
    if before is not None:
        old = before.scores().get("overall")
    digest = version.why
    if version.document:
        digest = version.document.digest
    commit = [version.commit or "not committed", version.committed, version.author]
    return [file, name, *commit, *values, old, version.scores().get("overall"), digest]


def _retests(run_dir: Path, results: RunResults) -> Iterator[Sequence[Any]]:
    """Yield what every other run beside this one says of the findings that did not pass in it, or
    that an entry answers.
    """
    wanted = answered_by(results.mitigations)
    for finding, _, number in results.named:
        if finding.verdict != "PASS":
            wanted.add(number)
    if not wanted:
        return
    for other in run_folders(run_dir.parent):
        if other.name == run_dir.name:
            continue
        with contextlib.suppress(FairnessError):  # a run that did not come to its end says nothing
            yield from _retests_in(read_results(other), other.name, wanted, results)


def _retests_in(
    again: RunResults, run: str, wanted: Container[str], results: RunResults
) -> Iterator[Sequence[Any]]:
    """Yield what the run *again*, which is called *run*, says of the findings *wanted*."""
    finished = again.run.get("finished")
    day = end_of(again)[:10]
    for finding, nodeid, number in again.named:
        if number not in wanted:
            continue
        about = (
            finding.outcome,
            finding.protected_class,
            finding.model_endpoint or "",
            finding.simulated,
        )
        action = _action_on(number, day, results)
        yield number, run, finished, finding.verdict.value, nodeid, *about, *action


def _action_on(number: str, day: str, results: RunResults) -> tuple[str, str, str]:
    """Return what was done about the finding *number*, when, and whether a run of *day* came before
    that or is a re-test; of several actions the last that was done by then. Empty where nothing was
    done.
    """
    entries = []
    for mitigation in results.mitigations:
        if number in mitigation.get("findings", ()) and mitigation.get("done"):
            entries.append(mitigation)
    if not entries:
        return "", "", ""
    relation = "before"
    in_time = [entry for entry in entries if str(entry["done"]) <= day]
    if in_time:
        entries = in_time
        relation = "re-test"
    entry = max(entries, key=lambda entry: str(entry["done"]))
    return str(entry["action"]), str(entry["done"]), relation


def derive(folder: Path) -> None:
    """Make, in *folder*, all that follows from what was recorded: index, reports, tables, methods."""
    results = read_results(folder)
    write_html(folder)
    tables = {
        "statistics/findings.csv": _findings_table(results),
        "statistics/groups.csv": _parts_table(
            results, GroupResult, lambda finding: finding.group_results
        ),
        "statistics/pairs.csv": _parts_table(results, PairResult, lambda finding: finding.pairs),
        "scenarios.csv": _scenarios(results),
        "justifications.csv": _justifications(results),
        "mitigations.csv": _mitigations(results),
    }
    for name, (head, rows) in tables.items():
        _write_csv(folder / name, head, rows)
    (folder / "methodology").mkdir(exist_ok=True)
    for name in _METHODS:
        text = (_documentation() / name).read_text(encoding="utf-8")
        # Pages beside these are not here.
        (folder / "methodology" / name).write_text(
            _LINK.sub(r"\1", text), encoding="utf-8", newline="\n"
        )
    reasons = [
        f"{number} ({nodeid})\n\n{finding.explain()}\n" for finding, nodeid, number in results.named
    ]
    text = "\n".join(["How each verdict of this run was reached.\n", *reasons])
    (folder / "methodology" / "of_each_finding.txt").write_bytes(
        text.encode("utf-8", "backslashreplace")
    )
    about = json.loads((folder / ABOUT).read_bytes())
    if about.get("pdf"):
        write_summary(folder)
    pages = sorted(
        path.name.removesuffix(".html")
        for path in folder.glob("*.html")
        if path.name != "index.html"
    )
    page = bundle_page(results, folder, _CONTENTS)
    links = [(stem, f"{stem}.html") for stem in pages]
    (folder / "index.html").write_bytes(
        render(page, results.run, links).encode("utf-8", "backslashreplace")
    )


_CONTENTS = {
    "report.html": "every finding with its groups, pairs, pictures and examples",
    "summary.pdf": "one to three pages to be read and signed",
    "findings.json": "every finding, as data; with what was adjusted across the session, and what mitigations say",
    "manifest.json": "what was run: command, settings, versions, endpoints, models, and how far each log reaches",
    "trials*.jsonl": "every request and reply, verbatim, and what each finding was judged from; chained by hashes",
    "statistics/": "findings, groups and pairs as tables",
    "scenarios.csv": "each finding as a scenario: groups, hazard, measurement, threshold, mitigation, review",
    "justifications.csv": "why a FLAG was accepted, by whom, and until when",
    "mitigations.csv": "what is done about findings, by whom, and what this run says of it",
    "retests.csv": "what other runs of the project say of the findings that did not pass",
    "baselines/": "every approved version of each baseline, and history.csv: who approved it, when and why",
    "methodology/": "how verdicts are reached, with sources, and how often they are wrong",
    "bundle.json": "what made this bundle",
    SUMS: "the SHA-256 of every other file: sha256sum -c SHA256SUMS",
}


def _documentation() -> Path:
    """The pages that say how verdicts are reached: in the wheel, or of a source checkout."""
    here = Path(__file__).resolve()
    package = here.parents[1] / "docs"
    checkout = here.parents[3] / "docs"
    for folder in (package, checkout):
        if (folder / _METHODS[0]).is_file():
            return folder
    raise StoreError(
        f"the documentation is missing (looked in {package} and {checkout}); reinstall "
        "pytest-fairness"
    )


# ---------------------------------------------------------------- tables


Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]


def _findings_table(results: RunResults) -> Rows:
    fields = (
        "assertion", "outcome", "protected_class", "model_endpoint", "tier", "verdict", "reason", "spec_verdict",
        "test_statistic", "p_value", "corrected_p_value", "effect_size", "simulated", "replayed", "sentence",
    )  # fmt: skip
    rows = (
        [number, nodeid, *(getattr(finding, name) for name in fields)]
        for finding, nodeid, number in results.named
    )
    return ("finding", "test", *fields), rows


def _parts_table(
    results: RunResults, kind: type[Any], parts: Callable[[Any], Iterable[Any]]
) -> Rows:
    """A row a group, or a pair, of each finding: its fields, what is nested as JSON."""
    names = [field.name for field in dataclasses.fields(kind)]
    rows = (
        [number, nodeid, finding.outcome, *(getattr(part, name) for name in names)]
        for finding, nodeid, number in results.named
        for part in parts(finding)
    )
    return ("finding", "test", "outcome", *names), rows


def _scenarios(results: RunResults) -> Rows:
    """A row a finding: groups, hazard, measurement, threshold, mitigation and review trigger."""
    head = (
        "finding",
        "test",
        "class",
        "groups",
        "hazard",
        "measurement",
        "threshold",
        "mitigation",
    )
    rows = []
    for finding, nodeid, number in results.named:
        groups = ", ".join(group.group for group in finding.group_results)
        measurement = f"{finding.assertion}: {finding.outcome}"
        actions = []
        for entry in results.mitigations:
            if number in entry.get("findings", ()):
                actions.append(str(entry["action"]))
        row = (
            *(number, nodeid, finding.protected_class, groups, finding.scenario.get("hazard")),
            *(measurement, family_line(finding), "; ".join(actions)),
            finding.scenario.get("review_trigger"),
        )
        rows.append(row)
    return (*head, "review_trigger"), rows


def _justifications(results: RunResults) -> Rows:
    names = ("reason", "approver", "date", "expiry")
    rows = []
    for finding, nodeid, number in results.named:
        if finding.justification is not None:
            given = map(finding.justification.get, names)
            rows.append([number, nodeid, finding.verdict, finding.outcome, *given])
    return ("finding", "test", "verdict", "outcome", *names), rows


def _mitigations(results: RunResults) -> Rows:
    about = ("finding", "test", "outcome", "class", "action", "owner", "date", "due", "done")
    names = ("status", "verdict", "findings", *about, "retested", "simulated")
    return names, (list(map(mitigation.get, names)) for mitigation in results.mitigations)


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([csv_cell(_flat(value)) for value in row])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.getvalue().encode("utf-8", "backslashreplace"))


def _flat(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        if value:
            return json.dumps(value, sort_keys=True, default=dict)
        return ""
    if isinstance(value, (str, bool)):
        return str(value)
    return value


# ---------------------------------------------------------------- packing


def _files(folder: Path) -> list[str]:
    """The files under *folder*, by their path from it. Raises StoreError for a link, and for what
    is no file.
    """
    files = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            files.append(path.relative_to(folder).as_posix())
        elif not stat.S_ISDIR(status.st_mode):
            raise StoreError(f"{path} is a link, or no plain file: a bundle holds files alone")
    return sorted(files)


def sha256_of(path: Path) -> str:
    """The SHA-256 of the file *path*, in hex. Raises StoreError for a link and for what is no file."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sums_of(folder: Path) -> str:
    """The SHA-256 of every file in *folder*, as ``sha256sum`` writes and reads them."""
    lines = []
    for name in _files(folder):
        if name != SUMS:
            lines.append(f"{sha256_of(folder / name)}  {name}\n")
    return "".join(lines)


def _pack(folder: Path, into: Path) -> None:
    """A ZIP of *folder* that says nothing of when, where and by whom it was packed."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in _files(folder):
            entry = zipfile.ZipInfo(f"{folder.name}/{name}", _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o600) << 16
            entry.file_size = (folder / name).stat().st_size  # decides whether it needs ZIP64
            with (folder / name).open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target)


def unpack(bundle: Path, into: Path) -> Path:
    """Unpack the file *bundle* into the empty folder *into*; the folder of its files.

    Raises StoreError for what is no ZIP or is damaged, and for entries that a bundle never has:
    paths that lead elsewhere, links, names that stand twice, more files or bytes than can be meant.
    """
    try:
        with zipfile.ZipFile(bundle) as archive:
            _refuse_hostile(bundle, archive.infolist())
            for entry in archive.infolist():
                target = into / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
    except (
        OSError,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
    ) as error:
        raise StoreError(
            f"{bundle} cannot be unpacked ({error}): it was cut short or changed"
        ) from error
    except Exception as error:  # of the decompressor, whose errors have no common base
        if type(error).__module__ not in ("zlib", "_lzma", "lzma"):
            raise
        raise StoreError(
            f"{bundle} cannot be unpacked ({error}): it was cut short or changed"
        ) from error
    tops = {PurePosixPath(path.relative_to(into).as_posix()).parts[0] for path in into.rglob("*")}
    if len(tops) == 1:
        return into / tops.pop()
    return into


def _refuse_hostile(bundle: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise StoreError for a ZIP file that the tool cannot have packed."""
    faults = [_fault_of_all(bundle, entries), *map(_fault_of, entries)]
    for why in filter(None, reversed(faults)):
        raise StoreError(f"{bundle} is no bundle of this tool: {why}; nothing was unpacked")


def _fault_of_all(bundle: Path, entries: Sequence[zipfile.ZipInfo]) -> str:
    """Return why *entries* together are none of a bundle's; empty where they may be."""
    whole = sum(entry.file_size for entry in entries)
    most = max(_LEAST, _RATIO * bundle.stat().st_size)
    if len(entries) > _ENTRIES or whole > min(_BYTES, most):
        return f"it would unpack to {len(entries):,} files of {whole:,} bytes"
    names = {entry.filename.casefold() for entry in entries}
    if len(names) < len(entries):
        return "a file stands in it twice"
    return ""


def _fault_of(entry: zipfile.ZipInfo) -> str:
    """Return why *entry* is none of a bundle's; empty where it may be one."""
    name = entry.filename
    climbs = ".." in PurePosixPath(name).parts
    if climbs or not _NAME.fullmatch(name):
        return f"an entry is called {name!r:.80}"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return f"{name} is a link, or no plain file"
    if entry.flag_bits & 1:
        return f"{name} is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"{name} is packed in another way"
    return ""


# ---------------------------------------------------------------- verifying one


def is_bundle(path: Path) -> bool:
    """Return whether *path* is a file, or a folder that a bundle was unpacked to."""
    return path.is_file() or any((path / name).exists() for name in (SUMS, ABOUT, "index.html"))


def verify(path: Path, watch: Watch = unwatched, *, records_only: bool = False) -> Verification:
    """Verify a bundle, the folder that it was unpacked to, or a run's folder; with *records_only*
    not what is made of the records of a bundle, as index and reports. *watch* shows how far that
    is. Raises UsageError for anything else.
    """
    if path.is_file():
        with tempfile.TemporaryDirectory(prefix="fairness-verify-") as temporary:
            try:
                folder = unpack(path, Path(temporary))
            except StoreError as error:
                return Verification(problems=[str(error)])
            return _verify_bundle(folder, Path(temporary) / "again", watch, records_only)
    if is_bundle(path):
        with tempfile.TemporaryDirectory(prefix="fairness-verify-") as temporary:
            return _verify_bundle(path, Path(temporary) / "again", watch, records_only)
    return verify_run(path, project_baselines(project_of(path)), watch)


def _verify_bundle(folder: Path, again: Path, watch: Watch, records_only: bool) -> Verification:
    """Verify the bundle in *folder*: its files, its run, and all that is made of it, which is made
    *again* unless
    *records_only*.
    """
    verification = Verification()
    try:
        verification.problems += check_sums(folder, verification)
        about = _about(folder)
        run = verify_run(folder, _bundled(folder), watch)
        verification.checked += run.checked
        verification.problems += run.problems
        verification.derived += run.derived
        if not about:
            verification.problems.append(
                f"{ABOUT} is missing: nothing shows which version made the pages"
            )
        elif about.get("run") != read_manifest(folder).get("id"):
            verification.problems.append(
                f"{ABOUT} is of run {about.get('run')!r:.80}, and manifest.json of another"
            )
        if not run.problems and about:
            _check_derived(folder, again, about, verification, watch, records_only=records_only)
    except (FairnessError, OSError, ValueError, KeyError) as error:
        verification.problems.append(str(error))
    return verification


def check_sums(folder: Path, verification: Verification) -> list[str]:
    """Return which files of *folder* are not as its SHA256SUMS lists them."""
    there = set(_files(folder)) - {SUMS}
    if not (folder / SUMS).exists():
        return [f"{SUMS} is missing: nothing shows which files the bundle had"]
    listed: dict[str, str] = {}
    for number, line in enumerate((folder / SUMS).read_text("ascii", "replace").splitlines(), 1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line)
        if match is None or match[2] in listed:
            return [f"{SUMS}, line {number}: this is no sum, or stands twice"]
        listed[match[2]] = match[1]
    wrong = [f"{name} is missing" for name in sorted(listed.keys() - there)]
    wrong += [
        f"{name} was added: {SUMS} does not list it" for name in sorted(there - listed.keys())
    ]
    for name in sorted(there & listed.keys()):
        if sha256_of(folder / name) != listed[name]:
            wrong.append(f"{name} was changed: its SHA-256 is not the one in {SUMS}")
    if not wrong:
        verification.checked.append(f"{len(there)} files, each as {SUMS} lists it")
    return wrong


def _about(folder: Path) -> dict[str, Any]:
    """The facts of the bundle in *folder*, as which version made it; none where they are missing.

    Raises StoreError where that version is newer than this one: what it holds may mean something
    else.
    """
    if not (folder / ABOUT).is_file():
        return {}
    about: dict[str, Any] = json.loads((folder / ABOUT).read_bytes())
    made_by = str(about.get("made_by"))
    here = installed()["pytest-fairness"]
    try:
        newer = Version(made_by) > Version(str(here))
    except InvalidVersion:
        raise StoreError(
            f"{ABOUT} says that version {made_by!r:.40} made it, which is no version"
        ) from None
    if newer:
        raise StoreError(
            f"version {made_by} made it, which is newer than this one ({here}): install "
            f"pytest-fairness {made_by} and "
            "verify with that"
        )
    return about


def _check_derived(
    folder: Path,
    again: Path,
    about: Mapping[str, Any],
    verification: Verification,
    watch: Watch,
    *,
    records_only: bool,
) -> None:
    """Make all that follows from the records *again*, and compare it with what is in *folder*."""
    taken: dict[str, None] = {}
    for pattern in _TAKEN:
        taken |= dict.fromkeys(_matching(folder, pattern))
    recorded = list(taken)
    if records_only:
        verification.left_out += [name for name in _files(folder) if name not in (*recorded, SUMS)]
        return
    if Version(str(about["made_by"])) != Version(str(installed()["pytest-fairness"])):
        verification.problems.append(
            f"pages were not compared: version {about['made_by']} made index, reports and tables "
            "(this is "
            f"{installed()['pytest-fairness']}): install that version, or verify --records-only"
        )
        return
    _copy(recorded, folder, again)
    without_pdf = about.get("pdf") not in (None, surroundings())
    if without_pdf:  # another version of the library writes other bytes
        (again / ABOUT).write_text(
            json.dumps({**about, "pdf": None}), encoding="ascii", newline="\n"
        )
        verification.problems.append(
            f"summary.pdf was not compared: it was made with {shortened(str(about['pdf']), 200)}; "
            "verify where these "
            "are, or verify --records-only"
        )
    with stored(again, watch):
        derive(again)
    made = [name for name in _files(again) if name not in recorded]
    passed_over = {SUMS}
    if without_pdf:
        passed_over.add("summary.pdf")
    problems = _unlike_made(folder, again, made)
    more = set(_files(folder)) - set(_files(again)) - passed_over
    problems += [f"{name} is no part of a bundle" for name in sorted(more)]
    verification.settle(
        problems, f"{len(made)} files of index, reports and tables follow from what was recorded"
    )


def _copy(names: Iterable[str], folder: Path, into: Path) -> None:
    """Copy the files of these *names* from *folder* to the new folder *into*."""
    into.mkdir()
    for name in names:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, into / name)


def _unlike_made(folder: Path, again: Path, made: Iterable[str]) -> list[str]:
    """Name the files in *folder* that are not as they were *made* *again*."""
    unlike = []
    for name in made:
        file = folder / name
        if not file.is_file() or sha256_of(file) != sha256_of(again / name):
            unlike.append(f"{name} is not what the recorded files make of it")
    return unlike


def _matching(folder: Path, pattern: str) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.glob(pattern) if path.is_file()
    )


# ---------------------------------------------------------------- baselines


def project_of(run_dir: Path) -> Path:
    """The project that the run in *run_dir* is of, as far as its manifest tells."""
    kept = PurePosixPath(str(read_manifest(run_dir).get("settings", {}).get("run_dir", "")))
    place = run_dir.resolve().parent
    inside = (
        not kept.is_absolute()
        and ".." not in kept.parts
        and place.parts[-len(kept.parts) :] == kept.parts
    )
    if inside and kept.parts:
        return place.parents[len(kept.parts) - 1]
    return Path.cwd()


def _baselines_of(results: RunResults) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The findings about a baseline, each with what it says of it."""
    for finding in results.findings:
        baseline = finding.details.get("baseline")
        if isinstance(baseline, Mapping) and isinstance(baseline.get("file"), str):
            yield finding, baseline


def project_baselines(root: Path) -> Callable[[Mapping[str, Any], str], BaselineDocument | None]:
    """Approved documents from the files of the project in *root*, and from its history in git."""

    def find(baseline: Mapping[str, Any], digest: str) -> BaselineDocument | None:
        try:
            history, _ = versions(root / str(baseline.get("file")), root)
        except FairnessError:
            return None
        for version in history:
            if version.document is not None and version.document.digest == digest:
                return version.document
        return None

    return find


def _bundled(folder: Path) -> Callable[[Mapping[str, Any], str], BaselineDocument | None]:
    """Approved documents from the *folder* of a bundle."""
    documents: dict[str, BaselineDocument] = {}
    for name in _matching(folder, "baselines/*/*.json"):
        with contextlib.suppress(BaselineError, OSError):
            document = BaselineDocument.from_bytes((folder / name).read_bytes(), where=name)
            documents[document.digest] = document
    return lambda _known, digest: documents.get(digest)
