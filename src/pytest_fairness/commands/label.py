"""``pytest-fairness label``: a person reads a sample of a run's replies, without knowing whom they
are about, so that verdicts carry the error of whatever read them all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_flag, add_path, add_run
from pytest_fairness.errors import UsageError
from pytest_fairness.words import count

if TYPE_CHECKING:
    from pytest_fairness.reports.label_samples import LabelSample, SampledText
    from pytest_fairness.scorers.labelling import Label

_QUIT = "q"
_NONE = "0"
#: Texts that are shown at a time may be long: a reply is cut here, and says so.
_LONGEST = 20_000


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "label",
        help="read a sample of a run's replies yourself, so that verdicts carry the reader's error",
        description="Shows a sample of the replies that a scorer read, without names, pronouns "
        "and the words of groups, in an order that tells nothing, and asks what each says. Labels "
        "are kept in the project's folder labels/, under the keys of trials; they hold no reply. "
        "The next session on these trials (--fairness-replay, --fairness-resume) corrects its "
        "verdicts by them. Without --html, --csv or --from it asks here, and can be interrupted at "
        "any time.",
        example="pytest-fairness label last --scorer decision --sample 50 --who AB",
    )
    add_run(parser, "run_folder", help="the run whose replies are read")
    parser.add_argument(
        "--scorer", required=True, metavar="NAME", help="the outcome that is labelled"
    )
    parser.add_argument(
        "--sample", type=int, default=50, metavar="N", help="replies a group of each test (50)"
    )
    add_flag(
        parser,
        "--unread",
        "the replies that nobody could read, in the place of those that were read",
    )
    parser.add_argument("--who", default="", metavar="NAME", help="who labels, as it is kept")
    add_path(parser, "--html", "write a page on which it can be done instead", metavar="FILE")
    add_path(
        parser, "--csv", "write a sheet whose column label is filled in instead", metavar="FILE"
    )
    add_path(parser, "--from", "take the labels of a page or a sheet", metavar="FILE")
    parser.set_defaults(run=label)


def label(arguments: argparse.Namespace) -> tuple[str, int]:
    """Ask a person, write what asks, or take what was answered; say how many labels there are.
    Raises UsageError.
    """
    from pytest_fairness.reports.label_page import label_page, label_sheet

    if arguments.sample < 1:
        raise UsageError(f"--sample={arguments.sample}: give a whole number from 1")
    given: Path | None = getattr(arguments, "from")
    if given is not None:
        return _taken(arguments, given)
    sample = _sample(arguments, arguments.sample)
    written = []
    for path, made in ((arguments.html, label_page), (arguments.csv, label_sheet)):
        if path is not None:
            _write(path, made(sample, arguments.sample))
            written.append(f"{path}: {count(len(sample.texts), 'text')} to label")
    if not written:
        return _asked(arguments, sample)
    back = (
        f"pytest-fairness label {arguments.run_folder.name} --scorer {arguments.scorer} --from FILE"
    )
    return "\n".join([*written, f"take the labels back with: {back}", ""]), 0


def _project() -> Path:
    """Return the folder of the project that one stands in."""
    from pytest_fairness.runs.project import configuration

    table = configuration(Path.cwd())
    if table is None:
        return Path.cwd()
    return table[0]


def _file(arguments: argparse.Namespace) -> Path:
    from pytest_fairness.runs.labels import FOLDER, labels_file

    return labels_file(_project() / FOLDER, arguments.scorer)


def _sample(arguments: argparse.Namespace, size: int) -> LabelSample:
    from pytest_fairness.documents import project_folder
    from pytest_fairness.reports.label_samples import label_sample

    sample = label_sample(
        arguments.run_folder,
        arguments.scorer,
        size=size,
        personas=project_folder(_project()),
        unread=arguments.unread,
    )
    if not sample.texts:
        kind = "unread" if arguments.unread else "read"
        raise UsageError(f"{sample.run}: no reply was {kind} by {arguments.scorer!r}")
    return sample


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


# ---------------------------------------------------------------- back from a file


def _taken(arguments: argparse.Namespace, given: Path) -> tuple[str, int]:
    """Take the labels of the file *given*."""
    from pytest_fairness.reports.label_page import read_sheet, text_of
    from pytest_fairness.runs.labels import append_labels

    options = _sample(arguments, 1).task.options
    rows = read_sheet(given, arguments.who, options)
    sizes = {row.sample for row in rows}
    if len(sizes) != 1:
        raise UsageError(f"{given} holds no labels of one sample; fill in its column label")
    sample = _sample(arguments, sizes.pop())
    labels = []
    for row in rows:
        text = text_of(sample, row.id, given)
        _check(sample, row.label, f"{given}, text {row.id}")
        labels += list(sample.labels(text, row.label, who=row.who, when=row.when))
    file = _file(arguments)
    append_labels(file, labels)
    return _kept(file, len(rows), len(labels), sample), 0


def _check(sample: LabelSample, given: Label, where: str) -> None:
    """Raise UsageError where *given* is no label of the *sample*."""
    from pytest_fairness.runs.labels import label_in_words
    from pytest_fairness.scorers.labelling import NONE

    task = sample.task
    if given == NONE:
        return
    if task.options:
        fits = isinstance(given, bool) == isinstance(next(iter(task.options.values())), bool)
        if not fits or given not in task.options.values():
            words = label_in_words(given)
            raise UsageError(f"{where}: {words} is none of {', '.join(task.options)}")
        return
    low = -float("inf") if task.low is None else task.low
    high = float("inf") if task.high is None else task.high
    if isinstance(given, (bool, str)) or not low <= given <= high:
        raise UsageError(f"{where}: {given} is no number from {low:g} to {high:g}")


def _kept(file: Path, texts: int, replies: int, sample: LabelSample) -> str:
    """Say how many labels were kept, and what comes next."""
    return (
        f"{file}: {count(texts, 'text')} labelled, which {count(replies, 'reply', 'replies')} "
        f"read as\njudge with them: the same tests with --fairness-replay {sample.run}\n"
    )


# ---------------------------------------------------------------- in the terminal


def _asked(arguments: argparse.Namespace, sample: LabelSample) -> tuple[str, int]:
    """Ask for the labels here, and keep each at once."""
    from pytest_fairness.runs.labels import append_labels, checked_name, read_labels

    who = checked_name(arguments.who or _answer("Your name or initials: "))
    file = _file(arguments)
    left = sample.left(read_labels(file), who)
    total = len(sample.texts)
    _say(f"{sample.task.question}\n{sample.task.rubric}".strip() + "\n")
    texts = replies = 0
    for number, text in enumerate(left, total - len(left) + 1):
        given = _ask(sample, text, f"{number} of {total}")
        if given is None:
            break
        labels = list(
            sample.labels(
                text, given, who=who, when=datetime.now(UTC).isoformat(timespec="seconds")
            )
        )
        append_labels(file, labels)
        texts += 1
        replies += len(labels)
    if not left:
        return f"{file}: {who} has labelled all {total} texts of this sample\n", 0
    return _kept(file, texts, replies, sample), 0


def _ask(sample: LabelSample, text: SampledText, standing: str) -> Label | None:
    """Return what a person says of *text*; None where they stop."""
    _say("\n".join([*_shown(sample, text, standing), ""]))
    while True:
        answer = _answer("> ").strip().casefold()
        if answer == _QUIT:
            return None
        try:
            given = _label(sample, answer)
            _check(sample, given, "this")
        except (ValueError, IndexError, UsageError):
            _say(f"give one of the numbers above, or {_QUIT} to stop\n")
            continue
        return given


def _shown(sample: LabelSample, text: SampledText, standing: str) -> Iterator[str]:
    from pytest_fairness.reports.escaping import terminal

    yield f"\n---- {standing} ----"
    if text.prompt is not None:
        yield "it replies to:"
        yield from (f"  | {line}" for line in terminal(text.prompt[:_LONGEST]).splitlines())
    yield from (f"  {line}" for line in terminal(text.text[:_LONGEST]).splitlines())
    if len(text.text) > _LONGEST:
        yield f"  … ({len(text.text) - _LONGEST:,} characters more)"
    yield "----"
    for number, words in enumerate(sample.task.options, 1):
        yield f"{number}  {words}"
    if not sample.task.options:
        yield "a number"
    yield f"{_NONE}  none of these, or it cannot be told   {_QUIT}  stop"


def _label(sample: LabelSample, answer: str) -> Label:
    """Return what *answer* means. Raises ValueError or IndexError where it means nothing."""
    from pytest_fairness.runs.labels import label_of
    from pytest_fairness.scorers.labelling import NONE

    if sample.task.options:
        if answer == _NONE:
            return NONE
        scores: Sequence[Any] = list(sample.task.options.values())
        score = scores[int(answer) - 1]
        return NONE if score is None else score
    if answer in (NONE, "none"):
        return NONE
    return label_of(answer)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _answer(question: str) -> str:
    """Return a line that a person types; :data:`_QUIT` at the end of the input."""
    _say(question)
    line = sys.stdin.readline()
    if not line:
        return _QUIT
    return line.rstrip("\n")
